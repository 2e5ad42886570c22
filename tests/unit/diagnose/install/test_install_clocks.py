"""Clocks differ by more than a minute, and the Lease is renewed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.diagnose.install.installation import NOW, Installation, stamp
from webhook.model.finding import Finding

REMEDY = (
    "Correct the clock that is wrong (for a replica, its node's clock), and check that its machine "
    "is synchronized with a time server (chronyc tracking, timedatectl)."
)
LEASE_REMEDY = (
    "Look in the logs of the replicas for lines about the Lease, such as `lease not usable`."
)
#: The longest difference that is not reported: a minute, and two seconds for the precision.
LIMIT = timedelta(seconds=62)
SECOND = timedelta(seconds=1)


def test_all_is_well(installation: Installation) -> None:
    """The clocks of this machine and of the Lease's holder are compared."""
    assert installation.texts("clocks") == [
        "the clock of this machine agrees with the API server's to within 60 s",
        "the clock of webhook-a agrees with the API server's to within 60 s",
    ]


@pytest.mark.parametrize(
    ("difference", "side"),
    [
        (LIMIT, ""),
        (-LIMIT, ""),
        (LIMIT + SECOND, "63 s ahead of"),
        (-LIMIT - SECOND, "63 s behind"),
        (timedelta(hours=1), "3,600 s ahead of"),
    ],
)
def test_the_clock_of_this_machine(
    installation: Installation, difference: timedelta, side: str
) -> None:
    """It matters, since this program judges certificates by it."""
    installation.machine = NOW + difference
    text = (
        f"the clock of this machine is {side} the API server's; this program judges certificates "
        "by this machine's clock"
    )
    expected = [Finding("warning", "ClockDiffers", text, REMEDY)] if side else []
    assert installation.findings() == expected


@pytest.mark.parametrize(("seconds", "count"), [(5, 0), (6, 1)])
def test_a_slow_answer(installation: Installation, seconds: int, count: int) -> None:
    """It may have taken the time on either way, so the difference may be that much larger."""
    installation.duration = timedelta(seconds=10)
    installation.machine = NOW + LIMIT + timedelta(seconds=seconds)
    assert [finding.code for finding in installation.findings()] == ["ClockDiffers"] * count


@pytest.mark.parametrize(
    ("difference", "side"),
    [(LIMIT, ""), (LIMIT + SECOND, "63 s ahead of"), (-LIMIT - SECOND, "63 s behind")],
)
def test_the_clock_of_the_holder(
    installation: Installation, difference: timedelta, side: str
) -> None:
    """The Lease has the times of the same write by both clocks."""
    installation["Lease", "rdma-webhook"]["spec"]["renewTime"] = stamp(NOW + difference)
    text = f"the clock of webhook-a is {side} the API server's"
    expected = [Finding("warning", "ClockDiffers", text, REMEDY)] if side else []
    assert installation.findings() == expected


def test_a_lease_that_was_given_back(installation: Installation) -> None:
    """Its last holder is not named."""
    installation["Lease", "rdma-webhook"]["spec"].update(
        holderIdentity="", renewTime=stamp(NOW + timedelta(minutes=9))
    )
    (finding,) = installation.findings()
    assert finding.text == (
        "the clock of the last holder of the Lease is 540 s ahead of the API server's"
    )


@pytest.mark.parametrize(("difference", "count"), [(LIMIT, 0), (LIMIT + SECOND, 1)])
def test_an_entry_from_the_future(
    installation: Installation, difference: timedelta, count: int
) -> None:
    """A replica's entry has the time by its own clock."""
    replica = installation.configuration["status"]["replicas"]["webhook-b"]
    replica["seen"] = stamp(NOW + difference)
    text = "the clock of webhook-b is 63 s ahead of the API server's"
    expected = [Finding("warning", "ClockDiffers", text, REMEDY)] * count
    assert installation.findings() == expected
    assert len(installation.texts("clocks")) == 2 + count


@pytest.mark.parametrize(("seconds", "is_late"), [(30, False), (31, True)])
def test_a_lease_that_nobody_renews(
    installation: Installation, seconds: int, is_late: bool
) -> None:
    """Twice its duration, during which another replica should have taken it."""
    written = NOW - timedelta(seconds=seconds)
    lease = installation["Lease", "rdma-webhook"]
    lease["metadata"]["managedFields"][1]["time"] = stamp(written)
    lease["spec"]["renewTime"] = stamp(written)
    text = f"no replica has renewed the Lease since {stamp(written)}"
    expected = [Finding("warning", "LeaseNotRenewed", text, LEASE_REMEDY)] if is_late else []
    assert installation.findings() == expected


def test_a_lease_that_nobody_held(installation: Installation) -> None:
    """Only another program has written it."""
    del installation["Lease", "rdma-webhook"]["metadata"]["managedFields"][1]
    text = "no replica has renewed the Lease"
    assert installation.findings() == [Finding("warning", "LeaseNotRenewed", text, LEASE_REMEDY)]


def test_a_lease_without_replicas(installation: Installation) -> None:
    """No replica is ready, so none can renew it."""
    for pod in installation.pods:
        pod["status"]["conditions"] = []
    del installation["Lease", "rdma-webhook"]["metadata"]["managedFields"]
    assert installation.findings() == []


def test_a_missing_lease(installation: Installation) -> None:
    """It is reported as a missing object, and no clock is compared with it."""
    installation.delete("Lease", "rdma-webhook")
    assert [finding.code for finding in installation.findings()] == ["ObjectMissing"]
    assert len(installation.texts("clocks")) == 1


@pytest.mark.parametrize("renewed", ["soon", "2026-11-29T03:00:00", 3])
def test_a_time_of_another_form(installation: Installation, renewed: object) -> None:
    """A text that is no time, or has no zone, is not compared."""
    installation["Lease", "rdma-webhook"]["spec"]["renewTime"] = renewed
    assert installation.findings() == []
    assert len(installation.texts("clocks")) == 1


def test_an_answer_without_a_date(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No clock is compared; ages are judged by this machine's clock."""
    monkeypatch.setattr(Installation, "date", "")
    replica = installation.configuration["status"]["replicas"]["webhook-b"]
    replica["seen"] = stamp(NOW - timedelta(minutes=7))
    findings = installation.findings()
    assert [finding.code for finding in findings] == ["ReplicaNotReported", "NotChecked"]
    assert findings[-1] == Finding(
        "unsure",
        "NotChecked",
        "the clocks: not checked, since the API server's answer has no Date",
    )
