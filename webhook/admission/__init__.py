"""The admission protocol of Kubernetes as values: reviews in, responses out, and no I/O.

`review` and `configuration_review` read what the API server sends to `/mutate` and `/validate`,
`response` writes the answers, `registration` and `match` say for which pods the webhook is called.
What happens to a pod is decided in `webhook.decide`; HTTP is in `webhook.serve.http`.
Start with `review`.
"""
