"""Figures of the structure of the code: `python -m tests.structure` prints them."""
