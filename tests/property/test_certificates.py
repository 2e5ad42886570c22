"""Replicas that exchange their CA: whatever happens, their served leaves are trusted.

Any number of replicas do their rounds in any order, also within each other's requests;
requests, answers and changes get lost; replicas start and stop; clocks are wrong; the Secret is
deleted or overwritten; rotations and revocations are requested. All the while, an API server whose
`caBundle` is up to `propagation` old must trust every served leaf.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import dropwhile
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from certs.authorities import RotationRequest
from certs.ca_bundle import parse_ca_bundle
from certs.durations import Durations
from certs.errors import ApiError, CertificateError
from certs.pem import pem_fingerprint
from certs.self_managed import SelfManaged
from certs.serving import ServingContext
from tests.unit.certs.clocks import Ticking
from tests.unit.certs.objects import INSTALLATION, SECRET, VALIDATING, VALIDATION, Objects

TIMES = Durations(
    ca=timedelta(hours=1),
    leaf=timedelta(seconds=60),
    propagation=timedelta(seconds=20),
    round_interval=timedelta(seconds=5),
    idle_connection=timedelta(seconds=20),
)
#: Seconds until an exchange has ended completely.
QUIET = 330
CLOCK_ERRORS = st.integers(-60, 60).map(lambda seconds: timedelta(seconds=seconds))


class Interleaved(Objects):
    """Objects whose requests get lost, and between which other replicas may do a round."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._within = 0

    def _answer(self) -> None:
        super()._answer()
        chance = self._world.chance
        if self._world.calm or self._within > 2:
            return
        self._within += 1
        try:
            while chance.random() < 0.15:
                chance.choice(self._world.replicas).managed.attempt()
        finally:
            self._within -= 1
        if chance.random() < 0.03:
            raise ApiError("the request was lost")

    def create(self, path: str, body: dict[str, Any]) -> bool:
        """Create the object, but sometimes lose the answer."""
        return self._lossy(super().create(path, body))

    def replace(self, path: str, body: dict[str, Any]) -> bool:
        """Replace the object, but sometimes lose the answer."""
        return self._lossy(super().replace(path, body))

    def apply(self, path: str, body: dict[str, Any]) -> bool:
        """Apply the fields, but sometimes lose the answer."""
        if path == VALIDATION and self._world.refusing and not self._world.calm:
            raise ApiError("the second configuration may not be written")
        return self._lossy(super().apply(path, body))

    def _lossy(self, done: bool) -> bool:
        if not self._world.calm and self._world.chance.random() < 0.1:
            raise ApiError("the answer was lost")
        return done


class Watching:
    """A watch whose changes the test reports."""

    current = True

    def start(self, changed: Callable[[], None]) -> None:
        """Do nothing: no thread is started."""

    def stop(self) -> None:
        """Do nothing."""


@dataclass
class Replica:
    """One replica, and its faults."""

    managed: SelfManaged
    clock: Ticking
    watch: Watching
    #: Seconds for which it cannot reach the API server.
    away: int = 0
    #: Seconds until it may be away, or miss a change, again: otherwise it would fall behind.
    rests: int = 0

    @property
    def issuer(self) -> str:
        """The CA of the served leaf; "" while the API server would not call this replica."""
        keeper = self.managed._keeper
        if keeper is None or keeper.served.issuer is None or not self.managed.status.trusted:
            return ""
        return pem_fingerprint(keeper.served.issuer.certificate)


