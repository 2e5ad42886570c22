"""Reject extended resources whose limit the API server rejects: none, or another than the request.

Kubernetes does not overcommit such resources. It makes a missing request equal to the limit, but
never a limit from a request (kubernetes pkg/apis/core/validation, ValidateResourceRequirements).
Resources of the domain kubernetes.io may be overcommitted (pkg/apis/core/v1/helper).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from webhook.errors import ShapeError
from webhook.model.path import Path, dotted
from webhook.model.quantity import equal, is_zero

_NATIVE = "kubernetes.io/"


def check_limits(
    requests: Mapping[str, Any],
    limits: Mapping[str, Any],
    rdma: Collection[str],
    path: Path,
) -> None:
    """Raise ShapeError if a container could not be created with these resources, which are `path`.

    Of several `rdma` resources, one with a limit is enough: aliases are merged into the real name.
    Raise ValueError if an amount is not a quantity.
    """
    merged = rdma if len(rdma) > 1 and any(name in limits for name in rdma) else ()
    # Sorted, as the API server sends them: the message must not depend on the order in a file.
    for name in sorted(name for name in requests if "/" in name and _NATIVE not in name):
        asked = requests[name]
        is_zero(asked)  # raises ValueError
        if name not in merged and not (name in limits and equal(asked, limits[name])):
            raise ShapeError(_message(name, asked, limits, path))


def _message(name: str, asked: Any, limits: Mapping[str, Any], path: Path) -> str:
    where = dotted((*path, "limits", name))
    if name not in limits:
        return f"{where} is missing: it must equal the request, {_shown(asked)}"
    return f"{where} is {_shown(limits[name])}: it must equal the request, {_shown(asked)}"


def _shown(written: Any) -> str:
    """Return a quantity as the API server sends it: null as 0."""
    return "0" if written is None else str(written)
