"""YAML and JSON as text: read with positions and within limits, and edited to the byte."""
