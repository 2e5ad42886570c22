"""Apply the patches of a document's pods to its value, for the YAML editor.

Only the nodes along the edited paths are copied. So a part without a patch stays the same object,
and the editor can skip it. A node that an anchor and its aliases share is copied where one of them
is patched, instead of being patched for all of them. (With jsonpatch, two pods that share a list
of variables would each get our variables twice.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.decision.draft import Draft
from webhook.decision.outcome import PatchOp
from webhook.pod.path import Path


def patched(value: Any, edits: Sequence[tuple[Path, Sequence[PatchOp]]]) -> Any:
    """Return the value with all patches applied; `edits` pairs each pod's path with its patch."""
    draft = Draft(value)
    for base, ops in edits:
        for op in ops:
            _apply(draft, base, op)
    return draft.pod


def _apply(draft: Draft, base: Path, op: PatchOp) -> None:
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in op["path"].split("/")[1:]]
    path = base
    for token in tokens[:-1]:
        path = (*path, int(token) if isinstance(draft.get(path), list) else token)
    last = tokens[-1]
    listed = isinstance(draft.get(path), list)
    if op["op"] == "add" and listed and last == "-":
        draft.append(path, op["value"])
    elif op["op"] == "add" and listed:
        draft.insert(path, int(last), op["value"])
    elif op["op"] == "add":
        draft.set((*path, last), op["value"])
    elif op["op"] == "replace":
        draft.replace((*path, int(last) if listed else last), op["value"])
    else:
        draft.remove((*path, int(last) if listed else last))
