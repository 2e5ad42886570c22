"""The objects that make device plugins offer the resources of planned fabrics.

`device_plugin` writes the configuration of the shared device plugin, `network_config` that of AMD's
Network Operator, `networks` the networks of pods, and `files` collects all files and notes on what
could not be written. The fabrics are planned in `webhook.diagnose.discover.plan`. Start with
`files`.
"""
