"""Find ports that are down, slow or missing on some nodes of a fabric."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.site import SiteFinding, gbps
from webhook.diagnose.discover.used_ports_used_ports import most_common, used_devices, used_ports

_UNKNOWN_STATE = (
    "Add the output of ibstat, ibv_devinfo or rdma link: (Up) and (Down) of ibdev2netdev are the "
    "network interface's."
)
_CABLE = "Check cable, transceiver and switch port; then ibstat must say LinkUp and Active."
_WHEN_DOWN = {
    "Disabled": "Enable the port (ibportstate, or mlxlink), or plug in its cable.",
    "Polling": "It finds no partner: check cable, transceiver and the switch's port.",
}


def ports_down(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield ports that are not Active."""
    for choice, port in used_ports(plan):
        if port.state not in ("Active", None):
            physical = f", {port.physical_state}" if port.physical_state else ""
            yield SiteFinding(
                "error",
                (choice.node.name,),
                f"{port.name} is {port.state}{physical}",
                _WHEN_DOWN.get(port.physical_state or "", _CABLE)
                if port.state == "Down"
                else "Start a subnet manager (opensm, or the switch's): the link is up, and has "
                "no address yet.",
            )


def ports_never_up(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield devices that are down on all nodes; those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for device, because in plan.devices.left_out.items():
        if because.startswith("Down"):
            reasons.setdefault(because, []).append(device)
    for because, devices in reasons.items():
        verb, it = ("is", "it") if len(devices) == 1 else ("are", "them")
        yield SiteFinding(
            "warning",
            plan.group.nodes,
            f"{', '.join(devices)} {verb} {because}, so the fabric does not use {it}",
            f"Connect {it} on all nodes and discover again, or leave {it} so.",
        )


def unknown_states(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes of which no tool says the state of all ports."""
    for choice in plan.group.choices:
        if any(port.state is None for port in choice.ports):
            yield SiteFinding(
                "warning",
                (choice.node.name,),
                "the state of RDMA ports is unknown",
                _UNKNOWN_STATE,
            )


def slow_ports(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield ports slower than the fabric."""
    for choice, port in used_ports(plan):
        if port.rate_gbps is not None and port.rate_gbps < (plan.group.rate or 0):
            yield SiteFinding(
                "error",
                (choice.node.name,),
                f"{port.name} runs at {gbps(port.rate_gbps)}, the fabric at "
                f"{gbps(plan.group.rate)}",
                "Reseat or replace the cable, and compare the switch port's speed.",
            )


def devices_missing(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes with fewer devices than most nodes of the group."""
    counts = {choice.node.name: len(used_devices(choice, plan)) for choice in plan.group.choices}
    usual = most_common(counts.values())
    for node, many in counts.items():
        if many < usual:
            yield SiteFinding(
                "error",
                (node,),
                f"{many} of the fabric's devices, where other nodes have {usual}",
                "Look for the missing card in lspci and dmesg.",
            )


def missing_gids(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield RoCE ports whose table shows no RoCE v2 GID."""
    if plan.group.card.link_layer != "Ethernet":
        return
    for choice, port in used_ports(plan):
        rows = (one for one in choice.node.gids if one.device == port.device)
        table = [one for one in rows if one.version is not None]  # ibstatus shows one GID only
        usable = any(one.version == "v2" and one.gid.strip("0:") for one in table)
        if table and not usable and port.state == "Active":
            yield SiteFinding(
                "error",
                (choice.node.name,),
                f"{port.name} has no RoCE v2 GID",
                f"Give {', '.join(port.netdevs) or 'its interface'} an IP address.",
            )
