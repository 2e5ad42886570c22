"""Accelerators and NICs that nodes offer, although no fabric of the configuration lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from webhook.model.fabric import CompiledConfiguration
from webhook.model.nodes import NodeGroup
from webhook.model.resources import OTHER_ACCELERATORS, is_foreign, vendor_of

#: Their domains have only GPUs and NICs, also under names that a site chose.
_VENDORS = ("nvidia.com", "amd.com")


def unlisted_devices(
    unrelated: Iterable[NodeGroup], configuration: CompiledConfiguration
) -> dict[str, int]:
    """Return the devices by name, each with the number of nodes that offer it.

    `unrelated`: nodes without anything that a fabric lists.
    """
    counts: Counter[str] = Counter()
    for group in unrelated:
        for name in group.resources:
            if _is_device(name, configuration):
                counts[name] += len(group.names)
    return {name: counts[name] for name in sorted(counts)}


def _is_device(name: str, configuration: CompiledConfiguration) -> bool:
    return (
        name in OTHER_ACCELERATORS
        or vendor_of(name) in _VENDORS
        or is_foreign(name, configuration.foreign_resources)
    )
