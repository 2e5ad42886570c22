"""The dry run: what the webhook would do with the pods in some documents, and why.

`workloads` finds the pods of a document, `dry_run` decides on them with `webhook.decide`, `report`
and `writers` show the result, and `comparison` compares two such results. `live` reads a user's
cluster. `worker` is the process that computes previews for the server. Commands and HTTP are
elsewhere. Start with `dry_run`.
"""
