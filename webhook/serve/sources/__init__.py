"""The sources of the state: the fabrics file, the cluster, certificates."""
