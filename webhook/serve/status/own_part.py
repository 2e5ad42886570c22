"""The part of the status that every replica writes: its own entry, and the last good spec."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from webhook.config.replica_reports import ReplicaReport, replica_reports
from webhook.model.json import JsonObject
from webhook.serve.sources.configuration_object import ObservedObject
from webhook.serve.sources.kept_specs import KeptSpec, kept_specs, with_newest
from webhook.serve.status.replicas import OwnEntry, expired
from webhook.serve.status.writer import PATH, StatusApi, StatusLease


class OwnPart:
    """This replica's entry in `status.replicas`, and `status.kept` if nobody has written it yet."""

    def __init__(
        self,
        name: str,
        observed: Callable[[], ObservedObject | None],
        report: Callable[[], ReplicaReport],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare. `name` is the name of this pod; `observed` returns None without an object."""
        self._observed = observed
        self._report = report
        self._entry = OwnEntry(name)
        self._now = now
        #: The object whose spec was compared with the kept ones.
        self._compared: ObservedObject | None = None

    def write(self, lease: StatusLease, api: StatusApi) -> None:
        """Write what is due."""
        observed = self._observed()
        if observed is None:
            return
        if observed is not self._compared:
            self._keep(observed, api)
            self._compared = observed
        self._write_entries(observed, api, is_writer=lease.is_writer())

    def _keep(self, observed: ObservedObject, api: StatusApi) -> None:
        """Keep the spec, unless the object has changed in the meantime."""
        if observed.loaded_configuration is None:
            return
        config = observed.loaded_configuration.compiled.config_hash
        newest = KeptSpec(observed.generation, config, observed.spec)
        kept = with_newest(kept_specs(observed.status), newest)
        if kept is not None:
            body = {"kept": [entry._asdict() for entry in kept]}
            _merge(api, body, resourceVersion=observed.version)

    def _write_entries(self, observed: ObservedObject, api: StatusApi, *, is_writer: bool) -> None:
        stored, now = replica_reports(observed.status), self._now()
        report = self._report()
        entry = self._entry.due(report, stored, now)
        removed = expired(stored, now) if is_writer else []
        entries = dict.fromkeys(removed) | ({} if entry is None else {self._entry.name: entry})
        if entries and _merge(api, {"replicas": entries}):
            self._entry.wrote(report, now)

    def forget(self) -> None:
        """Compare the object again."""
        self._compared = None

    def leave(self, api: StatusApi) -> None:
        """Remove this replica's entry."""
        _merge(api, {"replicas": {self._entry.name: None}})


def _merge(api: StatusApi, status: JsonObject, **metadata: str) -> bool:
    return api.merge(PATH, {"metadata": metadata, "status": status})
