"""The device plugins' side of the planned fabrics: what offers the resources that pods request.

`device_plugin` writes the configuration of the shared device plugin, `networks` the networks of
pods, and `files` puts them together with what could not be written. The fabrics are planned in
`webhook.diagnose.discover.plan`. Start with `files`.
"""
