"""An independent proof of the patch: jsonpatch applies it, and the result must be the same pod.

`decide` edits a draft and records each edit as an operation; the API server receives only the
operations. So a preview shows the pod that results when jsonpatch, an independent library, applies
them to the original pod, as the API server would. If the result differs from the decision's pod, or
from the pod in the rewritten document, the webhook has a defect, and there is no preview.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jsonpatch

from webhook.model.decision import Decision, PatchOp
from webhook.model.pod import PodManifest
from webhook.text.yaml.values import same_json


class UnprovenPatchError(Exception):
    """A defect of the webhook: applying the operations does not give the decision's pod."""


def proven_pod(pod: PodManifest, decision: Decision) -> PodManifest:
    """Apply the decision's operations to `pod` with jsonpatch, and return the result.

    Raises UnprovenPatchError if that is not the decision's pod, and jsonpatch's errors for
    operations that cannot be applied.
    """
    return proven(pod, decision.patch, decision.pod)


def proven(pod: PodManifest, ops: Sequence[PatchOp], meant: Any) -> PodManifest:
    """Apply operations to `pod` with jsonpatch, and return the result, which must be `meant`.

    Raises the same errors as `proven_pod`.
    """
    made = applied(pod, ops)
    prove(made, meant)
    return made


def applied(pod: PodManifest, ops: Sequence[PatchOp]) -> PodManifest:
    """Apply operations with jsonpatch to a copy; without operations, return the pod itself."""
    if not ops:
        return pod
    # jsonpatch edits in place, so no two parts may be the same object, as YAML's aliases are.
    unshared = json.loads(json.dumps(pod, ensure_ascii=False))
    made: PodManifest = jsonpatch.JsonPatch(ops).apply(unshared, in_place=True)
    return made


def prove(made: PodManifest, other: Any) -> None:
    """Raise UnprovenPatchError if `other` is not the pod that jsonpatch made."""
    if not same_json(made, other):
        raise UnprovenPatchError(
            "the operations of the patch do not produce the pod that was decided on"
        )
