"""Certificates that a replica in a cluster maintains by itself.

The CA is in a Secret, shared by all replicas; each replica has its own leaf, in memory only.
A thread does one round after another (`certs.keeper`) and publishes the status.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from certs.backoff import delays
from certs.certs_error import CertsError
from certs.clock import Clock
from certs.installation import Api, Installation
from certs.issue import expiry
from certs.keeper import Keeper
from certs.lifetimes import Lifetimes
from certs.serving import ServingContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status after a round."""

    #: What is wrong now, as one line; "" if nothing is.
    problem: str
    #: When the served leaf expires; None while there is none.
    not_after: datetime | None = None
    #: Whether the CA of that leaf has been seen in `caBundle`.
    trusted: bool = False
    #: When the CA that issues expires; None while none is known.
    ca_not_after: datetime | None = None
    #: settled, publishing or draining; "" while no CA is known.
    phase: str = ""
    #: The exception, if the problem is a defect in this program.
    defect: Exception | None = field(default=None, compare=False)


class SelfManaged:
    """Keeps a serving context supplied with certificates that the API server trusts."""

    def __init__(
        self,
        installation: Installation,
        serving: ServingContext,
        connect: Callable[[], Api],
        lifetimes: Lifetimes | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Prepare only: nothing is done before `start`, not even `connect`, which may be slow."""
        self.installation = installation
        self.lifetimes = lifetimes or Lifetimes()
        self._serving = serving
        self._connect = connect
        self._clock = clock or Clock()
        self._keeper: Keeper | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="certificates", daemon=True)
        #: Replaced as a whole, so any thread may read it.
        self.status = Status(problem="not tried yet")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current round; does not wait for that."""
        self._stop.set()

    def round(self) -> bool:
        """Do one round, and return whether it was completed; never raises."""
        trusted, problem, defect = self.status.trusted, "", None
        try:
            self._connected().round()
        except CertsError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 -- only this thread renews the leaf
            problem = f"internal error, please report it: {type(error).__name__}"
            defect = error
        else:
            trusted, problem = True, self._keeper.failure if self._keeper else ""
        warning = self._keeper.warning if self._keeper else ""
        self.status = self._status(problem or warning, trusted, defect)
        return not problem

    def notes(self) -> list[str]:
        """Return what was done since the last call; any thread may call it."""
        notes = self._keeper.notes if self._keeper else ()
        return [notes.popleft() for _ in range(len(notes))] if notes else []

    def _run(self) -> None:
        failed = delays()
        while not self._stop.is_set():
            if self.round():
                failed = delays()
                seconds = self.lifetimes.round.total_seconds()
                self._stop.wait(seconds * random.uniform(0.8, 1.0))  # noqa: S311 -- no secret
            else:
                self._stop.wait(next(failed))

    def _connected(self) -> Keeper:
        if self._keeper is None:
            api = self._connect()
            self._keeper = Keeper(
                self.installation, api, self._serving, self.lifetimes, self._clock
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
