"""The values that all of the webhook is about: pods, fabrics, facts and decisions.

`pod` reads a pod's manifest and `objects` other manifests, `annotations` what users ask for,
`resources` and `claims` devices, `fabric` and `inventory` the configuration with its nodes, `facts`
the cluster; `json` names what nobody has checked, and `decision` is the result.
Nothing here decides, does I/O or imports another room. Start with `decision`.
"""
