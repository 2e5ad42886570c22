"""`/validate`: reviews of FabricConfigurations, valid and spoilt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from tests.fuzz.dice import Dice
from tests.fuzz.laws.validations import VALIDATE_LAWS, Validated
from tests.fuzz.pods import UID, sized_text
from tests.fuzz.spoil import perhaps_corrupted_json, spoilt
from tests.fuzz.target import Parts, Target
from tests.fuzz.targets.fabric_files import configuration
from webhook.config.model import API_VERSION

_GROUP, _, _VERSION = API_VERSION.partition("/")


def build(dice: Dice, *, large: bool) -> Parts:
    """Make a review of an object: new, changed, or only its metadata changed."""
    item = configuration(dice, large=large, spoil=dice.one_in(2))
    if isinstance(item, dict):
        item.setdefault("metadata", {"name": "default", "managedFields": [{"manager": "x"}]})
    review: Any = _review(dice, item)
    if not large and dice.one_in(8):
        review = spoilt(dice, orjson.loads(orjson.dumps(review)))
    body = (
        perhaps_corrupted_json(dice, review)
        if not large and dice.one_in(8)
        else orjson.dumps(review)
    )
    return {"body": body}


def _review(dice: Dice, item: Any) -> Any:
    kind = {"group": _GROUP, "version": _VERSION, "kind": "FabricConfiguration"}
    request: dict[str, Any] = {
        "uid": UID,
        "kind": kind,
        "name": "default",
        "operation": "CREATE",
        "object": item,
        "oldObject": None,
        "dryRun": dice.one_in(4),
    }
    if dice.one_in(3):
        old = {"spec": {"fabrics": []}} if dice.one_in(2) else _predecessor(dice, item)
        request |= {"operation": "UPDATE", "oldObject": old}
        request["options"] = {"fieldManager": dice.pick(_MANAGERS)}
    if dice.one_in(20):
        request |= dice.pick(_OTHER_REQUESTS)
    if dice.one_in(20):
        request.update([sized_text(dice)])
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


_MANAGERS = ("kubectl", "team", "")


def _predecessor(dice: Dice, item: Any) -> Any:
    """Return the same object, or another one whose fabrics have owners."""
    if dice.one_in(2):
        return item
    names = ("ib", "roce", "other")
    keys = [f'k:{{"name":"{name}"}}' for name in names]
    owners = [
        {
            "manager": dice.pick(_MANAGERS),
            "operation": dice.pick(("Apply", "Update")),
            "fieldsV1": {"f:spec": {"f:fabrics": {dice.pick(keys): {"f:hcas": {}}}}},
        }
        for _ in range(3)
    ]
    spec = {"fabrics": [{"name": name} for name in names]}
    return {"metadata": {"name": "default", "managedFields": owners}, "spec": spec}


#: Requests that the API server need not send, and an object that is being deleted.
_OTHER_REQUESTS: tuple[dict[str, Any], ...] = (
    {"operation": "DELETE", "object": None},
    {"operation": "CONNECT"},
    {"subResource": "status"},
    {"kind": {"group": "", "version": "v1", "kind": "Pod"}},
    {"object": {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "operation": "UPDATE"},
)


def observe(parts: Parts) -> Validated:
    """Send the body to `/validate`."""
    return Validated(parts["body"])


def codes(observed: Validated) -> Iterable[str]:
    """Yield the HTTP status, and the result for the object."""
    yield f"HTTP {observed.answer.status}"
    if observed.response:
        outcome = "allowed" if observed.response["allowed"] else "rejected"
        yield f"{outcome} by the rules" if observed.judged else f"{outcome} unchecked"
        if observed.judged and observed.response.get("warnings"):
            yield "with warnings"


TARGET = Target(
    name="validate",
    build=build,
    observe=observe,
    laws=VALIDATE_LAWS,
    codes=codes,
    expected=frozenset(
        {
            *("HTTP 200", "HTTP 400", "allowed by the rules", "rejected by the rules"),
            *("allowed unchecked", "rejected unchecked", "with warnings"),
        }
    ),
    weight=1,
)
