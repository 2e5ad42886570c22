"""A replica's own entry of `status.replicas`, and the entries to remove.

Each replica writes its own entry, and the policy rdma-webhook-guard-status keeps it from writing
another's. `webhook.config.replica_reports` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from webhook.config.replica_reports import REFRESH, ReplicaReport, StoredReport
from webhook.model.json import JsonObject

#: The age at which the writer of the status removes an entry.
EXPIRY = timedelta(minutes=15)
#: The time within which the watch delivers this replica's own write.
_DELIVERY = timedelta(seconds=10)


def expired(stored: Mapping[str, StoredReport], now: datetime) -> list[str]:
    """Return the names of the entries to remove."""
    return [name for name, entry in stored.items() if abs(now - entry.seen_at) > EXPIRY]


class OwnEntry:
    """This replica's entry: written at each change, and again before it counts as old."""

    def __init__(self, name: str) -> None:
        """Prepare the entry of the pod `name`."""
        self.name = name
        self._written: StoredReport | None = None

    def due(
        self, report: ReplicaReport, stored: Mapping[str, StoredReport], now: datetime
    ) -> JsonObject | None:
        """Return the entry to write now; None if the stored one will do."""
        entry = stored.get(self.name)
        written = self._written
        delivering = written is not None and now - written.seen_at < _DELIVERY
        latest = written if delivering else entry
        if latest is not None and latest.report == report and now - latest.seen_at < REFRESH:
            return None
        return {**report._asdict(), "seen": f"{now:%Y-%m-%dT%H:%M:%SZ}"}

    def wrote(self, report: ReplicaReport, now: datetime) -> None:
        """Remember a successful write."""
        self._written = StoredReport(report, now)
