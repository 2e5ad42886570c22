"""The tools for people who look for a fault: `why`, `discover` and `verify`.

`why` explains a pod, `discover` writes a fabrics file from what tools printed on nodes, `verify`
measures the network; they do not know each other. `tools` reads the output of programs, `codes` and
`remedies` explain reason codes. The server imports nothing of this, and no pod is patched here.
Start with `why.answer`.
"""
