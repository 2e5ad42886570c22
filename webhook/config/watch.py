"""Keep up with a fabrics file that changes, and never with a bad one.

The file is polled and its bytes compared, because that works everywhere: with the
kubelet's swap of the `..data` symlink, with editors that rename a new file over the
old one, and on file systems without notifications. A file that is missing or wrong
leaves the last good one in use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path as File
from typing import NamedTuple

from webhook.config.findings import InvalidConfiguration
from webhook.config.load import LIMITS, Loaded, parse_fabrics
from webhook.config.read import decode, read_file

#: Seconds between two polls. A kubelet takes a minute to bring a changed ConfigMap anyway.
INTERVAL = 1.0


class Watched(NamedTuple):
    """What is known of the file: immutable, swapped as one, so any thread may read it."""

    loaded: Loaded | None = None  #: the last good one; None: there was none yet
    generation: int = 0  #: grows by one with every good one
    loaded_at: float | None = None  #: when it was taken, in seconds since the epoch
    error: str = ""  #: why the file as it is now is not in use; "" where it is


class ConfigWatch:
    """A fabrics file, read again whenever somebody calls `poll()`.

    One thread polls; it does not await, so a server calls it from a timer or a thread.
    """

    def __init__(self, path: File, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.state = Watched()
        self._clock = clock
        self._tried: bytes | None = None
        self._good: bytes | None = None

    def poll(self) -> bool:
        """Look at the file; True where a new good configuration was taken. Never raises."""
        try:
            content = read_file(self.path, LIMITS)
            if content == self._good:
                self._tried = content
                self.state = self.state._replace(error="")
                return False
            if content == self._tried:
                return False
            self._tried = content
            loaded = parse_fabrics(decode(content, str(self.path)), str(self.path))
        except InvalidConfiguration as error:
            self._fail(str(error))
            return False
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the watch either
            self._fail(f"{self.path}: {error!r}")
            return False
        self._good = content
        self.state = Watched(loaded, self.state.generation + 1, self._clock())
        return True

    def _fail(self, error: str) -> None:
        self.state = self.state._replace(error=error)
