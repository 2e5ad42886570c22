"""Drift: what changed on the nodes since an earlier output of `discover -o json`.

A value that either output lacks is unknown, so it has not changed. Virtual functions come and go
with pods, and a card without an RDMA device has no name, so neither is compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from webhook.diagnose.discover.node_form import GpusForm, NodeForm, PortForm
from webhook.diagnose.discover.site import rate_text
from webhook.diagnose.discover.unanswered import name_without_domain
from webhook.model.finding import Code, Finding, Level, Location
from webhook.model.names import natural_key, shortened_list

# The codes.

NODE_GONE = Code(
    "NodeGone",
    "A node is in the earlier output (--against), but not in this one.",
    "If the node was removed on purpose, save the current output of `discover -o json` to a file, "
    "and pass that file to --against from now on. Otherwise, collect the node's output again.",
)
NODE_NEW = Code("NodeNew", "A node is not in the earlier output (--against).")
HCA_GONE = Code(
    "HcaGone",
    "An HCA is in the earlier output (--against), but not in this one.",
    "Look for the card in the output of lspci and dmesg, and check that its RDMA driver is "
    "loaded. If a tool was run only for the earlier output, collect its output again.",
)
HCA_NEW = Code("HcaNew", "An HCA in this output is missing from the earlier output (--against).")
GPUS_CHANGED = Code(
    "GpusChanged",
    "The GPUs of a node are not what they were in the earlier output (--against).",
    "If GPUs are missing, look for them in the output of nvidia-smi (or amd-smi), lspci and "
    "dmesg. If fewer tools were run than for the earlier output, collect the output of all of "
    "them.",
)
PORT_STATE_CHANGED = Code(
    "PortStateChanged",
    "The state of a port is not what it was in the earlier output (--against).",
    "If the port is no longer Active, check the cable, the transceiver, the switch port and the "
    "subnet manager.",
)
PORT_RATE_CHANGED = Code(
    "PortRateChanged",
    "The rate of a port is not what it was in the earlier output (--against).",
    "If the rate is lower, reseat or replace the cable, and check the speed of the switch port.",
)
LINK_LAYER_CHANGED = Code(
    "LinkLayerChanged",
    "The link layer of a port is not what it was in the earlier output (--against).",
    "If the change is intended, create the fabrics file again with discover. Otherwise, set the "
    "link layer that the fabric needs (mlxconfig, LINK_TYPE_P1 or LINK_TYPE_P2), and reboot the "
    "node.",
)
FIRMWARE_CHANGED = Code(
    "FirmwareChanged",
    "The firmware of a card is not what it was in the earlier output (--against).",
    "Unless the change is intended, install the earlier firmware again (mlxfwmanager, mlxup).",
)
PSID_CHANGED = Code(
    "PsidChanged",
    "The board ID (PSID) of a card is not what it was in the earlier output (--against): the card "
    "was replaced, or has the firmware of a different card model.",
    "Unless the card was replaced, check its firmware (flint query, mlxfwmanager).",
)
MTU_CHANGED = Code(
    "MtuChanged",
    "The MTU that RDMA uses on a port is not what it was in the earlier output (--against).",
    "If the MTU is smaller, restore the earlier MTU of the network interface (RoCE) or of the "
    "subnet manager's partition (InfiniBand).",
)
DRIFT_CODES = (
    NODE_GONE,
    NODE_NEW,
    HCA_GONE,
    HCA_NEW,
    GPUS_CHANGED,
    PORT_STATE_CHANGED,
    PORT_RATE_CHANGED,
    LINK_LAYER_CHANGED,
    FIRMWARE_CHANGED,
    PSID_CHANGED,
    MTU_CHANGED,
)

# Compare the nodes.


def drift_findings(
    earlier: Sequence[NodeForm], nodes: Sequence[NodeForm], unanswered: Collection[str] = ()
) -> Iterator[Finding]:
    """Yield what changed since the earlier output.

    What went or got worse is an error. A host that did not answer has a finding of its own.
    """
    before = {node["name"]: node for node in earlier}
    now = {node["name"]: node for node in nodes}
    names_now = _same_nodes(before, now)
    missing = [name for name in before if name not in names_now]
    silent = _same_nodes(missing, unanswered)
    for name in missing:
        if name not in silent:
            text = "in the earlier output, but not in this one"
            yield NODE_GONE.finding("error", text, location=Location(nodes=(name,)))
    earlier_names = {name: earlier_name for earlier_name, name in names_now.items()}
    for name, node in now.items():
        if name in earlier_names:
            yield from _node_changes(before[earlier_names[name]], node)
        else:
            text = "not in the earlier output"
            yield NODE_NEW.finding("info", text, location=Location(nodes=(name,)))


def _same_nodes(earlier: Collection[str], now: Collection[str]) -> dict[str, str]:
    """Return earlier name → name now; one of the two may have a domain."""
    matched = {name: name for name in earlier if name in now}
    new_by_short = _by_short_name(name for name in now if name not in matched)
    for short, names in _by_short_name(name for name in earlier if name not in matched).items():
        candidates = new_by_short.get(short, ())
        if len(names) == len(candidates) == 1:
            matched[names[0]] = candidates[0]
    return matched


def _by_short_name(names: Iterable[str]) -> dict[str, list[str]]:
    by_short: dict[str, list[str]] = {}
    for name in names:
        by_short.setdefault(name_without_domain(name), []).append(name)
    return by_short


def _node_changes(before: NodeForm, now: NodeForm) -> Iterator[Finding]:
    at_node = Location(nodes=(now["name"],))
    virtual = {port["device"] for port in (*before["ports"], *now["ports"]) if port["virtual"]}
    old, new = _ports(before, virtual), _ports(now, virtual)
    if names := _devices_without(old, new):
        it = "it" if len(names) == 1 else "them"
        text = f"{_listed(names)} missing, but the earlier output shows {it}"
        yield HCA_GONE.finding("error", text, location=at_node)
    if names := _devices_without(new, old):
        yield HCA_NEW.finding("info", f"{_listed(names)} not in the earlier output", None, at_node)
    yield from _gpu_changes(before, now, at_node)
    ports_by_change: dict[_Change, list[tuple[str, int]]] = {}
    for key in sorted(old.keys() & new.keys(), key=_port_order):
        for change in _port_changes(old[key], new[key]):
            ports_by_change.setdefault(change, []).append(key)
    for change in sorted(ports_by_change, key=lambda change: change.order):
        yield change.finding(ports_by_change[change], at_node)


_Ports = Mapping[tuple[str, int], PortForm]


def _ports(node: NodeForm, left_out: Collection[str | None]) -> _Ports:
    """Return the ports by device and number, except for ports of some devices."""
    return {
        (port["device"], port["port"] or 1): port
        for port in node["ports"]
        if port["device"] is not None and port["device"] not in left_out
    }


def _port_order(key: tuple[str, int]) -> tuple[object, ...]:
    return natural_key(key[0]), key[1]


def _devices_without(ports: _Ports, further: _Ports) -> list[str]:
    """Return the devices of ports that have no port among the further ones."""
    return sorted(
        {device for device, _ in ports} - {device for device, _ in further}, key=natural_key
    )


def _listed(devices: Sequence[str]) -> str:
    return f"{shortened_list(devices, _NAMED)} {'is' if len(devices) == 1 else 'are'}"


#: How many devices a finding names.
_NAMED = 8


# Compare the GPUs.


def _gpu_changes(before: NodeForm, now: NodeForm, at_node: Location) -> Iterator[Finding]:
    if _are_disputed(before) or _are_disputed(now):
        return
    level = _gpu_level(before["gpus"], now["gpus"])
    if level is not None:
        text = (
            f"tools show {_gpus_text(now['gpus'])}, but the earlier output shows "
            f"{_gpus_text(before['gpus'])}"
        )
        yield GPUS_CHANGED.finding(level, text, "" if level == "info" else None, at_node)


def _are_disputed(node: NodeForm) -> bool:
    """Return whether a node may have no GPUs only since its tools disagree."""
    return not node["gpus"] and any("device" not in each["location"] for each in node["findings"])


def _gpu_level(before: Sequence[GpusForm], now: Sequence[GpusForm]) -> Level | None:
    """Return the level of a change; None without a change, or if it is not known."""
    old_counts, new_counts = _counts(before), _counts(now)
    old_sum, new_sum = _total(before), _total(now)
    if old_sum is not None and new_sum is not None and old_sum != new_sum:
        return "error" if new_sum < old_sum else "info"
    if None in old_counts or None in new_counts:
        return None
    unknown = None in (old_sum, new_sum)
    is_same = old_counts.keys() == new_counts.keys() if unknown else old_counts == new_counts
    return None if is_same else "warning"


def _counts(gpus: Iterable[GpusForm]) -> dict[str | None, int | None]:
    return {gpu["product"]: gpu["count"] for gpu in gpus}


def _total(gpus: Iterable[GpusForm]) -> int | None:
    counts = [gpu["count"] for gpu in gpus]
    return None if None in counts else sum(count or 0 for count in counts)


def _gpus_text(gpus: Iterable[GpusForm]) -> str:
    texts = (f"{gpu['count'] or 'some'} {gpu['product'] or 'GPUs'}" for gpu in gpus)
    return ", ".join(texts) or "no GPUs"


# Compare a port.


class _Change(NamedTuple):
    """A change of a property that several ports of a node may have in common."""

    code: Code
    level: Level
    #: The property, as in a sentence: "the rate".
    topic: str
    before: str
    now: str

    @property
    def order(self) -> tuple[object, ...]:
        """The order of the codes, then of the values."""
        return DRIFT_CODES.index(self.code), natural_key(self.before), natural_key(self.now)

    def finding(self, ports: Sequence[tuple[str, int]], at_node: Location) -> Finding:
        """Return the finding about the ports (device and number) of a node."""
        names = [device if port == 1 else f"{device} port {port}" for device, port in ports]
        text = (
            f"{self.topic} of {shortened_list(names, _NAMED)} is {self.now}, but was {self.before}"
        )
        remedy = "" if self.level == "info" else None
        device = ports[0][0] if len(ports) == 1 else ""
        return self.code.finding(self.level, text, remedy, at_node._replace(device=device))


def _port_changes(before: PortForm, now: PortForm) -> Iterator[_Change]:
    old_state, state = before["state"], now["state"]
    if old_state is not None and state is not None and old_state != state:
        level = _level(is_worse=old_state == "Active", is_better=state == "Active")
        yield _Change(PORT_STATE_CHANGED, level, "the state", old_state, state)
    old_rate, rate = before["rateGbps"], now["rateGbps"]
    if old_rate is not None and rate is not None and old_rate != rate:
        level = _level(is_worse=rate < old_rate, is_better=rate > old_rate)
        texts = rate_text(old_rate), rate_text(rate)
        yield _Change(PORT_RATE_CHANGED, level, "the rate", *texts)
    old_mtu, mtu = before["mtu"], now["mtu"]
    if old_mtu is not None and mtu is not None and old_mtu != mtu:
        level = _level(is_worse=mtu < old_mtu, is_better=mtu > old_mtu)
        yield _Change(MTU_CHANGED, level, "the MTU", f"{old_mtu}", f"{mtu}")
    for code, key, topic, level in _NAMES:
        old_name, name = before[key], now[key]
        if old_name is not None and name is not None and old_name != name:
            yield _Change(code, level, topic, old_name, name)


#: Properties without a better and a worse value.
_NAMES: tuple[tuple[Code, Literal["linkLayer", "firmware", "psid"], str, Level], ...] = (
    (LINK_LAYER_CHANGED, "linkLayer", "the link layer", "error"),
    (FIRMWARE_CHANGED, "firmware", "the firmware", "warning"),
    (PSID_CHANGED, "psid", "the PSID", "warning"),
)


def _level(*, is_worse: bool, is_better: bool) -> Level:
    if is_worse:
        return "error"
    return "info" if is_better else "warning"
