"""The configuration that each replica uses: `status.replicas`, a map by the names of their pods.

Each replica writes its own entry, and the policy rdma-webhook-guard-status keeps it from writing
another's. So a person, and the holder of the Lease, see replicas that disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from webhook.model.json import JsonObject
from webhook.serve.status.content import ReplicaReport

#: The age of an entry at which its replica writes it again.
REFRESH = timedelta(minutes=5)
#: The age at which an entry no longer counts: its replica was killed, and did not remove it. As far
#: in the future, it does not count either: no clock is that wrong.
LIVE = timedelta(minutes=6)
#: The age at which the writer of the status removes an entry.
EXPIRY = timedelta(minutes=15)
#: The time within which the watch delivers this replica's own write.
_DELIVERY = timedelta(seconds=10)


class StoredReport(NamedTuple):
    """An entry of `status.replicas`."""

    report: ReplicaReport
    #: When its replica wrote it.
    seen_at: datetime


def replica_reports(status: Mapping[str, object]) -> dict[str, StoredReport]:
    """Return the entries of a status by the names of their pods; one of another form is expired."""
    entries = status.get("replicas")
    return (
        {name: _read(entry) for name, entry in entries.items()} if isinstance(entries, dict) else {}
    )


def _read(entry: object) -> StoredReport:
    fields = entry if isinstance(entry, dict) else {}
    try:
        seen = datetime.fromisoformat(fields["seen"])
        report = ReplicaReport(fields["config"], int(fields["generation"]), fields["version"])
        return StoredReport(report, seen.astimezone(UTC))
    except (KeyError, OverflowError, TypeError, ValueError):
        return StoredReport(ReplicaReport("", 0, ""), datetime.min.replace(tzinfo=UTC))


def live_reports(stored: Mapping[str, StoredReport], now: datetime) -> dict[str, ReplicaReport]:
    """Return the reports of replicas that run."""
    return {
        name: entry.report for name, entry in stored.items() if abs(now - entry.seen_at) <= LIVE
    }


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
