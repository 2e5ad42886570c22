from __future__ import annotations

from typing import Any

import pytest

from webhook.admission.match import called
from webhook.decision.facts import NamespaceFacts

LABELLED = NamespaceFacts(name="lab", labels={"rdma.lab/enable": "true"})


def _pod(*, os: str = "linux", **annotations: Any) -> dict[str, Any]:
    keys = {"enable": "rdma.lab/enable", "mirror": "kubernetes.io/config.mirror"}
    written = {keys[key]: value for key, value in annotations.items()}
    return {"metadata": {"annotations": written}, "spec": {"os": {"name": os}}}


@pytest.mark.parametrize(
    ("pod", "namespace", "expected", "because"),
    [
        (_pod(enable="true"), LABELLED, True, "namespace lab has the label and the pod"),
        (_pod(enable="yes"), LABELLED, True, "namespace lab has the label"),
        (_pod(), LABELLED, False, 'the pod has no annotation rdma.lab/enable: "true"'),
        (_pod(enable=None), LABELLED, False, "the pod has no annotation"),
        (_pod(enable="false"), LABELLED, False, 'the annotation rdma.lab/enable: "false"'),
        (_pod(enable="true", mirror="x"), LABELLED, False, "the mirror of a static pod"),
        (_pod(enable="true", os="windows"), LABELLED, False, "runs on Windows"),
        ({"metadata": [], "spec": 7}, LABELLED, False, "has no annotation"),
        (
            _pod(enable="true"),
            NamespaceFacts(name="lab", labels={"rdma.lab/enable": "True"}),
            False,
            "namespace lab has the label rdma.lab/enable: 'True'; it needs",
        ),
        (
            _pod(enable="true"),
            NamespaceFacts(labels={}),
            False,
            "the namespace is not labelled; it needs",
        ),
        (
            _pod(enable="true"),
            NamespaceFacts(name="lab"),
            None,
            'the labels of namespace lab are not known; it needs rdma.lab/enable: "true"',
        ),
        (_pod(enable="true"), NamespaceFacts(name="lab", known=False), None, "are not known"),
        (_pod(), NamespaceFacts(name="lab"), False, "has no annotation"),
    ],
)
def test_called(
    pod: dict[str, Any], namespace: NamespaceFacts, *, expected: bool | None, because: str
) -> None:
    """The answer follows the webhook's selector and conditions; unknown labels give None."""
    answer, sentence = called(pod, namespace)

    assert (answer, because in sentence) == (expected, True), sentence


@pytest.mark.parametrize("name", ["kube-system", "kube-public", "kube-node-lease", "rdma-webhook"])
def test_excluded_namespaces(name: str) -> None:
    """The cluster's namespaces and the webhook's are excluded, whatever their labels."""
    namespace = NamespaceFacts(name=name, labels={"rdma.lab/enable": "true"})

    assert called(_pod(enable="true"), namespace) == (False, f"namespace {name} is never touched")
