"""Keep the state in step with the configuration file."""

from __future__ import annotations

from webhook.app.observe.log import Log
from webhook.app.observe.metrics import Metrics
from webhook.app.state import Check, State
from webhook.app.writes.pod_events import TellBroken
from webhook.config.load import Loaded
from webhook.config.watch import ConfigWatch

#: How many fabrics are named in one line, at most.
_MOST_NAMES = 50


class Configuration:
    """Swaps the snapshot when the fabrics file changes; a broken file changes nothing."""

    def __init__(self, watch: ConfigWatch, state: State, tell_broken: TellBroken) -> None:
        self._watch = watch
        self._tell_broken = tell_broken
        self._state = state
        self._applied = 0
        state.probes.append(self.check)

    def poll(self) -> bool:
        """Read the file, and return whether anything changed; blocks, so not in the event loop."""
        return self._watch.poll()

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Use what `poll` found, in the event loop."""
        now = self._watch
        if now.loaded is not None and now.generation != self._applied:
            self._applied = now.generation
            self._state.configure(now.loaded.fabrics, now.loaded.text)
            log.write(
                "info",
                "configuration loaded",
                generation=now.generation,
                config=now.loaded.fabrics.config_hash,
                fabrics=list(now.loaded.fabrics.fabrics)[:_MOST_NAMES],
                warnings=_warnings(now.loaded, str(now.path)) or None,
            )
        if now.error:
            log.write("error", "configuration not usable", problem=now.error)
            self._tell_broken(now.generation, now.error)
        metrics.config_generation.set(now.generation)
        metrics.config_successful.set(0 if now.error else 1)
        metrics.config_reloaded.set(now.loaded_at or 0)

    @property
    def missing(self) -> str:
        """Why there has been no valid configuration yet, as one line; "" if there has been one."""
        if self._watch.loaded is not None:
            return ""
        return self._watch.error.partition("\n")[0] or "not read yet"

    def check(self) -> Check:
        """Report to `/readyz`: ready once there has been one valid configuration."""
        now = self._watch
        error = "; ".join(now.error.splitlines())
        if now.loaded is None:
            return Check("configuration", False, error or "not read yet")
        names = _named(list(now.loaded.fabrics.fabrics)) or "no fabrics"
        detail = f"generation {now.generation} ({names})"
        if error:
            detail = f"{detail}; still in use, because its file is now broken: {error}"
        return Check("configuration", True, detail)


def _warnings(loaded: Loaded, name: str) -> list[str]:
    warnings = [one.text(name) for one in loaded.findings]
    left_out = loaded.more.text()
    return [*warnings, f"{name}: {left_out}"] if left_out else warnings


def _named(fabrics: list[str]) -> str:
    more = f" and {len(fabrics) - _MOST_NAMES:,} more" if len(fabrics) > _MOST_NAMES else ""
    return ", ".join(fabrics[:_MOST_NAMES]) + more
