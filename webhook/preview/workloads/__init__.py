"""Documents with pod templates: find the templates, and whether their pods opt in."""
