"""Ask for the next CA, of the replicas that run; none of its keys is ever in other hands."""

from __future__ import annotations

from itertools import repeat

from certs.api import Api
from certs.authorities import Asked
from certs.errors import ClusterError
from certs.site import Site
from certs.stored import ROTATE

_TRIES = 5


def ask(api: Api, site: Site, asked: Asked) -> None:
    """Annotate the Secret; ClusterError where that cannot be done."""
    path = f"/api/v1/namespaces/{site.namespace}/secrets/{site.ca_secret}"
    for _ in repeat(None, _TRIES):
        secret = api.read(path)
        if secret is None:
            raise ClusterError(f"there is no Secret {site.namespace}/{site.ca_secret}")
        if secret.get("immutable"):
            what = f"Secret {site.namespace}/{site.ca_secret} is immutable"
            raise ClusterError(f"{what}: delete it first, and the replicas make it again")
        metadata = secret["metadata"]
        annotations = metadata.get("annotations") or {}
        metadata = {**metadata, "annotations": {**annotations, ROTATE: asked.value}}
        if api.replace(path, {**secret, "metadata": metadata}):
            return
    raise ClusterError(f"Secret {site.namespace}/{site.ca_secret} changes all the time")
