"""The server: its listeners, its state, and what keeps the state up to date.

`http` has the endpoints, `transport` the connections below them, `sources` the configuration, the
cluster and certificates, `worker_supervisor` the process for previews, `fair_queue` the turns of
requests. `state` is what requests read: one snapshot, replaced as a whole. What to do with a pod is
decided in `webhook.decide`, and nothing here imports `webhook.diagnose`.
Start with `server`, then `state`.
"""
