"""The inventory of fabrics: which nodes each has, what they offer, and what is wrong.

`record` is the form for programs, `text` that for people; both serve the command line and
`/fabrics` over HTTP. The inventory itself is made in `webhook.model.inventory`.
Start with `record`.
"""
