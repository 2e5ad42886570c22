"""The findings on a pod that stays pending because of its claims."""

from __future__ import annotations

from typing import Any

import pytest

from tests.case_names import case_name
from tests.unit.diagnose.why.pods import chapter_findings, event, explain, pod_in_cluster
from tests.unit.diagnose.why.test_pod_status import node, pending
from webhook.diagnose.why.evidence import MissingClaim
from webhook.model.finding import Finding

CLAIMS = [
    {"name": "nic", "resourceClaimTemplateName": "rdma-nics"},
    {"name": "own", "resourceClaimName": "mine"},
]
MISSING = (
    'PodResourceClaim nic: resource claim template "rdma-nics": '
    'resourceclaimtemplate.resource.k8s.io "rdma-nics" not found'
)
REASON = "FailedResourceClaimCreation"


def of_nodes(reason: str) -> str:
    """Write a message of the scheduler about all nodes."""
    return (
        f"0/3 nodes are available: {reason}. preemption: 0/3 nodes are available: 3 Preemption is"
    )


def now(message: str, *events: Any, **evidence_fields: Any) -> list[Finding]:
    """Explain a pod with claims, with this message of the scheduler."""
    pod = pending(message, resourceClaims=CLAIMS)
    return chapter_findings(explain(pod, events=events, **evidence_fields), "podStatus")


@pytest.mark.parametrize(
    ("message", "code", "says", "remedy"),
    [
        (
            of_nodes("1 cannot allocate all claims, 2 node(s) had untolerated taint(s)"),
            "ClaimsNotAllocated",
            "no node has enough free devices that match the pod's claims (nic, own).",
            "kubectl get resourceslices",
        ),
        (
            of_nodes("3 resourceclaim not available on the node"),
            "ClaimElsewhere",
            "one of its claims (nic, own) is already allocated on nodes that cannot run the pod.",
            "with resourceClaimTemplateName",
        ),
        (
            (
                'running PreBind plugin "DynamicResources": add reservation to claim lab/mine: '
                'ResourceClaim.resource.k8s.io "mine" is invalid: status.reservedFor: Too many: '
                "257: must have at most 256 items"
            ),
            "ClaimInUse",
            "one of its claims (nic, own) is already in use by the maximum number of pods.",
            "Wait until one of these pods ends",
        ),
        (
            of_nodes("request nics: device class roce.lab does not exist"),
            "DeviceClassMissing",
            "the request nics in its claim refers to the DeviceClass roce.lab, which does not",
            "kubectl get deviceclasses",
        ),
    ],
    ids=case_name,
)
def test_what_the_scheduler_says(message: str, code: str, says: str, remedy: str) -> None:
    """Each cause has a code, a sentence with the scheduler's message, and a remedy."""
    (finding,) = now(message)
    assert (finding.code, finding.level) == (code, "error")
    assert says in finding.text
    assert finding.text.endswith(f"The scheduler reports: {message}")
    assert remedy in finding.remedy


def silent(phase: str = "Pending", **status: Any) -> dict[str, Any]:
    """Return a pod without a message of the scheduler."""
    return pod_in_cluster(phase=phase, spec={"nodeName": "", "resourceClaims": CLAIMS}, **status)


def test_claims_that_are_missing() -> None:
    """Each is reported, although the scheduler has no message on it."""
    statuses = [{"name": "nic", "resourceClaimName": "made"}]
    missing = (MissingClaim("mine"), MissingClaim("yours", is_ending=True))
    pod = silent(resourceClaimStatuses=statuses)
    findings = chapter_findings(explain(pod, missing_claims=missing), "podStatus")
    assert [(finding.code, finding.level) for finding in findings] == [
        ("ClaimMissing", "error")
    ] * 2
    assert findings[0].text == (
        "The pod is pending: its ResourceClaim mine does not exist. The scheduler does not "
        "report the problem."
    )
    assert findings[0].remedy == (
        "Create the claim; the pod then starts automatically. If the claim's name is wrong, "
        "create the pod again with the right resourceClaimName in its resourceClaims."
    )
    assert "its ResourceClaim yours is being deleted." in findings[1].text
    assert findings[1].remedy.startswith("Once the claim is gone, create it again; the pod then ")
    codes = {
        finding.code
        for finding in chapter_findings(
            explain(silent("Failed"), missing_claims=missing), "podStatus"
        )
    }
    assert codes == {"Failed"}


