from __future__ import annotations

import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from certs.errors import ApiError
from certs.issue import issue_ca
from certs.pem import KeyPair
from certs.self_managed import SelfManaged, Status
from certs.serving import ServingContext
from tests.unit.certs.clocks import Ticking
from tests.unit.certs.objects import (
    CONFIGURATION,
    INSTALLATION,
    MUTATING,
    SECRET,
    VALIDATING,
    Objects,
    secret_of,
)

UNREACHABLE = ApiError("cannot reach the API server https://10.0.0.1: Connection refused")


def _managed(api: Objects, clock: Ticking | None = None) -> SelfManaged:
    return SelfManaged(INSTALLATION, ServingContext(clock=clock), lambda: api, clock=clock)


def _issuer(managed: SelfManaged) -> KeyPair | None:
    return managed._keeper.served.issuer if managed._keeper else None


def _leaf(managed: SelfManaged) -> KeyPair | None:
    return managed._keeper.served.leaf if managed._keeper else None


def _in_secret(api: Objects, key: str = "ca.crt") -> bytes:
    return b64decode(api.stored[SECRET]["data"].get(key, ""))


class Refusing(Objects):
    """An API server that refuses to change a certain object."""

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self.path = path

    def apply(self, path: str, body: dict[str, Any]) -> bool:
        """Apply fields to any other object."""
        if path == self.path:
            raise UNREACHABLE
        return super().apply(path, body)


@pytest.fixture
def api() -> Objects:
    """Return an API server with the MutatingWebhookConfiguration."""
    api = Objects()
    api.configure()
    return api


def _rounds(replicas: list[SelfManaged], clock: Ticking, seconds: float) -> Iterator[None]:
    """Let time pass, with a round of each replica every five seconds."""
    for _ in range(int(seconds / 5)):
        clock.tick(5)
        for replica in replicas:
            assert replica.attempt(), replica.status.problem
        yield


def test_one_round_does_it_all(api: Objects) -> None:
    """The CA is in the Secret, a leaf of it is served, and caBundle has the same CA."""
    managed = _managed(api)

    assert managed.status == Status(problem="not tried yet")
    assert managed.attempt()
    assert managed.status.trusted
    assert managed.status.not_after is not None
    assert managed.status.ca_not_after is not None
    assert managed.status.phase == "settled"
    assert b64decode(api.bundle) == b64decode(api.trusted(VALIDATING)) == _in_secret(api)
    assert managed.notes() == [
        "created Secret rdma-webhook/rdma-webhook-ca: it did not exist",
        "wrote caBundle of MutatingWebhookConfiguration zz-rdma-webhook: it was empty",
        "wrote caBundle of ValidatingWebhookConfiguration rdma-webhook: it was empty",
    ]
    assert managed.notes() == []


def test_served_before_it_is_trusted() -> None:
    """The leaf is there at once; it counts as trusted when caBundle has been read back."""
    api = Objects()
    managed = _managed(api)

    assert not managed.attempt()
    assert managed.status.not_after is not None
    assert not managed.status.trusted
    assert (
        managed.status.problem == "MutatingWebhookConfiguration zz-rdma-webhook does not exist yet"
    )
    api.configure()
    assert managed.attempt()
    assert managed.status.trusted


def test_pods_are_served_without_the_second_configuration() -> None:
    """That is a reported problem, not a failure; once the object exists, it gets the CA."""
    api = Objects()
    api.install(MUTATING)
    managed = _managed(api)

    assert managed.attempt()
    message = "ValidatingWebhookConfiguration rdma-webhook does not exist yet"
    assert (managed.status.trusted, managed.status.problem) == (True, message)
    api.install(VALIDATING)
    assert managed.attempt()
    assert managed.status.problem == ""
    assert b64decode(api.trusted(VALIDATING)) == _in_secret(api)


def test_a_second_configuration_that_cannot_be_written() -> None:
    """Pods are served anyway, and the round is soon repeated."""
    api = Refusing(VALIDATING.path)
    api.configure()
    managed = _managed(api)
    assert not managed.attempt()
    assert (managed.status.trusted, managed.status.problem) == (True, str(UNREACHABLE))


