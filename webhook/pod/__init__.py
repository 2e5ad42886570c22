"""A pod as a plain mapping, with readers that report where its shape is wrong, and quantities."""