def test_claims_that_are_not_made_yet() -> None:
    """The pod's status lacks them, and there is no readable Event with the reason."""
    (finding,) = chapter_findings(explain(silent()), "podStatus")
    assert (finding.code, finding.level) == ("ClaimNotCreated", "error")
    assert finding.text == "The pod is pending: Kubernetes has not created all of its claims yet."
    assert "ResourceClaimTemplate (rdma-nics): `kubectl get resourceclaimtem" in finding.remedy
    assert finding.remedy.endswith("growing intervals of up to 17 minutes.")


def test_a_template_that_is_missing() -> None:
    """The Event names it; it is reported once, with the remedy of the verdict."""
    (finding,) = now("", event(REASON, MISSING), event(REASON, MISSING))
    assert (finding.code, finding.level) == ("ClaimTemplateMissing", "error")
    assert "its claim nic refers to the ResourceClaimTemplate rdma-nics, which" in finding.text
    assert finding.text.endswith(f"Kubernetes reports: {MISSING}")
    assert "Create the ResourceClaimTemplate in the pod's namespace" in finding.remedy


def test_another_failure_of_the_controller() -> None:
    """The newest message on each claim is quoted."""
    quota = "PodResourceClaim nic: create ResourceClaim : exceeded quota: dra"
    other = event(REASON, 'PodResourceClaim gpu: resource claim template "gpus": timed out')
    findings = now("", event(REASON, MISSING), event(REASON, quota), other)
    assert [(finding.code, finding.level) for finding in findings[:2]] == [
        ("ClaimNotCreated", "error")
    ] * 2
    assert findings[0].text.endswith(f"could not create one of its claims: {quota}")
    assert findings[0].remedy.startswith("If the Event FailedResourceClaimCreation gives a cause")


def test_the_event_alone_is_enough() -> None:
    """The scheduler may not have looked at the pod yet."""
    pod = pod_in_cluster(phase="Pending", spec={"nodeName": "", "resourceClaims": CLAIMS})
    (finding,) = chapter_findings(explain(pod, events=(event(REASON, MISSING),)), "podStatus")
    assert finding.code == "ClaimTemplateMissing"


def test_an_event_of_the_newer_kind() -> None:
    """An Event of events.k8s.io has other fields."""
    old = event(REASON, MISSING)
    new = {key: old[key] for key in old if key not in ("involvedObject", "message")}
    new |= {"regarding": old["involvedObject"], "note": MISSING}
    findings = chapter_findings(explain(silent(), events=(new,)), "podStatus")
    assert findings[0].text.endswith(f"Kubernetes reports: {MISSING}")


def test_many_claims() -> None:
    """The first five are named."""
    claims = [{"name": f"nic-{number}"} for number in range(6)]
    pod = pending(of_nodes("1 cannot allocate all claims"), resourceClaims=claims)
    (finding,) = chapter_findings(explain(pod), "podStatus")
    assert "the pod's claims (nic-0, nic-1, nic-2, nic-3, nic-4). The scheduler" in finding.text


def test_a_pod_that_has_a_node_had_its_claims() -> None:
    """An old Event no longer applies to it; nor does an Event about its owner count."""
    starting = pod_in_cluster(phase="Pending", spec={"resourceClaims": CLAIMS})
    codes = [
        finding.code
        for finding in chapter_findings(
            explain(starting, events=(event(REASON, MISSING),)), "podStatus"
        )
    ]
    assert codes == ["Starting"]
    (finding,) = chapter_findings(
        explain(pod_in_cluster(), events=(event(REASON, MISSING),)), "podStatus"
    )
    assert finding.code == "Running"
    about_owner = event(REASON, MISSING, "PodGroup", "group")
    codes = [finding.code for finding in now(of_nodes("3 node(s) were unschedulable"), about_owner)]
    assert codes == ["BlockedByCordon", "Event"]


def test_other_resources_are_reported_with_the_claims() -> None:
    """The claims and the resource each have a remedy."""
    message = of_nodes("1 cannot allocate all claims, 2 Insufficient rdma/rdma_v100")
    findings = now(message, nodes=(node("a", rdma_v100="1"),))
    assert [finding.code for finding in findings] == ["ClaimsNotAllocated", "Insufficient"]


def test_a_pod_without_claims_in_its_manifest() -> None:
    """As an extended resource that a driver provides (KEP-5004)."""
    (finding,) = chapter_findings(
        explain(pending(of_nodes("1 cannot allocate all claims"))), "podStatus"
    )
    assert "devices that match the pod's claims. The scheduler" in finding.text
