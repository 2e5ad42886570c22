"""A pod that was decided on before, judged by what it carries now."""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.builders import decide_on, decision_input, pod
from webhook.decide import inspect
from webhook.decide.analysis import RdmaAccess


def test_a_pod_that_has_all() -> None:
    """The verdict is that of the decision, and a call now would apply nothing."""
    decision = decide_on(pod())
    inspection = inspect(decision.pod, decision_input())
    assert inspection is not None
    assert inspection.verdict == decision.verdict
    assert "applied" not in {outcome.status for outcome in inspection.outcomes}
    assert inspection.applicability.access is RdmaAccess.FABRIC
    assert [target.name for target in inspection.analysis.targets] == ["trainer"]


def test_a_pod_that_lacks_something() -> None:
    """It is judged without what a call now would add, and stays as it is."""
    manifest = deepcopy(decide_on(pod()).pod)
    for amounts in manifest["spec"]["containers"][0]["resources"].values():
        del amounts["rdma/v100"]
    before = deepcopy(manifest)
    inspection = inspect(manifest, decision_input())
    assert inspection is not None
    assert inspection.verdict.because.code == "DeviceMissing"
    applied = [outcome.mutation for outcome in inspection.outcomes if outcome.status == "applied"]
    assert applied == ["rdma-resources"]
    assert manifest == before


@pytest.mark.parametrize(
    "annotations", [{"rdma.lab/devices": "x"}, {"rdma.lab/fabric": "gone"}], ids=str
)
def test_a_pod_that_would_be_denied(annotations: dict[str, str]) -> None:
    """There is no verdict of a pod that cannot be examined."""
    assert inspect(pod(annotations=annotations), decision_input()) is None
