"""A real Kubernetes cluster on this machine, from source: `python -m tests.cluster`."""
