"""The configuration: read, checked and compiled; the same for a file and for the cluster's object.

`model` has its fields, `rules/` the checks, `messages` the sentences, `crd` and `schema` the
schemas for API servers and editors. `files` also reads the facts file of a preview. The sources of
a server's configuration are in `serve/sources`. Start with `load`.
"""

from __future__ import annotations

from pathlib import Path

#: The fabrics file that `preview` and `serve` use if no other is named.
INSTALLED_FABRICS = Path("/etc/rdma-webhook/fabrics.yaml")
#: The command that writes a facts file.
FACTS_COMMAND = "kubectl get ns,limitrange,quota,node -A -o yaml"
#: Two InfiniBand fabrics, for a first look at the webhook.
EXAMPLE = Path(__file__).parent / "examples" / "lab-two-infiniband.yaml"
