"""A preview shows the pod that another library makes with the operations, or nothing."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import pytest

from webhook.config import EXAMPLE
from webhook.decide import decide
from webhook.decide.reasons import PATCHED
from webhook.model.decision import Decision, PatchOp
from webhook.model.fabric import Fabric, RdmaResource, build_configuration
from webhook.model.pod import PodManifest
from webhook.preview import dry_run, patches
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.formats import HTTP_FORMATS
from webhook.preview.patches import PatchMismatchError, patch_pod, rewrite
from webhook.preview.report.json import report_form
from webhook.preview.worker.operations import Operations
from webhook.text.yaml.documents import read_documents

OPTIONS = PreviewOptions(
    configuration=build_configuration(
        (Fabric(name="ib", resources=(RdmaResource(name="rdma/hca"),)),)
    ),
    enable=True,
)
SHARING = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: a}
  spec:
    containers:
    - name: a
      resources: {limits: &limits {nvidia.com/gpu: 1}, requests: *limits}
      env: &env [{name: A, value: x}]
    - name: b
      resources: {limits: *limits}
      env: *env
"""


def decided(pod: PodManifest, *ops: PatchOp) -> Decision:
    """Make a decision with this pod and these operations, which may not match."""
    return Decision(allowed=True, reason=PATCHED, pod=pod, patch=ops)


def containers_of(value: Any) -> set[int]:
    """Return the ids of all mappings and lists in a value."""
    if isinstance(value, dict):
        return {id(value)}.union(*map(containers_of, value.values()))
    return {id(value)}.union(*map(containers_of, value)) if isinstance(value, list) else set()


def test_the_shown_pod_is_made_by_jsonpatch() -> None:
    """It is made from the input and the patch, and shares nothing with the decision's pod."""
    (document,) = read_documents(SHARING)
    report = preview_documents([document], OPTIONS)
    (preview,) = report.previews
    before = json.loads(json.dumps(document.value["items"][0]))
    (decision,) = report_form(report)["decisions"]

    assert preview.decision.patch
    assert decision["object"] == jsonpatch.apply_patch(before, preview.decision.patch)
    assert not containers_of(decision["object"]) & containers_of(preview.decision.pod)
    assert document.value == read_documents(SHARING)[0].value


def test_a_pod_without_a_patch_is_shown_as_it_came() -> None:
    """There is nothing to prove, so nothing is copied."""
    (document,) = read_documents("apiVersion: v1\nkind: Pod\nspec: {containers: []}\n")
    report = preview_documents([document], PreviewOptions(configuration=OPTIONS.configuration))
    assert report.previews[0].pod is document.value


@pytest.mark.parametrize(
    ("op", "pod"),
    [
        ({"op": "add", "path": "/a", "value": 1}, {"a": 2}),
        ({"op": "add", "path": "/a", "value": 1}, {"a": True}),
        ({"op": "add", "path": "/a", "value": 1}, {"a": 1, "b": 1}),
        ({"op": "add", "path": "/a", "value": 1}, {}),
    ],
    ids=["another value", "another type", "more", "less"],
)
def test_operations_that_make_another_pod_are_a_defect(op: PatchOp, pod: PodManifest) -> None:
    """Values are compared with their types: `true`, `1` and `1.0` differ."""
    with pytest.raises(PatchMismatchError):
        patch_pod({}, decided(pod, op))


def test_a_change_without_an_operation_is_a_defect() -> None:
    """The API server would not make such a change."""
    with pytest.raises(PatchMismatchError):
        patch_pod({}, decided({"a": 1}))


@pytest.mark.parametrize(
    "op",
    [
        {"op": "remove", "path": "/a"},
        {"op": "replace", "path": "/a", "value": 1},
        {"op": "add", "path": "/a/b", "value": 1},
    ],
    ids=lambda op: str(op["op"]),
)
def test_operations_that_do_not_apply_are_a_defect(op: PatchOp) -> None:
    """The API server would reject the pod."""
    with pytest.raises((jsonpatch.JsonPatchException, jsonpatch.JsonPointerException)):
        patch_pod({}, decided({"a": 1}, op))


def test_a_rewritten_document_holds_the_same_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own code makes the editor's value, so it is compared with the proven one."""
    documents = read_documents(SHARING)
    report = preview_documents(documents, OPTIONS)
    assert rewrite(documents, report)
    monkeypatch.setattr(patches, "apply_patches", lambda value, _: value)
    with pytest.raises(PatchMismatchError):
        rewrite(documents, report)


@pytest.mark.parametrize("name", [output.name for output in HTTP_FORMATS])
def test_the_worker_reports_a_defect(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is a 500 with a trace for the log, and shows no pod at all."""

    def broken(*given: Any) -> Any:
        return decide(*given)._replace(pod={"metadata": {"name": "hunter2"}})

    monkeypatch.setattr(dry_run, "decide", broken)
    worker = Operations()
    worker.answer({"operation": "configure"}, EXAMPLE.read_bytes())
    head = {"namespace": "a", "labels": {}, "enable": True, "max_pods": 9, "example": False}
    answer = worker.answer({"operation": "preview", "format": name, **head}, SHARING.encode())

    assert (answer.head["status"], answer.head["error"]) == (500, "PatchMismatchError")
    assert any("patches.py" in line for line in answer.head["trace"])
    assert (answer.body, "hunter2" in str(answer)) == (b"", False)
