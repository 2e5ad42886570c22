"""Read, check, compile and watch the fabrics file, and read the facts file."""

from __future__ import annotations

from pathlib import Path

#: Where a machine may have its site's fabrics.
INSTALLED = Path("/etc/rdma-webhook/fabrics.yaml")
#: Two InfiniBand fabrics, for a first look at what the webhook does.
EXAMPLE = Path(__file__).parent / "examples" / "lab-two-infiniband.yaml"
