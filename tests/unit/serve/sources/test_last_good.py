from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.kube.cluster import Cluster
from tests.unit.serve.sources.test_configuration_object import PATH, Server, written
from webhook.serve.sources.configuration_object import DELAY, NOT_USABLE

WRONG = "no"


def kept(rate: Any, generation: int) -> dict[str, Any]:
    """Return an entry of status.kept."""
    spec = written(rate)["spec"]
    return {"generation": generation, "config": "0123456789ab", "spec": spec}


def started(*entries: Any, rate: Any = WRONG) -> Server:
    """Return a replica that starts while the object has kept specs."""
    cluster = Cluster()
    cluster.put(PATH, written(rate, generation=9, status={"kept": [*entries]}))
    return Server(cluster)


@pytest.mark.parametrize(
    ("entries", "rate", "generation"),
    [
        ([kept(200, 8), kept(100, 7)], 200, 8),
        ([kept(WRONG, 8), kept(100, 7)], 100, 7),
        ([kept(200, 8)], 200, 8),
        ([{**kept(100, 7), "spec": {"fabrics": [{}]}}, kept(100, 7)], 100, 7),
    ],
    ids=["the newest", "a newer version's", "the only one", "of another form"],
)
def test_a_replica_that_starts_uses_the_last_good_spec(
    entries: list[Any], rate: int, generation: int
) -> None:
    """It takes the newest that it can use and logs this; the object's own problem stays known."""
    server = started(*entries)
    server.run(server.watching)
    assert (server.rate(), server.source.used_generation) == (rate, generation)
    assert server.logged() == ["last good configuration loaded", "configuration not usable"]
    check = server.source.check()
    assert check.ready
    assert "still in use, because a newer one cannot be used" in check.detail
    assert server.value("config_last_reload_successful") == 0


@pytest.mark.parametrize("entries", [[], [3], [kept(WRONG, 8), kept(WRONG, 7)]], ids=len)
def test_without_a_good_spec_there_is_no_configuration(entries: list[Any]) -> None:
    """The creator of a pod then reads the reason."""
    server = started(*entries)
    server.run(server.watching)
    assert (server.rate(), server.source.used_generation) == (None, 0)
    assert server.source.reason_without_fabrics == NOT_USABLE


def test_a_usable_object_is_used_whatever_is_kept() -> None:
    """The kept specs matter only while the object cannot be used."""
    server = started(kept(100, 8), rate=400)
    server.run(server.watching)
    assert (server.rate(), server.source.used_generation) == (400, 9)


def change(server: Server, **parts: Any) -> Callable[[], bool]:
    """Return a step that puts another object."""
    return server.put(written(**parts))


@pytest.mark.parametrize(("generation", "rate"), [(3, 100), (2, 100), (4, 200)], ids=str)
def test_a_running_replica_uses_the_newer_of_two_good_ones(generation: int, rate: int) -> None:
    """Its own is kept in memory; another replica may have stored a newer one, which it missed."""
    cluster = Cluster()
    cluster.put(PATH, written(100, generation=3))
    server = Server(cluster)
    status = {"kept": [kept(200, generation)]}
    server.run(
        server.watching,
        change(server, rate=WRONG, generation=5, status=status),
        server.later(DELAY),
    )
    assert (server.rate(), server.source.used_generation) == (rate, max(3, generation))


def test_a_deletion_is_obeyed() -> None:
    """The kept specs vanish with their object."""
    server = started(kept(100, 8))
    server.run(server.watching, server.put(None), server.later(DELAY))
    assert (server.rate(), server.source.used_generation) == (None, 0)
    assert server.source.observed_object is None


def test_a_changed_status_changes_only_what_is_observed() -> None:
    """Every replica writes into it, and nothing is compiled again."""
    cluster = Cluster()
    cluster.put(PATH, written(100, generation=3))
    server = Server(cluster)
    patched = written(100, generation=3, status={"kept": [kept(100, 3)], "nodes": 4})
    observed: list[Any] = []

    def put() -> bool:
        observed.append(server.source.observed_object)
        cluster.put(PATH, patched)
        return True

    server.run(server.watching, put, lambda: server.source.observed_object is not observed[0])
    before, after = observed[0], server.source.observed_object
    assert after is not None
    assert after == before._replace(status=patched["status"], version=after.version)
    assert after.version != before.version
    assert after.loaded_configuration is before.loaded_configuration
    assert server.logged() == ["configuration loaded"]
