"""The common factor of bad measurements is named, and nothing beyond the evidence."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, row
from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, Outcome, every_pair, measured_run
from webhook.diagnose.verify.fault_localization import localize_faults
from webhook.diagnose.verify.matrix import pair_matrix
from webhook.diagnose.verify.results import NodePair, RunReport
from webhook.model.finding import Finding, Location

NODES = ("a", "b", "c", "d")
DEVICES = ("mlx5_0", "mlx5_1")


def suspects(report: RunReport) -> list[tuple[str, tuple[str, ...], str]]:
    """Return the code, the nodes and the device of each suspect."""
    return [
        (suspect.code, suspect.location.nodes, suspect.location.device)
        for suspect in localize_faults(pair_matrix(report))
    ]


def the_only(report: RunReport) -> Finding:
    """Return the only suspect."""
    (suspect,) = localize_faults(pair_matrix(report))
    return suspect


def test_all_good() -> None:
    """There is no suspect if all measurements are ok."""
    assert suspects(measured_run(NODES, lambda _pair, _device: 96)) == []


def test_a_node() -> None:
    """All measurements of a node are bad, while its partners measure well with each other."""
    report = measured_run(NODES, lambda pair, _: 12 if "c" in pair else 96, devices=DEVICES)
    assert the_only(report) == Finding(
        "error",
        "SuspectNode",
        "All 12 measurements with c are bad (12 errors). All others: 12 ok.",
        "Check this node first: its cards and their PCIe links (lspci -vv, LnkSta), its cables, "
        "and what else it runs.",
        Location(nodes=("c",)),
    )


def test_a_node_that_is_partly_slow() -> None:
    """Warnings are bad as well; both are counted."""
    slow = {"a": 80.0, "b": 12.0, "d": 80.0}

    def outcome(pair: NodePair, _: str) -> Outcome:
        return slow[next(iter({*pair} - {"c"}))] if "c" in pair else 96

    suspect = the_only(measured_run(NODES, outcome))
    assert (suspect.code, suspect.location.nodes, suspect.level) == ("SuspectNode", ("c",), "error")
    assert (
        "All 6 measurements with c are bad (2 errors, 4 warnings). All others: 6 ok."
        in suspect.text
    )


def test_the_worst_suspect_comes_first() -> None:
    """A rail is wider than a node, but a node that fails is worse than a slow rail."""

    def outcome(pair: NodePair, device: str) -> Outcome:
        if device == "mlx5_1":
            return 80
        return 12 if "c" in pair else 96

    report = measured_run(NODES, outcome, devices=DEVICES)
    node, rail = localize_faults(pair_matrix(report))
    assert (node.code, node.level) == ("SuspectNode", "error")
    assert (rail.code, rail.level) == ("SuspectRail", "warning")


def test_a_node_fails_where_others_are_slow() -> None:
    """The node that fails is separate from all the others, which only warn."""
    report = measured_run(NODES, lambda pair, _: 12 if "c" in pair else 80)
    assert suspects(report) == [("SuspectNode", ("c",), ""), ("AllAlike", (), "")]
    alike = localize_faults(pair_matrix(report))[1]
    assert alike.text == "All 6 other measurements are bad (6 warnings)."
    assert alike.level == "warning"


def test_two_nodes() -> None:
    """Two bad nodes are named, although they are bad with each other as well."""
    nodes = (*NODES, "e")
    report = measured_run(nodes, lambda pair, _: 12 if {"b", "e"} & {*pair} else 96)
    assert suspects(report) == [("SuspectNode", ("b",), ""), ("SuspectNode", ("e",), "")]


def test_a_node_in_a_ring() -> None:
    """Two neighbors that measure well with their other neighbor are enough."""
    ring = [NodePair(client, server) for client, server in zip(NODES, "bcda", strict=True)]
    report = measured_run(NODES, lambda pair, _: 12 if "b" in pair else 96, pairs=ring)
    assert suspects(report) == [("SuspectNode", ("b",), "")]


def test_a_single_neighbor_is_not_enough() -> None:
    """In a chain, a node at the end and the path to it look the same."""
    chain = [NodePair("a", "b"), NodePair("b", "c"), NodePair("c", "d")]
    report = measured_run(NODES, lambda pair, _: 12 if "a" in pair else 96, pairs=chain)
    assert suspects(report) == [("NotLocated", ("a", "b"), "")]


def test_an_hca() -> None:
    """A single device of a node is bad with all others, and its other devices are good."""
    report = measured_run(
        NODES,
        lambda pair, device: 12 if "b" in pair and device == "mlx5_1" else 96,
        devices=DEVICES,
    )
    suspect = the_only(report)
    assert (suspect.code, suspect.location.nodes, suspect.location.device) == (
        "SuspectHca",
        ("b",),
        "mlx5_1",
    )
    assert suspect.text == (
        "All 6 measurements with mlx5_1 of b are bad (6 errors). All others: 18 ok."
    )


def test_a_rail() -> None:
    """A device that is bad on all nodes is not the fault of a single node."""
    report = measured_run(
        NODES, lambda _, device: 12 if device == "mlx5_1" else 96, devices=DEVICES
    )
    suspect = the_only(report)
    assert (suspect.code, suspect.location.nodes, suspect.location.device) == (
        "SuspectRail",
        (),
        "mlx5_1",
    )
    assert suspect.text == ("All 12 measurements on mlx5_1 are bad (12 errors). All others: 12 ok.")


def test_a_rail_is_compared_with_other_rails() -> None:
    """Good results without a known device may be from the same rail."""
    nameless = bandwidth(row(96)).replace("Device         : mlx5_4", "")
    report = measured_run(
        NODES, lambda _, device: 12 if device == "mlx5_1" else nameless, devices=DEVICES
    )
    assert "SuspectRail" not in [suspect.code for suspect in localize_faults(pair_matrix(report))]


def test_a_sender_and_a_receiver() -> None:
    """A node is bad in a single direction."""
    as_client = the_only(measured_run(NODES, lambda pair, _: 12 if pair.client == "b" else 96))
    assert (as_client.code, as_client.location.nodes) == ("SuspectSender", ("b",))
    assert as_client.text == (
        "All 3 measurements with b as the client are bad (3 errors). As the server: 3 ok."
    )
    as_server = the_only(measured_run(NODES, lambda pair, _: 12 if pair.server == "b" else 96))
    assert (as_server.code, as_server.location.nodes) == ("SuspectReceiver", ("b",))
    assert "with b as the server are bad (3 errors). As the client: 3 ok." in as_server.text


def test_a_path() -> None:
    """Two nodes measure well with all others, but not with each other."""
    suspect = the_only(measured_run(NODES, lambda pair, _: 12 if {*pair} == {"a", "d"} else 96))
    assert (suspect.code, suspect.location.nodes, suspect.location.device) == (
        "SuspectPath",
        ("a", "d"),
        "mlx5_0",
    )
    assert suspect.text == (
        "Bad measurements of a → d and d → a on mlx5_0 (2 errors). With other nodes, a has 4 good "
        "measurements, and d has 4."
    )


def test_a_single_direction_of_a_path() -> None:
    """Only the bad direction is named."""
    bad = NodePair("a", "d")
    report = measured_run(NODES, lambda pair, _: 12 if pair == bad else 96, devices=DEVICES)
    assert the_only(report).text.startswith(
        "Bad measurements of a → d on mlx5_0, mlx5_1 (2 errors)."
    )
    assert the_only(report).location.device == ""


def test_many_paths() -> None:
    """Bad pairs without anything in common are a single finding, with the first of them."""
    nodes = tuple("abcdefghij")
    bad = {frozenset(pair) for pair in ("ab", "cd", "ef", "gh", "ij")}
    suspect = the_only(measured_run(nodes, lambda pair, _: 12 if frozenset(pair) in bad else 96))
    assert (suspect.code, suspect.location.nodes) == ("SuspectPaths", nodes)
    assert suspect.text == (
        "10 pairs have bad measurements (10 errors), without a common node, HCA or direction: "
        "a → b, b → a, c → d and 7 more."
    )


def test_everything() -> None:
    """If all measurements are bad, no node stands out."""
    suspect = the_only(measured_run(NODES, lambda _pair, _device: 12))
    assert (suspect.code, suspect.location.nodes) == ("AllAlike", ())
    assert suspect.text == "All 12 measurements are bad (12 errors)."
    assert "such as the expected rate, the image and the switches" in suspect.remedy


def test_two_bad_nodes_alone() -> None:
    """With two nodes, the fault may be in a node or the path; a third node would decide."""
    suspect = the_only(measured_run(("a", "b"), lambda _pair, _device: 80))
    assert (suspect.code, suspect.location.nodes, suspect.level) == (
        "NotLocated",
        ("a", "b"),
        "warning",
    )
    assert suspect.text == (
        "Bad measurements of a → b, b → a (2 warnings). Too few other pairs were measured to show "
        "whether a node or a path between nodes is at fault."
    )
    assert suspect.remedy.endswith("if --nodes lists only a few nodes, add more.")


def test_a_known_cause() -> None:
    """If all runs of a node failed for the same known cause, the suspect has its remedy."""
    suspect = the_only(measured_run(NODES, lambda pair, _: NO_MEMORY if "c" in pair else 96))
    assert (suspect.code, suspect.location.nodes) == ("SuspectNode", ("c",))
    assert suspect.text.endswith("All others: 6 ok. Cause: PerftestNoMemory.")
    assert suspect.remedy.startswith("Run the process as root with the capability IPC_LOCK")


def test_a_known_cause_beside_another_suspect() -> None:
    """Measurements that another suspect explains do not hide the cause of the others."""

    def outcome(pair: NodePair, _: str) -> Outcome:
        if "e" in pair:
            return 12
        return NO_MEMORY if pair.client == "a" else 96

    node, sender = localize_faults(pair_matrix(measured_run((*NODES, "e"), outcome)))
    assert (node.code, node.location.nodes) == ("SuspectNode", ("e",))
    assert (sender.code, sender.location.nodes) == ("SuspectSender", ("a",))
    assert "All 4 measurements with a as the client are bad (4 errors)." in sender.text
    assert sender.text.endswith("Cause: PerftestNoMemory.")


def test_a_known_cause_needs_no_third_node() -> None:
    """A failure with a known cause needs no location."""
    assert suspects(measured_run(("a", "b"), lambda _pair, _device: NO_MEMORY)) == []


@pytest.mark.parametrize("nodes", [NODES, ("a", "b")], ids=["four", "two"])
def test_unsure_measurements_count_neither_way(nodes: tuple[str, ...]) -> None:
    """Unsure measurements neither blame nor clear a node."""
    assert suspects(measured_run(nodes, lambda _pair, _device: 300)) == []


def test_unsure_pairs_clear_nobody() -> None:
    """A fault is not located if the measurements to compare with are unsure."""
    report = measured_run(("a", "b", "c"), lambda pair, _: 12 if "a" in pair else 300)
    assert suspects(report) == [("NotLocated", ("a", "b", "c"), "")]


def test_a_node_with_itself() -> None:
    """A measurement within a node proves nothing about the network between nodes."""
    pairs = [*every_pair(NODES), NodePair("a", "a")]
    report = measured_run(NODES, lambda pair, _: 12 if pair == ("a", "a") else 96, pairs=pairs)
    assert suspects(report) == []
