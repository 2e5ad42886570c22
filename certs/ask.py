"""Ask for the next CA, of the replicas that run; none of its keys is ever in other hands."""

from __future__ import annotations

from itertools import repeat

from certs.authorities import RotationRequest
from certs.errors import ApiError
from certs.installation import Api, Installation
from certs.stored import ROTATE

_TRIES = 5


def ask(api: Api, installation: Installation, asked: RotationRequest) -> None:
    """Annotate the Secret; ApiError where that cannot be done."""
    path = f"/api/v1/namespaces/{installation.namespace}/secrets/{installation.ca_secret}"
    for _ in repeat(None, _TRIES):
        secret = api.read(path)
        if secret is None:
            raise ApiError(f"there is no Secret {installation.namespace}/{installation.ca_secret}")
        if secret.get("immutable"):
            what = f"Secret {installation.namespace}/{installation.ca_secret} is immutable"
            raise ApiError(f"{what}: delete it first, and the replicas make it again")
        metadata = secret["metadata"]
        annotations = metadata.get("annotations") or {}
        metadata = {**metadata, "annotations": {**annotations, ROTATE: asked.value}}
        if api.replace(path, {**secret, "metadata": metadata}):
            return
    raise ApiError(f"Secret {installation.namespace}/{installation.ca_secret} changes all the time")
