"""Text on any subject: escaped for terminals, wrapped, compared, YAML, and reports.

`escape` makes invisible characters visible, `terminal` wraps and styles, `diff` compares, and
`yaml` reads and edits. `findings` formats findings, `junit` writes JUnit XML, `schema` JSON
Schemas, and `web_page` HTML documents in the style of the page. Nothing here decides about pods or
fabrics, or reads or writes files of users. Start with `escape`.
"""
