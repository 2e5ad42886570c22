"""Text on any subject: escaped for terminals, wrapped, compared, and YAML.

`escape` makes invisible characters visible, `terminal` wraps and styles, `diff` compares, and
`yaml` reads and edits. Nothing here depends on pods or fabrics, or reads or writes files.
Start with `escape`.
"""
