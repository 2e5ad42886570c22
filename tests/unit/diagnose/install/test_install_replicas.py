"""Replicas are ready, report what they use, and differ neither in version nor configuration."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.diagnose.install.installation import NOW, VERSION, Installation, stamp
from webhook.kube.api import PlainAnswer
from webhook.model.finding import Finding
from webhook.text.readiness import ReadinessCheck

GUARD = ReadinessCheck("guard", True, "this account may change at most caBundle")
NOT_READY = (
    'Correct the problem that the message reports. For the meaning of the check, see "/healthz '
    'and /readyz" in docs/operation.md.'
)
NOT_REPORTED = (
    "Read the replica's log to find out whether the replica can write the status, and check the "
    "clock of its node."
)
DIFFER = (
    "After a change, wait a few seconds. If the difference remains, read the line `configuration` "
    "of the replica's /readyz, which gives the reason."
)


def entry(installation: Installation, pod: str) -> dict[str, object]:
    """Return the entry of a replica in the status."""
    replica: dict[str, object] = installation.configuration["status"]["replicas"][pod]
    return replica


def test_all_is_well(installation: Installation) -> None:
    """The texts count the replicas."""
    assert installation.texts("replicas") == [
        "/readyz of 2 replicas: every check passes",
        f"2 replicas run version {VERSION}, the same version as this program",
        "2 replicas use generation 3 of the FabricConfiguration (hash 31ade3f1b5a1)",
    ]


def test_a_replica_that_is_not_ready(installation: Installation) -> None:
    """Each check that failed is an error, with its own sentence."""
    failed = ReadinessCheck("certificate", False, "not read yet")
    installation.replicas["webhook-b"] = installation.ready(GUARD, failed)
    text = "webhook-b is not ready: certificate: not read yet"
    assert installation.findings() == [Finding("error", "ReplicaNotReady", text, NOT_READY)]
    assert installation.texts("replicas")[1] == "/readyz of 1 replica: every check passes"


def test_a_replica_that_may_not_be_asked(installation: Installation) -> None:
    """The finding names the right; that replica does not count as ready."""
    installation.replicas["webhook-b"] = PlainAnswer(403, '{"kind": "Status"}', "")
    right = "get pods/proxy in namespace rdma-webhook"
    text = f"/readyz of webhook-b: not checked, since you lack the right to {right}"
    remedy = f"Ask for the right to {right}."
    assert installation.findings() == [Finding("unsure", "NotChecked", text, remedy)]
    assert installation.texts("replicas")[1] == "/readyz of 1 replica: every check passes"


def test_a_replica_that_does_not_answer(installation: Installation) -> None:
    """The API server answers instead, for example since a NetworkPolicy keeps it away.

    A port-forward goes through the node, where no policy applies.
    """
    installation.replicas["webhook-b"] = PlainAnswer(503, "error trying to reach service", "")
    text = (
        "/readyz of webhook-b: not checked, since the API server answered 503 instead of the "
        "replica"
    )
    remedy = (
        "Run `kubectl -n rdma-webhook port-forward webhook-b 8080`, and read "
        "http://localhost:8080/readyz."
    )
    assert installation.findings() == [Finding("unsure", "NotChecked", text, remedy)]


def test_pods_that_cannot_be_listed(installation: Installation) -> None:
    """Nothing is known about their checks, but their entries are there."""
    installation.refused["/api/v1/namespaces/rdma-webhook/pods"] = 403
    right = "list pods in namespace rdma-webhook"
    text = f"the pods of the replicas: not checked, since you lack the right to {right}"
    (finding,) = installation.findings()
    assert (finding.level, finding.code, finding.text) == ("unsure", "NotChecked", text)
    assert installation.texts("replicas")[1].startswith("2 replicas run version")


@pytest.mark.parametrize("state", ["deleted", "ended", "starting"])
def test_pods_that_do_not_run(installation: Installation, state: str) -> None:
    """Nobody asks them, and they need no entry."""
    pod = installation.pods[1]
    if state == "deleted":
        pod["metadata"]["deletionTimestamp"] = stamp(NOW)
    elif state == "ended":
        pod["status"]["phase"] = "Failed"
    else:
        pod["status"]["phase"] = "Pending"
    del installation.configuration["status"]["replicas"]["webhook-b"]
    assert installation.findings() == []
    assert installation.texts("replicas")[0] == "/readyz of 1 replica: every check passes"


@pytest.mark.parametrize("age", [None, timedelta(minutes=6, seconds=1)])
def test_a_replica_without_an_entry(installation: Installation, age: timedelta | None) -> None:
    """An entry counts for six minutes; it is written again after five."""
    if age is None:
        del installation.configuration["status"]["replicas"]["webhook-b"]
    else:
        entry(installation, "webhook-b")["seen"] = stamp(NOW - age)
    text = "webhook-b has written no entry in status.replicas for 6 minutes"
    assert installation.findings() == [Finding("warning", "ReplicaNotReported", text, NOT_REPORTED)]


def test_an_entry_that_counts(installation: Installation) -> None:
    """It is six minutes old by the API server's clock, whatever this machine's clock shows."""
    entry(installation, "webhook-b")["seen"] = stamp(NOW - timedelta(minutes=6))
    installation.machine = NOW + timedelta(seconds=30)
    assert installation.findings() == []


def test_a_replica_that_is_not_ready_needs_no_entry(installation: Installation) -> None:
    """It writes one when it is ready."""
    installation.pods[1]["status"]["conditions"][0]["status"] = "False"
    del installation.configuration["status"]["replicas"]["webhook-b"]
    assert installation.findings() == []


def test_versions_that_differ(installation: Installation) -> None:
    """During a rollout; the remedy waits for its end."""
    entry(installation, "webhook-b")["version"] = "1.4.3"
    text = "the replicas have the versions 1.4.2 and 1.4.3"
    remedy = (
        "Wait for the rollout: `kubectl -n rdma-webhook rollout status deployment/rdma-webhook`."
    )
    assert installation.findings() == [Finding("warning", "VersionsDiffer", text, remedy)]
    assert not [text for text in installation.texts("replicas") if " version " in text]


@pytest.mark.parametrize(
    ("version", "is_distant"),
    [
        ("1.5.0", False),
        ("1.3.9", False),
        ("1.6.0", True),
        ("1.2.9", True),
        ("2.4.2", True),
        ("unknown", False),
        ("1.5.0.dev1", False),
    ],
)
def test_another_version_of_this_program(
    installation: Installation, version: str, is_distant: bool
) -> None:
    """The minor version before or after fits the replicas."""
    installation.version = version
    remedy = (
        "Use a version of the rdma-webhook command that is at most one minor version older or "
        "newer than that of the replicas."
    )
    text = f"this program has version {version}, but replicas have 1.4.2"
    expected = [Finding("warning", "VersionSkew", text, remedy)] if is_distant else []
    assert installation.findings() == expected
    line = f"2 replicas run version 1.4.2, and this program is {version}"
    assert (line in installation.texts("replicas")) is not is_distant


def test_a_replica_with_an_older_configuration(installation: Installation) -> None:
    """It has not seen the last change of the object."""
    entry(installation, "webhook-a")["generation"] = 2
    text = "webhook-a uses generation 2, not generation 3 of the FabricConfiguration"
    assert installation.findings() == [Finding("error", "ConfigurationsDiffer", text, DIFFER)]
    assert installation.texts("replicas")[-1] == (
        "1 replica uses generation 3 of the FabricConfiguration (hash 31ade3f1b5a1)"
    )


def test_a_replica_with_another_configuration(installation: Installation) -> None:
    """Its hash differs from that of the object's spec."""
    entry(installation, "webhook-a")["config"] = "0123456789ab"
    text = (
        "webhook-a uses config 0123456789ab, but generation 3 of the FabricConfiguration has "
        "31ade3f1b5a1"
    )
    assert installation.findings() == [Finding("error", "ConfigurationsDiffer", text, DIFFER)]


