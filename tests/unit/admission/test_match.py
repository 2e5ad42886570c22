from __future__ import annotations

from typing import Any

import pytest

from webhook.admission.match import called
from webhook.decision.facts import NamespaceFacts

NEEDS = 'it needs rdma.lab/enable: "true"'
BOTH = "namespace lab has the label and the pod the annotation rdma.lab/enable"
NO_ANNOTATION = 'the pod has no annotation rdma.lab/enable: "true"'
LABELLED = NamespaceFacts(name="lab", labels={"rdma.lab/enable": "true"})


def _pod(*, os: str = "linux", **annotations: Any) -> dict[str, Any]:
    keys = {"enable": "rdma.lab/enable", "mirror": "kubernetes.io/config.mirror"}
    written = {keys[key]: value for key, value in annotations.items()}
    return {"metadata": {"annotations": written}, "spec": {"os": {"name": os}}}


@pytest.mark.parametrize(
    ("pod", "namespace", "expected", "because"),
    [
        (_pod(enable="true"), LABELLED, True, BOTH),
        (_pod(enable="yes"), LABELLED, True, BOTH),
        (_pod(), LABELLED, False, NO_ANNOTATION),
        (_pod(enable=None), LABELLED, False, NO_ANNOTATION),
        (
            _pod(enable="false"),
            LABELLED,
            False,
            'the pod has the annotation rdma.lab/enable: "false"',
        ),
        (_pod(enable="true", mirror="x"), LABELLED, False, "the pod is the mirror of a static pod"),
        (_pod(enable="true", os="windows"), LABELLED, False, "the pod runs on Windows"),
        ({"metadata": [], "spec": 7}, LABELLED, False, NO_ANNOTATION),
        (
            _pod(enable="true"),
            NamespaceFacts(name="lab", labels={"rdma.lab/enable": "True"}),
            False,
            f"namespace lab has the label rdma.lab/enable: 'True'; {NEEDS}",
        ),
        (
            _pod(enable="true"),
            NamespaceFacts(name="lab", labels={"rdma.lab/enable": "x" * 99}),
            False,
            f"namespace lab has the label rdma.lab/enable: '{'x' * 79}; {NEEDS}",
        ),
        (
            _pod(enable="true"),
            NamespaceFacts(labels={}),
            False,
            f"the namespace is not labelled; {NEEDS}",
        ),
        (
            _pod(enable="true"),
            NamespaceFacts(name="lab"),
            None,
            f"the labels of namespace lab are not known; {NEEDS}",
        ),
        (
            _pod(enable="true"),
            NamespaceFacts(name="lab", known=False),
            None,
            f"the labels of namespace lab are not known; {NEEDS}",
        ),
        (_pod(), NamespaceFacts(name="lab"), False, NO_ANNOTATION),
    ],
)
def test_called(
    pod: dict[str, Any], namespace: NamespaceFacts, *, expected: bool | None, because: str
) -> None:
    """The answer follows the webhook's selector and conditions; unknown labels give None."""
    assert called(pod, namespace) == (expected, because)


@pytest.mark.parametrize("name", ["kube-system", "kube-public", "kube-node-lease", "rdma-webhook"])
def test_excluded_namespaces(name: str) -> None:
    """The cluster's namespaces and the webhook's are excluded, whatever their labels."""
    namespace = NamespaceFacts(name=name, labels={"rdma.lab/enable": "true"})

    assert called(_pod(enable="true"), namespace) == (False, f"namespace {name} is never touched")
