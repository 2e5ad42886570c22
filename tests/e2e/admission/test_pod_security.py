"""Pod Security: it checks the pod as we leave it, and two of its levels reject IPC_LOCK."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.admission.conftest import Webhooks
from tests.e2e.admission.pods import create, pod, trainer
from tests.e2e.documents import Document

LABEL = "pod-security.kubernetes.io/enforce"
#: What `restricted` requires of every container.
RESTRICTED: Document = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_the_capability_is_left_out(cluster: Cluster, webhooks: Webhooks, level: str) -> None:
    """The pod passes with all other changes, and a warning names the label that prevents one."""
    assert webhooks
    answer = create(cluster, pod(level, {**trainer(), "securityContext": RESTRICTED}))
    assert answer.added_capabilities() == []
    assert answer.env()["NCCL_IB_HCA"] == "=mlx5_0"
    assert answer.containers[0]["resources"]["limits"]["rdma/rdma_v100"] == "1"
    says = f"ipc-lock trainer: the namespace's label {LABEL}={level} forbids IPC_LOCK"
    because, warning = (
        ("PodSecurity", "lacks IPC_LOCK, since Pod Security restricted of the namespace forbids it")
        if level == "restricted"
        else ("MemlockUnknown", "does not run as root; it needs nodes with LimitMEMLOCK=infinity")
    )
    assert answer.status["because"] == because
    assert answer.warnings[0] == f"RDMA not certain: container trainer {warning}"
    assert answer.warnings[1:] == ([] if because == "PodSecurity" else [says])


def test_without_facts_of_the_label_the_pod_is_refused(
    cluster: Cluster, webhooks: Webhooks
) -> None:
    """Without facts the webhook adds the capability, and Pod Security rejects the pod."""
    assert webhooks
    refusal = create(cluster, pod("baseline-uninformed", trainer())).refusal
    assert 'violates PodSecurity "baseline:latest": non-default capabilities' in refusal
    assert 'must not include "IPC_LOCK"' in refusal


def test_a_site_may_refuse_instead(cluster: Cluster, webhooks: Webhooks) -> None:
    """`podSecurity: deny` rejects the pod, and names the label to change."""
    assert webhooks
    refusal = create(cluster, pod("baseline-strict", trainer())).refusal
    assert 'admission webhook "pods.rdma.lab" denied the request' in refusal
    assert "ipc-lock in container trainer: Pod Security" in refusal
    assert f"set the namespace's label {LABEL} to privileged" in refusal


def test_the_level_still_refuses_other_violations(cluster: Cluster, webhooks: Webhooks) -> None:
    """The webhook makes no pod pass that would be rejected without it."""
    assert webhooks
    refusal = create(cluster, pod("restricted", trainer())).refusal
    assert 'violates PodSecurity "restricted:latest"' in refusal
    assert "IPC_LOCK" not in refusal
