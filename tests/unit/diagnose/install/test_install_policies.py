"""A guard that is missing, unbound or changed is an error; one of the other policies a warning."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.install.installation import Installation
from webhook.diagnose.install.policies import ADVISERS, GUARDS
from webhook.model.finding import Finding
from webhook.text.readiness import ReadinessCheck

APPLY = (
    "Apply the webhook's manifests again (kubectl apply -k or helm upgrade; see "
    "docs/installation.md)."
)
REFUSED = (
    "in the last hour, the API server refused the dry runs in which {} tried to change a field "
    "other than caBundle of a webhook configuration"
)
RESTORE = (
    f"{APPLY} If the finding remains, delete the policy and its binding, and apply the manifests "
    "once more."
)
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
ALL = [*((name, "error") for name in GUARDS), *((name, "warning") for name in ADVISERS)]


def test_the_manifests_have_no_other_policies(installation: Installation) -> None:
    """The lists of policies are complete, and each policy is as the check expects."""
    names = {
        path.rpartition("/")[2] for path in installation.objects if "admissionpolicies" in path
    }
    assert names == {*GUARDS, *ADVISERS}
    assert installation.texts("policies") == [
        (
            "5 of 5 guards match the webhook's account and the resources that they protect, have "
            "failurePolicy Fail, and are bound: "
            "rdma-webhook-guard, rdma-webhook-guard-secrets, rdma-webhook-guard-events, "
            "rdma-webhook-guard-lease and rdma-webhook-guard-status"
        ),
        (
            "3 of 3 policies that only show warnings to users are present and bound: "
            "rdma-webhook-advice, rdma-webhook-detector and rdma-webhook-removal"
        ),
        REFUSED.format("2 replicas"),
    ]


@pytest.mark.parametrize(("name", "level"), ALL)
def test_a_missing_policy(installation: Installation, name: str, level: Any) -> None:
    """Its binding has no effect."""
    installation.delete(POLICY, name)
    text = f"{POLICY} {name} does not exist"
    assert installation.findings() == [Finding(level, "PolicyMissing", text, APPLY)]


@pytest.mark.parametrize(("name", "level"), ALL)
def test_a_missing_binding(installation: Installation, name: str, level: Any) -> None:
    """A policy without a binding has no effect."""
    installation.delete(BINDING, name)
    text = f"{BINDING} {name} does not exist"
    assert installation.findings() == [Finding(level, "PolicyNotBound", text, APPLY)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"policyName": "other"}, "binds the policy other"),
        (
            {"matchResources": {"namespaceSelector": {}}},
            "has matchResources, so it applies to only some of the objects",
        ),
        (
            {"validationActions": ["Warn", "Audit"]},
            "has the validationActions Warn, Audit, without Deny",
        ),
    ],
)
def test_a_binding_that_does_not_bind(
    installation: Installation, change: dict[str, Any], problem: str
) -> None:
    """It names another policy, excludes objects, or only warns."""
    installation[BINDING, "rdma-webhook-guard-lease"]["spec"].update(change)
    text = f"{BINDING} rdma-webhook-guard-lease {problem}"
    assert installation.findings() == [Finding("error", "PolicyNotBound", text, RESTORE)]


def test_a_site_may_deny_where_the_manifests_warn(installation: Installation) -> None:
    """components/deny-removal changes the actions of a policy that is no guard."""
    spec = installation[BINDING, "rdma-webhook-removal"]["spec"]
    assert "Deny" not in spec["validationActions"]
    spec["validationActions"] = ["Deny"]
    assert installation.findings() == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"matchConditions": []}, "does not match the account rdma-webhook as in the manifests"),
        (
            {"matchConditions": [{"name": "a", "expression": "false"}]},
            "does not match the account rdma-webhook as in the manifests",
        ),
        ({"failurePolicy": "Ignore"}, "has failurePolicy Ignore, not Fail"),
        (
            {"matchConstraints": {"resourceRules": [{"resources": ["fabricconfigurations"]}]}},
            "does not match fabricconfigurations/status",
        ),
    ],
)
def test_a_changed_guard(installation: Installation, change: dict[str, Any], problem: str) -> None:
    """It does not apply to the webhook's account, or to all of its objects."""
    installation[POLICY, "rdma-webhook-guard-status"]["spec"].update(change)
    text = f"{POLICY} rdma-webhook-guard-status {problem}"
    assert installation.findings() == [Finding("error", "PolicyChanged", text, RESTORE)]


def test_a_policy_that_cannot_be_read(installation: Installation) -> None:
    """The right ones do not include it."""
    installation.refuse(POLICY, "rdma-webhook-guard")
    (finding,) = installation.findings()
    right = "get validatingadmissionpolicies.admissionregistration.k8s.io"
    assert (finding.level, finding.code) == ("unsure", "NotChecked")
    assert finding.text == (
        f"{POLICY} rdma-webhook-guard: not checked, since you lack the right to {right}"
    )
    assert installation.texts("policies")[0].startswith("4 of 5 guards match ")


def test_no_policy_can_be_read(installation: Installation) -> None:
    """Nothing is said about them but that they were not checked."""
    for name, _ in ALL:
        installation.refuse(POLICY, name)
        installation.refuse(BINDING, name)
    policies, bindings = installation.findings()
    assert policies.text == (
        "ValidatingAdmissionPolicy rdma-webhook-guard, ValidatingAdmissionPolicy "
        "rdma-webhook-guard-secrets, ValidatingAdmissionPolicy rdma-webhook-guard-events, "
        "ValidatingAdmissionPolicy rdma-webhook-guard-lease, ValidatingAdmissionPolicy "
        "rdma-webhook-guard-status, ValidatingAdmissionPolicy rdma-webhook-advice, "
        "ValidatingAdmissionPolicy rdma-webhook-detector and ValidatingAdmissionPolicy "
        "rdma-webhook-removal: not checked, since you lack the right to get "
        "validatingadmissionpolicies.admissionregistration.k8s.io"
    )
    assert (policies.code, bindings.code) == ("NotChecked", "NotChecked")
    assert bindings.text.startswith(f"{BINDING} rdma-webhook-guard, {BINDING} rdma-")
    assert installation.texts("policies")[-1].startswith("in the last hour, the API server refused")


def test_a_replica_that_may_do_too_much(installation: Installation) -> None:
    """The replica's own dry run outweighs what the objects look like; its text has the remedy."""
    check = ReadinessCheck("guard", True, "warning: this account may change all; apply the policy")
    installation.replicas["webhook-b"] = installation.ready(check)
    assert installation.findings() == [
        Finding("error", "NotGuarded", "webhook-b: this account may change all; apply the policy")
    ]
    assert installation.texts("policies")[-1] == REFUSED.format("1 replica")


def test_a_replica_that_has_not_tried(installation: Installation) -> None:
    """Its guard is neither right nor wrong."""
    check = ReadinessCheck("guard", True, "unknown: not tried yet")
    installation.replicas = dict.fromkeys(installation.replicas, installation.ready(check))
    remedy = "Run the command again in a minute."
    assert installation.findings() == [
        Finding("unsure", "NotChecked", f"{pod}: the guard was not tried: not tried yet", remedy)
        for pod in ("webhook-a", "webhook-b")
    ]


def test_other_checks_do_not_count(installation: Installation) -> None:
    """A warning of another check is not about the guard."""
    checks = ReadinessCheck("nodes", True, "warning: none")
    installation.replicas = dict.fromkeys(installation.replicas, installation.ready(checks))
    assert installation.findings() == []
    assert len(installation.texts("policies")) == 2
