"""The configuration in use, wherever it comes from, and what is reported about it."""

from __future__ import annotations

import time

from webhook.config.load import Loaded
from webhook.serve.events import ReportFailure
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.state import (
    ConfigurationApplied,
    ConfigurationMissing,
    PreparedConfiguration,
    State,
)

#: How many fabrics are named in one line, at most.
_MOST_NAMES = 50


class ConfigurationInUse:
    """Hands configurations to the state, and reports each change in log, metrics and Events.

    All methods are for the event loop, except `prepare`.
    """

    def __init__(
        self, state: State, metrics: Metrics, log: Log, tell_broken: ReportFailure
    ) -> None:
        #: The last good configuration; None if there was none yet, or if it is gone.
        self.loaded: Loaded | None = None
        #: How many configurations have come into use.
        self.generation = 0
        #: Why the present configuration is not in use, each reason on a line; "" if it is.
        self.error = ""
        self._state = state
        self._metrics = metrics
        self._log = log
        self._tell_broken = tell_broken

    @property
    def missing(self) -> str:
        """Why no pod can be decided, and what to do; "" if there are fabrics."""
        return self._state.snapshot.missing

    @property
    def detail(self) -> str:
        """One line for `/readyz`."""
        error = "; ".join(self.error.splitlines())
        if self.loaded is None:
            return error or self.missing
        used = self.loaded.fabrics
        names = _named(list(used.fabrics)) or self.missing
        detail = f"generation {self.generation}, config {used.config_hash} ({names})"
        if error:
            return f"{detail}; still in use, because a newer one cannot be used: {error}"
        return detail

    def prepare(self, loaded: Loaded) -> PreparedConfiguration | None:
        """Prepare a configuration with the latest nodes; return None if it has no fabrics.

        May take 0.1 s, and may be called in any thread.
        """
        if not loaded.fabrics.fabrics:
            return None
        nodes = self._state.snapshot.facts.nodes
        return PreparedConfiguration.of(loaded.fabrics, nodes, loaded.source)

    def use(
        self, loaded: Loaded, prepared: PreparedConfiguration | None, *, without_fabrics: str
    ) -> None:
        """Decide by a configuration from now on, which was prepared; by none if it has no fabrics.

        `without_fabrics`: why no pod can be decided in that case.
        """
        self.loaded, self.error = loaded, ""
        self.generation += 1
        self._log.write(
            "info",
            "configuration loaded",
            generation=self.generation,
            config=loaded.fabrics.config_hash,
            fabrics=list(loaded.fabrics.fabrics)[:_MOST_NAMES],
            warnings=_warnings(loaded) or None,
        )
        self._metrics.configuration.reloaded.set(time.time())
        if prepared is not None:
            self._state.send(ConfigurationApplied(prepared))
            self._measure()
        else:
            self._use_none(without_fabrics)

    def refuse(self, error: str, *, without: str) -> None:
        """Report that the present configuration cannot be used; the last good one stays in use.

        `without`: why no pod can be decided if there is none.
        """
        if error == self.error:
            return
        self.error = error
        self._log.write("error", "configuration not usable", problem=error)
        self._tell_broken(self.generation, error)
        if self.loaded is None:
            self._state.send(ConfigurationMissing(without))
        self._measure()

    def repaired(self) -> None:
        """Report that the present configuration is the one in use again."""
        self.error = ""
        self._measure()

    def lose(self, reason: str) -> None:
        """Decide by no configuration from now on."""
        self.loaded, self.error = None, ""
        self._use_none(reason)

    def _use_none(self, reason: str) -> None:
        self._state.send(ConfigurationMissing(reason))
        self._log.write("warning", "no fabrics", problem=reason)
        self._tell_broken(self.generation, reason)
        self._measure()

    def _measure(self) -> None:
        current = self._state.snapshot.current
        self._metrics.configuration.configured.set(current is not None)
        self._metrics.configuration.used(current.config_hash if current else "")
        self._metrics.configuration.generation.set(self.generation)
        self._metrics.configuration.successful.set(not self.error)


def _warnings(loaded: Loaded) -> list[str]:
    warnings = [one.text(loaded.name) for one in loaded.findings]
    left_out = loaded.more.text()
    return [*warnings, f"{loaded.name}: {left_out}"] if left_out else warnings


def _named(fabrics: list[str]) -> str:
    more = f" and {len(fabrics) - _MOST_NAMES:,} more" if len(fabrics) > _MOST_NAMES else ""
    return ", ".join(fabrics[:_MOST_NAMES]) + more
