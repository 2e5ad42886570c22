from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import jsonpatch
import pytest

from tests.growth import executed_lines
from webhook.decide.draft import Draft
from webhook.errors import ShapeError
from webhook.model.decision import Outcome, Reason
from webhook.model.pod import Path, Pod

REASON = Reason("Why", "Because.", "")


def sample() -> dict[str, Any]:
    """Make a small pod."""
    return {
        "metadata": {"name": "job", "labels": None},
        "spec": {"containers": [{"name": "a", "args": ["x"]}, {"name": "b"}]},
    }


def test_a_draft_without_edits_is_the_pod_itself() -> None:
    """Nothing is copied before something is edited."""
    pod = sample()
    draft = Draft(pod)
    assert draft.get(("spec", "containers", 1, "name")) == "b"
    assert draft.get(("spec", "nothing", "here")) is None
    assert draft.pod is pod
    assert (draft.ops, draft.outcomes, draft.mutation_name) == ([], [], "")


def test_only_the_edited_path_is_copied() -> None:
    """The incoming pod stays unchanged, and the draft shares its unedited parts."""
    pod = sample()
    before = deepcopy(pod)
    draft = Draft(pod)
    draft.set(("spec", "containers", 0, "image"), "i")
    assert pod == before
    assert draft.pod["spec"]["containers"][1] is pod["spec"]["containers"][1]
    assert draft.pod["metadata"] is pod["metadata"]


def test_parts_that_a_document_shares_do_not_change_together() -> None:
    """A YAML alias makes two containers one object; an edit of one must not change the other."""
    shared = {"limits": {"memory": "1Gi"}}
    pod = {"a": {"resources": shared}, "b": {"resources": shared}}
    draft = Draft(pod)
    draft.remove(("a", "resources", "limits", "memory"))
    assert draft.pod == {
        "a": {"resources": {"limits": {}}},
        "b": {"resources": {"limits": {"memory": "1Gi"}}},
    }


def test_a_key_is_added_or_replaced() -> None:
    """As RFC 6902 distinguishes them."""
    draft = Draft(sample())
    draft.set(("spec", "hostIPC"), value=True)
    draft.set(("metadata", "name"), "other")
    assert draft.ops == [
        {"op": "add", "path": "/spec/hostIPC", "value": True},
        {"op": "replace", "path": "/metadata/name", "value": "other"},
    ]
    assert draft.pod["spec"]["hostIPC"] is True
    assert draft.pod["metadata"]["name"] == "other"


def test_missing_and_null_parents_travel_along() -> None:
    """Without them the operation would not apply."""
    draft = Draft(sample())
    draft.set(("spec", "containers", 1, "securityContext", "capabilities", "add"), ["X"])
    draft.set(("metadata", "labels", "app"), "x")
    draft.set(("status", "phase"), "Pending")
    assert draft.ops == [
        {
            "op": "add",
            "path": "/spec/containers/1/securityContext",
            "value": {"capabilities": {"add": ["X"]}},
        },
        {"op": "replace", "path": "/metadata/labels", "value": {"app": "x"}},
        {"op": "add", "path": "/status", "value": {"phase": "Pending"}},
    ]


def test_a_list_is_appended_to_or_made() -> None:
    """One operation for each value of a list that is there, one for a new list."""
    draft = Draft(sample())
    draft.append(("spec", "containers", 0, "args"), "y", "z")
    draft.append(("spec", "containers", 1, "args"), "y", "z")
    assert draft.ops == [
        {"op": "add", "path": "/spec/containers/0/args/-", "value": "y"},
        {"op": "add", "path": "/spec/containers/0/args/-", "value": "z"},
        {"op": "add", "path": "/spec/containers/1/args", "value": ["y", "z"]},
    ]
    assert [app["args"] for app in draft.pod["spec"]["containers"]] == [["x", "y", "z"], ["y", "z"]]


def test_values_are_inserted_and_replaced_by_index() -> None:
    """Several values keep their order."""
    draft = Draft({"args": ["a", "d"]})
    draft.insert(("args",), 1, "b", "c")
    draft.replace(("args", 0), "A")
    draft.remove(("args", 3))
    assert draft.pod == {"args": ["A", "b", "c"]}
    assert draft.ops == [
        {"op": "add", "path": "/args/1", "value": "b"},
        {"op": "add", "path": "/args/2", "value": "c"},
        {"op": "replace", "path": "/args/0", "value": "A"},
        {"op": "remove", "path": "/args/3"},
    ]


def test_an_operation_keeps_its_value_when_it_is_edited_later() -> None:
    """An added value is copied before an edit, so earlier operations stay true."""
    draft = Draft({})
    draft.set(("a",), {"b": []})
    draft.append(("a", "b"), 1)
    assert draft.ops == [
        {"op": "add", "path": "/a", "value": {"b": []}},
        {"op": "add", "path": "/a/b/-", "value": 1},
    ]
    assert draft.pod == {"a": {"b": [1]}}


