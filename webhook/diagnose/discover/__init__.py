"""From what tools printed on nodes to a fabrics file, and what fits it."""
