"""Tools for troubleshooting: `why`, `discover`, `verify` and `install`.

`why` explains a pod, `discover` writes a fabrics file from the output of tools on nodes, `verify`
measures the network, `install` checks an installation; none of them imports another. `tools` reads
the output of programs, `codes` collects the codes of all tools. The server imports nothing from
here, and no pod is patched here.
Start with `why.answer`.
"""
