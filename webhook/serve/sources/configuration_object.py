"""Keep the state in step with the object that configures a cluster.

The thread of the watch reads each change and sorts the nodes by it, which may take a second, and
the event loop puts it to use three seconds after it was learnt. By then all replicas know it. So a
pod that was decided by it on one of them can be decided by it again on any other, even on one that
does not use it yet.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypedDict, TypeGuard

from webhook.config.custom_resource import OBJECT
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import Loaded, parse_object
from webhook.kube.informers import Informers
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.sources.configuration_in_use import ConfigurationInUse
from webhook.serve.sources.source import ProblemLog
from webhook.serve.state import ConfigurationLearnt, PreparedConfiguration, ReadinessCheck, State
from webhook.text.escape import visible

#: Seconds from learning of a change to using it.
DELAY = 3.0
#: Seconds after which all replicas use what this one has found at its start, and have answered the
#: calls of before. It cannot answer the second call for a pod whose first one was decided by what
#: the object was until then, so it is not ready earlier, if the object was written recently.
SETTLED = DELAY + 1.0
#: Seconds for which a write is recent, by this machine's clock, which may be wrong.
RECENT = 60.0
_APPLY = "kubectl apply -f fabrics.yaml (docs/installation.md, Fabrics)"
NO_OBJECT = f"there is no {OBJECT}: {_APPLY}"
NO_KIND = (
    "the cluster has no kind FabricConfiguration: kubectl apply -k manifests/crd, and then "
    f"{_APPLY}"
)
NO_FABRICS = f"{OBJECT} has none: add them below spec.fabrics, and {_APPLY}"
NOT_USABLE = (
    f"{OBJECT} is not usable, for the reason in the webhook's log and Events: correct it, and "
    f"{_APPLY}"
)
#: A timer may be this much too early.
_SOON = 0.001


class _Metadata(TypedDict, total=False):
    """The metadata that the feed keeps of the object."""

    generation: int
    #: When the API server wrote it last, in ISO 8601; "" if it does not say.
    written: str


class _Kept(TypedDict, total=False):
    """The object as the feed keeps it; its other fields may have any shape."""

    metadata: _Metadata


class ObservedObject(NamedTuple):
    """The object as the watch delivered it last."""

    #: Its metadata.generation.
    generation: int
    #: The configuration; None if it cannot be used.
    loaded: Loaded | None
    #: Why it cannot be used, each reason on a line.
    problem: str


class _Learnt(NamedTuple):
    """A change that was learnt and read."""

    #: When it comes into use, by the clock.
    due: float
    #: Puts it to use, in the event loop.
    use: Callable[[], None]
    #: The configuration, if the change brings fabrics.
    prepared: PreparedConfiguration | None = None


class ObjectConfiguration:
    """Uses the object of a feed, whose only kind it is."""

    def __init__(
        self,
        feed: Informers,
        state: State,
        in_use: ConfigurationInUse,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._feed = feed
        (self._reflector,) = feed.reflectors
        self._state = state
        self._in_use = in_use
        self._clock, self._wall_clock = clock, wall_clock
        self._ready_at = 0.0
        #: None without an object. The thread of the watch assigns it; any thread may read it.
        self.observed: ObservedObject | None = None
        self._waiting: deque[_Learnt] = deque()
        #: Whether there has been a list, and what it lacked; for the thread of the watch.
        self._listed, self._lacked = False, ""
        self._last: _Kept = {}
        self._synced = False
        self._problems = ProblemLog(feed, "configuration")
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        state.probes.append(self.check)

    def start(self) -> None:
        """Start the feed; call this in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._feed.start(self._learn)

    def stop(self) -> None:
        """Stop the feed; does not wait until it has stopped."""
        self._feed.stop()

    def _learn(self) -> None:
        """Read what the watch has delivered, in its thread."""
        due = self._clock() + (DELAY if self._listed else 0.0)
        changes = [change for _, batch in self._feed.take() for change in batch]
        kept = [item if _is_kept(item) else None for _, item in changes]
        learnt = [_Learnt(due, *self._reading(one)) for one in kept if self._is_new(one)]
        if not self._listed and any(map(self._is_recent, kept)):
            self._ready_at = due + SETTLED
        self._listed = True
        if not self._reflector.objects:
            learnt += [_Learnt(due, use) for use in self._absence()]
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._take, learnt)

    def _is_new(self, item: _Kept | None) -> TypeGuard[_Kept]:
        """Whether there is an object, and another one than before; its labels are no part of it."""
        before, self._last = self._last, _without_time(item or {})
        return item is not None and before != self._last

    def _is_recent(self, item: _Kept | None) -> bool:
        """Whether the object was written a moment ago, or after what this clock takes for now."""
        try:
            written = datetime.fromisoformat((item or {})["metadata"]["written"])
        except (KeyError, ValueError):
            return False
        return self._wall_clock() - written.timestamp() < RECENT

    def _reading(self, item: _Kept) -> tuple[Callable[[], None], PreparedConfiguration | None]:
        """Return what puts the object to use, and the configuration that it brings."""
        self._lacked = ""
        self.observed, prepared = self._read(item)
        loaded, problem = self.observed.loaded, self.observed.problem
        if loaded is not None:
            use = partial(self._in_use.use, loaded, prepared, without_fabrics=NO_FABRICS)
            return use, prepared
        return partial(self._in_use.refuse, problem, without=NOT_USABLE), None

    def _read(self, item: _Kept) -> tuple[ObservedObject, PreparedConfiguration | None]:
        """Read the object; never raises, since the watch would lose the change."""
        generation = item["metadata"].get("generation", 0)
        try:
            loaded = parse_object(item, OBJECT)
            return ObservedObject(generation, loaded, ""), self._in_use.prepare(loaded)
        except InvalidConfiguration as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 -- a defect here must not end the watch either
            problem = visible(f"{OBJECT}: {error!r}")
        return ObservedObject(generation, None, problem), None

    def _absence(self) -> Iterator[Callable[[], None]]:
        """Yield what to do without the object, unless that was done at the last list, too."""
        self.observed = None
        lacking = NO_KIND if self._reflector.absent else NO_OBJECT
        if lacking != self._lacked:
            self._lacked = lacking
            yield partial(self._in_use.lose, lacking)

    def _take(self, learnt: list[_Learnt]) -> None:
        self._synced = True
        self._waiting += learnt
        for one in learnt:
            if one.prepared is not None:
                self._state.send(ConfigurationLearnt(one.prepared))
        self.use_due()

    def use_due(self) -> None:
        """Use what is due, in the order in which it was learnt; runs in the event loop."""
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
        """Return whether there is something to report; reads nothing."""
        return self._problem != self._problems.told

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report whether the watch works: one line for each change."""
        self._problems.tell(self._problem, metrics, log)

    @property
    def _problem(self) -> str:
        """What is wrong with the watch; that the kind is missing is said elsewhere."""
        return "" if self._reflector.absent else self._reflector.problem

    @property
    def missing(self) -> str:
        """Why there are no fabrics to decide by, as one line; "" if there are."""
        return self._in_use.missing

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`: ready once the object was looked for, even if there is none.

        Without it, failurePolicy decides on each pod that opted in, and no other replica could do
        better.
        """
        problem = self._problem
        if not self._synced:
            return ReadinessCheck(
                "configuration", False, problem or f"{OBJECT} has not been read yet"
            )
        if self._clock() < self._ready_at:
            said = f"{OBJECT} was written a moment ago: waiting until every replica uses it"
            return ReadinessCheck("configuration", False, said)
        old = f"; not current: {problem}" if problem else ""
        return ReadinessCheck("configuration", True, f"{self._in_use.detail}{old}")


def _is_kept(item: object) -> TypeGuard[_Kept]:
    """Whether the feed keeps an object; it keeps None of one that is gone."""
    return item is not None


def _without_time(item: _Kept) -> _Kept:
    """Return the object without the time at which it was written."""
    return {**item, "metadata": {**item.get("metadata", {}), "written": ""}}
