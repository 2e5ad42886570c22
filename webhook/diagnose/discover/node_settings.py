"""Find settings and drivers of nodes that keep containers from RDMA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.site import SiteFinding
from webhook.diagnose.discover.used_ports_used_ports import most_common


def exclusive_devices(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes on which containers cannot share RDMA devices."""
    for choice in plan.group.choices:
        if plan.mode == "shared-device" and choice.node.settings.get("netns") == "exclusive":
            yield SiteFinding(
                "error",
                (choice.node.name,),
                "RDMA devices belong to one network namespace (netns exclusive): the RDMA shared "
                "device plugin offers none",
                "Run rdma system set netns shared, and write options ib_core netns_mode=1 into "
                "/etc/modprobe.d.",
            )


def limited_memlock(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes on which containerd limits what containers may lock."""
    for choice in plan.group.choices:
        memlock = choice.node.settings.get("memlock")
        if memlock is not None and memlock != "infinity":
            yield SiteFinding(
                "note",
                (choice.node.name,),
                f"containerd limits locked memory to {memlock} bytes, which stops RDMA in "
                "containers that do not run as root, since IPC_LOCK does nothing there",
                "Write LimitMEMLOCK=infinity into a drop-in of containerd.service and restart it; "
                "then set defaults.memlock: unlimited.",
            )


def missing_peer_memory(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes with GPUs on which the module for GPUDirect RDMA is not loaded."""
    for choice in plan.group.choices:
        if choice.node.gpus and choice.node.settings.get("peermem") == "no":
            yield SiteFinding(
                "note",
                (choice.node.name,),
                "nvidia_peermem is not loaded: GPUDirect RDMA then needs DMA-BUF",
                "Load nvidia_peermem (modprobe nvidia_peermem), or check that NCCL says GDRDMA.",
            )


def different_drivers(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes whose RDMA driver is not that of most nodes."""
    shown = Counter(
        driver
        for choice in plan.group.choices
        if (driver := choice.node.settings.get("driver")) is not None
    )
    if len(shown) < 2:  # noqa: PLR2004
        return
    usual = most_common(shown.elements())
    for choice in plan.group.choices:
        driver = choice.node.settings.get("driver", usual)
        if driver != usual:
            yield SiteFinding(
                "warning",
                (choice.node.name,),
                f"the RDMA driver is {driver}, where most nodes have {usual}",
                "Install one driver on all nodes of the fabric.",
            )
