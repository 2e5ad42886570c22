"""The API server: watches, reads, pods and Events. No other package imports its client.

`access` and `credentials` choose the API server and the account, `client` calls it. `reflector`
keeps up with one kind and `informers` with all, as `watched_resources` lists them; `cluster_reads`
reads with the rights of a person. Objects become records of `webhook.model` here; decisions on them
are made elsewhere. Start with `informers`.
"""
