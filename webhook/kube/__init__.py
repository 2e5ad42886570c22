"""The API server: watches and Events. Only this package imports the Kubernetes client."""
