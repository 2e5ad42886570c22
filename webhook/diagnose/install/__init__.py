"""The check of an installation: whether all of the webhook's parts are there, and work together.

`reads` reads the objects, with the rights of the user; `facts` has what was read. Each of the other
modules judges one part and yields findings, also about what could not be read: `installed_objects`,
`certificates`, `policies`, `replicas`, `fabrics`, `clocks`, `monitoring`, `tried_pods`.
Nothing is written: the pods of `tried_pods` are dry runs. Start with `answer`.
"""
