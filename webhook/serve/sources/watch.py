"""Reload a fabrics file when it changes; while it is missing or wrong, keep the last good one.

The file is polled and its bytes are compared, because that works everywhere: with the kubelet's
swap of the `..data` symlink, with editors that rename a new file over the old one, and on file
systems without notifications.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path as File

from webhook.config.files import decode, read_file
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import LIMITS, Loaded, parse_fabrics
from webhook.text.escape import visible


class ConfigWatch:
    """A fabrics file, read again on every call of `poll()`.

    `poll()` blocks, so a server calls it from a thread.
    """

    def __init__(self, path: File, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        #: The last good configuration; None if there was none yet.
        self.loaded: Loaded | None = None
        #: Grows by one with every good configuration.
        self.generation = 0
        #: When `loaded` was read, in seconds since the epoch.
        self.loaded_at: float | None = None
        #: Why the current file is not in use, each reason on a line; "" if it is in use.
        self.error = ""
        self._clock = clock
        self._good: bytes | None = None
        self._tried: bytes | None = None

    def poll(self) -> bool:
        """Read the file; return whether the configuration or the error is a new one.

        Never raise.
        """
        before = self.generation, self.error
        try:
            content = read_file(self.path, LIMITS)
        except InvalidConfiguration as error:
            self._tried, self.error = None, str(error)
        else:
            if content != self._tried:
                self._tried = content
                self.error = "" if content == self._good else self._take(content)
        return (self.generation, self.error) != before

    def _take(self, content: bytes) -> str:
        """Use new content, or return the reason why not."""
        name = str(self.path)
        try:
            loaded, now = parse_fabrics(decode(content, name), name), self._clock()
        except InvalidConfiguration as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - not even a defect here may end the watch
            return visible(f"{name}: {error!r}")
        self.loaded, self.loaded_at, self._good = loaded, now, content
        self.generation += 1
        return ""