@pytest.mark.parametrize(
    ("parent", "says"),
    [
        ("x", "a must be a mapping, but is a string ('x')"),
        ([], "a must be a mapping, but is a list ([])"),
        (0, "a must be a mapping, but is a number (0)"),
    ],
    ids=repr,
)
def test_a_parent_of_another_type_is_refused(parent: Any, says: str) -> None:
    """The API server would refuse the pod as well."""
    draft = Draft({"a": parent})
    with pytest.raises(ShapeError) as raised:
        draft.set(("a", "b", "c"), 1)
    assert str(raised.value) == says


def test_only_a_list_is_appended_to() -> None:
    """A mapping or a string in its place is refused with its place."""
    draft = Draft({"a": {"b": "x"}})
    with pytest.raises(ShapeError) as raised:
        draft.append(("a", "b"), 1)
    assert str(raised.value) == "a.b must be a list, but is a string ('x')"


def test_operations_belong_to_the_outcome_that_follows() -> None:
    """Each outcome has its own; the others have none."""
    draft = Draft({"a": 1})
    draft.mutation_name = "mine"
    draft.skipped("v", REASON, "not yet")
    draft.set(("b",), 2)
    draft.applied("x", REASON, "done")
    draft.warned("x", REASON, "careful")
    draft.remove(("a",))
    draft.applied("", REASON, "removed")
    draft.already("y", REASON, "there")
    draft.skipped("z", REASON, "left alone")
    draft.failed("w", REASON, "no")
    added, removed = draft.ops
    assert draft.outcomes == [
        Outcome("mine", "v", "skipped", REASON, "not yet"),
        Outcome("mine", "x", "applied", REASON, "done", (added,)),
        Outcome("mine", "x", "warned", REASON, "careful"),
        Outcome("mine", "", "applied", REASON, "removed", (removed,)),
        Outcome("mine", "y", "already", REASON, "there"),
        Outcome("mine", "z", "skipped", REASON, "left alone"),
        Outcome("mine", "w", "failed", REASON, "no"),
    ]


def test_a_verdict_must_match_what_was_done() -> None:
    """A mutation that reports otherwise is a defect, not a decision."""
    draft = Draft({})
    draft.mutation_name = "mine"
    with pytest.raises(AssertionError, match="mine reported applied, but changed nothing"):
        draft.applied("", REASON, "")
    draft.set(("a",), 1)
    with pytest.raises(AssertionError, match="mine reported skipped, but has operations pending"):
        draft.skipped("", REASON, "")


@pytest.mark.parametrize("removed_item", [{"name": "a"}, "a"], ids=["mapping", "string"])
def test_what_moves_up_in_a_list_is_edited_where_it_is_then(removed_item: Any) -> None:
    """Once an item in front of it is removed, its place belongs to the next item."""
    pod = {"spec": {"containers": [removed_item, {"name": "b"}, {"name": "c"}]}}
    draft = Draft(deepcopy(pod))
    draft.set(("spec", "containers", 1, "image"), "old")
    draft.remove(("spec", "containers", 0))
    draft.set(("spec", "containers", 1, "image"), "new")
    assert draft.pod["spec"]["containers"] == [
        {"name": "b", "image": "old"},
        {"name": "c", "image": "new"},
    ]
    assert jsonpatch.apply_patch(pod, draft.ops) == draft.pod


@pytest.mark.parametrize("replace", [Draft.set, Draft.replace], ids=["set", "replace"])
def test_an_edit_goes_into_the_value_that_took_anothers_place(
    replace: Callable[[Draft, Path, Any], None],
) -> None:
    """A mapping that was edited, and then replaced, is no longer part of the pod."""
    resources = ("spec", "containers", 0, "resources")
    pod = {"spec": {"containers": [{"resources": {"limits": {"cpu": 1}}}]}}
    draft = Draft(deepcopy(pod))
    draft.set((*resources, "limits", "cpu"), 2)
    replace(draft, resources, {"limits": {"memory": 3}})
    draft.set((*resources, "limits", "cpu"), 4)
    assert draft.get(resources) == {"limits": {"memory": 3, "cpu": 4}}
    assert jsonpatch.apply_patch(pod, draft.ops) == draft.pod


def test_a_value_is_never_mistaken_for_a_removed_copy() -> None:
    """A copy is known by its address, which no later value may get."""
    draft = Draft({"a": {"b": 0}})
    for number in range(10):
        value = {"c": number}
        draft.set(("a", "b"), value)
        draft.set(("a", "b", "c"), -1)
        assert value == {"c": number}
        draft.set(("a", "b"), 0)


