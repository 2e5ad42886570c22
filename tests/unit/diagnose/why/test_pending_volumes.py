"""PersistentVolumeClaims that keep a pod pending."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.why.pods import chapter_findings, explain, pod_in_cluster
from tests.unit.diagnose.why.test_pod_status import pending
from webhook.diagnose.why.evidence import UnmountableClaim
from webhook.model.finding import Finding

VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp"}]
UNBOUND = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."


def now(message: str, *claims: UnmountableClaim) -> list[Finding]:
    """Explain a pod with a volume, with this message of the scheduler."""
    pod = pending(message, volumes=VOLUMES)
    return chapter_findings(explain(pod, unmountable_claims=claims), "podStatus")


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ((), '0/3 nodes are available: persistentvolumeclaim "data" not found.'),
        ((UnmountableClaim("data", "missing"),), 'x persistentvolumeclaim "data" not found.'),
        ((UnmountableClaim("data", "missing"),), ""),
    ],
)
def test_a_missing_claim(claims: tuple[UnmountableClaim, ...], message: str) -> None:
    """It is named once, from the scheduler's message or the cluster; nothing else is blamed."""
    (finding,) = now(message, *claims)
    assert (finding.code, finding.level) == ("VolumeClaimMissing", "error")
    assert finding.text == "The pod is pending: its PersistentVolumeClaim data does not exist."
    assert finding.remedy.startswith("Create the claim; the pod then starts automatically.")


def test_a_claim_that_is_being_deleted() -> None:
    """It can only be created again once it is gone."""
    message = 'persistentvolumeclaim "data" is being deleted'
    for findings in (now(message), now("", UnmountableClaim("data", "ending"))):
        (finding,) = findings
        assert "its PersistentVolumeClaim data is being deleted." in finding.text
        assert finding.remedy.startswith("Once the claim is gone, create it again;")


@pytest.mark.parametrize(
    ("claims", "says", "remedy"),
    [
        (
            (),
            "one of its PersistentVolumeClaims (data) has no volume.",
            "with `kubectl describe pvc`: for example, the StorageClass does not exist",
        ),
        (
            (UnmountableClaim("data", "unbound", "fast", is_class_missing=True),),
            "data has no volume, since the StorageClass fast does not exist.",
            "Create the StorageClass fast",
        ),
        (
            (UnmountableClaim("data", "unbound", "fast"),),
            "data has no volume from fast.",
            "check that the provisioner of the StorageClass fast is running",
        ),
        (
            (UnmountableClaim("data", "unbound", "m", provisioner="kubernetes.io/no-provisioner"),),
            "data has no volume from m.",
            "are made by hand, and none that is free matches the claim. Compare",
        ),
        (
            (UnmountableClaim("data", "unbound"),),
            "data has no volume.",
            "The claim names no StorageClass",
        ),
    ],
)
def test_an_unbound_claim(claims: tuple[UnmountableClaim, ...], says: str, remedy: str) -> None:
    """The StorageClass decides what to do."""
    (finding,) = now(UNBOUND, *claims)
    assert finding.code == "VolumeClaimUnbound"
    assert says in finding.text
    assert remedy in finding.remedy


def test_a_claim_that_waits_for_its_first_consumer() -> None:
    """It is unbound by design, so the scheduler does not mention it, and neither do we."""
    message = "0/1 nodes are available: 1 Insufficient a/b."
    (finding,) = now(message, UnmountableClaim("data", "unbound", "local"))
    assert finding.code == "Insufficient"


@pytest.mark.parametrize(
    "reason",
    [
        "1 node(s) had volume node affinity conflict",
        "1 node(s) didn't match PersistentVolume's node affinity",
        "1 node(s) had no available volume zone",
    ],
)
def test_a_volume_elsewhere(reason: str) -> None:
    """The volume's own nodes are the remedy."""
    finding = now(f"0/1 nodes are available: {reason}.")[0]
    assert finding.code == "VolumeElsewhere"
    assert (
        "no node that could otherwise run it can reach the volume of one of the pod's "
        "PersistentVolumeClaims (data)"
    ) in finding.text


def test_a_pod_with_a_node() -> None:
    """It waits for no claim."""
    claims = (UnmountableClaim("data", "missing"),)
    explanation = explain(pod_in_cluster(), unmountable_claims=claims)
    assert [f.code for f in chapter_findings(explanation, "podStatus")] == ["Running"]


def test_claims_in_different_states() -> None:
    """Each is named once."""
    unbound = UnmountableClaim("data", "unbound", "fast")
    findings = now(UNBOUND, unbound, UnmountableClaim("logs", "missing"))
    assert [finding.code for finding in findings] == ["VolumeClaimMissing", "VolumeClaimUnbound"]
