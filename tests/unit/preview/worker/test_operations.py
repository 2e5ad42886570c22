from __future__ import annotations

import gc
import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.fabrics_file import single_fabric
from webhook.config import EXAMPLE
from webhook.config.load import parse_object
from webhook.errors import DocumentError
from webhook.preview import dry_run
from webhook.preview.worker import __main__ as worker
from webhook.preview.worker import operations
from webhook.preview.worker.operations import TOO_LARGE, TOO_MUCH_MEMORY, Operations, Reply

FABRICS = single_fabric("ib", "nvidia.com/gpu", "rdma/hca").encode()
POD = b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a}]}\n"
SECRET = "hunter2"


def _ask(body: bytes = POD, **head: Any) -> Reply:
    there = Operations()
    assert there.answer({"operation": "configure"}, FABRICS).head["status"] == 200
    request = {
        "operation": "preview",
        "namespace": "a",
        "labels": {},
        "enable": True,
        "max_pods": 9,
        "example": False,
    }
    return there.answer({**request, "format": "json", **head}, body)


def test_the_rehearsal_runs_every_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that fails with a defect imports nothing, and later no module can be imported."""
    statuses: list[object] = []

    class Recorded(Operations):
        def answer(self, head: Mapping[str, Any], body: bytes) -> Reply:
            reply = super().answer(head, body)
            statuses.append(reply.head["status"])
            return reply

    monkeypatch.setattr(worker, "Operations", Recorded)
    worker.rehearse()
    assert set(statuses) == {200, 400}
    assert statuses.count(400) == statuses.count(200) - 4  # a text that is not YAML, per format


@pytest.mark.parametrize(
    ("name", "begins"), [("json", b"{"), ("yaml", b"# warning: Pod a/a"), ("text", b"Pod a/a")]
)
def test_a_preview_has_the_requested_format(name: str, begins: bytes) -> None:
    """This holds for each format that is served."""
    answer = _ask(format=name)

    assert answer.head == {"status": 200}
    assert answer.body.startswith(begins)


def test_the_json_names_the_fabrics_of_a_bundled_example() -> None:
    """If an example is given as a file, its fabrics are still not those of a cluster.

    A cluster's object is its own, even if somebody applied an example there unchanged.
    """
    there = Operations()
    text = EXAMPLE.read_bytes()
    objects = json.dumps(yaml.safe_load(text)).encode()
    head = {"namespace": "a", "labels": {}, "enable": True, "max_pods": 9, "example": False}

    def names(fabrics: bytes, *, is_object: bool) -> object:
        there.answer({"operation": "configure", "object": is_object}, fabrics)
        answer = there.answer({"operation": "preview", "format": "json", **head}, POD)
        return json.loads(answer.body)["exampleFabrics"]

    assert names(text, is_object=False) == "v100-ib, a100-ib"
    assert names(objects, is_object=True) == ""
    assert names(text, is_object=False) == "v100-ib, a100-ib"
    assert names(FABRICS, is_object=False) == ""


def test_yaml_begins_with_warnings() -> None:
    """The warning about a rewritten document comes first, as on the command line."""
    limits = b"{name: a, resources: {limits: &x {nvidia.com/gpu: 1}, requests: *x}}"
    body = POD.replace(b"[{name: a}]", b"[" + limits + b"]") + b"unknown: *x\n"
    body = body.replace(b"{name: a}", b"{name: a, annotations: {rdma.lab/no: x}}", 1)
    first, second, *_ = _ask(body, format="yaml").body.decode().split("\n")

    assert first.startswith("# warning: body:1: rewritten without its comments and layout")
    assert second.startswith("# warning: Pod a/a: ")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "the body contains no documents"),
        (b"a: [", "body: "),
        (b"---\n".join([POD] * 10), "body: more than 9 pods"),
    ],
)
def test_a_fault_of_the_caller_is_a_sentence(body: bytes, sentence: str) -> None:
    """It is the same sentence as on the command line."""
    answer = _ask(body)

    assert (answer.head["status"], answer.body) == (400, b"")
    assert answer.head["sentence"].startswith(sentence)


def test_a_sentence_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence may quote the input, and a frame's head is limited."""
    long = DocumentError("\U0001f600" * 100_000)
    monkeypatch.setattr(operations, "read_documents", _raiser(long))

    assert len(_ask().head["sentence"]) == 4096


def _raiser(error: BaseException) -> Any:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_a_defect_is_reported_without_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log gets its type and place but no message, which could quote a pod."""
    monkeypatch.setattr(operations, "preview_documents", _raiser(ValueError(SECRET)))
    answer = _ask()

    assert (answer.head["status"], answer.head["error"]) == (500, "ValueError")
    assert any("test_operations.py" in line for line in answer.head["trace"])
    assert SECRET not in str(answer)


def test_a_defect_of_a_decision_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """If `decide` raises for one pod, nothing is shown of the other pods either."""
    monkeypatch.setattr(dry_run, "decide", _raiser(ZeroDivisionError(SECRET)))

    assert _ask().head["error"] == "ZeroDivisionError"


def test_an_unknown_request_is_a_defect() -> None:
    """Operations and formats come from fixed tables."""
    assert _ask(format="xml").head["error"] == "KeyError"
    assert Operations().answer({"operation": "eval"}, b"1").head["error"] == "KeyError"
    assert Operations().answer({}, b"").head["status"] == 500


def test_lack_of_memory_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller should send less; the next request can still work."""
    monkeypatch.setattr(operations, "read_documents", _raiser(MemoryError()))

    assert _ask().head == {"status": 413, "sentence": TOO_MUCH_MEMORY}


