"""The fields of a pod that a call now would change: what each was, and what it is."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.decide.mutations.placement import MUTATION
from webhook.diagnose.why.field_changes import field_changes
from webhook.model.decision import Outcome

POD: dict[str, Any] = {
    "metadata": {"annotations": {"a/b": "old"}},
    "spec": {"containers": [{"resources": {"limits": {"memory": "1Gi"}}}]},
}
MAIN = "/spec/containers/0"


def changed(**operation: Any) -> list[str]:
    """Return the changes of fields by one operation, as text."""
    outcome = Outcome("x", "main", "applied", MUTATION.reasons[0], "", (operation,))  # type: ignore[arg-type] # any operation
    return [str(field_change) for field_change in field_changes(outcome, POD)]


@pytest.mark.parametrize(
    ("operation", "texts"),
    [
        (
            {"op": "add", "path": f"{MAIN}/securityContext/capabilities/add/-", "value": "X"},
            ["securityContext.capabilities.add was X and is now absent"],
        ),
        (
            {"op": "add", "path": f"{MAIN}/securityContext", "value": {"a": {"add": ["X"]}}},
            ["securityContext.a.add was X and is now absent"],
        ),
        (
            {"op": "remove", "path": f"{MAIN}/resources/limits/memory"},
            ["resources.limits.memory was absent and is now 1Gi"],
        ),
        (
            {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "new"},
            ["metadata.annotations.a/b was new and is now old"],
        ),
        (
            {"op": "add", "path": f"{MAIN}/env/-", "value": {"name": "A", "value": "b"}},
            ["env A was b and is now absent"],
        ),
        (
            {"op": "add", "path": f"{MAIN}/env", "value": [{"name": "A", "valueFrom": {}}]},
            ["env A was set and is now absent"],
        ),
        (
            {
                "op": "add",
                "path": f"{MAIN}/volumeMounts/-",
                "value": {"name": "v", "mountPath": "/x"},
            },
            ["volumeMounts was /x and is now absent"],
        ),
        (
            {"op": "add", "path": "/spec/nodeSelector", "value": {"a~b": "c" * 100}},
            [f"spec.nodeSelector.a~b was {'c' * 80} and is now absent"],
        ),
        (
            {"op": "add", "path": f"{MAIN}/command/2", "value": "x"},
            ["command was x and is now absent"],
        ),
    ],
    ids=str,
)
def test_field_changes(operation: dict[str, Any], texts: list[str]) -> None:
    """A path within the container, without indices; a variable or a mount is one field."""
    assert changed(**operation) == texts