def test_a_rotation_waits_for_each_configuration() -> None:
    """The next CA issues nothing until API servers trust it in every configuration."""
    refusing, clock = Refusing(), Ticking()
    refusing.configure()
    managed = _managed(refusing, clock)
    managed.attempt()
    first = _issuer(managed)
    refusing.stored[SECRET]["metadata"]["annotations"] = {"rdma.lab/rotate": "rotate"}
    refusing.path = VALIDATING.path
    for _ in range(100):
        clock.tick(5)
        assert not managed.attempt()
    assert b64decode(refusing.bundle).count(b"BEGIN") == 2
    assert (managed.status.phase, _issuer(managed)) == ("publishing", first)
    refusing.path = ""
    for _ in _rounds([managed], clock, 130):
        pass
    assert (managed.status.phase, _issuer(managed) != first) == ("draining", True)


def test_replicas_that_start_at_once_have_one_ca(api: Objects) -> None:
    """Any number of replicas may start in an empty namespace."""
    replicas = [_managed(api) for _ in range(8)]
    threads = [threading.Thread(target=replica.attempt) for replica in replicas]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(replica.status.trusted for replica in replicas)
    assert [verb for verb, path, _ in api.writes if path == SECRET] == ["create"]
    assert {_issuer(replica) for replica in replicas} == {_issuer(replicas[0])}


def test_a_round_with_nothing_to_do_writes_nothing(api: Objects) -> None:
    """Every five seconds there are only two reads, and the leaf stays."""
    managed = _managed(api)
    managed.attempt()
    before, leaf = list(api.writes), _leaf(managed)
    managed.attempt()

    assert api.writes == before
    assert _leaf(managed) is leaf


def test_the_leaf_is_renewed_without_the_api_server(api: Objects) -> None:
    """The CA is in memory, so the leaf does not expire while the API server is gone."""
    clock = Ticking()
    managed = _managed(api, clock)
    managed.attempt()
    issuer, leaf = _issuer(managed), _leaf(managed)
    api.broken = UNREACHABLE
    clock.tick(15 * 3600)
    assert not managed.attempt()
    assert _leaf(managed) is leaf
    clock.tick(3600)

    assert not managed.attempt()
    assert _issuer(managed) is issuer
    assert _leaf(managed) is not leaf
    assert managed.status.problem == str(UNREACHABLE)
    assert managed.status.trusted
    assert managed.status.not_after is not None
    assert managed.status.not_after > clock.now() + timedelta(hours=23)


def test_a_year_passes(api: Objects) -> None:
    """There are new leaves each day, and then a new CA; in between, both CAs are trusted."""
    clock = Ticking()
    replicas = [_managed(api, clock) for _ in range(2)]
    for replica in replicas:
        replica.attempt()
    first = _in_secret(api)
    clock.tick(244 * 86400)
    bundles = []
    for _ in _rounds(replicas, clock, 300):
        if api.bundle not in bundles:
            bundles.append(api.bundle)
    second = _in_secret(api)
    assert second != first
    assert [b64decode(bundle) for bundle in bundles] == [first + second]
    assert {_issuer(replica).certificate for replica in replicas} == {second}  # type: ignore[union-attr]
    clock.tick(24 * 3600)
    for _ in _rounds(replicas, clock, 300):
        pass
    assert b64decode(api.bundle) == second
    assert {replica.status.phase for replica in replicas} == {"settled"}


def test_what_was_undone_is_done_again(api: Objects) -> None:
    """An emptied caBundle, a new configuration, a deleted Secret: the next round repairs each."""
    managed = _managed(api, clock := Ticking())
    managed.attempt()
    before = api.stored[SECRET]["data"]
    api.configure("")
    del api.stored[SECRET]
    clock.tick(5)

    assert managed.attempt()
    assert api.stored[SECRET]["data"] == before
    assert b64decode(api.bundle) == _in_secret(api)


def test_a_lost_secret_is_restored_with_all_its_state(api: Objects) -> None:
    """In the middle of a rotation, the first replica to notice restores it."""
    clock = Ticking()
    replicas = [_managed(api, clock) for _ in range(2)]
    for replica in replicas:
        replica.attempt()
    api.stored[SECRET]["metadata"]["annotations"] = {"rdma.lab/rotate": "revoke"}
    for replica in replicas:
        replica.attempt()
    before = api.stored.pop(SECRET)
    for replica in reversed(replicas):
        clock.tick(5)
        assert replica.attempt()

    assert before["data"].keys() >= {"next.crt", "next.key"}
    assert api.stored[SECRET]["data"] == before["data"]
    assert api.stored[SECRET]["metadata"]["annotations"] == {"rdma.lab/revoking": "true"}


