"""The API server: watches, reads, pods and Events. No other package imports the Kubernetes client.

`access` and `credentials` choose the API server and the account, `client` calls it. `reflector`
follows one kind, and `informers` several kinds in `watched_resources`; `cluster_reads` reads for a
command, with the rights of its user. Objects become records of `webhook.model` here; decisions on
them are made elsewhere. Start with `informers`.
"""
