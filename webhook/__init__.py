"""rdma-webhook: label a namespace, annotate a pod, and RDMA works.

The docstring of each package says what it is for. The contracts in pyproject.toml
([tool.importlinter]) say which package may import which, and `make lint` enforces them.
"""

__version__ = "0.1.0"
