"""The configuration in use from any source, and reports on it."""

from __future__ import annotations

import time

from webhook.config.findings import located_text
from webhook.config.load import LoadedConfiguration
from webhook.model.names import shortened_list
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.state import (
    ConfigurationApplied,
    ConfigurationMissing,
    PreparedConfiguration,
    State,
)

#: The maximum number of fabric names on a line.
_MAX_NAMES = 50


class ConfigurationInUse:
    """The configuration in use; each change goes to the state, the log and the metrics.

    All methods except `prepare` are for the event loop.
    """

    def __init__(self, state: State, metrics: Metrics, log: Log) -> None:
        #: The last good configuration; None before the first, or without an object.
        self.loaded_configuration: LoadedConfiguration | None = None
        #: The number of configurations that have come into use.
        self.load_count = 0
        #: The reasons why the latest configuration is not in use, one per line; "" if it is.
        self.error = ""
        self._state = state
        self._metrics = metrics
        self._log = log

    @property
    def reason_without_fabrics(self) -> str:
        """The reason why no pod can be decided, and a remedy; "" if there are fabrics."""
        return self._state.snapshot.reason_without_fabrics

    @property
    def detail(self) -> str:
        """A line for `/readyz`."""
        error = "; ".join(self.error.splitlines())
        if self.loaded_configuration is None:
            return error or self.reason_without_fabrics
        used = self.loaded_configuration.compiled
        names = shortened_list(list(used.fabrics), _MAX_NAMES) or self.reason_without_fabrics
        detail = f"load {self.load_count}, config {used.config_hash} ({names})"
        if error:
            return f"{detail}; still in use, because a newer one cannot be used: {error}"
        return detail

    def prepare(self, loaded_configuration: LoadedConfiguration) -> PreparedConfiguration | None:
        """Return a prepared configuration with the latest nodes; None if it has no fabrics.

        May take 0.1 s, and may be called in any thread.
        """
        if not loaded_configuration.compiled.fabrics:
            return None
        nodes = self._state.snapshot.facts.nodes
        return PreparedConfiguration.of(
            loaded_configuration.compiled, nodes, loaded_configuration.fabrics_text
        )

    def use(
        self,
        loaded_configuration: LoadedConfiguration,
        prepared: PreparedConfiguration | None,
        *,
        reason_without_fabrics: str,
        is_kept: bool = False,
    ) -> None:
        """Use a prepared configuration from now on, or none if it has no fabrics.

        `reason_without_fabrics`: why no pod can be decided in that case. `is_kept`: whether it is
        the last good one, kept in the object's status.
        """
        self.loaded_configuration, self.error = loaded_configuration, ""
        self.load_count += 1
        self._metrics.configuration.loads.inc()
        self._log.write(
            "info",
            "last good configuration loaded" if is_kept else "configuration loaded",
            load_count=self.load_count,
            config=loaded_configuration.compiled.config_hash,
            fabrics=list(loaded_configuration.compiled.fabrics)[:_MAX_NAMES],
            warnings=_warnings(loaded_configuration) or None,
        )
        self._metrics.configuration.reloaded.set(time.time())
        if prepared is not None:
            self._state.send(ConfigurationApplied(prepared))
            self._set_gauges()
        else:
            self._use_none(reason_without_fabrics)

    def refuse(self, error: str, *, reason_without_fabrics: str) -> None:
        """Report an unusable configuration; the last good one stays in use.

        `reason_without_fabrics`: why no pod can be decided without a good one.
        """
        if error == self.error:
            return
        self.error = error
        self._log.write("error", "configuration not usable", problem=error)
        if self.loaded_configuration is None:
            self._state.send(ConfigurationMissing(reason_without_fabrics))
        self._set_gauges()

    def clear_error(self) -> None:
        """Report that the latest configuration is in use again."""
        self.error = ""
        self._set_gauges()

    def lose(self, reason: str) -> None:
        """Use no configuration from now on."""
        self.loaded_configuration, self.error = None, ""
        self._use_none(reason)

    def _use_none(self, reason: str) -> None:
        self._state.send(ConfigurationMissing(reason))
        self._log.write("warning", "no fabrics", problem=reason)
        self._set_gauges()

    def _set_gauges(self) -> None:
        current = self._state.snapshot.current_configuration
        self._metrics.configuration.configured.set(current is not None)
        self._metrics.configuration.show_hash(current.config_hash if current else "")
        self._metrics.configuration.successful.set(not self.error)


def _warnings(loaded_configuration: LoadedConfiguration) -> list[str]:
    warnings = [located_text(finding) for finding in loaded_configuration.findings]
    left_out = loaded_configuration.truncation.text()
    return [*warnings, f"{loaded_configuration.name}: {left_out}"] if left_out else warnings
