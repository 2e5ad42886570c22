"""A Kubernetes API server: the one way in which this program reaches it."""
