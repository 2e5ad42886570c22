"""Documents that hold pod templates: where the templates are, and whether their pods opt in."""
