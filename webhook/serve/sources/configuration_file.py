"""Keep the state in step with the configuration file, outside a cluster."""

from __future__ import annotations

from webhook.serve.former import PreparedConfiguration
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.sources.configuration_in_use import ConfigurationInUse
from webhook.serve.sources.watch import ConfigWatch
from webhook.serve.state import ReadinessCheck, State


class FileConfiguration:
    """Uses the fabrics file when it changes; a broken file changes nothing."""

    def __init__(self, watch: ConfigWatch, state: State, in_use: ConfigurationInUse) -> None:
        self._watch = watch
        self._in_use = in_use
        self._applied = 0
        self._prepared: PreparedConfiguration | None = None
        self._not_usable = f"{watch.path} is not usable, for the reason in the webhook's log"
        self._no_fabrics = f"{watch.path} has none: add them below spec.fabrics"
        state.probes.append(self.check)

    def start(self) -> None:
        """Do nothing: `poll` reads the file."""

    def stop(self) -> None:
        """Do nothing."""

    def poll(self) -> bool:
        """Read the file, and return whether anything changed; blocks, so not in the event loop."""
        changed, now = self._watch.poll(), self._watch
        if changed and now.loaded is not None and now.generation != self._applied:
            self._prepared = self._in_use.prepare(now.loaded)
        return changed

    def apply(self, _metrics: Metrics, _log: Log) -> None:
        """Use what `poll` found, in the event loop."""
        now = self._watch
        if now.loaded is not None and now.generation != self._applied:
            self._applied = now.generation
            self._in_use.use(now.loaded, self._prepared, without_fabrics=self._no_fabrics)
        if now.error:
            self._in_use.refuse(now.error, without=self._not_usable)
        else:
            self._in_use.repaired()

    @property
    def missing(self) -> str:
        """Why there are no fabrics to decide by, as one line; "" if there are."""
        if self._watch.loaded is None:
            return self._watch.error.partition("\n")[0] or "not read yet"
        return self._in_use.missing

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`: ready once there has been one valid configuration."""
        ready = self._in_use.loaded is not None
        return ReadinessCheck("configuration", ready, self._in_use.detail if ready else self._why())

    def _why(self) -> str:
        return "; ".join(self._watch.error.splitlines()) or "not read yet"
