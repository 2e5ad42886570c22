"""The admission protocol of Kubernetes as values: reviews in, responses out, and no I/O.

`review` and `configuration_review` read what the API server sends to `/mutate` and `/validate`,
`response` writes the answers, `registration` and `match` predict which pods reach the webhook.
`webhook.decide` decides what happens to a pod; HTTP is in `webhook.serve.http`.
Start with `review`.
"""
