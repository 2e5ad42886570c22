"""A workload may be any JSON: malformed parts are left to the decision, which reports them."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.unit.preview.workloads.controllers.workloads import WORKLOADS, template, workload
from webhook.model.pod import Path
from webhook.preview.workloads.controllers import controller_pods
from webhook.preview.workloads.objects import scalar_text
from webhook.preview.workloads.templates import templates_of

#: A value of each type, and a number that Python does not convert to a string.
JUNK: tuple[Any, ...] = (
    None,
    True,
    "",
    "x",
    10**5000,
    1.5,
    [],
    ["x"],
    [{"name": {}}],
    {},
    {"x": []},
)


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the place of every value below `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for step, child in inner:
        yield (*path, step)
        if isinstance(child, dict | list):
            yield from places(child, (*path, step))


def replaced(value: Any, path: Path, junk: Any) -> Any:
    """Return a copy with another value at a place."""
    changed = deepcopy(value)
    node = changed
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = junk
    return changed


RICH = {
    **WORKLOADS,
    "kuberay with everything": workload(
        "ray.io/v1 RayCluster",
        {
            "enableInTreeAutoscaling": True,
            "headGroupSpec": {
                "rayStartParams": {"num-cpus": "1"},
                "template": template(
                    env=[{"name": "A"}],
                    args=["x"],
                    volumeMounts=[{"name": "v", "mountPath": "/x"}],
                    resources={"limits": {"cpu": 1, "a/gpu": 1, "memory": "1Gi"}},
                ),
            },
        },
    ),
    "jobset with exclusive placement": workload(
        "jobset.x-k8s.io/v1alpha2 JobSet",
        {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": template()}}}]},
        annotations={
            "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack",
            "alpha.jobset.sigs.k8s.io/node-selector": "true",
        },
    ),
}


@pytest.mark.parametrize("value", RICH.values(), ids=RICH)
def test_no_shape_is_an_exception(value: dict[str, Any]) -> None:
    """Whatever a field contains, the result is pods: if need be, the templates themselves."""
    assert any(source for source in templates_of(value))
    for path in places(value):
        for junk in JUNK:
            spoilt = replaced(value, path, junk)
            for source in templates_of(spoilt):
                assert controller_pods(source)


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (5, "5"), ("", "-"), (0, "-"), (10**5000, "-"), (None, "-"), ([], "-")],
    ids=["text", "number", "empty", "zero", "long", "null", "list"],
)
def test_a_word_is_a_string_or_a_number(value: Any, text: str) -> None:
    """Anything else is as if it were absent."""
    assert scalar_text(value, "-") == text