def test_a_bundle_of_another_ca_is_healed(api: Objects) -> None:
    """A CA that is not in the Secret is trusted only until the next round."""
    managed = _managed(api, clock := Ticking())
    managed.attempt()
    clock.tick(5)
    api.configure(b64encode(issue_ca().certificate).decode())

    assert managed.attempt()
    assert b64decode(api.bundle) == _in_secret(api)


def test_another_ca_in_the_secret_is_gone_over_to(api: Objects) -> None:
    """If somebody brings a CA, both are trusted until every replica serves with the new one."""
    other, clock = issue_ca(), Ticking()
    managed = _managed(api, clock)
    managed.attempt()
    first = _issuer(managed)
    assert first is not None
    api.stored[SECRET] = secret_of(other)

    for _ in _rounds([managed], clock, 120):
        assert _issuer(managed) == first
        assert b64decode(api.bundle) == other.certificate + first.certificate
    for _ in _rounds([managed], clock, 120):
        assert _issuer(managed) == other
    assert b64decode(api.bundle) == other.certificate


def test_a_replica_that_was_away_does_not_bring_back_what_was_retired(api: Objects) -> None:
    """Its CA is not trusted any more: it switches at once, and the Secret does not change."""
    clock = Ticking()
    here, away = _managed(api, clock), _managed(api, clock)
    for replica in (here, away):
        replica.attempt()
    api.stored[SECRET]["metadata"]["annotations"] = {"rdma.lab/rotate": "revoke"}
    for _ in _rounds([here], clock, 400):
        pass
    assert here.status.phase == "settled"
    before = dict(api.stored[SECRET])

    assert away.attempt()
    assert _issuer(away) == _issuer(here)
    assert api.stored[SECRET] == before


def test_who_starts_when_the_secret_is_lost_takes_nobodys_trust(api: Objects) -> None:
    """It has no CA, so it makes one; the CAs in caBundle stay until no replica uses them."""
    clock = Ticking()
    old, new = _managed(api, clock), _managed(api, clock)
    old.attempt()
    first = _in_secret(api)
    del api.stored[SECRET]
    assert new.attempt()
    assert b64decode(api.bundle) == _in_secret(api) + first
    for _ in _rounds([old, new], clock, 125):
        pass
    assert _issuer(old) == _issuer(new)
    for _ in _rounds([old, new], clock, 230):
        pass
    assert b64decode(api.bundle) == _in_secret(api) != first


def test_a_secret_that_is_garbage_is_restored(api: Objects) -> None:
    """A replica that has the CA in memory restores it each time."""
    managed = _managed(api)
    managed.attempt()
    before = api.stored[SECRET]["data"]
    api.stored[SECRET]["data"] = {"ca.crt": "Z2FyYmFnZQ==", "ca.key": "eA=="}
    managed.notes()

    assert managed.attempt()
    assert api.stored[SECRET]["data"] == before
    assert managed.notes() == [
        "restored Secret rdma-webhook/rdma-webhook-ca: it is not a single PEM certificate"
    ]


def test_garbage_is_left_alone_by_who_knows_no_better(api: Objects) -> None:
    """It may be a CA that somebody can repair; the status contains the problem."""
    api.stored[SECRET] = {"data": {"ca.crt": "Z2FyYmFnZQ=="}}
    managed = _managed(api)

    assert not managed.attempt()
    assert api.writes == []
    assert managed.status.problem == (
        "Secret rdma-webhook/rdma-webhook-ca: it lacks ca.key; repair it, or delete it to get a "
        "new CA"
    )


def test_a_secret_that_changes_all_the_time_is_no_endless_loop() -> None:
    """Somebody else's constant changes do not keep the thread busy."""

    class Fickle(Objects):
        def create(self, *_: object) -> bool:
            return False

    managed = _managed(Fickle())
    assert not managed.attempt()
    assert managed.status.problem.startswith("another client keeps changing Secret ")


def test_a_machine_that_slept_for_a_year(api: Objects) -> None:
    """Its leaf and its CA have expired, so it makes new ones."""
    clock = Ticking()
    managed = _managed(api, clock)
    managed.attempt()
    first = _in_secret(api)
    clock.tick(366 * 86400)

    assert managed.attempt(), managed.status.problem
    assert _in_secret(api) != first
    assert managed.status.not_after is not None
    assert managed.status.not_after > clock.now()


