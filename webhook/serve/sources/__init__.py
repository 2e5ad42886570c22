"""The sources of the state: the configuration, the facts about the cluster, the certificate.

A source reads in threads; the event loop polls it and sends its changes to the state. Each module
chooses between a file and the cluster, or follows one of them; `source` has their common parts.
`fabric_node_counter` only counts, for the metrics. Watches themselves are in `webhook.kube`. Start
with `source`, then `configuration`.
"""
