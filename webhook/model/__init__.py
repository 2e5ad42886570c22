"""The values that the whole webhook works with: pods, fabrics, facts and decisions.

`pod` reads a pod's manifest, `objects` other manifests, and `annotations` the users' annotations.
`resources` and `claims` are devices, `fabric` and `inventory` the configuration and its nodes,
`facts` the cluster, `json` the types of unchecked JSON, and `decision` the result.
Nothing here decides, does I/O or imports another package of webhook/. Start with `decision`.
"""
