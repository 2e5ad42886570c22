"""Operations on a live pod are repeated on its template, if they have a place there."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest

from webhook.model.decision import PatchOp
from webhook.preview.workloads.patch import transfer_to_template


def pod(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Make a pod or template."""
    return {"spec": {"containers": list(containers), **fields}}


def add(path: str, value: Any) -> PatchOp:
    """Make an operation that adds."""
    return {"op": "add", "path": path, "value": value}


def test_an_append_creates_a_list_that_the_template_lacks() -> None:
    """The controller made the list in the live pod; the template gets its own."""
    variable = {"name": "A", "value": "1"}
    edit = transfer_to_template(
        pod({"name": "main"}),
        pod({"name": "main", "env": [{"name": "ROLE"}]}),
        [add("/spec/containers/0/env/-", variable), add("/spec/containers/0/env/-", {"name": "B"})],
    )
    assert edit.ops == (
        add("/spec/containers/0/env", [variable]),
        add("/spec/containers/0/env/-", {"name": "B"}),
    )
    assert edit.patched_template == pod({"name": "main", "env": [variable, {"name": "B"}]})
    assert edit.deferred == ()


def test_a_key_gets_the_parents_that_the_template_lacks() -> None:
    """One operation adds them, as `set` of a draft does."""
    live = {"metadata": {"annotations": {"of": "controller"}}}
    edit = transfer_to_template({"spec": {}}, live, [add("/metadata/annotations/a~1b", "1")])
    assert edit.ops == (add("/metadata", {"annotations": {"a/b": "1"}}),)


def test_words_of_a_command_that_both_have_are_edited_in_both() -> None:
    """The second operation counts the word that the first inserted."""
    command = ["mpirun", "rank"]
    ops = [add("/spec/containers/0/command/1", "-mca"), add("/spec/containers/0/command/2", "x")]
    template = pod({"name": "main", "command": command})
    edit = transfer_to_template(template, pod({"name": "main", "command": command, "env": []}), ops)
    assert edit.ops == tuple(ops)
    (main,) = edit.patched_template["spec"]["containers"]
    assert main["command"] == ["mpirun", "-mca", "x", "rank"]
    assert command == ["mpirun", "rank"]


@pytest.mark.parametrize(
    ("template", "live", "op"),
    [
        (
            pod({"name": "a"}),
            pod({"name": "a", "args": ["x"]}),
            add("/spec/containers/0/args/0", 1),
        ),
        (
            pod({"name": "a", "args": ["x"]}),
            pod({"name": "a", "args": ["x && y"]}),
            {"op": "replace", "path": "/spec/containers/0/args/0", "value": "z"},
        ),
        (
            pod({"name": "a"}),
            pod({"name": "a"}, {"name": "b"}),
            add("/spec/containers/1/env", []),
        ),
        (
            pod({"name": "a"}),
            pod({"name": "a"}, {"image": "b", "env": []}),
            add("/spec/containers/1/env/-", {}),
        ),
        (
            pod({"name": "a", "command": ["x"]}),
            pod({"name": "a", "command": ["x", "y"]}),
            add("/spec/containers/0/command/0", "x"),
        ),
        (
            pod({"name": "a"}, initContainers=[{"name": "x"}]),
            pod({"name": "a"}, initContainers=[{"name": "y"}]),
            add("/spec/initContainers/0/env/-", {}),
        ),
        (
            pod({"name": "a", "limits": {"m": 1}}),
            pod({"name": "a", "limits": {"m": 2}}),
            {"op": "remove", "path": "/spec/containers/0/limits/m"},
        ),
        (
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"a": "2"}}},
            {"op": "replace", "path": "/metadata/labels/a", "value": "3"},
        ),
    ],
    ids=[
        "command",
        "word",
        "container",
        "nameless container",
        "longer command",
        "init container",
        "value",
        "label",
    ],
)
def test_what_the_controller_wrote_is_left_to_admission(
    template: dict[str, Any], live: dict[str, Any], op: PatchOp
) -> None:
    """An edit of it has no place in the template."""
    edit = transfer_to_template(template, live, [op, add("/metadata/x", "1")])
    assert edit.deferred == (op,)
    metadata = {**template.get("metadata", {}), "x": "1"}
    assert edit.patched_template == {**template, "metadata": metadata}


def test_jsonpatch_makes_the_same_template() -> None:
    """The recorded operations are a patch of the template."""
    template = pod({"name": "a", "limits": {"m": 1, "n": 2}})
    live = pod({"name": "a", "limits": {"m": 1, "n": 2}, "env": [{}]}, {"name": "b"}, volumes=[{}])
    ops: list[PatchOp] = [
        {"op": "remove", "path": "/spec/containers/0/limits/m"},
        {"op": "replace", "path": "/spec/containers/0/limits/n", "value": 3},
        add("/spec/volumes/-", {"name": "v"}),
        add("/spec/containers/0/env/-", {"name": "A"}),
    ]
    edit = transfer_to_template(template, live, ops)
    assert jsonpatch.apply_patch(template, list(edit.ops)) == edit.patched_template
    assert edit.deferred == ()
