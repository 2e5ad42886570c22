"""The annotations by which the NRI ulimit-adjuster raises RLIMIT_MEMLOCK for one container.

Source: containerd/nri, plugins/ulimit-adjuster. Newer versions read the first key, older ones
only the second. The limits are unsigned integers of 64 bits, the largest of which is unlimited;
`-1` does not parse, and the container fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.model.annotations import has_room

_DOMAINS = ("ulimits.noderesource.dev", "ulimits.nri.containerd.io")
_UNLIMITED = 2**64 - 1
UNLIMITED = f"- {{type: RLIMIT_MEMLOCK, soft: {_UNLIMITED}, hard: {_UNLIMITED}}}"
#: The most characters after the slash of an annotation's key (apimachinery, IsQualifiedName).
_LONGEST = 63


def wanted(container: str) -> dict[str, str]:
    """Return the annotations for a container; {} if its name is too long for a key."""
    name = f"container.{container}"
    if len(name) > _LONGEST:
        return {}
    return {f"{domain}/{name}": UNLIMITED for domain in _DOMAINS}


def missing(annotations: Mapping[str, Any], container: str) -> dict[str, str]:
    """Return the annotations to add: none where the user has either key, or there is no room."""
    added = wanted(container)
    if any(key in annotations for key in added) or not has_room(annotations, added):
        return {}
    return added


def raised_by(annotations: Mapping[str, Any], container: str) -> str:
    """Return the key of the annotation that sets memlock for a container; "" if none does."""
    for key in wanted(container):
        if "MEMLOCK" in str(annotations.get(key, "")).upper():
            return key
    return ""
