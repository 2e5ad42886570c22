"""Rules for `qos`: the GID index, partition keys and priorities."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.config.model import FabricEntry
from webhook.config.rules.rule import Violation, rule
from webhook.model.fabric import MODES_WITH_OWN_DEVICE

_MAX_PRIORITY = 7  # IEEE 802.1Q has eight, from 0


@rule(
    "warning",
    "If your jobs use NCCL 2.26 or newer, which finds the index by itself, remove qos.gidIndex.",
)
def gid_index_per_pod(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that sets `qos.gidIndex`, although the index differs from pod to pod.

    A warning: there the index differs from pod to pod. NCCL 2.26 or newer finds it by itself.
    """
    if fabric.qos.gid_index is not None and _have_own_interfaces(fabric):
        yield Violation(
            ("qos", "gidIndex"), "the index differs between pods with their own interfaces"
        )


def _have_own_interfaces(fabric: FabricEntry) -> bool:
    """Return whether pods have interfaces of their own; with hostNetwork, networks do nothing."""
    if fabric.mode in MODES_WITH_OWN_DEVICE:
        return True
    networks = bool(fabric.networks) or any(resource.network for resource in fabric.resources)
    return networks and fabric.mode != "host-network"


@rule("error", "Remove qos.pkey, and use VLANs instead.")
def pkey_without_infiniband(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets `qos.pkey` on Ethernet, which has no partition keys.

    An error: RoCE has no partitions; UCX fails if the key is not in the port's table.
    """
    if fabric.qos.pkey is not None and fabric.link_layer == "Ethernet":
        yield Violation(("qos", "pkey"), "RoCE has no partition keys")


@rule(
    "warning",
    "Set NCCL_IB_PKEY in env to the index of the key in the ports' partition key tables (0 if the "
    "key is the first on every node).",
)
def pkey_without_nccl(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that sets `qos.pkey`, but lacks NCCL_IB_PKEY in `env`: NCCL needs it.

    A warning: NCCL needs the key's index in the port's table, which only the site knows (net_ib
    passes it as `pkey_index`); without NCCL_IB_PKEY, NCCL uses index 0.
    """
    if fabric.qos.pkey is not None and "nccl" in fabric.libraries:
        if "NCCL_IB_PKEY" in fabric.env:
            return
        yield Violation(
            ("qos", "pkey"),
            "the key reaches only UCX, since NCCL takes an index",
        )


@rule("error", "Write a qos.serviceLevel from 0 to 7.")
def roce_priority(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets `qos.serviceLevel` above 7 on Ethernet, where 7 is the highest.

    An error: RoCE has eight priorities, from 0.
    """
    level = fabric.qos.service_level
    if level is not None and level > _MAX_PRIORITY and fabric.link_layer == "Ethernet":
        yield Violation(
            ("qos", "serviceLevel"), f"{level} is too large, since RoCE has priorities 0 to 7"
        )
