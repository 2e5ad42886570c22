"""What changed since an earlier output: `discover --against yesterday.json`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.diagnose.discover.observed_nodes import (
    discovered,
    down,
    gpus,
    node_property,
    observed,
    port,
)
from tests.unit.diagnose.discover.test_discover_command import IBSTAT, Discover, discover
from webhook.diagnose.discover.cut_outputs import OUTPUT_CUT
from webhook.diagnose.discover.discovery import discover_site
from webhook.diagnose.discover.drift import DRIFT_CODES, drift_findings
from webhook.diagnose.discover.earlier_output import earlier_nodes
from webhook.diagnose.discover.node_form import GpusForm, NodeForm
from webhook.diagnose.discover.output import discover_form
from webhook.diagnose.discover.site import DiscoverOptions, SourcedObservation
from webhook.diagnose.tools.observations import CardObservation, GpuObservation, Origin
from webhook.model.finding import Finding, Location

__all__ = ["discover"]

_Nodes = Mapping[str, list[SourcedObservation]]
_Row = tuple[str, str, str, tuple[str, ...], str]


def form(nodes: _Nodes) -> list[NodeForm]:
    """Return nodes as they are read from the JSON of a discovery."""
    return earlier_nodes(json.dumps(discover_form(discovered(nodes))), "yesterday.json")


def drift(before: _Nodes, now: _Nodes, unanswered: Collection[str] = ()) -> list[_Row]:
    """Return what changed between two sites, without remedies."""
    return [row(finding) for finding in drift_findings(form(before), form(now), unanswered)]


def row(finding: Finding) -> _Row:
    """Return a finding without its remedy."""
    nodes, device = finding.location.nodes, finding.location.device
    return finding.code, finding.level, finding.text, nodes, device


def of_port(before: Any, now: Any) -> list[_Row]:
    """Return what changed on a node whose only device changed."""
    return drift({"n1": observed(before)}, {"n1": observed(now)})


_PORT = {
    "state to Down": (
        (port("mlx5_0"), down("mlx5_0")),
        ("PortStateChanged", "error", "the state of mlx5_0 is Down, but was Active"),
    ),
    "state to Active": (
        (down("mlx5_0"), port("mlx5_0")),
        ("PortStateChanged", "info", "the state of mlx5_0 is Active, but was Down"),
    ),
    "state between others": (
        (down("mlx5_0"), port("mlx5_0", state="Initializing", rate_gbps=None)),
        ("PortStateChanged", "warning", "the state of mlx5_0 is Initializing, but was Down"),
    ),
    "lower rate": (
        (port("mlx5_0"), port("mlx5_0", rate_gbps=100.0)),
        ("PortRateChanged", "error", "the rate of mlx5_0 is 100 Gb/s, but was 200 Gb/s"),
    ),
    "higher rate": (
        (port("mlx5_0"), port("mlx5_0", rate_gbps=400.0)),
        ("PortRateChanged", "info", "the rate of mlx5_0 is 400 Gb/s, but was 200 Gb/s"),
    ),
    "smaller MTU": (
        (port("mlx5_0", mtu=4096), port("mlx5_0", mtu=1024)),
        ("MtuChanged", "error", "the MTU of mlx5_0 is 1024, but was 4096"),
    ),
    "larger MTU": (
        (port("mlx5_0", mtu=1024), port("mlx5_0", mtu=4096)),
        ("MtuChanged", "info", "the MTU of mlx5_0 is 4096, but was 1024"),
    ),
    "link layer": (
        (port("mlx5_0"), port("mlx5_0", link_layer="Ethernet")),
        ("LinkLayerChanged", "error", "the link layer of mlx5_0 is Ethernet, but was InfiniBand"),
    ),
    "firmware": (
        (port("mlx5_0", firmware="20.31"), port("mlx5_0", firmware="20.38")),
        ("FirmwareChanged", "warning", "the firmware of mlx5_0 is 20.38, but was 20.31"),
    ),
    "PSID": (
        (port("mlx5_0", board_id="MT_1"), port("mlx5_0", board_id="MT_2")),
        ("PsidChanged", "warning", "the PSID of mlx5_0 is MT_2, but was MT_1"),
    ),
}


@pytest.mark.parametrize("change", _PORT)
def test_a_changed_value_of_a_port(change: str) -> None:
    """What got worse is an error, what got better a fact; other firmware is to be looked at."""
    (before, now), expected = _PORT[change]
    assert of_port(before, now) == [(*expected, ("n1",), "mlx5_0")]


@pytest.mark.parametrize(
    "fields",
    [{"state": None, "rate_gbps": None}, {"rate_gbps": None}, {"mtu": None}, {"link_layer": None},
     {"firmware": None}, {"board_id": None}],
    ids=lambda fields: next(iter(fields)),
)  # fmt: skip
def test_an_unknown_value_has_not_changed(fields: Mapping[str, None]) -> None:
    """Fewer tools were run before, or now; nothing follows from that."""
    values = {"mtu": 4096, "firmware": "20.31", "board_id": "MT_1"}
    read, unknown = port("mlx5_0", **values), port("mlx5_0", **{**values, **fields})
    assert of_port(read, unknown) == of_port(unknown, read) == []


def test_ports_with_the_same_change_share_a_finding() -> None:
    """It names the ports in the order of their numbers, and a device only if that is the only."""
    names = ["mlx5_10", "mlx5_2", *(f"mlx5_{number}" for number in range(20, 27))]
    before = [port("mlx5_2", port=2, firmware="1"), *(port(name, firmware="1") for name in names)]
    now = [port("mlx5_2", port=2, firmware="2"), *(port(name, firmware="2") for name in names)]
    ports = "mlx5_2, mlx5_2 port 2, mlx5_10, mlx5_20, mlx5_21, mlx5_22, mlx5_23 and 3 more"
    text = f"the firmware of {ports} is 2, but was 1"
    assert of_port(before, now) == [("FirmwareChanged", "warning", text, ("n1",), "")]


def test_changes_of_a_node_are_in_the_order_of_the_codes() -> None:
    """State before rate before firmware, and of one code the lower earlier value first."""
    before = [
        port("mlx5_0", firmware="20.9"), port("mlx5_1", firmware="20.10"),
        port("mlx5_2", rate_gbps=400.0), port("mlx5_3"), port("mlx5_4", firmware="20.9"),
    ]  # fmt: skip
    now = [
        port("mlx5_0", firmware="20.38"), port("mlx5_1", firmware="20.38"),
        port("mlx5_2", rate_gbps=100.0), down("mlx5_3"), port("mlx5_4", firmware="20.12"),
    ]  # fmt: skip
    assert [text for _, _, text, _, _ in of_port(before, now)] == [
        "the state of mlx5_3 is Down, but was Active",
        "the rate of mlx5_2 is 100 Gb/s, but was 400 Gb/s",
        "the firmware of mlx5_4 is 20.12, but was 20.9",
        "the firmware of mlx5_0 is 20.38, but was 20.9",
        "the firmware of mlx5_1 is 20.38, but was 20.10",
    ]


def test_a_port_without_a_number_is_the_first() -> None:
    """Some tools do not number the ports."""
    (change,) = of_port(port("mlx5_0", port=None, firmware="1"), port("mlx5_0", firmware="2"))
    assert change[2] == "the firmware of mlx5_0 is 2, but was 1"


def test_hcas_came_or_went() -> None:
    """HCAs that went are an error, new HCAs a fact; each list is in natural order."""
    stays = port("mlx5_0")
    two = [stays, port("mlx5_10"), port("mlx5_9")]
    assert of_port(two, stays) == [
        ("HcaGone", "error", "mlx5_9, mlx5_10 are missing, but the earlier output shows them",
         ("n1",), "")
    ]  # fmt: skip
    assert of_port(stays, two) == [
        ("HcaNew", "info", "mlx5_9, mlx5_10 are not in the earlier output", ("n1",), "")
    ]
    assert [text for _, _, text, _, _ in of_port(two[:2], port("mlx5_1"))] == [
        "mlx5_0, mlx5_10 are missing, but the earlier output shows them",
        "mlx5_1 is not in the earlier output",
    ]
    (finding,) = of_port(two[:2], stays)
    assert finding[2] == "mlx5_10 is missing, but the earlier output shows it"


def test_many_missing_hcas_are_counted() -> None:
    """A finding names eight at most."""
    ten = [port(f"mlx5_{number}") for number in range(10)]
    (finding,) = of_port(ten, ten[:1])
    assert finding[2].startswith(
        "mlx5_1, mlx5_2, mlx5_3, mlx5_4, mlx5_5, mlx5_6, mlx5_7 and 2 more"
    )


def test_virtual_functions_are_not_compared() -> None:
    """They come and go with pods; either output may be the one that shows what they are."""
    physical = port("mlx5_0")
    virtual, unclear = port("mlx5_8", virtual=True), port("mlx5_8", firmware="2")
    assert of_port(physical, [physical, virtual]) == of_port([physical, virtual], physical) == []
    assert of_port([physical, virtual], [physical, unclear]) == []
    assert of_port([physical, unclear], [physical, virtual]) == []


def test_a_card_without_a_device_is_not_compared() -> None:
    """It has no name, so which card it was is not known."""
    card = CardObservation(Origin("lspci -nn", 1), "0000:5e:00.0", 0x0207, 0x15B3, 0x1021)
    usual = port("mlx5_0", pci="0000:3b:00.0")
    assert [merged["device"] for merged in form({"n1": observed(usual, card)})[0]["ports"]] == [
        "mlx5_0", None,
    ]  # fmt: skip
    assert of_port(usual, [usual, card]) == of_port([usual, card], usual) == []


def of_gpus(before: Any, now: Any) -> list[tuple[str, str]]:
    """Return the level and the text of the findings on a node whose GPUs changed."""
    rows = drift({"n1": observed(port("mlx5_0"), before)}, {"n1": observed(port("mlx5_0"), now)})
    assert all((code, nodes, device) == ("GpusChanged", ("n1",), "") for code, _, _, nodes, device
               in rows)  # fmt: skip
    return [(level, text) for _, level, text, _, _ in rows]


def unnamed(number: int) -> list[GpuObservation]:
    """Return GPUs without a product."""
    return [GpuObservation(Origin("nvidia-smi topo -m", 1), number=at) for at in range(number)]


def test_gpus_came_or_went() -> None:
    """Fewer are an error, more a fact, as many others a warning."""
    eight, seven = gpus(), gpus(number=7)
    a100, h100 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3"
    h100s = gpus("NVIDIA H100 80GB HBM3")
    show = "but the earlier output shows"
    assert of_gpus(eight, seven) == [("error", f"tools show 7 {a100}, {show} 8 {a100}")]
    assert of_gpus(seven, eight) == [("info", f"tools show 8 {a100}, {show} 7 {a100}")]
    assert of_gpus(eight, []) == [("error", f"tools show no GPUs, {show} 8 {a100}")]
    assert of_gpus([], eight) == [("info", f"tools show 8 {a100}, {show} no GPUs")]
    assert of_gpus(eight, h100s) == [("warning", f"tools show 8 {h100}, {show} 8 {a100}")]
    assert of_gpus(eight, unnamed(8)) == of_gpus(unnamed(8), eight) == of_gpus(eight, eight) == []
    assert of_gpus(unnamed(8), seven) == [("error", f"tools show 7 {a100}, {show} 8 GPUs")]


def with_gpus(**counts: int | None) -> list[NodeForm]:
    """Return a node with numbers of GPUs by product."""
    (node,) = form({"n1": observed(port("mlx5_0"))})
    return [{**node, "gpus": [GpusForm(product=product, count=count)
                              for product, count in counts.items()]}]  # fmt: skip


def test_gpus_of_unknown_number() -> None:
    """Only the products are compared if a number is unknown."""
    assert list(drift_findings(with_gpus(A=8), with_gpus(A=None))) == []
    (finding,) = drift_findings(with_gpus(A=None), with_gpus(B=8))
    assert (finding.level, finding.text) == (
        "warning", "tools show 8 B, but the earlier output shows some A"
    )  # fmt: skip


def test_gpus_of_two_products() -> None:
    """As many as before, but more of one product; their order does not matter."""
    assert list(drift_findings(with_gpus(A=4, B=2), with_gpus(B=2, A=4))) == []
    (finding,) = drift_findings(with_gpus(A=4, B=4), with_gpus(A=2, B=6))
    assert (finding.level, finding.text) == (
        "warning", "tools show 2 A, 6 B, but the earlier output shows 4 A, 4 B"
    )  # fmt: skip


def test_disputed_gpus_have_not_gone() -> None:
    """Where tools disagree, discover shows no GPUs; a disagreement about a port is another."""
    eight = observed(port("mlx5_0"), gpus())
    disputed = [*eight, *observed(gpus("NVIDIA H100 80GB HBM3"), file="later.txt")]
    assert discovered({"n1": disputed}).nodes[0].gpus == ()
    assert drift({"n1": eight}, {"n1": disputed}) == []
    assert drift({"n1": disputed}, {"n1": eight}) == []
    netns = [node_property("netns", "shared"), node_property("netns", "exclusive")]
    seven = observed(port("mlx5_0"), gpus(number=7), netns)
    assert [code for code, *_ in drift({"n1": eight}, {"n1": seven})] == ["GpusChanged"]
    port_disputed = observed(port("mlx5_0", numa=0), port("mlx5_0", numa=1))
    assert [code for code, *_ in drift({"n1": eight}, {"n1": port_disputed})] == ["GpusChanged"]


def test_nodes_came_or_went() -> None:
    """A node that went is an error; a host that did not answer has an error of its own."""
    node = observed(port("mlx5_0"))
    assert drift({"a": node, "b": node}, {"b": node, "c": node}) == [
        ("NodeGone", "error", "in the earlier output, but not in this one", ("a",), ""),
        ("NodeNew", "info", "not in the earlier output", ("c",), ""),
    ]
    assert drift({"a": node, "b": node}, {"b": node}, unanswered=["a.lab"]) == []
    assert [code for code, *_ in drift({"a": node}, {}, unanswered=["b"])] == ["NodeGone"]


def test_a_name_may_have_a_domain() -> None:
    """Either output may lack it, if the short name means one node only."""
    old, new = observed(port("mlx5_0", firmware="1")), observed(port("mlx5_0", firmware="2"))
    assert [(code, nodes) for code, _, _, nodes, _ in drift({"a.lab": old}, {"a": new})] == [
        ("FirmwareChanged", ("a",))
    ]
    assert [(code, nodes) for code, _, _, nodes, _ in drift({"a": old}, {"A.lab": new})] == [
        ("FirmwareChanged", ("A.lab",))
    ]
    several = {"a.x": new, "a.y": new}
    assert [code for code, *_ in drift({"a": old}, several)] == ["NodeGone", "NodeNew", "NodeNew"]
    assert [code for code, *_ in drift(several, {"a": old})] == ["NodeGone", "NodeGone", "NodeNew"]
    assert [code for code, *_ in drift({"a": old, "a.x": old}, several)] == [
        "FirmwareChanged", "FirmwareChanged",
    ]  # fmt: skip


def test_nodes_with_the_same_change_share_a_finding() -> None:
    """All findings of a discovery are sorted by level, also those about drift."""
    old, new = observed(port("mlx5_0", firmware="1")), observed(port("mlx5_0", firmware="2"))
    earlier = form(dict.fromkeys("abd", old))
    nodes = {"a": new, "b": new, "c": new}
    discovery = discover_site(nodes, {}, DiscoverOptions(), (), earlier)
    assert [(finding.code, finding.level, finding.location.nodes)
            for finding in discovery.findings] == [
        ("NodeGone", "error", ("d",)),
        ("FirmwareChanged", "warning", ("a", "b")),
        ("NodeNew", "info", ("c",)),
    ]  # fmt: skip
    cut = OUTPUT_CUT.finding("error", "cut", location=Location(nodes=("d",)))
    discovery = discover_site(nodes, {}, DiscoverOptions(), [cut], earlier)
    assert [finding.code for finding in discovery.findings][:2] == ["OutputCut", "NodeGone"]
    assert discover_site(nodes, {}, DiscoverOptions(), (), []).findings[0].code == "NodeNew"
    assert discover_site(nodes, {}, DiscoverOptions()).findings == ()


def test_only_what_needs_action_has_a_remedy() -> None:
    """A fact needs none."""
    eight, seven = observed(port("mlx5_0"), gpus()), observed(down("mlx5_0"), gpus(number=7))
    worse = list(drift_findings(form({"a": eight}), form({"a": seven})))
    better = list(drift_findings(form({"a": seven}), form({"a": eight})))
    remedies = {code.code: code.remedy for code in DRIFT_CODES}
    assert [finding.remedy for finding in worse] == [remedies[finding.code] for finding in worse]
    assert [finding.level for finding in worse] == ["error", "error"]
    assert [(finding.level, finding.remedy) for finding in better] == [("info", "")] * 2


def test_the_exit_code_shows_drift(discover: Discover) -> None:
    """Nothing changed: 0; firmware changed: 0 with a warning; a port is down: 1."""
    Path("n1.txt").write_text(IBSTAT)
    Path("yesterday.json").write_text(discover("n1.txt", "-o", "json").out)
    first = discover("n1.txt", "--against", "yesterday.json")
    assert (first.code, "earlier" in first.out) == (0, False)
    Path("n1.txt").write_text(IBSTAT.replace("20.38.1900", "20.43.1014"))
    other = discover("n1.txt", "--against", "yesterday.json", "-o", "json")
    assert other.code == 0
    assert [finding["text"] for finding in json.loads(other.out)["findings"]] == [
        "the firmware of mlx5_0 is 20.43.1014, but was 20.38.1900"
    ]
    today = discover("n1.txt", "-o", "json").out
    Path("n1.txt").write_text(IBSTAT.replace("State: Active", "State: Down"))
    worse = discover("n1.txt", "--against", "-", "-o", "json", stdin=today)
    assert worse.code == 1
    codes = {finding["code"]: finding["level"] for finding in json.loads(worse.out)["findings"]}
    assert codes["PortStateChanged"] == "error"


def test_a_host_without_an_answer_is_reported_once(discover: Discover) -> None:
    """It did not answer, which says more than that it is missing."""
    earlier = discover("-", "-o", "json", stdin=f"$ ssh gpu-01 ibstat\n{IBSTAT}").out
    Path("yesterday.json").write_text(earlier)
    assert '"gpu-01"' in earlier
    text = "gpu-01 | UNREACHABLE! => {\n}\n"
    ran = discover("-", "--against", "yesterday.json", "-o", "json", stdin=text)
    assert [finding["code"] for finding in json.loads(ran.out)["findings"]] == ["HostUnanswered"]


_NODE = '{"name": "a", "gpus": [], "ports": []}'
_WRONG = {
    "fabrics": ("fabrics:\n- name: a\n", "it is not JSON: Expecting value: line 1 column 1"),
    "empty": ("", "it is not JSON: Expecting value"),
    "deep": ("[" * 100_000, "it is not JSON: "),
    "list": ("[]", "it has no list `nodes`"),
    "verify": ('{"results": []}', "it has no list `nodes`"),
    "no list": ('{"nodes": {"a": 1}}', "it has no list `nodes`"),
    "a word": ('{"nodes": ["a"]}', "nodes[0]: Input should be a valid dictionary"),
    "no name": ('{"nodes": [{"gpus": [], "ports": []}]}', "nodes[0].name: Field required"),
    "no ports": ('{"nodes": [{"name": "a", "gpus": []}]}', "nodes[0].ports: Field required"),
    "another version": (
        f'{{"nodes": [{_NODE}, {{"name": "b", "gpus": [], "ports": [{{"rateGbps": "400"}}]}}]}}',
        "nodes[1].ports[0].rateGbps: Input should be a valid number",
    ),
    "a port in words": (
        '{"nodes": [{"name": "a", "gpus": [], "ports": ["mlx5_0"]}]}',
        "nodes[0].ports[0]: Input should be a valid dictionary",
    ),
    "an unknown state": (
        '{"nodes": [{"name": "a", "gpus": [], "ports": [{"state": "Up"}]}]}',
        "nodes[0].ports[0].state: Input should be 'Down'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", _WRONG)
def test_another_file_is_refused(discover: Discover, kind: str) -> None:
    """The error names the file, the place and what is expected there, and how to write one."""
    text, reason = _WRONG[kind]
    Path("n1.txt").write_text(IBSTAT)
    Path("yesterday.json").write_text(text)
    ran = discover("n1.txt", "--against", "yesterday.json")
    assert (ran.code, ran.out) == (2, "")
    assert "yesterday.json: is not an output of `rdma-webhook discover -o json`" in ran.err
    assert f"({reason}" in ran.err
    assert "write one with `rdma-webhook discover ... -o json`" in ran.err


def test_a_missing_file_is_an_error(discover: Discover) -> None:
    """As for other inputs."""
    Path("n1.txt").write_text(IBSTAT)
    ran = discover("n1.txt", "--against", "missing.json")
    assert (ran.code, ran.out) == (2, "")
    assert "missing.json: no such file or directory" in ran.err


def test_standard_input_is_read_only_once(discover: Discover) -> None:
    """Either the output of tools or the earlier output can come from there."""
    with pytest.raises(SystemExit, match="2"):
        discover("-", "--against", "-", stdin=IBSTAT)


def test_files_of_other_versions_are_read() -> None:
    """Keys that an earlier version lacked are unknown; keys that a later one added are ignored."""
    earlier = {"nodes": [{"name": "a", "later": 1, "gpus": [{"product": None, "count": 8, "x": 1}],
                          "ports": [{"device": "mlx5_0", "firmware": "1", "new": {}}]}],
               "version": 7}  # fmt: skip
    nodes = earlier_nodes(json.dumps(earlier), "yesterday.json")
    now = form({"a": observed(port("mlx5_0", firmware="2"), gpus())})
    assert [finding.text for finding in drift_findings(nodes, now)] == [
        "the firmware of mlx5_0 is 2, but was 1"
    ]
