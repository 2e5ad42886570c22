"""The dry runs: a pod that opts in is patched, and another one is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.install.installation import STATUS, Installation
from webhook.admission.registration import NO_FABRICS_MESSAGE
from webhook.model.finding import Finding

LAB = "/api/v1/namespaces/lab"


def rejected(message: str) -> tuple[int, dict[str, Any]]:
    """Return the answer of an API server that rejects a pod."""
    return 403, {"message": message}


def test_all_is_well(installation: Installation) -> None:
    """The verdict is in the text; nothing was stored."""
    assert installation.texts("dry run", "lab") == [
        "a pod that opts in is patched in namespace lab: fabric v100-ib, RDMA yes (Equipped)",
        "a pod that does not opt in is not changed in namespace lab",
    ]
    assert [path for path, _ in installation.created] == [f"{LAB}/pods"] * 2


def test_the_pods(installation: Installation) -> None:
    """Both fit into a quota; the first chooses a fabric, so that it needs no GPU."""
    installation.check("lab")
    container = {
        "name": "check",
        "image": "rdma-webhook.invalid/none",
        "resources": {
            "requests": {"cpu": "10m", "memory": "16Mi"},
            "limits": {"cpu": "10m", "memory": "16Mi"},
        },
    }
    spec = {
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "containers": [container],
    }
    opt_in = {"rdma.lab/enable": "true", "rdma.lab/fabric": "v100-ib"}
    assert [pod for _, pod in installation.created] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "rdma-webhook-check", "annotations": annotations},
            "spec": spec,
        }
        for annotations in (opt_in, {})
    ]


def test_without_a_namespace(installation: Installation) -> None:
    """No pod is tried."""
    assert "dry run" not in {part.title for part in installation.check().parts}
    assert installation.created == []


def test_without_fabrics(installation: Installation) -> None:
    """The pod chooses no fabric."""
    installation.delete("FabricConfiguration", "default")
    installation.check("lab")
    assert installation.created[0][1]["metadata"]["annotations"] == {"rdma.lab/enable": "true"}


def test_a_missing_namespace(installation: Installation) -> None:
    """No pod is tried."""
    assert installation.findings("other") == [
        Finding(
            "error",
            "NamespaceMissing",
            "namespace other does not exist",
            "Pass an existing namespace to --try.",
        )
    ]
    assert installation.created == []


@pytest.mark.parametrize("labels", [{}, {"rdma.lab/enable": "yes"}])
def test_a_namespace_without_the_label(installation: Installation, labels: dict[str, str]) -> None:
    """A pod cannot opt in there, so only the other one is tried."""
    installation.objects[LAB]["metadata"]["labels"] = labels
    text = 'namespace lab lacks the label rdma.lab/enable: "true"'
    remedy = "Run `kubectl label --overwrite namespace lab rdma.lab/enable=true`."
    assert installation.findings("lab") == [Finding("error", "NamespaceNotLabeled", text, remedy)]
    assert len(installation.created) == 1


def test_a_namespace_that_cannot_be_read(installation: Installation) -> None:
    """The dry run shows whether it has the label."""
    installation.refused[LAB] = 403
    (finding,) = installation.findings("lab")
    text = "namespace lab: not checked, since you lack the right to get namespaces"
    assert (finding.level, finding.code, finding.text) == ("unsure", "NotChecked", text)
    assert len(installation.created) == 2


def test_a_pod_that_is_not_patched(installation: Installation) -> None:
    """The API server accepted it without the webhook."""
    installation.pod_answers[True] = (201, {"metadata": {"annotations": {}}})
    text = "a pod that opts in has no rdma.lab/status after a dry run in lab"
    remedy = (
        "Correct the problems that check-install reports about the webhook configuration and the "
        "certificates. If it reports none, create a pod that opts in, and run `rdma-webhook why` "
        "on it."
    )
    assert installation.findings("lab") == [Finding("error", "PodNotPatched", text, remedy)]


@pytest.mark.parametrize(
    "message",
    [
        'failed calling webhook "pods.rdma.lab": no endpoints',
        'admission webhook "pods.rdma.lab" denied the request: no',
    ],
)
def test_a_pod_that_the_webhook_rejects(installation: Installation, message: str) -> None:
    """The call failed, or the webhook denied the pod; the message has the reason."""
    installation.pod_answers[True] = rejected(message)
    text = f"a pod that opts in was rejected: {message}"
    remedy = (
        "If the webhook denied the pod, correct the problem that the message reports. If the API "
        "server could not call the webhook, correct the problems that check-install reports about "
        "the Deployment, the Service and the certificates."
    )
    assert installation.findings("lab") == [Finding("error", "PodRejected", text, remedy)]


@pytest.mark.parametrize("opts_in", [True, False])
def test_pods_that_something_else_rejects(installation: Installation, opts_in: bool) -> None:
    """A missing right, a quota or Pod Security says nothing about the webhook."""
    installation.pod_answers[opts_in] = rejected("exceeded quota")
    text = "the dry run in lab: not checked, since pods are rejected: exceeded quota"
    remedy = "Ask for the right to create pods in lab, or name another namespace."
    assert installation.findings("lab") == [Finding("unsure", "NotChecked", text, remedy)]


def test_a_pod_that_did_not_opt_in(installation: Installation) -> None:
    """Another webhook opted it in, since this one changes no pod without the annotation."""
    answer = {"metadata": {"annotations": {"rdma.lab/status": STATUS}}}
    installation.pod_answers[False] = (201, answer)
    text = "a pod that does not opt in was changed in a dry run in lab"
    remedy = (
        "Find what adds the annotation rdma.lab/enable to pods in the namespace, such as another "
        "mutating webhook. No action is needed if that is intended."
    )
    assert installation.findings("lab") == [Finding("error", "PodChangedUnasked", text, remedy)]


def test_both_pods_are_rejected(installation: Installation) -> None:
    """The reason is the same, and is reported once."""
    installation.pod_answers = dict.fromkeys((True, False), rejected("exceeded quota"))
    assert [finding.code for finding in installation.findings("lab")] == ["NotChecked"]


def test_a_pod_without_fabrics(installation: Installation) -> None:
    """The message of the webhook has the command, so there is no other remedy."""
    message = f'failed calling webhook "pods.rdma.lab": {NO_FABRICS_MESSAGE}run kubectl apply'
    installation.pod_answers[True] = rejected(message)
    text = f"a pod that opts in was rejected: {message}"
    assert installation.findings("lab") == [Finding("error", "PodRejected", text)]
