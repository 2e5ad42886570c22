"""What is said of a pod that stays pending because of its claims."""

from __future__ import annotations

from typing import Any

import pytest

from tests.case_names import case_name
from tests.unit.diagnose.why.pods import event, explain, live, told
from tests.unit.diagnose.why.test_pod_status import node, pending
from webhook.diagnose.why.evidence import ClaimFailure
from webhook.diagnose.why.explanation import Sentence

CLAIMS = [
    {"name": "nic", "resourceClaimTemplateName": "rdma-nics"},
    {"name": "own", "resourceClaimName": "mine"},
]
MISSING = (
    'PodResourceClaim nic: resource claim template "rdma-nics": '
    'resourceclaimtemplate.resource.k8s.io "rdma-nics" not found'
)
REASON = "FailedResourceClaimCreation"


def of_nodes(why: str) -> str:
    """Write a message of the scheduler about all nodes."""
    return f"0/3 nodes are available: {why}. preemption: 0/3 nodes are available: 3 Preemption is"


def now(message: str, *events: Any, **known: Any) -> list[Sentence]:
    """Explain a pod with claims of which the scheduler says this."""
    pod = pending(message, resourceClaims=CLAIMS)
    return told(explain(pod, events=events, **known), "now")


@pytest.mark.parametrize(
    ("message", "code", "says", "remedy"),
    [
        (
            of_nodes("1 cannot allocate all claims, 2 node(s) had untolerated taint(s)"),
            "ClaimsNotAllocated",
            "no node has free devices for all of its claims (nic, own).",
            "kubectl get resourceslices",
        ),
        (
            of_nodes("3 resourceclaim not available on the node"),
            "ClaimElsewhere",
            "one of its claims (nic, own) already has devices of other nodes.",
            "by resourceClaimTemplateName",
        ),
        (
            (
                'running PreBind plugin "DynamicResources": add reservation to claim lab/mine: '
                'ResourceClaim.resource.k8s.io "mine" is invalid: status.reservedFor: Too many: '
                "257: must have at most 256 items"
            ),
            "ClaimInUse",
            "is used by as many pods as may share a claim.",
            "Wait until one of them ends",
        ),
        (
            of_nodes("request nics: device class roce.lab does not exist"),
            "DeviceClassMissing",
            "its claim's request nics names the DeviceClass roce.lab, which does not exist.",
            "kubectl get deviceclasses",
        ),
    ],
    ids=case_name,
)
def test_what_the_scheduler_says(message: str, code: str, says: str, remedy: str) -> None:
    """Each cause has a code, a sentence with the scheduler's own words, and a remedy."""
    (found,) = now(message)
    assert (found.code, found.level) == (code, "problem")
    assert says in found.text
    assert found.text.endswith(f"The scheduler says: {message}")
    assert remedy in found.remedy


def silent(phase: str = "Pending", **status: Any) -> dict[str, Any]:
    """Return a pod of which the scheduler says nothing."""
    return live(phase=phase, spec={"nodeName": "", "resourceClaims": CLAIMS}, **status)


def test_claims_that_are_missing() -> None:
    """Each is told, though the scheduler says nothing of it."""
    statuses = [{"name": "nic", "resourceClaimName": "made"}]
    missing = (ClaimFailure("mine"), ClaimFailure("yours", is_ending=True))
    pod = silent(resourceClaimStatuses=statuses)
    found = told(explain(pod, claim_failures=missing), "now")
    assert [(one.code, one.level) for one in found] == [("ClaimMissing", "problem")] * 2
    assert found[0].text == (
        "The pod is pending: its ResourceClaim mine does not exist. Meanwhile, the scheduler "
        "leaves the pod aside without a word."
    )
    assert found[0].remedy == (
        "Create it, and the pod starts by itself; or create the pod again with another "
        "resourceClaimName in its resourceClaims."
    )
    assert "its ResourceClaim yours is being deleted." in found[1].text
    assert found[1].remedy.startswith("Once it is gone, create it again, and the pod starts")
    codes = {one.code for one in told(explain(silent("Failed"), claim_failures=missing), "now")}
    assert codes == {"Failed"}


