"""The configuration: read, checked and compiled; the same for a file and for the cluster's object.

`model` has its fields, `rules/` what is wrong with it, `messages` the sentences, `crd` and `schema`
what editors and API servers know about it. `files` also reads the facts file of a preview. Where a
server gets its configuration from is in `serve/sources`. Start with `load`.
"""

from __future__ import annotations

from pathlib import Path

#: Where a machine may have its site's fabrics.
INSTALLED = Path("/etc/rdma-webhook/fabrics.yaml")
#: Two InfiniBand fabrics, for a first look at what the webhook does.
EXAMPLE = Path(__file__).parent / "examples" / "lab-two-infiniband.yaml"
