from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.kube.cluster import NODES, Cluster, node, refused
from webhook.kube import watched_resources
from webhook.kube.api import StatusError
from webhook.kube.reflector import RETRIES, StoppedError, pause, read_list


class Waits:
    """A recorder of waits, which stops after some of them."""

    def __init__(self, limit: int = 1000) -> None:
        self.seconds: list[float] = []
        self._limit = limit

    def __call__(self, seconds: float) -> bool:
        """Wait for no time."""
        self.seconds.append(seconds)
        return len(self.seconds) >= self._limit


def cluster_of(count: int, page: int = 500) -> Cluster:
    """Return a cluster with `count` nodes."""
    cluster = Cluster(page=page)
    cluster.put(NODES, *(node(f"n{number}", v100="8") for number in range(count)))
    return cluster


def test_between_pages_is_a_pause() -> None:
    """The kind has its length; none follows the last page."""
    kind, waits = replace(watched_resources.NODES, page_pause=0.5), Waits()
    listing = read_list(cluster_of(5, page=2), kind, waits)
    assert [name for _, name in listing.projections] == ["n0", "n1", "n2", "n3", "n4"]
    assert waits.seconds == [0.5, 0.5]


def test_a_pause_never_stops() -> None:
    """It lasts for its seconds, and then the list goes on: the default of commands."""
    start = time.monotonic()
    assert pause(0.01) is False
    assert time.monotonic() - start >= 0.01
    kind = replace(watched_resources.NODES, page_pause=0.001)
    assert len(read_list(cluster_of(3, page=2), kind).projections) == 3


def test_nodes_come_in_small_pages_with_pauses() -> None:
    """Parsing a page holds up the requests: a page is small, and most of the time is pause."""
    cluster = cluster_of(1)
    read_list(cluster, watched_resources.NODES, Waits())
    assert int(cluster.asked[0][1]["limit"]) <= 50
    assert watched_resources.NODES.page_pause >= 0.05


def test_large_objects_come_in_small_pages() -> None:
    """A user decides how large objects are, and a page of large ones could exhaust the memory."""
    cluster = cluster_of(16)
    large = {**node("large", v100="8"), "kind": "x" * 5000}
    cluster.put(NODES, large, *(node(f"m{number}", v100="8") for number in range(4)))
    cluster.largest_page = 4000
    kind = replace(watched_resources.NODES, page=8)

    listing = read_list(cluster, kind, Waits())
    assert [*listing.projections] == [("", str(item["metadata"]["name"])) for item in _all(cluster)]
    limits = [int(query["limit"]) for _, query in cluster.asked]
    assert limits == [8, 8, 8, 4, 2, 1, 2, 4]


def _all(cluster: Cluster) -> list[dict[str, Any]]:
    return [*cluster._objects[NODES].values()]


def test_a_page_is_requested_again_when_the_api_server_says() -> None:
    """A list of many pages does not begin anew because the API server was busy at a page."""
    cluster, waits = cluster_of(3, page=1), Waits()
    get = cluster.get

    def busy_once(path: str, query: Any) -> Any:
        if query.get("continue") == "1" and not waits.seconds.count(7.0):
            raise refused(429, 7.0)
        return get(path, query)

    cluster.get = busy_once  # type: ignore[method-assign]
    assert len(read_list(cluster, watched_resources.NODES, waits).projections) == 3
    page_pause = watched_resources.NODES.page_pause
    assert waits.seconds == [page_pause, 7.0, page_pause]
    assert len(cluster.asked) == 3


@pytest.mark.parametrize("code", [429, 503])
def test_an_api_server_that_stays_busy_is_given_up(code: int) -> None:
    """After some retries, the whole list fails, with the Retry-After in its error."""
    cluster, waits = cluster_of(1), Waits()
    cluster.failures += [refused(code, 2.0)] * (RETRIES + 1)
    with pytest.raises(StatusError) as raised:
        read_list(cluster, watched_resources.NODES, waits)
    assert (raised.value.code, raised.value.retry_after) == (code, 2.0)
    assert waits.seconds == [2.0] * RETRIES


def test_an_error_without_a_time_is_not_repeated() -> None:
    """The reflector's growing pauses follow."""
    cluster, waits = cluster_of(1), Waits()
    cluster.failures += [refused(429)]
    with pytest.raises(StatusError):
        read_list(cluster, watched_resources.NODES, waits)
    assert waits.seconds == []


@pytest.mark.parametrize("failures", [[], [refused(429, 2.0)]], ids=["a pause", "a retry"])
def test_it_stops_during(failures: list[Exception]) -> None:
    """The program stops: no page follows."""
    cluster = cluster_of(3, page=1)
    cluster.failures += failures
    with pytest.raises(StoppedError):
        read_list(cluster, watched_resources.NODES, Waits(1))
    assert len(cluster.asked) == 1