def test_an_answer_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server would have to hold a longer answer in memory."""
    size = len(_ask().body)
    for limit, head in (
        (size, {"status": 200}),
        (size - 1, {"status": 413, "sentence": TOO_LARGE}),
    ):
        monkeypatch.setattr(operations, "MAX_ANSWER_BYTES", limit)
        assert _ask().head == head


def test_an_object_is_read_as_json() -> None:
    """It may contain characters that YAML does not allow, and is refused as a file."""
    written = yaml.safe_load(FABRICS)
    written["metadata"] = {"name": "default"}
    written["spec"]["fabrics"][0]["env"] = {"SITE": "a\x81b"}
    text = json.dumps(written, ensure_ascii=False).encode()
    there = Operations()
    heads = [{"operation": "configure", "object": as_object} for as_object in (True, False)]

    assert [there.answer(head, text).head["status"] for head in heads] == [200, 500]
    assert there.answer(heads[0], text).head["config"] == (
        parse_object(written, "fabrics").compiled.config_hash
    )


def test_the_hash_is_that_of_the_last_configuration() -> None:
    """A configuration that cannot be used leaves the last one in place."""
    there = Operations()
    first = there.answer({"operation": "configure"}, FABRICS).head["config"]
    other = there.answer({"operation": "configure"}, FABRICS.replace(b"name: ib", b"name: ro"))
    broken = there.answer({"operation": "configure"}, b"fabrics: 7")

    assert (len(first), first != other.head["config"], broken.head["status"]) == (12, True, 500)


def test_a_validation_answers_with_a_review() -> None:
    """The head counts errors and warnings; the fabrics in use do not matter."""
    reference = {"group": "rdma.lab", "kind": "FabricConfiguration", "name": "default"}
    item = {
        "apiVersion": "rdma.lab/v1alpha1",
        "kind": "FabricConfiguration",
        "metadata": {"name": "default"},
        "spec": {"fabrics": [{"name": "ib", "hcass": []}]},
    }
    head = {"operation": "validate", "uid": "u", "object_reference": reference}
    answer = Operations().answer(head, json.dumps({"object": item, "change": None}).encode())
    response = json.loads(answer.body)["response"]
    causes = response["status"]["details"]["causes"]

    assert (answer.head["status"], response["uid"], response["allowed"]) == (200, "u", False)
    assert answer.head["errors"] == len(causes)
    assert answer.head["warnings"] == 0
    assert "spec.fabrics[0].hcass" in {cause["field"] for cause in causes}


@pytest.mark.parametrize("count", ["0", "many"])
def test_a_validation_leaves_no_garbage(count: str) -> None:
    """No error refers to the frame that has it: a cycle would keep the object in memory.

    The worker collects such garbage rarely, and an object takes some 40 times its size.
    """
    fabrics = [{"name": "ib", "resources": [{"name": "rdma/a", "count": count}]}]
    kind = {"apiVersion": "rdma.lab/v1alpha1", "kind": "FabricConfiguration"}
    item = {**kind, "metadata": {"name": "default"}, "spec": {"fabrics": fabrics}}
    head = {"operation": "validate", "uid": "u", "object_reference": {}}
    body = json.dumps({"object": item, "change": None}).encode()
    there = Operations()
    there.answer(dict(head), body)  # fills the caches
    gc.collect()
    gc.disable()
    try:
        assert there.answer(dict(head), body).head["errors"] == 1
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_the_warnings_about_a_change_come_first() -> None:
    """Each with its remedy and its code, since no other command prints them."""
    item = {
        "apiVersion": "rdma.lab/v1alpha1",
        "kind": "FabricConfiguration",
        "metadata": {"name": "default"},
        "spec": {"fabrics": [{"name": "ib", "resources": [{"name": "rdma/hca"}]}]},
    }
    change = {
        "manager": "a",
        "is_empty": False,
        "removed": {"roce": 3},
        "before": [],
        "after": [],
    }
    head = {"operation": "validate", "uid": "u", "object_reference": {}}
    body = json.dumps({"object": item, "change": change}).encode()
    answer = Operations().answer(head, body)
    warnings = json.loads(answer.body)["response"]["warnings"]

    assert warnings[0].startswith(
        "spec.fabrics: no longer has roce (3 nodes), so new pods on these"
    )
    assert warnings[1].startswith("spec.fabrics: ... ")
    assert warnings[1].endswith(
        "apply a file that contains all of the fabrics. [FabricWithNodesRemoved]"
    )
    assert warnings[2].startswith("spec.fabrics[0]")
    assert answer.head["warnings"] > 1


def test_a_validation_without_memory_has_its_own_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names a check, not a preview."""
    monkeypatch.setattr(operations, "configuration_faults", _raiser(MemoryError()))
    head = {"operation": "validate", "uid": "u", "object_reference": {}}
    answer = Operations().answer(head, b'{"object": {}}')

    assert answer.head["status"] == 413
    assert answer.head["sentence"].startswith("the check needs more than the ")
