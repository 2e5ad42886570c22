"""What the server writes to the cluster, besides what `certs` writes."""
