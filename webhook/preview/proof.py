"""An independent proof of our operations: jsonpatch applies them, and must come to the same pod.

`decide` edits a draft and records the operations as it goes; the API server gets the operations
alone. The pod that a preview shows is therefore what jsonpatch, which is not ours, makes of the pod
that came in, as the API server would. Where that is not the pod of the decision, or not what stands
in the rewritten document, there is a defect, and no preview.
"""

from __future__ import annotations

import json
from typing import Any

import jsonpatch

from webhook.decision.outcome import Decision
from webhook.pod.manifest import PodManifest
from webhook.yamltext.values import same_json


class UnprovenPatchError(Exception):
    """A defect of ours: the operations do not make the pod that was decided on."""


def proven_pod(pod: PodManifest, decision: Decision) -> PodManifest:
    """Return the pod as jsonpatch makes it of `pod` with the operations of the decision.

    Raises UnprovenPatchError if that is not the decision's pod, and jsonpatch's errors for
    operations that do not apply.
    """
    if not decision.patch:
        made = pod
    else:
        # jsonpatch edits in place, so that nothing may be shared, as aliases of YAML are.
        unshared = json.loads(json.dumps(pod, ensure_ascii=False))
        made = jsonpatch.JsonPatch(decision.patch).apply(unshared, in_place=True)
    prove(made, decision.pod)
    return made


def prove(made: PodManifest, other: Any) -> None:
    """Raise UnprovenPatchError if another pod is not the one that jsonpatch made."""
    if not same_json(made, other):
        raise UnprovenPatchError(
            "the operations of the patch do not make the pod that was decided on"
        )
