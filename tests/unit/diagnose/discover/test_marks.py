"""What findings name in a fabric: on the nodes and ports that they name, and on no others."""

from __future__ import annotations

from tests.unit.diagnose.discover.observed_nodes import (
    IBSTAT,
    discovered,
    down,
    gpus,
    near,
    node_property,
    observed,
    port,
)
from webhook.diagnose.discover.discovery import Discovery
from webhook.diagnose.discover.marks import Mark, MarkedNodes, findings_by_node, marked_nodes
from webhook.diagnose.discover.site import SourcedObservation
from webhook.diagnose.discover.used_ports import ShownPort
from webhook.diagnose.tools.observations import CableObservation, CounterObservation
from webhook.model.finding import Finding, Level, Location


def marked(discovery: Discovery) -> dict[str, MarkedNodes]:
    """Return the groups of the only fabric by the names of their nodes."""
    (plan,) = discovery.fabrics
    groups = marked_nodes(plan, findings_by_node(discovery.findings))
    return {" ".join(group.nodes.names): group for group in groups}


def errors_of(device: str, value: int) -> CounterObservation:
    """Return an error counter."""
    return CounterObservation(IBSTAT, device, 1, "symbol_error", value)


def cable(device: str, complaint: str) -> CableObservation:
    """Return a link that could be better."""
    return CableObservation(IBSTAT, None, device, 1, 100.0, "leaf-1", 1, complaint)


def pair(*observations: object) -> list[SourcedObservation]:
    """Return a node with two ports, each next to a GPU."""
    topology = [near("GPU0", "mlx5_0"), near("GPU1", "mlx5_1")]
    return observed(port("mlx5_0"), port("mlx5_1"), gpus(number=2), topology, *observations)  # type: ignore[arg-type]


def test_nodes_with_other_findings_are_apart() -> None:
    """Nodes that look the same are one group, unless a finding names some of them."""
    groups = marked(discovered({"a": pair(), "b": pair(errors_of("mlx5_1", 3)), "c": pair()}))
    assert list(groups) == ["a c", "b"]
    assert groups["a c"].marks_by_device == {}
    text = "symbol_error of mlx5_1 is 3"
    mark = Mark("warning", "PortErrorsCounted", "mlx5_1", (text,))
    assert groups["b"].marks_by_device == {"mlx5_1": (mark,)}
    assert groups["b"].marks == ()
    first, second = groups["b"].nodes.ports
    assert groups["b"].marks_of(first) == ()
    assert groups["b"].marks_of(second) == (mark,)
    assert (mark.words, mark.line) == ("errors counted", text)


def test_nodes_with_the_same_kinds_of_findings_are_together() -> None:
    """The sentences may differ, as with iblinkinfo: a mark has all of them."""
    nodes = {f"n{at}": pair(cable("mlx5_0", f"Could be {1 + at % 2}X")) for at in range(5)}
    ((names, group),) = marked(discovered(nodes)).items()
    assert names == "n0 n1 n2 n3 n4"
    (mark,) = group.marks_by_device["mlx5_0"]
    texts = [
        f"iblinkinfo reports on the link from mlx5_0 to leaf-1: Could be {lanes}X"
        for lanes in (1, 2)
    ]
    assert mark.texts == tuple(texts)
    assert mark.line == f"{texts[0]}; and 1 more"


def test_a_missing_device_is_shown() -> None:
    """In the place where other nodes have it, with the GPU that is near it there."""
    lacking = observed(port("mlx5_1"), gpus(number=2), near("GPU1", "mlx5_1"))
    groups = marked(discovered({"a": pair(), "b": lacking, "c": pair()}))
    assert list(groups) == ["a c", "b"]
    missing, present = groups["b"].nodes.ports
    assert missing == ShownPort("mlx5_0", "missing", "missing", ("GPU0",), "mlx5_0")
    assert (present.name, present.condition) == ("mlx5_1", "fine")
    (mark,) = groups["b"].marks
    assert (mark.code, mark.words) == ("CardMissing", "CardMissing")
    assert all(port.condition == "fine" for port in groups["a c"].nodes.ports)


