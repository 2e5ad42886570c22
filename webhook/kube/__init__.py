"""The API server: the only home of the Kubernetes client, what is watched, and what is told."""
