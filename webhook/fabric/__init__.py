"""What a fabric is, and which variables it gives a container."""
