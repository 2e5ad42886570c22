"""The output of the inventory of fabrics: their nodes, the resources there, and problems.

`record` is the form for programs, `text` the form for people; both serve the command line and
`/fabrics` over HTTP. `webhook.model.inventory` builds the inventory.
Start with `record`.
"""
