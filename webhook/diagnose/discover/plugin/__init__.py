"""The device plugins' side of the planned fabrics: what offers the resources that pods request."""
