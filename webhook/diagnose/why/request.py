"""What the pod asked for: its annotations, and what its containers request."""

from __future__ import annotations

import json
from collections.abc import Iterator

from webhook.diagnose.why.evidence import Gathered, Item, items_at, word_at
from webhook.diagnose.why.explanation import Sentence
from webhook.model.annotations import ENABLE, PREFIX, WRITTEN
from webhook.model.pod import CONTAINER_FIELDS
from webhook.model.quantity import is_zero

_LONGEST = 120
#: Sections of `resources`; a limit is also a request.
_SECTIONS = ("requests", "limits")


def tell_asked(gathered: Gathered) -> Iterator[Sentence]:
    """Tell the annotations, and the extended resources of each container."""
    yield from _annotations(gathered)
    requests = [
        f"{word_at(container, ('name',)) or field} requests {', '.join(found)}"
        for field in CONTAINER_FIELDS
        for container in items_at(gathered.pod, ("spec", field))
        if (found := _shown(extended_requests(container)))
    ]
    if not requests:
        text = "No container requests a GPU, an RDMA resource or another device."
        yield Sentence("NoDeviceRequested", "fact", text)
    for text in requests:
        yield Sentence("Requests", "fact", f"Container {text}{_by_us(gathered, text)}.")


def _annotations(gathered: Gathered) -> Iterator[Sentence]:
    found = [
        f"{key}: {json.dumps(value[:_LONGEST], ensure_ascii=False)}"
        for key, value in gathered.annotations.items()
        if key.startswith(PREFIX) and key not in WRITTEN
    ]
    if found:
        yield Sentence("Annotations", "fact", f"The pod has {', '.join(sorted(found))}.")
    else:
        yield Sentence("NoAnnotations", "fact", f"The pod has no annotation {ENABLE}.")


def _by_us(gathered: Gathered, text: str) -> str:
    applied = gathered.status.applied if gathered.status else ()
    if isinstance(applied, tuple) and "rdma-resources" in applied and "rdma" in text:
        return " (the webhook wrote the RDMA resource)"
    return ""


def extended_requests(container: Item) -> dict[str, str]:
    """Return the extended resources above zero that a container requests."""
    found: dict[str, str] = {}
    for section in _SECTIONS:
        resources = container.get("resources")
        amounts = resources.get(section) if isinstance(resources, dict) else None
        for name, amount in (amounts if isinstance(amounts, dict) else {}).items():
            if "/" in name and not _nothing(amount):
                found[name] = str(amount)
    return found


def _nothing(amount: object) -> bool:
    try:
        return is_zero(amount)
    except (ValueError, TypeError):
        return False


def _shown(found: dict[str, str]) -> list[str]:
    return [f"{name}: {amount}" for name, amount in sorted(found.items())]


def rdma_requests(gathered: Gathered) -> list[str]:
    """List the resources that begin with `rdma/` and that a container requests."""
    return sorted(
        {
            name
            for container in items_at(gathered.pod, ("spec", "containers"))
            for name in extended_requests(container)
            if name.startswith("rdma/")
        }
    )
