"""Connect to the API server, to list and watch."""

from __future__ import annotations

from pathlib import Path

from webhook.kube.api import Reads


def connect_reads(kubeconfig: Path | None) -> Reads:
    """Return the API server of a kubeconfig, or that of the pod that this process runs in.

    Slow: it imports the Kubernetes client. Raises ClusterError if the credentials cannot be read.
    """
    from webhook.kube.client import Client  # noqa: PLC0415 -- slow to import
    from webhook.kube.reads import ApiReads  # noqa: PLC0415

    return ApiReads(Client(kubeconfig))
