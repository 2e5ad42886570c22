"""Where the state comes from: the fabrics file, the cluster, certificates."""
