"""Documents that people hand in: read within limits, searched for pods, edited as text."""
