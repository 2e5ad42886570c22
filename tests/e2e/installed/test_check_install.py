"""`rdma-webhook check-install`: nothing is wrong after an installation, and each break is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.fabrics import OBJECT, apply_fabrics
from tests.cluster.install import CONFIGURATION, DEPLOYMENT, LAB, NAME, Webhook
from tests.command_line import Answer, run_command
from tests.e2e.documents import Document, apply
from tests.waiting import until

APPLY = (
    "Apply the webhook's manifests again (kubectl apply -k or helm upgrade; see "
    "docs/installation.md)."
)
BINDING = f"validatingadmissionpolicybinding/{NAME}-guard-lease"
_EMPTIED = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
#: A cluster of the tests has no Prometheus Operator.
EXPECTED = {"NoPrometheusOperator"}


def check(webhook: Webhook, *words: str) -> Answer:
    """Run the command as the administrator."""
    access = ("--kubeconfig", webhook.cluster.kubeconfig)
    return run_command("check-install", *access, "-o", "json", *words)


def problems(answer: Answer) -> list[tuple[str, str, str]]:
    """Return level, code and remedy of what is not as it should be."""
    findings = (finding for part in answer.form["parts"] for finding in part["findings"])
    return [
        (finding["level"], finding["code"], finding["remedy"])
        for finding in findings
        if finding["level"] != "ok" and finding["code"] not in EXPECTED
    ]


@pytest.fixture(autouse=True)
def _intact(webhook: Webhook) -> None:
    """Wait until nothing is wrong: replicas notice a repair at their next check."""
    answers: list[Answer] = []

    def is_fine() -> bool:
        answers.append(check(webhook, "--try", LAB))
        return problems(answers[-1]) == [] and answers[-1].code == 0

    until(is_fine, lambda: problems(answers[-1]))


def test_an_installation_as_in_the_instructions(webhook: Webhook) -> None:
    """Every part was checked, nothing is wrong, and the pod of the dry run was not stored."""
    answer = check(webhook, "--try", LAB, "--strict")
    assert (answer.code, answer.form["passed"], answer.err) == (0, True, "")
    assert [part["part"] for part in answer.form["parts"]] == [
        "objects",
        "certificates",
        "policies",
        "replicas",
        "fabrics",
        "clocks",
        "monitoring",
        "dry run",
    ]
    pod = webhook.cluster.kubectl("get", "pods", "-n", LAB, "--output=name")
    assert "rdma-webhook-check" not in pod


def test_a_binding_that_was_deleted(webhook: Webhook) -> None:
    """The guard has no effect; the remedy restores the binding."""
    binding = webhook.cluster.kubectl("apply", "view-last-applied", BINDING)
    webhook.cluster.kubectl("delete", BINDING)
    answer = check(webhook)
    webhook.cluster.kubectl("apply", "--filename=-", input=binding)
    assert (answer.code, problems(answer)) == (1, [("error", "PolicyNotBound", APPLY)])


def test_a_namespace_without_the_label(webhook: Webhook) -> None:
    """The remedy has the command for that namespace."""
    answer = check(webhook, "--try", "default")
    remedy = "Run `kubectl label --overwrite namespace default rdma.lab/enable=true`."
    assert (answer.code, problems(answer)) == (1, [("error", "NamespaceNotLabeled", remedy)])


def test_fabrics_that_were_deleted(webhook: Webhook) -> None:
    """What needs them is not reported as well."""
    webhook.cluster.kubectl("delete", OBJECT)
    answer = check(webhook)
    apply_fabrics(webhook.cluster, webhook.fabrics.read_text("utf-8"))
    remedy = "Apply your fabrics: `kubectl apply -f fabrics.yaml` (docs/installation.md, Fabrics)."
    assert (answer.code, problems(answer)) == (1, [("error", "NoFabrics", remedy)])


@contextmanager
def unhealed(webhook: Webhook) -> Iterator[None]:
    """Keep the replicas from writing `caBundle`, which they would do within a second."""
    name = {"name": "test-no-healing"}
    rule: Document = {
        "apiGroups": ["admissionregistration.k8s.io"],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["mutatingwebhookconfigurations"],
    }
    ours = f"request.userInfo.username.endsWith(':{NAME}')"
    group = "admissionregistration.k8s.io/v1"
    policy: Document = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": name,
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "ours", "expression": ours}],
            "validations": [{"expression": "false", "message": "not healed"}],
        },
    }
    binding: Document = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": name,
        "spec": {"policyName": name["name"], "validationActions": ["Deny"]},
    }
    apply(webhook.cluster, policy, binding)
    try:
        until(lambda: "not healed" in _write_as_replica(webhook))
        yield
    finally:
        kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings"
        webhook.cluster.kubectl("delete", kinds, name["name"])


def _write_as_replica(webhook: Webhook) -> str:
    """Try what the guard allows: of several policies that deny, the API server names any."""
    account = f"system:serviceaccount:{NAME}:{NAME}"
    patch = ("--type=json", f"--patch={json.dumps(_EMPTIED)}")
    words = ("--as", account, "patch", CONFIGURATION, *patch, "--dry-run=server")
    return webhook.cluster.kubectl(*words, check=False)


def test_an_emptied_ca_bundle(webhook: Webhook) -> None:
    """It is the only finding: failed handshakes follow from it."""
    with unhealed(webhook):
        patch = ("--type=json", f"--patch={json.dumps(_EMPTIED)}")
        webhook.cluster.kubectl("patch", CONFIGURATION, *patch)
        answer = check(webhook)
    remedy = (
        "Run `rdma-webhook certs status`, which shows the CAs in caBundle and in the Secret. If "
        "cert-manager sets caBundle, read the log of its CA injector instead."
    )
    assert (answer.code, problems(answer)) == (1, [("error", "OtherCaBundle", remedy)])


def test_no_replicas(webhook: Webhook) -> None:
    """The Service has no endpoints either, which is not reported as well."""
    webhook.kubectl("scale", DEPLOYMENT, "--replicas=0")
    until(lambda: webhook.kubectl("get", DEPLOYMENT, "-o=jsonpath={.status.replicas}") == "")
    answer = check(webhook)
    webhook.kubectl("scale", DEPLOYMENT, "--replicas=2")
    webhook.kubectl("rollout", "status", DEPLOYMENT, "--timeout=300s")
    remedy = f"Run `kubectl -n {NAME} scale deployment {NAME} --replicas=2`."
    assert (answer.code, problems(answer)) == (1, [("error", "ReplicasUnavailable", remedy)])


def test_an_account_without_rights(webhook: Webhook) -> None:
    """It learns which rights it lacks; nothing is claimed, and nothing fails."""
    answer = check(webhook, "--as", f"system:serviceaccount:{LAB}:default", "--try", LAB)
    findings = [finding for part in answer.form["parts"] for finding in part["findings"]]
    levels = {finding["level"]: finding["text"] for finding in findings}
    assert (answer.code, answer.form["level"]) == (0, "unsure")
    assert levels.get("ok", "").startswith("the clock of this machine")
    assert {*levels} <= {"ok", "unsure"}, levels
    missing = "you lack the right to get deployments.apps in namespace rdma-webhook"
    assert any(missing in finding["text"] for finding in findings)


def test_within_a_pod(webhook: Webhook) -> None:
    """A replica's account has few rights, but its certificates and fabrics are checked."""
    command = ("exec", DEPLOYMENT, "--", "rdma-webhook", "check-install", "-o", "json")
    form = json.loads(webhook.kubectl(*command))
    texts = [finding["text"] for part in form["parts"] for finding in part["findings"]]
    assert form["passed"] is True
    assert any("verifies against caBundle and is valid until" in text for text in texts), texts
    assert any(text.endswith("is Valid, Active, Called and Ready") for text in texts), texts
