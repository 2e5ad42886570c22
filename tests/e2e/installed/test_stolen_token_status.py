"""The form of what a thief with a replica's token may write into the status.

The definition of the kind allows any items, since the API server would compare the errors of
thousands with each other; the policy refuses at the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.fabrics import PATH
from tests.cluster.install import NAME, Webhook
from tests.e2e.documents import Document
from tests.e2e.installed.test_stolen_token import MERGE, STATUS, Thief
from tests.e2e.wire import send
from tests.waiting import until

APPLY = "application/apply-patch+yaml"
MANY = 3000


@pytest.fixture(scope="module")
def thief(webhook: Webhook) -> Thief:
    """Steal a token."""
    return Thief(webhook)


def condition(**changed: object) -> Document:
    """Return a condition as a replica writes it, except for some fields; None leaves one out."""
    fields = {
        "type": "Ready",
        "status": "True",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "R",
        "message": "",
        **changed,
    }
    return {name: value for name, value in fields.items() if value is not None}


def fabric(**changed: object) -> Document:
    """Return a fabric as a replica writes it, except for some fields; None leaves one out."""
    fields = {
        "name": "ib",
        "nodes": 1,
        "unavailableNodes": 1,
        "gpus": 8,
        "resources": [{"name": "rdma/ib", "allocatable": 63, "nodes": 1}],
        "problems": ["1 node is cordoned (n1)"],
        "notes": ["a taint"],
        **changed,
    }
    return {name: value for name, value in fields.items() if value is not None}


#: Values of the wrong form, of which a thief may send thousands.
INVALID: dict[str, Any] = {
    "conditions": {},
    "conditions of numbers": 1,
    "conditions of nulls": None,
    "conditions of lists": ["type"],
    "fabrics": {},
    "fabrics of numbers": 1,
    "fabrics of texts for numbers": {"name": "ib", "nodes": "x", "gpus": "y"},
    "kept": {},
    "kept of numbers": 1,
}


@pytest.mark.parametrize("what", INVALID)
@pytest.mark.parametrize("kind", [MERGE, APPLY])
def test_many_items_of_a_wrong_form_are_one_error(thief: Thief, what: str, kind: str) -> None:
    """The answer names one error: the API server has no others to compare."""
    field = what.partition(" ")[0]
    body: Document = {"apiVersion": "rdma.lab/v1alpha1", "kind": "FabricConfiguration"}
    body |= {"metadata": {"name": "default"}, "status": {field: [INVALID[what]] * MANY}}
    path = f"{STATUS}?dryRun=All&force=true&fieldManager={NAME}"
    response = thief.request("PATCH", path, body, kind)
    assert response.code in {403, 422}, response
    assert len(json.dumps(response.object)) < 2000, response


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("conditions", [["type"] * MANY]),
        ("fabrics", [["name"] * MANY]),
        ("fabrics", [{"name": "ib", "resources": [["name"] * MANY]}]),
        ("replicas", ["seen"] * MANY),
    ],
    ids=["conditions", "fabrics", "resources", "replicas"],
)
def test_a_list_of_names_is_no_map_with_these_fields(thief: Thief, field: str, value: Any) -> None:
    """The policy refuses the type. Reading each name first would take time that is quadratic."""
    written = {thief.pod: value} if field == "replicas" else value
    change = {"op": "add", "path": f"/status/{field}", "value": written}
    response = thief.send("PATCH", STATUS, [change], "application/json-patch+json")
    assert response.code in {403, 422}, response
    assert " may write only " in response.object["message"]


@pytest.mark.parametrize("value", [{}, 1, []], ids=str)
def test_many_replicas_of_a_wrong_form_are_one_error(thief: Thief, value: object) -> None:
    """Their number alone is refused by the definition."""
    entries = {f"{number:x}": value for number in range(1, MANY)}
    change = {"op": "add", "path": "/status/replicas", "value": entries}
    response = thief.send("PATCH", STATUS, [change], "application/json-patch+json")
    assert response.code in {403, 422}, response
    assert len(json.dumps(response.object)) < 2000, response


@pytest.mark.parametrize(
    "fields",
    [
        {"type": None},
        {"type": 1},
        {"status": None},
        {"status": "Maybe"},
        {"status": True},
        {"reason": None},
        {"reason": {"a": "b"}},
        {"message": None},
        {"message": ["x"]},
        {"observedGeneration": "1"},
        {"lastTransitionTime": None},
        {"lastTransitionTime": 1},
        {"lastTransitionTime": "9999-12-31T23:59:59-23:00"},
        {"lastTransitionTime": "2026-13-01T00:00:00Z"},
        {"other": "x"},
    ],
    ids=str,
)
def test_a_condition_has_the_fields_of_the_definition(thief: Thief, fields: Document) -> None:
    """`kubectl wait` and people read them."""
    response = thief.send("PATCH", STATUS, {"status": {"conditions": [condition(**fields)]}}, MERGE)
    assert response.code in {403, 422}, response
    assert "rdma-webhook-guard-status" in response.refusal


@pytest.mark.parametrize(
    "fields",
    [
        {"name": None},
        {"name": 1},
        {"nodes": "1"},
        {"unavailableNodes": 1.5},
        {"gpus": {}},
        {"resources": {"name": "rdma/ib"}},
        {"resources": {}},
        {"resources": [{}]},
        {"resources": ["name"]},
        {"resources": [{"name": 1}]},
        {"resources": [{"name": "r", "nodes": "1"}]},
        {"resources": [{"name": "r", "allocatable": []}]},
        {"resources": [{"name": "r", "other": 1}]},
        {"problems": [1]},
        {"problems": [["nested"]]},
        {"problems": {"a": "b"}},
        {"notes": [None]},
        {"notes": "x"},
        {"notes": ["x"] * 1001},
        {"other": "x"},
    ],
    ids=lambda fields: str(fields)[:40],
)
def test_a_fabric_has_the_fields_of_the_definition(thief: Thief, fields: Document) -> None:
    """People read them, and nothing can be hidden in others."""
    response = thief.send("PATCH", STATUS, {"status": {"fabrics": [fabric(**fields)]}}, MERGE)
    assert response.code in {403, 422}, response
    assert "rdma-webhook-guard-status" in response.refusal


#: One of each kind of hidden characters.
HIDDEN = "\x1b\x7f\x9b\u202e\u200b\u2028\u034f\u115f\u17b5\u180b\u2800\u3164\ufe0f\uffa0\U000e0100"


@pytest.mark.parametrize(
    "place",
    [
        lambda text: {"conditions": [condition(type=text)]},
        lambda text: {"conditions": [condition(reason=text)]},
        lambda text: {"conditions": [condition(message=text)]},
        lambda text: {"fabrics": [fabric(name=text)]},
        lambda text: {"fabrics": [fabric(problems=["a", text])]},
        lambda text: {"fabrics": [fabric(notes=["a", text])]},
        lambda text: {"fabrics": [fabric(resources=[{"name": text}])]},
        lambda text: {"fabricNames": text},
    ],
    ids=["type", "reason", "message", "fabric", "problem", "note", "resource", "names"],
)
def test_each_text_is_visible(thief: Thief, place: Callable[[str], Document]) -> None:
    """A terminal takes no command from it, and nothing in it is invisible or reordered."""
    response = thief.send("PATCH", STATUS, {"status": place("a\n\u00e9 \N{GRINNING FACE}")}, MERGE)
    assert response.code == 200, response
    for character in HIDDEN:
        response = thief.send("PATCH", STATUS, {"status": place(f"a{character}b")}, MERGE)
        refused = (response.code, "visible text" in response.refusal)
        assert refused == (403, True), (character, response)


def test_a_status_as_the_replicas_write_it_is_taken(thief: Thief) -> None:
    """Also one as large as they write it, and one without the fields that may be missing."""
    sparse = fabric(nodes=None, unavailableNodes=None, gpus=None, resources=None, problems=None)
    rows = [fabric(name=f"f{number:03}") for number in range(1000)]
    conditions = [condition(type=letter, message="x" * 4096) for letter in "abcd"]
    for status in (
        {"conditions": [condition(observedGeneration=None)], "fabrics": [{**sparse, "notes": []}]},
        {"conditions": conditions * 4, "fabrics": rows[:600]},
        {"fabrics": [{"name": row["name"]} for row in rows]},
    ):
        response = thief.send("PATCH", STATUS, {"status": status}, MERGE)
        assert response.code == 200, response
    for status in ({"conditions": conditions * 5}, {"fabrics": [{"name": "a"}] * 1001}):
        response = thief.send("PATCH", STATUS, {"status": status}, MERGE)
        assert (response.code, "rdma-webhook may write only" in response.refusal) == (403, True)


def test_a_status_of_any_form_is_replaced(webhook: Webhook) -> None:
    """An administrator, or another version, may have written one; replicas still write theirs."""

    def status() -> Document:
        return json.loads(webhook.read(PATH)).get("status", {})  # type: ignore[no-any-return]

    spec = json.loads(webhook.read(PATH))["spec"]
    until(lambda: status().get("kept"))
    stored = {
        "conditions": [1, None, {"type": "Ready", "status": "True", "lastTransitionTime": 5}],
        "fabrics": [{"name": 7, "problems": {}}],
        "kept": ["x", {"spec": 1}],
        "replicas": {"gone": 3, "x": {"version": []}},
    }
    response = send(webhook.cluster, "PATCH", STATUS, {"status": stored}, MERGE)
    assert response.code == 200, response

    def is_replaced() -> bool:
        now = status()
        if any(now.get(field) == value for field, value in stored.items()):
            return False
        conditions = {condition["type"] for condition in now["conditions"]}
        specs = [kept["spec"] for kept in now["kept"]]
        # The entries of pods that ended in the last minutes stay, too.
        names = set(now["replicas"])
        written = set(webhook.replicas()) <= names and names.isdisjoint(("gone", "x"))
        return conditions >= {"Ready", "Valid", "Active"} and specs == [spec] and written

    until(is_replaced, lambda: (webhook.replicas(), status()))
