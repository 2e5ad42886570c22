"""A pod: `Pod` and `Container` read the original dict, each field once and on demand.

Nothing here writes or decides. `reading` has the readers by path, which other packages need only
for objects that are not pods. Start with `pod`.
"""

from __future__ import annotations

from webhook.model.pod.container import CONTAINER_FIELDS, Container, Kind
from webhook.model.pod.node_selection import NODE_TERMS, NodeTerm, Requirement
from webhook.model.pod.owners import MAX_OWNERS, OwnerReference, owners_of
from webhook.model.pod.pod import CONTAINER_DEPTH, Pod
from webhook.model.pod.reading import (
    Path,
    PodManifest,
    at,
    dotted,
    fields_or_empty,
    pointer,
    pointer_steps,
    read_flag,
    read_mapping,
    read_mappings,
    read_sequence,
    read_string,
    read_strings,
)
from webhook.model.pod.security import User

__all__ = [
    "CONTAINER_DEPTH",
    "CONTAINER_FIELDS",
    "MAX_OWNERS",
    "NODE_TERMS",
    "Container",
    "Kind",
    "NodeTerm",
    "OwnerReference",
    "Path",
    "Pod",
    "PodManifest",
    "Requirement",
    "User",
    "at",
    "dotted",
    "fields_or_empty",
    "owners_of",
    "pointer",
    "pointer_steps",
    "read_flag",
    "read_mapping",
    "read_mappings",
    "read_sequence",
    "read_string",
    "read_strings",
]