class World:
    """Some replicas, one API server, and the recent history of `caBundle`."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.calm = False
        self.api = Interleaved(self)
        self.api.configure()
        self.passed = 0
        #: The versions of all objects, as last reported to replicas.
        self.versions: dict[str, str] = {}
        #: Seconds for which the second configuration cannot be written.
        self.refusing = 0
        self.replicas: list[Replica] = []
        #: The content of `caBundle`, second by second.
        self.trusted: list[frozenset[str]] = []
        #: The same for the second configuration, since its last creation.
        self.also: list[frozenset[str]] = []
        #: CAs that were published before they issued, and CAs that were not.
        self.announced: set[str] = set()
        self.sudden: set[str] = set()

    def start(self, clock_error: timedelta) -> None:
        """Start a replica whose clock is wrong."""
        clock = Ticking(clock_error)
        clock.tick(self.passed)
        serving = ServingContext(clock=clock)
        watch = Watching()
        managed = SelfManaged(INSTALLATION, serving, lambda: self.api, TIMES, clock, watch=watch)
        self.replicas.append(Replica(managed, clock, watch))

    def pass_time(self, seconds: int) -> None:
        """Let time pass, second by second.

        Each replica does a round at a reported change; every five seconds, if a round is due.
        """
        for _ in range(seconds):
            self.passed += 1
            self.refusing = max(0, self.refusing - 1)
            for number, replica in enumerate(self.replicas):
                replica.clock.tick(1)
                replica.away, replica.rests = max(0, replica.away - 1), max(0, replica.rests - 1)
                replica.watch.current = not replica.away
                at_rest = (self.passed + number) % 5 and not replica.managed.changed.is_set()
                if not replica.away and not at_rest and replica.managed.due:
                    replica.managed.attempt()
            self.look()
            self.notify()

    def notify(self) -> None:
        """Report to replicas that an object has changed; but sometimes the change is lost."""
        versions = {
            path: manifest.get("metadata", {}).get("resourceVersion")
            for path, manifest in self.api.stored.items()
        }
        if versions == self.versions:
            return
        self.versions = versions
        for replica in self.replicas:
            if not self.calm and not replica.rests and self.chance.random() < 0.1:
                replica.rests = 80
            else:
                replica.managed.changed.set()

    def look(self) -> None:
        """Check that API servers trust every served leaf, even those with an older `caBundle`.

        The CA of a cold start is an exception: a replica without a CA makes one at once.
        """
        now = parse_ca_bundle(self.api.bundle, {}).fingerprints
        self.announced |= self._in_secret("next.crt")
        self.sudden |= self._in_secret("ca.crt") - self.announced
        self.trusted.append(now)
        self._look_also()
        for issuer in {replica.issuer for replica in self.replicas} - {""}:
            assert issuer in now, self.passed
            for contents in (self.trusted, self.also):
                behind = [bundle for bundle in contents[-20:] if bundle]
                if issuer in self.sudden:
                    behind = list(dropwhile(lambda bundle: issuer not in bundle, behind))  # noqa: B023
                assert all(issuer in bundle for bundle in behind), self.passed

    def _look_also(self) -> None:
        """Look at the second configuration; a new one is empty at first."""
        if VALIDATION in self.api.stored:
            fingerprints = parse_ca_bundle(self.api.trusted(VALIDATING), {}).fingerprints
            self.also.append(fingerprints)
        else:
            self.also.clear()

    def _in_secret(self, key: str) -> set[str]:
        data = self.api.stored.get(SECRET, {}).get("data", {})
        try:
            return {pem_fingerprint(b64decode(data.get(key, "")))}
        except CertificateError:
            return set()

    def annotate(self, request: RotationRequest) -> None:
        """Request a rotation as `kubectl annotate` does."""
        if SECRET in self.api.stored:
            metadata = self.api.stored[SECRET]["metadata"]
            metadata["annotations"] = {
                **metadata.get("annotations", {}),
                "rdma.lab/rotate": request.value,
            }
            metadata["resourceVersion"] += "'"

    def lose(self) -> None:
        """Delete the Secret."""
        self.api.stored.pop(SECRET, None)

    def overwrite(self) -> None:
        """Write garbage into the Secret."""
        if SECRET in self.api.stored:
            self.api.stored[SECRET]["data"] = {"ca.crt": "Z2FyYmFnZQ=="}
            self.api.stored[SECRET]["metadata"]["resourceVersion"] += "'"

    def toggle(self) -> None:
        """Delete the second configuration, or install it with its first content."""
        if self.api.stored.pop(VALIDATION, None) is None:
            self.api.install(VALIDATING)

    def repair(self) -> None:
        """Delete a Secret that no replica could restore, as the error advises."""
        if any("repair it" in replica.managed.status.problem for replica in self.replicas):
            del self.api.stored[SECRET]


ACTIONS = st.one_of(
    st.tuples(st.just("pass"), st.integers(1, 40)),
    st.tuples(st.just("start"), CLOCK_ERRORS),
    st.tuples(st.just("stop"), st.integers(0, 5)),
    st.tuples(st.just("away"), st.integers(0, 5)),
    st.tuples(st.just("refuse"), st.integers(1, 60)),
    st.tuples(st.just("ask"), st.sampled_from(RotationRequest)),
    st.tuples(st.sampled_from(["lose", "overwrite", "toggle"]), st.none()),
)


def _act(world: World, action: str, value: Any) -> None:
    replica = world.replicas[value % len(world.replicas)] if isinstance(value, int) else None
    match action:
        case "pass":
            world.pass_time(value)
        case "start" if len(world.replicas) < 5:
            world.start(value)
        case "stop" if replica and len(world.replicas) > 1:
            world.replicas.remove(replica)
        case "away" if replica and not replica.rests:
            replica.away, replica.rests = 20, 80
        case "ask":
            world.annotate(value)
        case "refuse":
            world.refusing = value
        case "lose" | "overwrite" | "toggle":
            getattr(world, action)()
        case _:  # there is no replica to start, to stop or to send away
            pass


@given(st.integers(0, 1 << 32), CLOCK_ERRORS, st.lists(ACTIONS, min_size=5, max_size=25))
@settings(deadline=None, max_examples=25)
def test_served_leaves_are_always_trusted(
    seed: int, clock_error: timedelta, actions: list[tuple[str, Any]]
) -> None:
    """Leaves are always trusted, and after a long enough quiet there is one CA for all."""
    world = World(Random(seed))
    world.start(clock_error)
    world.pass_time(30)
    for action, value in actions:
        _act(world, action, value)
        world.pass_time(1)
    world.calm = True
    if VALIDATION not in world.api.stored:
        world.toggle()
    world.pass_time(60)
    world.repair()
    world.pass_time(QUIET)

    (only,) = world.trusted[-1]
    assert world.also[-1] == {only}
    assert {replica.issuer for replica in world.replicas} == {only}
    assert all(not replica.managed.status.problem for replica in world.replicas)
    assert {replica.managed.status.phase for replica in world.replicas} == {"settled"}
