"""Fabrics, and the variables that a container on one needs."""