def test_only_what_most_nodes_have_is_missing() -> None:
    """A device that a minority of the nodes has is not expected."""
    names = (["mlx5_0", "mlx5_1"], ["mlx5_0", "mlx5_1"], ["mlx5_0", "mlx5_2"], ["mlx5_3"])
    nodes = {
        f"n{at}": observed(map(port, devices), gpus(number=2)) for at, devices in enumerate(names)
    }
    conditions = {hca.name: hca.condition for hca in marked(discovered(nodes))["n3"].nodes.ports}
    assert conditions == {"mlx5_0": "missing", "mlx5_1": "missing", "mlx5_3": "fine"}
    nodes["n4"] = nodes["n5"] = nodes["n2"]
    assert [hca.name for hca in marked(discovered(nodes))["n3"].nodes.ports] == [
        "mlx5_0",
        "mlx5_2",
        "mlx5_3",
    ]


def test_unused_ports_come_after_missing_ones() -> None:
    """The fabric's devices are side by side."""
    other = port("mlx5_0", link_layer="Ethernet", device_id=0x1015, rate_gbps=10.0)
    complete = observed(other, port("mlx5_1"), port("mlx5_2"), gpus())
    lacking = observed(other, port("mlx5_1"), gpus())
    ports = marked(discovered({"a": complete, "b": lacking, "c": complete}))["b"].nodes.ports
    assert [(hca.name, hca.condition) for hca in ports] == [
        ("mlx5_1", "fine"),
        ("mlx5_2", "missing"),
        ("mlx5_0", "unused"),
    ]


def test_odd_firmware_is_marked_at_its_port() -> None:
    """The finding names nodes; the mark is at the ports with another firmware than most."""
    usual = [port(f"mlx5_{at}", firmware="20.2") for at in range(2)]
    odd = [usual[0], port("mlx5_1", firmware="20.1")]
    groups = marked(discovered({"a": observed(usual), "b": observed(odd), "c": observed(usual)}))
    assert list(groups) == ["a c", "b"]
    assert groups["b"].marks == ()
    ((device, (mark,)),) = groups["b"].marks_by_device.items()
    assert (device, mark.code, mark.words) == ("mlx5_1", "FirmwareDiffers", "odd firmware")


def test_a_state_or_a_rate_needs_no_words() -> None:
    """The port shows its state or its rate already."""
    complete = observed(map(port, ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3")), gpus())
    fine = (port("mlx5_2"), port("mlx5_3"))
    faulty = observed(down("mlx5_0"), port("mlx5_1", rate_gbps=100.0), *fine, gpus())
    marks = marked(discovered({"a": complete, "b": faulty}))["b"].marks_by_device
    assert {device: mark.words for device, (mark,) in marks.items()} == {"mlx5_0": "", "mlx5_1": ""}
    assert [mark.code for (mark,) in marks.values()] == ["PortIsDown", "PortSlow"]


def test_the_most_severe_comes_first() -> None:
    """For the marks of a port, and for the marks of a node."""
    (plan,) = discovered({"a": pair(), "b": pair()}).fabrics
    levels: tuple[Level, ...] = ("warning", "error", "unsure")
    findings = [
        Finding(level, code, "x", "", Location(nodes=("b",), device=device))
        for device in ("", "mlx5_0")
        for level in levels
        for code in ("B", "A")
    ]
    group = {g.nodes.names: g for g in marked_nodes(plan, findings_by_node(findings))}[("b",)]
    ordered = [(level, code) for level in ("error", "unsure", "warning") for code in ("A", "B")]
    assert [(mark.level, mark.code) for mark in group.marks] == ordered
    marks = group.marks_by_device["mlx5_0"]
    assert [(mark.level, mark.code) for mark in marks] == ordered


def test_facts_are_not_marked() -> None:
    """A finding of level info or ok is no fault, and one without nodes has no place."""
    nodes = {"a": pair(node_property("memlock", "65536"))}
    discovery = discovered(nodes)
    assert [finding.level for finding in discovery.findings] == ["info"]
    assert marked(discovery)["a"].marks == ()
    somewhere = Location(nodes=("a",))
    levels: tuple[Level, ...] = ("ok", "info", "warning", "unsure", "error")
    named = [Finding(level, "X", "x", "", somewhere) for level in levels]
    assert [finding.level for finding in findings_by_node(named)["a"]] == [
        "warning",
        "unsure",
        "error",
    ]
    assert findings_by_node([Finding("error", "X", "x")]) == {}
