"""Certificates that a replica in a cluster maintains by itself.

The CA is in a Secret, shared by all replicas; each replica has its own leaf, in memory only.
A thread does one round after another (`certs.keeper`) and publishes the status. A round reads all
objects. While they are watched, the thread does a round when

    an object has changed      within a second
    something is due           the renewal of the leaf or the CA, or a rotation's next step
    the last round failed      after a growing pause
    the watch was interrupted  repeatedly until it is current, then once more
    nothing happened           about every two minutes, in case a change was lost
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from certs.clock import Clock, delays
from certs.durations import Durations
from certs.errors import CertsError
from certs.installation import Api, Installation, Watch
from certs.issue import expiry
from certs.keeper import Keeper
from certs.serving import ServingContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status after a round."""

    #: The current problem, as one line; "" if there is none.
    problem: str
    #: The expiry of the served leaf; None while there is none.
    not_after: datetime | None = None
    #: Whether the CA of that leaf has been seen in `caBundle`.
    trusted: bool = False
    #: The expiry of the CA that issues; None while no CA is known.
    ca_not_after: datetime | None = None
    #: settled, publishing or draining; "" while no CA is known.
    phase: str = ""
    #: The exception, if the problem is a defect in this program.
    defect: Exception | None = field(default=None, compare=False)


#: Seconds between a change and the round that reads it, at least and at most.
AFTER_CHANGE = (0.2, 0.8)


class SelfManaged:
    """A thread that supplies a serving context with certificates that the API server trusts."""

    def __init__(
        self,
        installation: Installation,
        serving: ServingContext,
        connect: Callable[[], Api],
        durations: Durations | None = None,
        clock: Clock | None = None,
        *,
        watch: Watch | None = None,
    ) -> None:
        """Prepare; nothing happens before `start`, not even `connect`, which may be slow.

        Without `watch`, the objects are read in every round.
        """
        self.installation = installation
        self.durations = durations or Durations()
        self._serving = serving
        self._connect = connect
        self._clock = clock or Clock()
        self._keeper: Keeper | None = None
        self._watch = watch
        #: The time of the next read by the monotonic clock, whatever happens.
        self._resync = 0.0
        #: Set by the watch.
        self.changed = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="certificates", daemon=True)
        #: Replaced as a whole, so any thread may read it.
        self.status = Status(problem="not tried yet")

    def start(self) -> None:
        """Start the thread, and the watch."""
        self._thread.start()
        if self._watch is not None:
            self._watch.start(self.changed.set)

    def stop(self) -> None:
        """Stop after the current round, without waiting for its end."""
        self._stop.set()
        self.changed.set()
        if self._watch is not None:
            self._watch.stop()

    @property
    def watched(self) -> bool:
        """Whether the objects are watched now instead of read in every round."""
        return self._watch is not None and self._watch.current

    def _run_round(self) -> bool:
        """Run a round and publish the status; return whether it was completed; never raises."""
        trusted, problem, defect = self.status.trusted, "", None
        try:
            self._connect_keeper().round()
        except CertsError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 -- only this thread renews the leaf
            problem = f"internal error, please report it: {type(error).__name__}"
            defect = error
        else:
            trusted = True
            problem = self._keeper.unpublished_reason if self._keeper else ""
        warning = self._keeper.warning if self._keeper else ""
        self.status = self._status(problem or warning, trusted, defect)
        return not problem

    def notes(self) -> list[str]:
        """Return the changes made since the last call; any thread may call it."""
        notes = self._keeper.notes if self._keeper else ()
        return [notes.popleft() for _ in range(len(notes))] if notes else []

    def _run(self) -> None:
        retry_delays = delays()
        while not self._stop.is_set():
            if not self.due:
                self._pause(_jittered_seconds(self.durations.round_interval))
            elif self.attempt():
                retry_delays = delays()
                self._pause(_jittered_seconds(self.durations.round_interval))
            else:
                self._pause(next(retry_delays))

    @property
    def due(self) -> bool:
        """Whether the next round is to be done now."""
        if self.changed.is_set() or not self.watched or self._keeper is None:
            return True
        return self._clock.monotonic() >= self._resync or self._keeper.due

    def attempt(self) -> bool:
        """Run a round and set when the next is due: at once, unless this one was completed."""
        self.changed.clear()  # first: a change during the round is for the next one
        completed = self._run_round()
        later = self._clock.monotonic() + _jittered_seconds(self.durations.resync)
        self._resync = later if completed else 0.0
        return completed

    def _pause(self, seconds: float) -> None:
        """Wait; after a change, only long enough that replicas do not write simultaneously."""
        if self.changed.wait(seconds):
            self._stop.wait(random.uniform(*AFTER_CHANGE))  # noqa: S311 -- no secret

    def _connect_keeper(self) -> Keeper:
        if self._keeper is None:
            api = self._connect()
            self._keeper = Keeper(
                self.installation, api, self._serving, self.durations, self._clock
            )
        return self._keeper

    def _status(self, problem: str, trusted: bool, defect: Exception | None) -> Status:
        authorities = self._keeper.authorities if self._keeper else None
        return Status(
            problem=problem,
            not_after=self._serving.not_after,
            trusted=trusted,
            ca_not_after=expiry(authorities.current) if authorities else None,
            phase=authorities.phase if authorities else "",
            defect=defect,
        )


def _jittered_seconds(duration: timedelta) -> float:
    """Return a duration in seconds, less up to a fifth, so that replicas act at different times."""
    return duration.total_seconds() * random.uniform(0.8, 1.0)  # noqa: S311 -- no secret
