"""The values that all of the webhook is about: pods, fabrics, facts and decisions.

`pod` reads a manifest, `annotations` what users ask for, `resources` and `claims` devices, `fabric`
and `inventory` the configuration with its nodes, `facts` the cluster; `decision` is the result.
Nothing here decides, does I/O or imports another room. Start with `decision`.
"""
