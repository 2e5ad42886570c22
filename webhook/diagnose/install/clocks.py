"""Whether the clocks of the API server, the replicas and this machine agree.

Two rules depend on clocks. A replica writes its entry of the status every five minutes, and the
holder of the Lease ignores entries that are more than six minutes away: so a replica that is a
minute slow seems to be gone in between. Certificates are valid from an hour before they are issued:
the API server rejects those of a replica that is an hour ahead.

The header Date of an answer (RFC 9110, 6.6.1) has the time of the API server in seconds. The holder
writes the time by its own clock into the Lease (`renewTime`), and the API server the time by its
clock into `managedFields` of the same write. Source: apimachinery, pkg/util/managedfields/internal,
managedfieldsupdater.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from webhook.config.replica_reports import LIVE, REFRESH, replica_reports
from webhook.diagnose.install.facts import CHECKED, NAME, NOT_CHECKED, InstallFacts
from webhook.diagnose.install.records import LeaseRecord, running_pods
from webhook.kube.lease import LEASE_SECONDS
from webhook.model.finding import Code, Finding

#: The largest difference that has no effect.
TOLERANCE = LIVE - REFRESH
#: Times are in whole seconds, and the write took time as well.
_PRECISION = timedelta(seconds=2)

CLOCK_DIFFERS = Code(
    "ClockDiffers",
    "The clock of this machine or of a replica differs from the API server's by more than a "
    "minute; if it is a replica's clock, the replica may be treated as gone although it is "
    "running. If a clock differs by more than an hour, certificates may be rejected.",
    "Correct the clock that is wrong (for a replica, its node's clock), and check that its "
    "machine is synchronized with a time server (chronyc tracking, timedatectl).",
)
LEASE_NOT_RENEWED = Code(
    "LeaseNotRenewed",
    "Replicas are ready, but none renews the Lease, whose holder writes the status of the "
    "FabricConfiguration; so the status may be outdated.",
    "Look in the logs of the replicas for lines about the Lease, such as `lease not usable`.",
)
CODES = (CLOCK_DIFFERS, LEASE_NOT_RENEWED)


def clock_findings(facts: InstallFacts) -> Iterator[Finding]:
    """Yield findings on the clocks of this machine, of the Lease's holder, and of the replicas."""
    clocks = facts.clocks
    if clocks.server is None:
        text = "the clocks: not checked, since the API server's answer has no Date"
        yield NOT_CHECKED.finding("unsure", text, "")
        return
    behind = "this program judges certificates by this machine's clock"
    yield _difference_finding(
        "this machine", clocks.machine - clocks.server, clocks.uncertainty, effect=behind
    )
    if facts.lease.manifest is not None:
        yield from _lease_findings(facts, LeaseRecord.model_validate(facts.lease.manifest))
    yield from _ahead_findings(facts)


def _lease_findings(facts: InstallFacts, lease: LeaseRecord) -> Iterator[Finding]:
    written, renewed = _moment(lease.written_at(NAME)), _moment(lease.spec.renew_time)
    ready = [pod for pod in running_pods(facts.pods.manifest) if pod.status.is_ready]
    if written and renewed:
        holder = lease.spec.holder_identity or "the last holder of the Lease"
        yield _difference_finding(holder, renewed - written)
    if ready and (
        written is None or facts.clocks.now - written > 2 * timedelta(seconds=LEASE_SECONDS)
    ):
        since = f" since {written:%Y-%m-%dT%H:%M:%SZ}" if written else ""
        yield LEASE_NOT_RENEWED.finding("warning", f"no replica has renewed the Lease{since}")


def _ahead_findings(facts: InstallFacts) -> Iterator[Finding]:
    """Yield the replicas whose last entry in the status is from the API server's future."""
    status = (facts.configuration.manifest or {}).get("status")
    for name, stored in replica_reports(status if isinstance(status, dict) else {}).items():
        ahead = stored.seen_at - facts.clocks.now
        if ahead > TOLERANCE + _PRECISION:
            yield _difference_finding(name, ahead)


def _difference_finding(
    title: str, difference: timedelta, uncertainty: timedelta = timedelta(), effect: str = ""
) -> Finding:
    """Return whether a clock agrees with the API server's; a positive difference is ahead."""
    seconds = round(abs(difference).total_seconds())
    side = "ahead of" if difference > timedelta() else "behind"
    clock = f"the clock of {title}"
    if abs(difference) > TOLERANCE + _PRECISION + uncertainty:
        text = f"{clock} is {seconds:,} s {side} the API server's{effect and f'; {effect}'}"
        return CLOCK_DIFFERS.finding("warning", text)
    limit = int(TOLERANCE.total_seconds())
    return CHECKED.finding("ok", f"{clock} agrees with the API server's to within {limit} s")


def _moment(written: str) -> datetime | None:
    """Return a time as the API server writes it; None for anything else."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None
