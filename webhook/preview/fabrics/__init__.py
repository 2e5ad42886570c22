"""fabrics."""
