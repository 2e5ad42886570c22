"""The configuration that each replica uses: `status.replicas`, a map by the names of their pods.

A person, and the holder of the Lease, see in it the replicas that disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

#: The age of an entry at which its replica writes it again.
REFRESH = timedelta(minutes=5)
#: The age at which an entry no longer counts: its replica was killed, and did not remove it. As far
#: in the future, it does not count either: no clock is that wrong.
LIVE = timedelta(minutes=6)


class ReplicaReport(NamedTuple):
    """What a replica uses for its decisions, for the other replicas and for people."""

    #: The hash of the configuration in use; "" without one.
    config: str
    #: metadata.generation of the object that had it; 0 without one.
    generation: int
    #: The version of the program.
    version: str


class StoredReport(NamedTuple):
    """An entry of `status.replicas`."""

    report: ReplicaReport
    #: When its replica wrote it.
    seen_at: datetime


#: The fields of an entry.
_FIELDS = ("seen", *ReplicaReport._fields)
#: What an entry of another form counts as.
_EXPIRED = StoredReport(ReplicaReport("", 0, ""), datetime.min.replace(tzinfo=UTC))


def replica_reports(status: Mapping[str, object]) -> dict[str, StoredReport]:
    """Return the entries of a status by the names of their pods; one of another form is expired."""
    entries = status.get("replicas")
    return (
        {name: _read(entry) for name, entry in entries.items()} if isinstance(entries, dict) else {}
    )


def _read(entry: object) -> StoredReport:
    fields = entry if isinstance(entry, dict) else {}
    try:
        written, config, generation, version = (fields[name] for name in _FIELDS)
        if not isinstance(config, str) or not isinstance(version, str):
            return _EXPIRED
        moment = datetime.fromisoformat(written).astimezone(UTC)
        return StoredReport(ReplicaReport(config, int(generation), version), moment)
    except (KeyError, OverflowError, TypeError, ValueError):
        return _EXPIRED


def live_reports(stored: Mapping[str, StoredReport], now: datetime) -> dict[str, ReplicaReport]:
    """Return the reports of replicas that run."""
    return {
        name: entry.report for name, entry in stored.items() if abs(now - entry.seen_at) <= LIVE
    }
