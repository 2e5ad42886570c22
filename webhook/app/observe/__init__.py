"""Observability: metrics and the log."""
