from __future__ import annotations

import threading
import time
from base64 import b64decode
from datetime import timedelta

from certs.errors import ClusterError
from certs.issue import issue_ca, issue_leaf
from certs.self_managed import SelfManaged, Status
from certs.serving import ServingContext
from tests.unit.certs.objects import CONFIGURATION, SECRET, SITE, Objects, secret_of

GONE = ClusterError("cannot reach the API server https://10.0.0.1: Connection refused")


def _managed(api: Objects) -> SelfManaged:
    return SelfManaged(SITE, ServingContext(), lambda: api)


def _ca_in_secret(api: Objects) -> bytes:
    return b64decode(api.stored[SECRET]["data"]["ca.crt"])


def test_one_round_does_it_all() -> None:
    """A CA in the Secret, a leaf of it served, the same CA in caBundle."""
    api = Objects()
    api.configure()
    managed = _managed(api)

    assert managed.status == Status(problem="not tried yet")
    assert managed.round()
    assert managed.status.trusted
    assert managed.status.not_after is not None
    assert b64decode(api.bundle) == _ca_in_secret(api)


def test_served_before_it_is_trusted() -> None:
    """The leaf is there at once; trusted is what was read back of caBundle, and not earlier."""
    api = Objects()
    managed = _managed(api)

    assert not managed.round()
    assert managed.status.not_after is not None
    assert not managed.status.trusted
    assert managed.status.problem == "there is no MutatingWebhookConfiguration zz-rdma-webhook yet"
    api.configure()
    assert managed.round()
    assert managed.status.trusted


def test_replicas_that_start_at_once_have_one_ca() -> None:
    """Any number of them on an empty namespace."""
    api = Objects()
    api.configure()
    replicas = [_managed(api) for _ in range(8)]
    threads = [threading.Thread(target=replica.round) for replica in replicas]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(replica.status.trusted for replica in replicas)
    assert [verb for verb, path, _ in api.writes if path == SECRET] == ["create"]
    assert {replica._ca for replica in replicas} == {replicas[0]._ca}


def test_a_round_with_nothing_to_do_writes_nothing() -> None:
    """Every half a minute two reads, and the leaf stays."""
    api = Objects()
    api.configure()
    managed = _managed(api)
    managed.round()
    before, leaf = list(api.writes), managed._leaf
    managed.round()

    assert api.writes == before
    assert managed._leaf is leaf


def test_the_leaf_is_renewed_without_the_api_server() -> None:
    """Under the same CA, which is in memory; so that it does not run out meanwhile."""
    api = Objects()
    api.configure()
    managed = _managed(api)
    managed.round()
    assert managed._ca is not None
    before = managed._ca
    ending = issue_leaf(before, ["a"], lifetime=timedelta(seconds=1))
    managed._leaf = ending
    api.broken = GONE

    assert not managed.round()
    assert managed._ca is before
    assert managed._leaf is not ending
    assert managed._serving.valid()
    assert managed.status == Status(
        problem=str(GONE), not_after=managed._serving.not_after, trusted=True
    )


def test_what_was_undone_is_done_again() -> None:
    """CaBundle emptied, configuration made anew, Secret deleted: the next round heals it."""
    api = Objects()
    api.configure()
    managed = _managed(api)
    managed.round()
    ca = _ca_in_secret(api)
    api.configure("")
    del api.stored[SECRET]

    assert managed.round()
    assert _ca_in_secret(api) == ca
    assert b64decode(api.bundle) == ca


def test_another_ca_in_the_secret_is_taken() -> None:
    """The Secret decides: else two replicas would write over each other's caBundle."""
    api, other = Objects(), issue_ca()
    api.configure()
    managed = _managed(api)
    managed.round()
    api.stored[SECRET] = secret_of(other)

    assert managed.round()
    assert b64decode(api.bundle) == other.certificate
    assert managed._ca == other


def test_a_secret_that_is_garbage_changes_nothing() -> None:
    """What is served is served on, and trusted; the reason is told."""
    api = Objects()
    api.configure()
    managed = _managed(api)
    managed.round()
    leaf = managed._leaf
    api.stored[SECRET] = {"data": {}}

    assert not managed.round()
    assert managed._leaf is leaf
    assert managed.status.trusted
    assert managed.status.problem.startswith(
        "Secret rdma-webhook/rdma-webhook-ca: it has no ca.crt"
    )


def test_a_defect_is_told_and_ends_nothing() -> None:
    """By its type only: its text may be a key."""
    api = Objects()
    api.configure()
    api.broken = RuntimeError("-----BEGIN PRIVATE KEY-----")
    managed = _managed(api)

    assert not managed.round()
    assert managed.status.problem == "internal error, please report it: RuntimeError"
    api.broken = None
    assert managed.round()


def test_goes_on_in_a_thread_until_it_is_stopped() -> None:
    """It tries again by itself."""
    api = Objects()
    managed = _managed(api)
    managed.start()
    api.configure()
    deadline = time.monotonic() + 10
    while not managed.status.trusted and time.monotonic() < deadline:
        time.sleep(0.01)
    managed.stop()
    managed._thread.join(10)

    assert managed.status.trusted
    assert not managed._thread.is_alive()
    assert CONFIGURATION in api.stored
