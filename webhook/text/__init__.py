"""Text, whatever it is about: escaped for terminals, wrapped, compared, and YAML.

`escape` makes invisible characters visible, `terminal` wraps and styles, `diff` compares, and
`yaml` reads and edits. Nothing here knows pods or fabrics, and nothing reads or writes files.
Start with `escape`.
"""