def test_a_defect_is_reported_and_ends_nothing(api: Objects) -> None:
    """Only its type is shown, since its text may contain a key."""
    api.broken = RuntimeError("-----BEGIN PRIVATE KEY-----")
    managed = _managed(api)

    assert not managed.attempt()
    assert managed.status.problem == "internal error, please report it: RuntimeError"
    api.broken = None
    assert managed.attempt()


def test_goes_on_in_a_thread_until_it_is_stopped() -> None:
    """The thread tries again by itself."""
    api = Objects()
    managed = _managed(api)
    managed.start()
    api.configure()
    deadline = time.monotonic() + 60
    while not managed.status.trusted and time.monotonic() < deadline:
        time.sleep(0.01)
    managed.stop()
    managed._thread.join(60)

    assert managed.status.trusted
    assert not managed._thread.is_alive()
    assert CONFIGURATION in api.stored


FROZEN = (
    "Secret rdma-webhook/rdma-webhook-ca: it is immutable, so its CA can be neither replaced nor "
    "repaired; delete the Secret, and the replicas will create it again with the same CA"
)


def _freeze(api: Objects) -> None:
    """Make the Secret immutable, which the API server would enforce."""
    api.stored[SECRET]["immutable"] = True


def test_an_immutable_secret_is_reported_and_served(api: Objects) -> None:
    """It is not written, even if a rotation is due or requested; everything else continues."""
    clock = Ticking()
    managed = _managed(api, clock)
    managed.attempt()
    _freeze(api)
    secret, leaf = dict(api.stored[SECRET]), _leaf(managed)
    clock.tick(300 * 86400)  # so that the next CA is due
    api.stored[SECRET]["metadata"]["annotations"] = {"rdma.lab/rotate": "revoke"}
    api.configure()

    assert managed.attempt()
    assert (managed.status.problem, managed.status.trusted) == (FROZEN, True)
    assert api.stored[SECRET]["data"] == secret["data"]
    assert b64decode(api.bundle) == _in_secret(api)
    assert _leaf(managed) is not leaf


def test_who_starts_with_an_immutable_secret_serves_by_it(api: Objects) -> None:
    """It also keeps trusting the CAs that others use."""
    first = _managed(api)
    first.attempt()
    _freeze(api)
    second = _managed(api)

    assert second.attempt()
    assert (second.status.problem, second.status.trusted) == (FROZEN, True)
    assert _issuer(second) == _issuer(first)


def test_another_ca_in_an_immutable_secret_takes_no_trust_away(api: Objects) -> None:
    """A replica that serves with the previous CA switches as it does in a rotation."""
    clock = Ticking()
    managed = _managed(api, clock)
    managed.attempt()
    before, other = _issuer(managed), issue_ca()
    api.stored[SECRET] |= {**secret_of(other), "immutable": True}
    clock.tick(5)

    assert managed.attempt()
    assert before is not None
    assert before.certificate in b64decode(api.bundle)
    assert other.certificate in b64decode(api.bundle)
    for _ in _rounds([managed], clock, 300):
        pass
    assert _issuer(managed) == other
    assert b64decode(api.bundle) == other.certificate


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (
            {},
            (
                "Secret rdma-webhook/rdma-webhook-ca: it is immutable and has no CA; delete the "
                "Secret, and the replicas will create it again with a CA"
            ),
        ),
        ({"ca.crt": "eA=="}, "delete it to get a new CA"),
    ],
    ids=("empty", "unusable"),
)
def test_an_immutable_secret_without_a_ca(api: Objects, data: dict[str, str], problem: str) -> None:
    """No replica makes a CA that it cannot share; one that has a CA keeps using it."""
    managed = _managed(api)
    managed.attempt()
    bundle = api.bundle
    api.stored[SECRET] |= {"data": data, "immutable": True}
    stranger = _managed(api)

    assert not stranger.attempt()
    assert not stranger.status.trusted
    assert problem in stranger.status.problem
    assert managed.attempt()
    assert (managed.status.problem, api.bundle) == (FROZEN, bundle)


def test_an_immutable_secret_that_is_deleted_is_made_again(api: Objects) -> None:
    """It gets the same CA, and is not immutable any more."""
    managed = _managed(api)
    managed.attempt()
    data = api.stored[SECRET]["data"]
    _freeze(api)
    managed.attempt()
    del api.stored[SECRET]

    assert managed.attempt()
    assert managed.status.problem == ""
    assert (api.stored[SECRET]["data"], api.stored[SECRET].get("immutable")) == (data, None)
