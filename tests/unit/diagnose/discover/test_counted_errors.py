"""Error counters: a finding for each counter, not for each port, and what a maximum means."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.unit.diagnose.discover.observed_nodes import discovered, gpus, observed, port
from webhook.diagnose.discover.discovery import Discovery
from webhook.diagnose.discover.marks import findings_by_node, marked_nodes
from webhook.diagnose.discover.site import SourcedObservation
from webhook.diagnose.tools.observations import CounterObservation, Origin
from webhook.model.finding import Finding

Counts = Mapping[tuple[str, str], int]


def node(counts: Counts, *ports: int) -> list[SourcedObservation]:
    """Return a node of four devices; `counts`: the value by device and counter."""
    origin = Origin("sysfs", 1)
    counters = [
        CounterObservation(origin, device, number, counter, value)
        for (device, counter), value in counts.items()
        for number in ports or (1,)
    ]
    devices = [port(f"mlx5_{number}") for number in range(4)]
    return observed(*devices, gpus(), counters)


def site(**counts: Counts) -> Discovery:
    """Return the discovery of nodes by name."""
    return discovered({name: node(of_node) for name, of_node in counts.items()})


def errors(discovery: Discovery) -> list[Finding]:
    """Return the findings about counters."""
    return [finding for finding in discovery.findings if finding.code == "PortErrorsCounted"]


def test_a_single_port_is_named_by_its_device() -> None:
    """Its location has the device, so that the picture marks it."""
    (finding,) = errors(site(a={("mlx5_1", "symbol_error"): 12}))
    assert finding.text == "symbol_error of mlx5_1 is 12"
    assert (finding.location.nodes, finding.location.device) == (("a",), "mlx5_1")
    assert "perfquery" not in finding.remedy


def test_many_ports_are_one_finding_the_highest_first() -> None:
    """180 lines for 20 nodes hide what matters."""
    counts = {
        f"n{number}": {(f"mlx5_{device}", "symbol_error"): 10 * number + device + 1
                       for device in range(4)}
        for number in range(20)
    }  # fmt: skip
    (finding,) = errors(site(**counts))
    assert finding.text == (
        "symbol_error is not 0 on 80 ports: mlx5_3 on n19 (194), mlx5_2 on n19 (193), mlx5_1 on "
        "n19 (192), mlx5_0 on n19 (191) and 76 more"
    )
    assert len(finding.location.nodes) == 20
    assert finding.location.device == ""


@pytest.mark.parametrize(
    ("counter", "maximum"),
    [
        ("symbol_error", 65535),
        ("port_rcv_errors", 65535),
        ("link_error_recovery", 255),
        ("link_downed", 255),
        ("local_link_integrity_errors", 15),
        ("excessive_buffer_overrun_errors", 15),
    ],
)
def test_a_counter_at_its_maximum_no_longer_grows(counter: str, maximum: int) -> None:
    """Looking again whether it grows would show nothing: perfquery -R resets it."""
    (finding,) = errors(site(a={("mlx5_0", counter): maximum}))
    assert finding.text == f"{counter} of mlx5_0 is {maximum}, its maximum"
    assert "reset it (perfquery -R)" in finding.remedy
    (below,) = errors(site(a={("mlx5_0", counter): maximum - 1}))
    assert below.text == f"{counter} of mlx5_0 is {maximum - 1}"
    assert "perfquery" not in below.remedy


def test_the_counters_are_ranked() -> None:
    """Counters at their maximum come first, then counters of many ports, then by name."""
    counts = {
        ("mlx5_0", "port_rcv_errors"): 1,
        ("mlx5_1", "port_rcv_errors"): 1,
        ("mlx5_0", "symbol_error"): 1,
        ("mlx5_0", "link_error_recovery"): 1,
        ("mlx5_2", "link_downed"): 255,
    }
    counters = [finding.text.split()[0] for finding in errors(site(a=counts))]
    assert counters == [
        "link_downed",
        "port_rcv_errors",
        "link_error_recovery",
        "symbol_error",
    ]


def test_one_maximum_among_many_ports_is_said() -> None:
    """The remedy is that of the counter at its maximum."""
    counts = {("mlx5_0", "link_downed"): 255, ("mlx5_1", "link_downed"): 3}
    (finding,) = errors(site(a=counts))
    assert finding.text == (
        "link_downed is not 0 on 2 ports: mlx5_0 on a (255, its maximum), mlx5_1 on a (3)"
    )
    assert "perfquery -R" in finding.remedy


def test_a_port_counts_once() -> None:
    """Of two values of a counter, the later is higher; ports of a device count apart."""
    low, high = (node({("mlx5_0", "symbol_error"): value}) for value in (4, 9))
    (finding,) = errors(discovered({"a": [*high, *low]}))
    assert finding.text == "symbol_error of mlx5_0 is 9"
    (finding,) = errors(discovered({"a": node({("mlx5_0", "symbol_error"): 4}, 1, 2)}))
    assert finding.text == (
        "symbol_error is not 0 on 2 ports: mlx5_0 on a (4), mlx5_0 port 2 on a (4)"
    )


def test_other_counters_and_unused_devices_are_left_out() -> None:
    """Waiting is no error, and a device that the fabric does not use does not slow it."""
    counts = {
        ("mlx5_0", "port_xmit_wait"): 9,
        ("mlx5_0", "symbol_error"): 0,
        ("x", "symbol_error"): 9,
    }
    assert errors(site(a=counts)) == []


def test_the_picture_marks_the_ports_of_a_counter() -> None:
    """A finding about several ports marks each of them, and no other."""
    discovery = site(
        a={("mlx5_1", "symbol_error"): 1, ("mlx5_2", "link_downed"): 1},
        b={("mlx5_3", "symbol_error"): 1},
    )
    (plan,) = discovery.fabrics
    marked = {
        nodes.nodes.names: sorted(nodes.marks_by_device)
        for nodes in marked_nodes(plan, findings_by_node(discovery.findings))
    }
    assert marked == {("a",): ["mlx5_1", "mlx5_2"], ("b",): ["mlx5_3"]}
