"""The configuration source for the object in the cluster.

The thread of the watch reads each change and assigns the nodes to its fabrics, which may take a
second. The event loop starts using it three seconds after its arrival. By then all replicas have
it. So whichever replica gets the second call for a pod already has the configuration of the first
call, even if it is not using it yet.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypedDict, TypeGuard

from webhook.config.custom_resource import CONFIGURATION_TITLE
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import LoadedConfiguration, parse_object
from webhook.kube.informers import Informers
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.sources.configuration_in_use import ConfigurationInUse
from webhook.serve.sources.kept_specs import LastGood, kept_specs, last_good
from webhook.serve.sources.source import ProblemLog
from webhook.serve.state import ConfigurationLearned, PreparedConfiguration, State
from webhook.text.escape import visible
from webhook.text.readiness import ReadinessCheck

#: Seconds from the arrival of a change to its use.
DELAY = 3.0
#: Seconds after which all replicas use the configuration that this one read at its start, and have
#: answered earlier calls. This replica lacks the object's previous content, and so cannot answer
#: the second call for a pod decided by it: after a recent write, it is not ready earlier.
SETTLE_SECONDS = DELAY + 1.0
#: Seconds during which a write is recent, by this node's clock, which may be wrong.
RECENT = 60.0
_APPLY = "`kubectl apply -f fabrics.yaml` (docs/installation.md, Fabrics)"
NO_OBJECT = f"there is no {CONFIGURATION_TITLE}; run {_APPLY}"
NO_KIND = (
    "the cluster has no kind FabricConfiguration; run `kubectl apply -k manifests/crd`, then "
    f"{_APPLY}"
)
NO_FABRICS = f"{CONFIGURATION_TITLE} has no fabrics; add them under spec.fabrics, then run {_APPLY}"
NOT_USABLE = (
    f"{CONFIGURATION_TITLE} is not usable, for the reason in the webhook's log and Events; "
    f"correct it, then run {_APPLY}"
)
#: The shortest delay, in seconds, of a timer that is set again since it fired early.
_SOON = 0.001


class _Metadata(TypedDict, total=False):
    """The metadata in the informer's projection of the object."""

    generation: int
    #: The time of the last write, in ISO 8601; "" if unknown.
    written: str
    resourceVersion: str


class _Projection(TypedDict, total=False):
    """The informer's projection of the object; its other fields may have any shape."""

    metadata: _Metadata
    spec: Mapping[str, object]
    status: Mapping[str, object]


class _ObservedStatus(TypedDict):
    """The fields of ObservedObject that change without the spec."""

    status: Mapping[str, object]
    version: str


class ObservedObject(NamedTuple):
    """The object, as last delivered by the watch."""

    #: Its metadata.generation.
    generation: int
    #: The configuration; None if it cannot be used.
    loaded_configuration: LoadedConfiguration | None
    #: The reasons why it cannot be used, one per line.
    problem: str
    spec: Mapping[str, object] = MappingProxyType({})
    #: Its status.
    status: Mapping[str, object] = MappingProxyType({})
    #: Its metadata.resourceVersion.
    version: str = ""


class _Learned(NamedTuple):
    """A change of the object, read and waiting for its use."""

    #: The time of its use, by the clock.
    due: float
    #: Puts it to use, in the event loop.
    use: Callable[[], None]
    #: The configuration, if the change brings fabrics.
    prepared_configuration: PreparedConfiguration | None = None


