"""Tests of the warnings about an update of the FabricConfiguration.

`managedFields` are as Kubernetes 1.36 wrote them: tests/e2e/installed/test_changes_at_apply.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.growth import MAX_LINES_RATIO, executed_lines
from webhook.admission.configuration_changes import (
    CODES,
    ConfigurationChange,
    change_findings,
    configuration_change,
)
from webhook.model.finding import Finding

LAST_APPLIED = "f:kubectl.kubernetes.io/last-applied-configuration"
CLIENT_SIDE = "kubectl-client-side-apply"


def owner(manager: str, *fabrics: str, operation: str = "Apply", **fields: Any) -> dict[str, Any]:
    """Return what a manager owns: the rates of fabrics, and other fields of the spec."""
    owned: dict[str, Any] = {
        f"k:{json.dumps({'name': name}, separators=(',', ':'))}": {
            ".": {},
            "f:name": {},
            "f:rateGbps": {},
        }
        for name in fabrics
    }
    spec = {"f:fabrics": {".": {}, **owned}, **{f"f:{key}": {} for key in fields}}
    return {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {".": {}, **spec}}}


def owns_annotation(manager: str, operation: str = "Apply") -> dict[str, Any]:
    """Return an owner of the annotation of client-side applies."""
    fields: dict[str, Any] = {"f:metadata": {"f:annotations": {".": {}, LAST_APPLIED: {}}}}
    return {"manager": manager, "operation": operation, "fieldsV1": fields}


def configuration(*fabrics: str, owners: Any = ()) -> dict[str, Any]:
    """Return an object."""
    spec = {"fabrics": [{"name": name} for name in fabrics]}
    return {"metadata": {"managedFields": list(owners)}, "spec": spec}


def findings(
    old: dict[str, Any], new: dict[str, Any], manager: str = "kubectl", **nodes: int
) -> list[Finding]:
    """Return the warnings about an update."""
    change = configuration_change(new, old, manager)
    return [*change_findings(change._replace(removed={**change.removed, **nodes}))]


def only(given: list[Finding], code: str) -> str:
    """Return the text of the only warning, which has this code."""
    ((level, actual, text, remedy, location),) = given
    assert (level, actual, bool(remedy)) == ("warning", code, True)
    assert location.path == ("spec" if code == "OwnershipChanged" else "spec.fabrics")
    return text


def test_the_last_fabric_is_missed() -> None:
    """Without fabrics, failurePolicy decides on all pods; also if no node is known."""
    text = only(findings(configuration("ib"), configuration()), "NoFabricsLeft")
    assert text.startswith("is empty, so pods that opted in are rejected")
    assert [finding.code for finding in findings(configuration(), configuration())] == [
        "NoFabricsLeft"
    ]


def test_the_nodes_of_removed_fabrics_are_counted() -> None:
    """A fabric without nodes is not mentioned, nor one that stays."""
    old = configuration("ib", "roce", "unused", "stays")
    text = only(findings(old, configuration("stays"), ib=12, roce=1), "FabricWithNodesRemoved")
    assert text == (
        "no longer has ib (12 nodes), roce (1 node), so new pods on these nodes get no RDMA unless "
        "another fabric matches the nodes"
    )
    assert not findings(old, configuration("stays"))


def test_only_ten_fabrics_are_named() -> None:
    """Of more, the first nine are, and a count."""
    names = [f"f{number}" for number in range(20)]
    nodes = dict.fromkeys(names, 2)
    given = findings(configuration(*names), configuration("a"), "kubectl", **nodes)
    text = only(given, "FabricWithNodesRemoved")
    assert "f8 (2 nodes) and 11 more, so new pods" in text
    assert "f9" not in text


@pytest.mark.parametrize("keeper", ["team", "kubectl-last-applied"])
def test_a_takeover_of_client_side_applies_is_explained(keeper: str) -> None:
    """Kubectl makes the first server-side apply the owner of all fields, and applies it again.

    The annotation shows it: its owner is the manager itself, or with the default manager, kubectl's
    own for the annotation.
    """
    old = configuration("a", "d", owners=[owner("team", "a", "d"), owns_annotation(keeper)])
    new = configuration("d", owners=[owner("team", "d")])
    assert only(findings(old, new, "team"), "FabricsRemovedByApply") == (
        "field manager team removes a, since the file just applied does not contain it, and this "
        "manager owned it, perhaps because kubectl transferred it from a client-side apply"
    )


def test_several_fabrics_of_a_server_side_apply_are_missed() -> None:
    """Two files may have been applied under one name. A single fabric is removed on purpose."""
    old = configuration("a", "b", "c", owners=[owner("kubectl", "a", "b", "c")])
    text = only(
        findings(old, configuration("c", owners=[owner("kubectl", "c")])), "FabricsRemovedByApply"
    )
    assert text == (
        "field manager kubectl removes a, b, since the file just applied does not contain them, "
        "and "
        "this manager owned them from an earlier apply"
    )
    new = configuration("b", "c", owners=[owner("kubectl", "b", "c")])
    assert not findings(old, new)


def test_client_side_applies_remove_their_own_fabrics() -> None:
    """A client-side apply with a smaller file, and an edit after it, say what they mean."""
    applied = owner(CLIENT_SIDE, "a", "b", "c", operation="Update")
    annotated = owns_annotation(CLIENT_SIDE, "Update")
    old = configuration("a", "b", "c", owners=[applied, annotated])
    new = configuration("c", owners=[owner(CLIENT_SIDE, "c", operation="Update")])
    for manager in (CLIENT_SIDE, "kubectl-edit"):
        assert not findings(old, new, manager)


@pytest.mark.parametrize(
    ("manager", "subject"),
    [("kubectl-edit", "field manager kubectl-edit"), ("", "a client without a field manager")],
)
def test_a_fabric_of_another_server_side_apply_is_missed(manager: str, subject: str) -> None:
    """Its manager applied it, and would apply it again."""
    old = configuration("a", "b", owners=[owner("team-a", "a"), owner("team-b", "b")])
    new = configuration("a", owners=[owner("team-a", "a")])
    text = only(findings(old, new, manager), "FabricOfOtherManagerRemoved")
    assert text == f"{subject} removes what other field managers had applied: fabric b (team-b)"


def test_a_takeover_of_fields_is_reported() -> None:
    """By force, or by a client that does not apply: the next apply of the other one conflicts."""
    old = configuration("a", "b", owners=[owner("kubectl", "a", "b", defaults=1)])
    lost = owner("kubectl", "a", "b")
    del lost["fieldsV1"]["f:spec"]["f:fabrics"]['k:{"name":"a"}']["f:rateGbps"]
    new = configuration("a", "b", owners=[lost, owner("team", "a")])
    text = only(findings(old, new, "team"), "OwnershipChanged")
    assert text == (
        "field manager team changes fields that other field managers had applied: fabric a "
        "(kubectl), defaults (kubectl)"
    )
    assert not findings(old, new, "kubectl")  # its own fields


def test_a_manager_that_owns_nothing_any_more_is_reported() -> None:
    """The API server then removes its entry; a fabric of it may be co-owned."""
    old = configuration("a", owners=[owner("kubectl", "a")])
    new = configuration("a", owners=[owner("team", "a")])
    assert "fabric a" in only(findings(old, new, "team"), "OwnershipChanged")


def test_an_edit_of_client_side_applies_is_usual() -> None:
    """Only server-side applies depend on ownership, so both must be of other kinds."""
    old = configuration("a", owners=[owner(CLIENT_SIDE, "a", operation="Update")])
    edited = configuration("a", owners=[owner("kubectl-edit", "a", operation="Update")])
    assert not findings(old, edited, "kubectl-edit")
    forced = configuration("a", owners=[owner("team", "a")])
    text = only(findings(old, forced, "team"), "OwnershipChanged")
    assert text.endswith(
        f"changes fields that other field managers had applied: fabric a ({CLIENT_SIDE})"
    )


def test_several_managers_are_in_one_warning() -> None:
    """The API server drops a line that repeats another; a manager is named once for a fabric."""
    owners = [owner("one", "a", "b"), owner("one", "a", "b", operation="Update"), owner("two", "a")]
    old, new = configuration("a", "b", owners=owners), configuration("b", owners=[owner("c", "b")])
    removal, change = findings(old, new, "c")
    assert removal.text.endswith(": fabrics a (one), a (two)")
    assert change.text.endswith(": fabric b (one)")


def test_nothing_is_said_about_an_addition() -> None:
    """Nor about a change by the same manager."""
    old = configuration("a", owners=[owner("kubectl", "a")])
    new = configuration("a", "b", owners=[owner("kubectl", "a"), owner("team", "b")])
    assert not findings(old, new, "team")


@pytest.mark.parametrize("junk", [None, 7, "x", [], {}, [7, None, {}], {"f:spec": 7}])
def test_any_json_is_read(junk: Any) -> None:
    """The caller may not be the API server."""
    owners = [{"manager": junk, "operation": junk, "fieldsV1": junk}, junk]
    spec = {"manager": "x", "operation": "Apply", "fieldsV1": {"f:spec": {"f:fabrics": junk}}}
    deep = owner("y", "a", more=1)
    deep["fieldsV1"]["f:spec"]["f:more"] = {"f:x": junk}
    old = {"metadata": {"managedFields": [*owners, spec, deep]}, "spec": {"fabrics": [junk, junk]}}
    for new in (junk, {"spec": junk}, {"metadata": junk}, {"metadata": {"managedFields": junk}}):
        change = configuration_change(new, old, "x")
        codes = {finding.code for finding in change_findings(change)}
        assert codes <= {"NoFabricsLeft", "OwnershipChanged"}
    assert configuration_change(old, {"spec": {"fabrics": junk}}, "x").removed == {}
    same = {**configuration("a"), "metadata": {"managedFields": [*owners, spec, deep]}}
    assert not findings(same, same, "x")


def test_the_entries_of_a_manager_count_together() -> None:
    """One for each version of the API."""
    owners = [owner("team", "a", "b"), owner("team", "c"), owner("team")]
    old = configuration("a", "b", "c", owners=owners)
    text = only(findings(old, configuration("x"), "team"), "FabricsRemovedByApply")
    assert text.startswith("field manager team removes a, b, c, ")


def test_many_managers_and_many_removed_fabrics_are_linear() -> None:
    """Twice as many take twice as many steps."""

    def steps(count: int) -> int:
        names = [f"f{number}" for number in range(count)]
        owners = [owner(f"m{number}", names[number]) for number in range(count)]
        change = configuration_change(configuration("x"), configuration(*names, owners=owners), "m")
        return executed_lines(lambda: [*change_findings(change)])

    assert steps(200) < MAX_LINES_RATIO * steps(100)


def test_names_of_any_length_are_cut() -> None:
    """No name longer than 63 characters can be stored, nor a manager longer than 128."""
    old = configuration("n" * 9999, "m" * 9999, owners=[owner("a" * 9999, "x", "n" * 9999)])
    for finding in findings(old, configuration("x"), "k" * 9999, **{"n" * 63: 1}):
        assert len(finding.text) < 400


def test_a_change_is_json() -> None:
    """The server sends it to the worker."""
    change = configuration_change(configuration("b"), configuration("a"), "x")
    assert ConfigurationChange(**json.loads(json.dumps(change._asdict()))) == change
    assert change == ("x", False, {"a": 0}, [], [])


def test_each_warning_has_its_own_code() -> None:
    """Each is explained by `rdma-webhook why CODE`."""
    assert len({code.code for code in CODES}) == len(CODES) == 5
