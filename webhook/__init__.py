"""rdma-webhook: label a namespace, annotate a pod, and RDMA works.

Each package says in its docstring what it is for; who may import whom is in pyproject.toml
([tool.importlinter]), which `make lint` enforces.
"""

__version__ = "0.1.0"
