"""Tests of patching documents whose pods may share parts, as YAML aliases do."""

from __future__ import annotations

from typing import Any

import jsonpatch

from webhook.model.decision import PatchOp
from webhook.model.pod import Path
from webhook.preview.workloads.patch import apply_patches
from webhook.text.yaml.documents import read_documents

TWO_PODS = """\
kind: List
items:
- spec:
    containers:
    - name: a
      env: &shared
      - name: HOME
        value: /root
- spec:
    containers:
    - name: b
      env: *shared
"""
VARIABLE: PatchOp = {
    "op": "add",
    "path": "/spec/containers/0/env/-",
    "value": {"name": "NCCL_DEBUG", "value": "WARN"},
}
CHANGES: list[tuple[Path, list[PatchOp]]] = [(("items", 0), [VARIABLE]), (("items", 1), [VARIABLE])]


def names(value: Any) -> list[list[str]]:
    """List the names of the variables of each pod."""
    pods = value["items"]
    return [[variable["name"] for variable in pod["spec"]["containers"][0]["env"]] for pod in pods]


def test_two_pods_that_share_an_anchor_each_get_a_variable_once() -> None:
    """Shared parts are copied, and the original document does not change."""
    (document,) = read_documents(TWO_PODS)
    assert names(apply_patches(document.value, CHANGES)) == [["HOME", "NCCL_DEBUG"]] * 2
    assert names(document.value) == [["HOME"]] * 2


def test_in_place_they_would_get_it_twice() -> None:
    """This is why `apply_patches` does not use jsonpatch, which edits the one list of both pods."""
    (document,) = read_documents(TWO_PODS)
    ops = [
        {**op, "path": f"/items/{index}{op['path']}"} for (_, index), ops in CHANGES for op in ops
    ]
    patched_value = jsonpatch.apply_patch(document.value, ops, in_place=True)
    assert names(patched_value) == [["HOME", "NCCL_DEBUG", "NCCL_DEBUG"]] * 2


def test_unpatched_parts_are_not_copied() -> None:
    """The text editor skips parts that are the same object."""
    value: dict[str, Any] = {"a": {"x": 1}, "b": [{"y": [1]}, {"z": 2}]}
    patched_value = apply_patches(value, [(("b", 0), [{"op": "add", "path": "/y/0", "value": 0}])])
    assert patched_value == {"a": {"x": 1}, "b": [{"y": [0, 1]}, {"z": 2}]}
    assert patched_value["a"] is value["a"]
    assert patched_value["b"][1] is value["b"][1]
