"""All reflectors, and a queue between their threads and the reader of their changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator

from webhook.kube.api import Reads
from webhook.kube.reflector import Change, Reflector
from webhook.kube.snapshot import Batch
from webhook.kube.watched_resources import KINDS, Kind


class Feed:
    """Keeps up with a cluster; the changes wait until somebody takes them."""

    def __init__(
        self,
        connect: Callable[[], Reads],
        pauses: Callable[[], Iterator[float]],
        clock: Callable[[], float] = time.monotonic,
        kinds: Iterable[Kind] = KINDS,
    ) -> None:
        """Prepare; `connect`, which may be slow, is called in a thread until it succeeds once."""
        self._connect = connect
        self._reads: Reads | None = None
        self._connecting = threading.Lock()
        self._lock = threading.Lock()
        self._batches: list[Batch] = []
        self._wake: Callable[[], None] = _nobody
        self.clock = clock
        self.reflectors = tuple(
            Reflector(kind, self._connected, self._deliver, pauses, clock) for kind in kinds
        )

    def start(self, wake: Callable[[], None]) -> None:
        """Begin; `wake` is called, in any of the threads, when there are changes to take."""
        self._wake = wake
        for reflector in self.reflectors:
            reflector.start()

    def stop(self) -> None:
        """Ask all reflectors to stop; does not wait until they have."""
        for reflector in self.reflectors:
            reflector.stop()

    def take(self) -> list[Batch]:
        """Return the changes since the last call."""
        with self._lock:
            taken, self._batches = self._batches, []
        return taken

    def _deliver(self, kind: Kind, changes: list[Change]) -> None:
        with self._lock:
            self._batches.append((kind, changes))
            first = len(self._batches) == 1
        if first:
            self._wake()

    def _connected(self) -> Reads:
        with self._connecting:
            if self._reads is None:
                self._reads = self._connect()
            return self._reads


def _nobody() -> None:
    """Do nothing: the feed has not been started."""
