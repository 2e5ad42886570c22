"""The fields of a pod that an outcome would change: what each was, and what it is now.

The outcome is that of a call now, on a pod to which the mutation was applied before. So what an
operation would add was there and is not; what it would remove is there and was not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from webhook.model.decision import Outcome, PatchOp
from webhook.model.pod import PodManifest, at, pointer_steps

ABSENT = "absent"
#: The most characters of a value in a sentence.
_MAX_VALUE = 80


class FieldChange(NamedTuple):
    """The change of a field of the pod or of a container."""

    #: "resources.limits.memory", "env NCCL_IB_HCA".
    name: str
    #: The value that the webhook sets, and that of the pod; ABSENT if either has none.
    webhook_value: str
    pod_value: str

    def __str__(self) -> str:
        return f"{self.name} was {self.webhook_value} and is now {self.pod_value}"


def field_changes(outcome: Outcome, manifest: PodManifest) -> Iterator[FieldChange]:
    """Yield the changes of fields by the operations of an outcome."""
    for operation in outcome.ops:
        path = pointer_steps(operation["path"])
        present = _shown(at(manifest, tuple(map(_index, path))))
        if operation["op"] == "remove":
            yield FieldChange(_dotted(_within(path)), ABSENT, present)
        else:
            yield from _added(operation, path, ABSENT if operation["op"] == "add" else present)


def _added(operation: PatchOp, path: list[str], pod_value: str) -> Iterator[FieldChange]:
    for steps, value in _flat(_within(path), operation.get("value")):
        yield FieldChange(_dotted(steps), _shown(value), pod_value)


def _flat(path: list[str], value: object) -> Iterator[tuple[list[str], object]]:
    """Yield the fields in a value with their paths; a variable or a mount is one field."""
    if isinstance(value, list):
        for entry in value:
            yield from _flat(path, entry)
    elif isinstance(value, dict) and "mountPath" in value:
        yield [*path, ""], value["mountPath"]
    elif isinstance(value, dict) and path[:1] == ["env"]:
        yield [f"env {value.get('name')}"], value.get("value", "set")
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _flat([*path, key], entry)
    else:
        yield path, value


def _within(path: list[str]) -> list[str]:
    """Return a path in its container or in the pod, without the index at its end."""
    inner = path[3:] if path[:1] == ["spec"] and "ontainers" in path[1] else path
    return [step for step in inner if step != "-" and not step.isdigit()]


def _dotted(path: list[str]) -> str:
    return ".".join(step for step in path if step)


def _shown(value: object) -> str:
    return ABSENT if value is None else f"{value}"[:_MAX_VALUE]


def _index(step: str) -> str | int:
    return int(step) if step.isdigit() else step