def test_hashes_of_another_version(installation: Installation) -> None:
    """They are not compared, since another version may compute them differently."""
    for pod in ("webhook-a", "webhook-b"):
        entry(installation, pod).update(config="0123456789ab", version="1.4.3")
    assert installation.findings() == []


def test_an_object_that_is_not_valid(installation: Installation) -> None:
    """The replicas rightly use the last good configuration, and a condition has the reason."""
    installation.configuration["spec"] = {"fabrics": [{"name": "A B"}]}
    entry(installation, "webhook-a")["generation"] = 2
    assert installation.findings() == []
    assert installation.texts("replicas")[-1].startswith("2 replicas run version")


def test_without_a_configuration(installation: Installation) -> None:
    """There is no status to report to, so only the checks of the replicas count."""
    installation.delete("FabricConfiguration", "default")
    assert installation.texts("replicas") == ["/readyz of 2 replicas: every check passes"]


def test_a_status_of_another_form(installation: Installation) -> None:
    """A status that is not a mapping has no entries."""
    installation.configuration["status"] = "none"
    codes = [finding.code for finding in installation.findings()]
    assert codes == ["ReplicaNotReported", "ReplicaNotReported", "StatusOutdated"]


def test_entries_of_replicas_that_have_ended(installation: Installation) -> None:
    """They do not count, for a few minutes after a rollout."""
    replicas = installation.configuration["status"]["replicas"]
    replicas["webhook-before"] = {**replicas["webhook-a"], "version": "1.4.1"}
    assert installation.findings() == []
    assert any("2 replicas" in text and VERSION in text for text in installation.texts("replicas"))
