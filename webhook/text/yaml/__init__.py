"""YAML and JSON as text: read with positions and within limits, and edited to the byte.

`tree` is the one reader, `values` and `documents` say what its nodes mean, `hints` what is wrong
with a text. `splice` gives a document another value, by `rewrite`, `emit` and `edits`. What
documents are about is not known here. docs/yaml-editing.md explains the editor.
Start with `documents`, then `splice`.
"""