def test_an_edit_below_an_earlier_edit_goes_to_its_own_place() -> None:
    """Copies are identified by their whole path."""
    pod = {"a": {"b": {"c": {"list": [0]}}}}
    draft = Draft(deepcopy(pod))
    draft.set(("a", "x"), 1)
    draft.set(("a", "b", "x"), 2)
    draft.set(("a", "b", "c", "x"), 3)
    draft.append(("a", "b", "c", "list"), 4)
    assert draft.pod == {"a": {"x": 1, "b": {"x": 2, "c": {"x": 3, "list": [0, 4]}}}}
    assert jsonpatch.apply_patch(pod, draft.ops) == draft.pod


def test_what_is_copied_once_is_not_copied_again() -> None:
    """Not even after a removal that makes the draft forget the places of its copies."""
    draft = Draft({"a": {"b": {}}})
    draft.set(("a", "x"), 2)
    root, copied = draft.pod, draft.get(("a",))
    draft.remove(("a", "b"))
    draft.set(("a", "y"), 3)
    assert draft.pod is root
    assert draft.get(("a",)) is copied


def test_a_mapping_that_was_edited_is_edited_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft remembers its place and does not look for it again."""
    draft = Draft({"a": {"b": {}}})
    draft.set(("a", "b", "x"), 1)
    monkeypatch.delattr(Draft, "_existing_parent")
    draft.set(("a", "b", "y"), 2)
    assert draft.pod == {"a": {"b": {"x": 1, "y": 2}}}


Edit = Callable[[Draft, Path], None]


def setting(draft: Draft, at: Path) -> None:
    """Set a key."""
    draft.set((*at, "x"), 1)


def setting_below(draft: Draft, at: Path) -> None:
    """Set a key of a mapping."""
    draft.set((*at, "map", "x"), 1)


def replacing_below(draft: Draft, at: Path) -> None:
    """Replace an item of a list."""
    draft.replace((*at, "list", 0), 1)


def removing(draft: Draft, at: Path) -> None:
    """Remove a key whose value cannot have been copied."""
    draft.remove((*at, "number"))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (setting, setting_below),
        (removing, setting_below),
        (setting, replacing_below),
        (replacing_below, replacing_below),
    ],
)
def test_an_edit_near_an_earlier_edit_is_as_quick_at_any_depth(earlier: Edit, later: Edit) -> None:
    """It starts from an existing copy, not from the root."""

    def counted(depth: int) -> int:
        pod: dict[str, Any] = {"map": {}, "list": [0], "number": 0}
        for _ in range(depth):
            pod = {"a": pod}
        draft = Draft(pod)
        earlier(draft, ("a",) * depth)
        return executed_lines(partial(later, draft, ("a",) * depth))

    for depth in (1, 10):
        counted(depth)  # and the path's pointer is remembered
    assert counted(1) == counted(10)


def test_the_view_is_of_the_current_pod() -> None:
    """Each edit outdates earlier readings; without an edit, nothing is read twice."""
    manifest = {"spec": {"containers": [{"name": "a"}, {"name": "b", "command": ["run"]}]}}
    pod = Pod(manifest)
    first, second = pod.containers
    draft = Draft(manifest, pod)
    assert draft.view is pod
    assert draft.container(second.path) is second
    draft.append((*first.path, "env"), {"name": "A", "value": "1"})
    assert draft.container(first.path).env == {"A": "1"}
    assert draft.container(first.path) is draft.container(first.path)
    assert draft.container(second.path) is not second
    draft.insert((*second.path, "command"), 0, "time")
    assert draft.container(second.path).command == ["time", "run"]
    draft.replace((*second.path, "command", 0), "env")
    assert draft.container(second.path).command == ["env", "run"]
    draft.remove((*second.path, "command", 0))
    assert draft.container(second.path).command == ["run"]
    draft.set((*second.path, "command"), ["walk"])
    assert draft.container(second.path).command == ["walk"]
    assert (first.env, second.command) == ({}, ["run"])


def test_the_view_sees_edits_outside_of_containers() -> None:
    """The next view has any edit."""
    manifest = {"metadata": {}, "spec": {"containers": [{"name": "a"}]}}
    draft = Draft(manifest)
    draft.set(("metadata", "annotations", "a"), "b")
    assert draft.view.annotations == {"a": "b"}
    draft.append(("spec", "volumes"), {"name": "v"})
    assert draft.view.volume_items == [{"name": "v"}]
    draft.set(("spec", "containers"), [{"name": "c"}])
    assert [app.name for app in draft.view.containers] == ["c"]
    draft.set(("spec",), {"containers": [{"name": "d"}]})
    assert [app.name for app in draft.view.containers] == ["d"]
