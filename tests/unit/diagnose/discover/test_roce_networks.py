"""RoCE: the networks of all rails by their common beginning, and the class of its traffic."""

from __future__ import annotations

import json

import pytest

from tests.unit.diagnose.discover.observed_nodes import discovered, ethernet, gpus, observed, port
from tests.unit.diagnose.discover.test_discover_command import Discover, discover
from webhook.diagnose.discover.site import SourcedObservation

__all__ = ["discover"]

GIDS = "".join(
    f"mlx5_{rail}\t1\t3\t0000:0000:0000:0000:0000:ffff:0a00:000{rail}\t10.0.0.{rail}\tv2\tens{rail}\n"
    for rail in range(3)
)


def rails(count: int = 8) -> dict[str, list[SourcedObservation]]:
    """Return a node with RoCE rails."""
    return {"n1": observed(*(ethernet(f"mlx5_{rail}") for rail in range(count)), gpus())}


def test_a_prefix_names_the_networks_of_all_rails() -> None:
    """Eight rails need no eight options."""
    discovery = discovered(rails(), network_prefix="rdma/rail")
    (entry,) = discovery.entries
    assert entry["mode"] == "shared-device"
    assert entry["networks"] == [f"rdma/rail{rail}" for rail in range(8)]
    (plan,) = discovery.fabrics
    reason = "set by --network-prefix: one interface in the pod for each RoCE device"
    assert plan.reason_by_field["networks"] == reason


def test_the_command_takes_a_prefix(discover: Discover) -> None:
    """It takes the place of eight times --network."""
    ran = discover("-", "-o", "json", "--network-prefix", "rail", stdin=GIDS)
    (fabric,) = json.loads(ran.out)["fabrics"]
    assert fabric["networks"] == ["rail0", "rail1", "rail2"]


@pytest.mark.parametrize("given", ["a/b/c", "Rail", "rail@", "rail@net"])
def test_a_prefix_is_the_beginning_of_a_network(
    discover: Discover, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interface after @ would be the end of one name only."""
    with pytest.raises(SystemExit) as stop:
        discover("-", "--network-prefix", given, stdin=GIDS)
    assert stop.value.code == 2
    assert "is not the beginning of [NAMESPACE/]NAME" in capsys.readouterr().err


def test_lossy_roce_is_not_silently_the_default() -> None:
    """No tool shows the class of traffic, so each RoCE fabric asks for it, and no other."""
    (plan,) = discovered(rails(1)).fabrics
    assert plan.requirements[-1].startswith("qos.trafficClass (DSCP times 4)")
    (plan,) = discovered({"n1": observed(port("mlx5_0"), gpus())}).fabrics
    assert not any("trafficClass" in needed for needed in plan.requirements)