class ObjectConfiguration:
    """A source of the configuration from an informer of its kind only."""

    def __init__(
        self,
        informers: Informers,
        state: State,
        in_use: ConfigurationInUse,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._informers = informers
        (self._reflector,) = informers.reflectors
        self._state = state
        self._in_use = in_use
        self._clock, self._wall_clock = clock, wall_clock
        self._ready_at = 0.0
        #: None without an object. The thread of the watch assigns it; any thread may read it.
        self.observed_object: ObservedObject | None = None
        #: metadata.generation of the object when it had the spec in use; 0 without one.
        self.used_generation = 0
        self._waiting: deque[_Learned] = deque()
        #: Whether there has been a list, and its problem; for the thread of the watch.
        self._listed, self._reported_absence = False, ""
        self._last: _Projection = {}
        self._synced = False
        self._problems = ProblemLog(informers, "configuration")
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        state.probes.append(self.check)

    def start(self) -> None:
        """Start the informers; call this in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._informers.start(self._learn)

    def stop(self) -> None:
        """Stop the informers, without waiting for their end."""
        self._informers.stop()

    def _learn(self) -> None:
        """Read the delivered changes, in the thread of the watch."""
        due = self._clock() + (DELAY if self._listed else 0.0)
        changes = [change for _, batch in self._informers.take_changes() for change in batch]
        projections = [item if _is_present(item) else None for _, item in changes]
        learned = [
            _Learned(due, *self._prepare_use(projection))
            for projection in projections
            if projection is not None and self._remember_content(projection)
        ]
        if not self._listed and any(map(self._is_recent, projections)):
            self._ready_at = due + SETTLE_SECONDS
        self._listed = True
        if not self._reflector.object_count:
            learned += [_Learned(due, use) for use in self._absence()]
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._take, learned)

    def _remember_content(self, projection: _Projection) -> bool:
        """Remember the object's content; return whether it is new. Labels do not count.

        Nor does its status: if nothing else changed, only that of `observed_object` is replaced.
        """
        before, self._last = self._last, _content(projection)
        if before != self._last or self.observed_object is None:
            return True
        self.observed_object = self.observed_object._replace(**_status_of(projection))
        return False

    def _is_recent(self, projection: _Projection | None) -> bool:
        """Return whether the object was written recently, or in the future of this clock."""
        try:
            written = datetime.fromisoformat((projection or {})["metadata"]["written"])
        except (KeyError, ValueError):
            return False
        return self._wall_clock() - written.timestamp() < RECENT

    def _prepare_use(
        self, projection: _Projection
    ) -> tuple[Callable[[], None], PreparedConfiguration | None]:
        """Return a function that puts the object to use, and its configuration."""
        self._reported_absence = ""
        self.observed_object, prepared = self._read(projection)
        generation, loaded_configuration, problem, *_ = self.observed_object
        if loaded_configuration is not None:
            return partial(self._use, generation, loaded_configuration, prepared), prepared
        kept = last_good(kept_specs(self.observed_object.status))
        prepared = self._in_use.prepare(kept.loaded_configuration) if kept else None
        return partial(self._refuse, problem, kept, prepared), None

    def _read(self, projection: _Projection) -> tuple[ObservedObject, PreparedConfiguration | None]:
        """Read the object; never raises, since the watch would lose the change."""
        generation = projection["metadata"].get("generation", 0)
        loaded_configuration, prepared, problem = None, None, ""
        try:
            loaded_configuration = parse_object(projection, CONFIGURATION_TITLE)
            prepared = self._in_use.prepare(loaded_configuration)
        except InvalidConfiguration as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 -- a defect here must not end the watch either
            loaded_configuration, problem = None, visible(f"{CONFIGURATION_TITLE}: {error!r}")
        spec = projection.get("spec", {})
        status = _status_of(projection)
        return ObservedObject(generation, loaded_configuration, problem, spec, **status), prepared

    def _use(
        self,
        generation: int,
        loaded_configuration: LoadedConfiguration,
        prepared: PreparedConfiguration | None,
        *,
        is_kept: bool = False,
    ) -> None:
        self.used_generation = generation
        self._in_use.use(
            loaded_configuration, prepared, reason_without_fabrics=NO_FABRICS, is_kept=is_kept
        )

    def _refuse(
        self, problem: str, kept: LastGood | None, prepared: PreparedConfiguration | None
    ) -> None:
        """Use the last good spec: this replica's own, or the object's if that is newer."""
        if kept is not None and kept.generation > self.used_generation:
            self._use(kept.generation, kept.loaded_configuration, prepared, is_kept=True)
        self._in_use.refuse(problem, reason_without_fabrics=NOT_USABLE)

    def _lose(self, absence: str) -> None:
        self.used_generation = 0
        self._in_use.lose(absence)

    def _absence(self) -> Iterator[Callable[[], None]]:
        """Yield the reaction to a missing object, unless the last list had the same result."""
        self.observed_object, self._last = None, {}
        absence = NO_KIND if self._reflector.absent else NO_OBJECT
        if absence != self._reported_absence:
            self._reported_absence = absence
            yield partial(self._lose, absence)

    def _take(self, learned: list[_Learned]) -> None:
        self._synced = True
        self._waiting += learned
        for change in learned:
            if change.prepared_configuration is not None:
                self._state.send(ConfigurationLearned(change.prepared_configuration))
        self.use_due()

    def use_due(self) -> None:
        """Use due changes in the order of arrival; runs in the event loop."""
        now = self._clock()
        while self._waiting and self._waiting[0].due <= now:
            self._waiting.popleft().use()
        if self._timer is not None:
            self._timer.cancel()
        if self._waiting:
            assert self._loop is not None
            later = max(_SOON, self._waiting[0].due - now)
            self._timer = self._loop.call_later(later, self.use_due)

    def poll(self) -> bool:
        """Return whether there is a change to report; reads nothing."""
        return self._problem != self._problems.reported

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report whether the watch works: one line for each change."""
        self._problems.report(self._problem, metrics, log)

    @property
    def _problem(self) -> str:
        """The problem of the watch; a missing kind is reported elsewhere."""
        return "" if self._reflector.absent else self._reflector.problem

    @property
    def reason_without_fabrics(self) -> str:
        """The reason why there are no fabrics to decide by, on one line; "" if there are."""
        return self._in_use.reason_without_fabrics

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`: ready after the first list, even without an object.

        Without it, failurePolicy decides on each pod that opted in, and no other replica could do
        better.
        """
        problem = self._problem
        if not self._synced:
            return ReadinessCheck(
                "configuration", False, problem or f"{CONFIGURATION_TITLE} has not been read yet"
            )
        if self._clock() < self._ready_at:
            message = (
                f"{CONFIGURATION_TITLE} was written a moment ago; waiting until every replica uses "
                "it"
            )
            return ReadinessCheck("configuration", False, message)
        old = f"; not current: {problem}" if problem else ""
        return ReadinessCheck("configuration", True, f"{self._in_use.detail}{old}")


def _is_present(projection: object) -> TypeGuard[_Projection]:
    """Return whether an object exists; a deleted one has the projection None."""
    return projection is not None


def _content(projection: _Projection) -> _Projection:
    """Return the object without what changes when only its status or labels are written."""
    metadata: _Metadata = {**projection.get("metadata", {}), "written": "", "resourceVersion": ""}
    return {**projection, "metadata": metadata, "status": {}}


def _status_of(projection: _Projection) -> _ObservedStatus:
    """Return what the object says besides its spec."""
    version = projection["metadata"].get("resourceVersion", "")
    return {"status": projection.get("status", {}), "version": version}
