"""Secondary networks that nothing attached."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import chapter_findings, codes, explain, pod_in_cluster, status
from tests.unit.diagnose.why.test_answer import HOLDS, IDLE, RDMA, SOCKETS, log

NETWORKS = "k8s.v1.cni.cncf.io/networks"
WANTED = {**status(), NETWORKS: "rails/rail-0@net1, rail-1"}


def test_a_running_pod_without_a_report() -> None:
    """Multus writes a report, so it did not act: there is no tick."""
    explanation = explain(pod_in_cluster(WANTED))
    finding = chapter_findings(explanation, "podStatus")[1]
    assert (finding.code, finding.level) == ("NetworksNotAttached", "error")
    assert finding.text == (
        "There is no report that the pod's networks (rails/rail-0, lab/rail-1) were attached: the "
        "pod has no annotation k8s.v1.cni.cncf.io/network-status."
    )
    assert explanation.answer.level == "warning"
    assert "as it should: There is no report that the pod's networks" in (explanation.answer.text)
    assert not explanation.well


@pytest.mark.parametrize(
    ("annotations", "fields"),
    [
        (status(), {}),
        ({**WANTED, NETWORKS: ""}, {}),
        ({**WANTED, NETWORKS: "{"}, {}),
        ({**WANTED, "k8s.v1.cni.cncf.io/network-status": "[]"}, {}),
        ({**WANTED, "k8s.v1.cni.cncf.io/networks-status": "[]"}, {}),
        (WANTED, {"phase": "Pending"}),
        (WANTED, {"spec": {"hostNetwork": True}}),
    ],
    ids=[
        "no networks",
        "empty",
        "unreadable",
        "reported",
        "reported as before",
        "pending",
        "host network",
    ],
)
def test_pods_that_need_no_report(annotations: dict[str, str], fields: dict[str, Any]) -> None:
    """Without readable networks, before the pod runs, and in the host network."""
    explanation = explain(pod_in_cluster(annotations, **fields))
    assert "NetworksNotAttached" not in codes(explanation, "podStatus")


def test_a_pod_that_uses_rdma() -> None:
    """What it uses is attached; other evidence proves nothing."""
    cases: list[tuple[dict[str, Any], bool]] = [
        ({"processes": (HOLDS,)}, False),
        ({"logs": (log(RDMA),)}, False),
        ({"logs": (log(SOCKETS),)}, True),
        ({"processes": (IDLE,)}, True),
    ]
    for evidence, is_shown in cases:
        explanation = explain(pod_in_cluster(WANTED), **evidence)
        assert ("NetworksNotAttached" in codes(explanation, "podStatus")) is is_shown
