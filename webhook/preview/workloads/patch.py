"""Apply the patches of a document's pods to its value, for the YAML editor.

Only the nodes along the edited paths are copied. So a part without a patch stays the same object,
and the editor can skip it. A node that an anchor and its aliases share is copied where one of them
is patched, instead of being patched for all of them. (With jsonpatch, two pods that share a list
of variables would each get our variables twice.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.decide.draft import Draft
from webhook.model.decision import PatchOp
from webhook.model.path import Path


def patched(value: Any, edits: Sequence[tuple[Path, Sequence[PatchOp]]]) -> Any:
    """Return the value with all patches applied; `edits` pairs each pod's path with its patch."""
    draft = Draft(value)
    for base, ops in edits:
        for op in ops:
            apply(draft, place_of(draft, op, base), op)
    return draft.pod


def place_of(draft: Draft, op: PatchOp, base: Path = ()) -> Path:
    """Return the path that an operation edits, with numbers as the steps into lists.

    The last step is "-" if the operation appends to a list.
    """
    path = base
    for token in op["path"].split("/")[1:]:
        step = token.replace("~1", "/").replace("~0", "~")
        listed = isinstance(draft.get(path), list)
        path = (*path, int(step) if listed and step != "-" else step)
    return path


def apply(draft: Draft, path: Path, op: PatchOp) -> None:
    """Apply one operation at the path that `place_of` returns for it."""
    if op["op"] == "remove":
        draft.remove(path)
    elif op["op"] == "replace":
        draft.replace(path, op["value"])
    elif path[-1] == "-" and not isinstance(draft.get(path[:-1]), dict):
        draft.append(path[:-1], op["value"])
    elif isinstance(path[-1], int):
        draft.insert(path[:-1], path[-1], op["value"])
    else:
        draft.set(path, op["value"])
