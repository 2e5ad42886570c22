from __future__ import annotations

from typing import Any

import pytest

from tests.builders import H100, V100, container, fabric, pod, quantities
from tests.case_names import case_name
from webhook.decide.draft import Draft
from webhook.decide.mutations.rdma_resources import aliases_of, rename
from webhook.errors import ShapeError
from webhook.model.fabric import RdmaResource

PATH = ("spec", "containers", 0)
HCA, REAL = "rdma/hca", "rdma/v100"


def renamed(limits: Any, requests: Any = None) -> dict[str, Any]:
    """Rename `rdma/hca` to `rdma/v100` in a container that has these quantities."""
    draft = Draft(pod(container(resources=quantities(limits, requests))))
    rename(draft, PATH, HCA, REAL)
    resources: dict[str, Any] = draft.get((*PATH, "resources"))
    return resources


@pytest.mark.parametrize(
    ("limits", "requests", "result"),
    [
        ({HCA: "2", "cpu": "1"}, None, ({"cpu": "1", REAL: "2"}, None)),
        ({HCA: 2}, {HCA: 2}, ({REAL: 2}, {REAL: 2})),
        (None, {HCA: "2"}, (None, {REAL: "2"})),
        ({HCA: "0"}, None, ({REAL: "0"}, None)),
        ({HCA: "2", REAL: "1"}, None, ({REAL: "2"}, None)),
        ({HCA: "1", REAL: "2"}, {HCA: "1", REAL: "2"}, ({REAL: "2"}, {REAL: "2"})),
        ({HCA: "1000m", REAL: "1"}, None, ({REAL: "1"}, None)),
        ({HCA: "2", REAL: "1"}, {REAL: "1"}, ({REAL: "2"}, {REAL: "2"})),
        ({HCA: "2"}, {"cpu": "1"}, ({REAL: "2"}, {"cpu": "1"})),
        ({HCA: None, REAL: "1"}, None, ({REAL: "1"}, None)),
        ({HCA: "0", REAL: "2"}, {HCA: "0"}, ({REAL: "2"}, {REAL: "2"})),
        ({HCA: "2"}, {HCA: "1"}, ({REAL: "2"}, {REAL: "1"})),
        ({REAL: "0"}, {HCA: "2"}, ({REAL: "2"}, {REAL: "2"})),
        ({HCA: "2"}, {REAL: "0"}, ({REAL: "2"}, {REAL: "2"})),
        ({REAL: "1"}, {HCA: "1", "cpu": "1"}, ({REAL: "1"}, {"cpu": "1", REAL: "1"})),
        ({HCA: None}, None, ({REAL: None}, None)),
        ({HCA: None}, {HCA: None}, ({REAL: None}, {REAL: None})),
        ({HCA: None, REAL: None}, None, ({REAL: None}, None)),
    ],
    ids=case_name,
)
def test_an_alias_takes_its_quantity_along(limits: Any, requests: Any, result: Any) -> None:
    """If the real name is there too, each section with either of them gets the largest quantity."""
    assert renamed(limits, requests) == quantities(*result)


def test_what_cannot_be_compared_is_refused_with_its_place() -> None:
    """The API server would reject it too."""
    with pytest.raises(ShapeError) as raised:
        renamed(None, {HCA: "some", REAL: "1"})
    assert str(raised.value) == (
        'spec.containers[0].resources.requests["rdma/hca"]: '
        "'some' is not a Kubernetes quantity (such as \"1\", 500m or 64Gi)"
    )


def test_only_the_fabrics_own_aliases_count() -> None:
    """Two fabrics may share an alias; each has its own resource for it."""
    twice = fabric(
        resources=(
            RdmaResource(name="rdma/a", aliases=("rdma/x",)),
            RdmaResource(name="rdma/b", aliases=(HCA,)),
        )
    )
    assert aliases_of(V100) == {HCA: REAL}
    assert aliases_of(H100) == {}
    assert aliases_of(twice) == {HCA: "rdma/b", "rdma/x": "rdma/a"}
