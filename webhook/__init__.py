"""rdma-webhook: label a namespace, annotate a pod, and RDMA works.

Floors, from the bottom: errors, core, mutations, pipeline, admission,
{config | documents | render}, preview, app, server, cli. A module imports its
own floor or lower; import-linter enforces it (see pyproject.toml).
"""

__version__ = "0.1.0"