def test_claims_that_are_not_made_yet() -> None:
    """The pod's status lacks them; no Event says why, or the right to read Events is missing."""
    (found,) = told(explain(silent()), "now")
    assert (found.code, found.level) == ("ClaimNotCreated", "problem")
    assert found.text == "The pod is pending: Kubernetes has not made all of its claims yet."
    assert "ResourceClaimTemplate (rdma-nics): kubectl get resourceclaimtemplates" in found.remedy
    assert "create the pod again" in found.remedy


def test_a_template_that_is_missing() -> None:
    """The Event names it; it is told once, with the remedy of the verdict."""
    (found,) = now("", event(REASON, MISSING), event(REASON, MISSING))
    assert (found.code, found.level) == ("ClaimTemplateMissing", "problem")
    assert "its claim nic is of ResourceClaimTemplate rdma-nics, which the namespace" in found.text
    assert found.text.endswith(f"Kubernetes says: {MISSING}")
    assert "Create the ResourceClaimTemplate in the pod's namespace" in found.remedy


def test_another_failure_of_the_controller() -> None:
    """What it says is quoted, of each claim the newest."""
    quota = "PodResourceClaim nic: create ResourceClaim : exceeded quota: dra"
    other = event(REASON, 'PodResourceClaim gpu: resource claim template "gpus": timed out')
    found = now("", event(REASON, MISSING), event(REASON, quota), other)
    assert [(one.code, one.level) for one in found[:2]] == [("ClaimNotCreated", "problem")] * 2
    assert found[0].text.endswith(f"It says: {quota}")
    assert found[0].remedy.startswith("Correct what the message names. Kubernetes tries again")


def test_the_event_alone_is_enough() -> None:
    """The scheduler may not have looked at the pod yet."""
    pod = live(phase="Pending", spec={"nodeName": "", "resourceClaims": CLAIMS})
    (found,) = told(explain(pod, events=(event(REASON, MISSING),)), "now")
    assert found.code == "ClaimTemplateMissing"


def test_an_event_of_the_newer_kind() -> None:
    """That of events.k8s.io has other fields."""
    old = event(REASON, MISSING)
    new = {key: old[key] for key in old if key not in ("involvedObject", "message")}
    new |= {"regarding": old["involvedObject"], "note": MISSING}
    found = told(explain(silent(), events=(new,)), "now")
    assert found[0].text.endswith(f"Kubernetes says: {MISSING}")


def test_many_claims() -> None:
    """The first five are named."""
    claims = [{"name": f"nic-{number}"} for number in range(6)]
    pod = pending(of_nodes("1 cannot allocate all claims"), resourceClaims=claims)
    (found,) = told(explain(pod), "now")
    assert "all of its claims (nic-0, nic-1, nic-2, nic-3, nic-4). The scheduler" in found.text


def test_a_pod_that_has_a_node_had_its_claims() -> None:
    """An old Event says nothing of it any more; nor does one about its owner count."""
    starting = live(phase="Pending", spec={"resourceClaims": CLAIMS})
    codes = [one.code for one in told(explain(starting, events=(event(REASON, MISSING),)), "now")]
    assert codes == ["Starting"]
    (found,) = told(explain(live(), events=(event(REASON, MISSING),)), "now")
    assert found.code == "Running"
    about_owner = event(REASON, MISSING, "PodGroup", "group")
    codes = [one.code for one in now(of_nodes("3 node(s) were unschedulable"), about_owner)]
    assert codes == ["Unschedulable", REASON]


def test_other_resources_are_told_beside_the_claims() -> None:
    """Each of both has its own remedy."""
    message = of_nodes("1 cannot allocate all claims, 2 Insufficient rdma/rdma_v100")
    found = now(message, nodes=(node("a", rdma_v100="1"),))
    assert [one.code for one in found] == ["ClaimsNotAllocated", "Insufficient"]


def test_a_pod_without_claims_in_its_manifest() -> None:
    """As an extended resource that a driver provides (KEP-5004)."""
    (found,) = told(explain(pending(of_nodes("1 cannot allocate all claims"))), "now")
    assert "devices for all of its claims. The scheduler" in found.text
