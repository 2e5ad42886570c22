"""Mutate functions, to see whether a test notices."""
