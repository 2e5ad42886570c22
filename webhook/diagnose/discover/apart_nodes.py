"""Find nodes that are in no fabric, or in a slower one than nodes with the same cards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webhook.diagnose.discover.groups import Group
from webhook.diagnose.discover.port_selection import NodeChoice
from webhook.diagnose.discover.site import SiteFinding, gbps, listed_nodes


def outside_fabrics(choice: NodeChoice) -> Iterator[SiteFinding]:
    """Yield what keeps a node out of every fabric, and what is odd about its other devices."""
    node = choice.node
    if not any(port.device for port in node.ports):
        yield SiteFinding(
            "error",
            (node.name,),
            "no tool shows an RDMA device",
            "Check that a network card is there (lspci -nn) and that its RDMA driver is loaded "
            "(mlx5_ib for NVIDIA), or collect again with all tools: rdma-webhook discover script.",
        )
    elif choice.card is None:
        yield SiteFinding(
            "error",
            (node.name,),
            "no tool says the link layer of any port, so the node is in no fabric",
            "Add the output of ibstat, ibstatus or ibv_devinfo, or collect again: rdma-webhook "
            "discover script.",
        )
    for port in node.ports:
        if port.device is None and any(other.device for other in node.ports):
            yield SiteFinding(
                "warning",
                (node.name,),
                f"{port.model or 'a card'} at {port.pci} has no RDMA device",
                "Load its RDMA driver (mlx5_ib for NVIDIA), or leave it to other traffic.",
            )


def slower_nodes(groups: Iterable[Group]) -> Iterator[SiteFinding]:
    """Yield nodes with the same GPUs and cards as others whose ports run slower."""
    best: dict[tuple[object, ...], Group] = {}
    ordered = sorted(groups, key=lambda group: -(group.rate or 0))
    for group in ordered:
        fastest = best.setdefault((group.product, group.card), group)
        if group.rate is not None and fastest.rate is not None and group.rate < fastest.rate:
            yield SiteFinding(
                "warning",
                group.nodes,
                f"all ports run at {gbps(group.rate)}, where the same cards of "
                f"{listed_nodes(fastest.nodes)} run at {gbps(fastest.rate)}",
                "Compare cables and switches; a job over both runs at the slower rate.",
            )
