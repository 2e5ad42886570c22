"""The configurations that were replaced a moment ago.

The API server may call twice for one pod, and the second call may reach a replica that has
replaced the configuration of the first. It is then decided with that one: with another, the pod
would get a part of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from webhook.fabric.records import Fabrics

#: Seconds. An API server spends a minute on a request at most, by default (`--request-timeout`).
KEPT = 60.0
#: Configurations, each with its index of the nodes.
MOST = 32


class _Configured(Protocol):
    @property
    def fabrics(self) -> Fabrics: ...


_Kept = TypeVar("_Kept", bound=_Configured)


class Former(Generic[_Kept]):
    """Values by the hash of their configuration, for `KEPT` seconds after each was replaced."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Use a clock of seconds that never goes back."""
        self._clock = clock
        #: Hash → when it was replaced, and the value; the oldest first.
        self._kept: dict[str, tuple[float, _Kept]] = {}

    def replaced(self, old: _Kept) -> None:
        """Keep a value that is replaced now."""
        key = old.fabrics.config_hash
        self._kept.pop(key, None)
        self._kept[key] = (self._clock(), old)
        if len(self._kept) > MOST:
            del self._kept[next(iter(self._kept))]
        self._forget()

    def get(self, config_hash: str) -> _Kept | None:
        """Return the value with this hash, if it was in use in the last `KEPT` seconds."""
        found = self._kept.get(config_hash)
        return found[1] if found and self._clock() - found[0] <= KEPT else None

    def _forget(self) -> None:
        now = self._clock()
        for key in [key for key, (at, _) in self._kept.items() if now - at > KEPT]:
            del self._kept[key]
