"""YAML and JSON as text: read with positions and within limits, and edited to the byte.

`tree` is the only reader, `values` and `documents` interpret its nodes, and `hints` explains
mistakes in a text, around its `error_position`. `splice` gives a document another value, by
`in_place`, `emit` and `edits`. The subject of a document does not matter here.
docs/yaml-editing.md explains the editor.
Start with `documents`, then `splice`.
"""
