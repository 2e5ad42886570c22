"""The patches of a document's pods, applied to its value for the YAML editor.

`Draft` is the one of `webhook.decide`: it edits any document in the same way as a pod. Only the
nodes along the edited paths are copied. So a part without a patch stays the same object,
and the editor can skip it. If an anchor and its aliases share a node, a patch of one copies the
node, so that the others stay as they are. (With jsonpatch, two pods that share a list of variables
would each get our variables twice.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from webhook.decide.draft import Draft
from webhook.model.decision import PatchOp
from webhook.model.pod import CONTAINER_FIELDS, Path, PodManifest, pointer_steps


def apply_patches(
    value: PodManifest, edits: Sequence[tuple[Path, Sequence[PatchOp]]]
) -> PodManifest:
    """Return the value with all patches applied; `edits` pairs each pod's path with its patch."""
    draft = Draft(value)
    for base, ops in edits:
        for op in ops:
            apply_operation(draft, edited_path(draft, op, base), op)
    return draft.pod


def edited_path(draft: Draft, op: PatchOp, base: Path = ()) -> Path:
    """Return the path that an operation edits, with numbers as the steps into lists.

    The last step is "-" if the operation appends to a list.
    """
    path = base
    for step in pointer_steps(op["path"]):
        is_list = isinstance(draft.get(path), list)
        path = (*path, int(step) if is_list and step != "-" else step)
    return path


def apply_operation(draft: Draft, path: Path, op: PatchOp) -> None:
    """Apply one operation at the path that `edited_path` returns for it."""
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


# Transfer the patch of a controller's pod to its template.
#
# A controller adds to its pods, so an operation on a pod may have no place in the template: it
# edits a command that the controller wrote, say. Such an operation stays with admission. All
# others are repeated on the template, by a draft that records them anew: a list to append to may
# be missing there.


class TemplatePatch(NamedTuple):
    """The part of a pod's patch that has a place in the template."""

    ops: tuple[PatchOp, ...]  #: with paths below the template
    patched_template: PodManifest  #: the template with these operations applied
    deferred: tuple[PatchOp, ...]  #: the operations left to admission, with the pod's paths


def transfer_to_template(
    template: PodManifest, controller_pod: PodManifest, ops: Iterable[PatchOp]
) -> TemplatePatch:
    """Repeat the operations on a controller's pod on its template, where they have a place.

    Both get the same operations in the same order, so that an index into a shared command refers
    to the same word.
    """
    pod_draft, template_draft = Draft(controller_pod), Draft(template)
    deferred: list[PatchOp] = []
    for op in ops:
        path = edited_path(pod_draft, op)
        if _is_shared(pod_draft, template_draft, path):
            apply_operation(template_draft, path, op)
        else:
            deferred.append(op)
        apply_operation(pod_draft, path, op)
    return TemplatePatch(tuple(template_draft.ops), template_draft.pod, tuple(deferred))


def _is_shared(pod_draft: Draft, template_draft: Draft, path: Path) -> bool:
    """Return whether the template has the same value at the path that an operation edits."""
    if len(path) > len(_CONTAINER_PATH) and path[1] in CONTAINER_FIELDS:
        container = path[: len(_CONTAINER_PATH)]
        name = (*container, "name")
        if template_draft.get(container) is None or pod_draft.get(name) != template_draft.get(name):
            return False
    # After the end of a list, "-", neither has a value, so both may be appended to.
    edited = path[:-1] if isinstance(path[-1], int) else path
    return bool(pod_draft.get(edited) == template_draft.get(edited))


#: The form of a container's path.
_CONTAINER_PATH = ("spec", "containers", 0)
