"""The dry run: read documents, and report what the webhook would do with their pods, and why.

`workloads` finds the pods of a document, `dry_run` decides on them with `webhook.decide`, `report`
and `writers` show the result, and `comparison` compares two. `live` reads a person's cluster.
`worker` is the process in which the server computes previews. Commands and HTTP are elsewhere.
Start with `dry_run`.
"""
