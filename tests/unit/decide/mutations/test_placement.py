from __future__ import annotations

from typing import Any

import pytest

from tests.builders import decide_on, decision_input, defaulted, fabric, ops, outcomes_of, pod
from tests.case_names import case_name
from webhook.model.pod import PodManifest

NAME = "placement"
GPU = frozenset({"nvidia.com/v100"})
PINNED = decision_input(
    fabric(gpu_resources=GPU, pin_selector={"site.lab/fabric": "ib", "site.lab/rail": "r1"})
)


def affine(*keys: Any) -> dict[str, Any]:
    """Make a required node affinity with these keys."""
    expressions = [{"key": key, "operator": "Exists"} for key in keys]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize("pin", [None, {}], ids=repr)
def test_a_fabric_may_pin_nothing(pin: Any) -> None:
    """The RDMA resource keeps the pod on the right nodes."""
    decision = decide_on(pod(), decision_input(fabric(gpu_resources=GPU, pin_selector=pin)))
    assert outcomes_of(decision, NAME) == [
        ("", "skipped", "NotConfigured", "the fabric sets `pin: never`")
    ]
    assert "nodeSelector" not in decision.pod["spec"]


def test_the_pod_may_select_the_fabrics_nodes_already() -> None:
    """All labels of the fabric must be there."""
    selector = {"site.lab/fabric": "ib", "site.lab/rail": "r1", "zone": "a"}
    decision = decide_on(pod(nodeSelector=selector), PINNED)
    assert outcomes_of(decision, NAME) == [
        ("", "already", "Present", "the pod already selects the fabric's nodes")
    ]
    assert ops(decision, NAME) == []


@pytest.mark.parametrize(
    ("spec", "keys"),
    [
        ({"nodeSelector": {"site.lab/fabric": "roce"}}, "site.lab/fabric"),
        ({"nodeSelector": {"site.lab/fabric": "ib"}}, "site.lab/fabric"),
        ({"nodeSelector": {"site.lab/rail": None}}, "site.lab/rail"),
        ({"affinity": affine("zone", "site.lab/rail")}, "site.lab/rail"),
        (
            {"affinity": affine("site.lab/rail"), "nodeSelector": {"site.lab/fabric": "x"}},
            "site.lab/fabric, site.lab/rail",
        ),
    ],
    ids=case_name,
)
def test_a_choice_of_the_user_stays(spec: dict[str, Any], keys: str) -> None:
    """One of the keys is enough: a mix of the user's and the fabric's selector suits neither."""
    decision = decide_on(pod(**spec), PINNED)
    assert outcomes_of(decision, NAME) == [
        ("", "skipped", "UserSelects", f"the pod itself selects nodes by {keys}")
    ]
    assert ops(decision, NAME) == []


@pytest.mark.parametrize("affinity", [None, affine("zone"), affine(None)], ids=repr)
def test_the_selector_is_added(affinity: Any) -> None:
    """It is added regardless of other node selection."""
    decision = decide_on(pod(affinity=affinity), PINNED)
    message = "added nodeSelector site.lab/fabric=ib, site.lab/rail=r1"
    assert outcomes_of(decision, NAME) == [("", "applied", "Pinned", message)]
    assert ops(decision, NAME) == [
        {"op": "add", "path": "/spec/nodeSelector", "value": {"site.lab/fabric": "ib"}},
        {"op": "add", "path": "/spec/nodeSelector/site.lab~1rail", "value": "r1"},
    ]


def test_other_keys_of_the_selector_stay() -> None:
    """Nodes must match the pod's keys and ours."""
    decision = decide_on(pod(nodeSelector={"zone": "a"}), PINNED)
    assert decision.pod["spec"]["nodeSelector"] == {
        "zone": "a",
        "site.lab/fabric": "ib",
        "site.lab/rail": "r1",
    }


@pytest.mark.parametrize(
    "manifest", [pod(), pod(nodeSelector={"site.lab/rail": "r2"})], ids=case_name
)
def test_deciding_again_changes_nothing(manifest: PodManifest) -> None:
    """The second call finds our selector in the pod."""
    first = decide_on(defaulted(manifest), PINNED)
    assert decide_on(defaulted(first.pod), PINNED).patch == ()
