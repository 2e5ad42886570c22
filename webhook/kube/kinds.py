"""What is watched: where each kind is, and the little that is kept of an object.

An object is thousands of characters, most of them managedFields; kept are the dozens that a
decision reads, so that ten thousand namespaces are some megabytes. Where only what is not
kept has changed, such as the status of a quota, nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from webhook.decision.annotations import FABRIC
from webhook.decision.facts import (
    PSA_ENFORCE,
    NamespaceFacts,
    limit_range_of,
    namespace_of,
    quota_of,
)

#: An object as the API server writes it.
Item = Mapping[str, Any]
_NONE: dict[str, str] = {}


class Part(Enum):
    """What an object of a kind is of the facts: `webhook.kube.snapshot` has a place for each."""

    NAMESPACE = "a namespace itself"
    RULE = "what a namespace requires of its pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of object that is watched in the whole cluster."""

    #: As in the path, in RBAC and in the metrics.
    resource: str
    part: Part
    #: What is kept of an object; falsy where it is of no consequence.
    project: Callable[[Item], Any]

    @property
    def path(self) -> str:
        """Where all of them are."""
        return f"/api/v1/{self.resource}"


def _namespace(item: Item) -> NamespaceFacts:
    whole = namespace_of(item)
    return NamespaceFacts(
        name=whole.name,
        labels=_only(PSA_ENFORCE, whole.labels or _NONE),
        annotations=_only(FABRIC, whole.annotations),
    )


def _only(key: str, values: Mapping[str, str]) -> Mapping[str, str]:
    return {key: values[key]} if key in values else _NONE


NAMESPACES = Kind(resource="namespaces", part=Part.NAMESPACE, project=_namespace)
LIMIT_RANGES = Kind(resource="limitranges", part=Part.RULE, project=limit_range_of)
QUOTAS = Kind(resource="resourcequotas", part=Part.RULE, project=quota_of)

KINDS = (NAMESPACES, LIMIT_RANGES, QUOTAS)
