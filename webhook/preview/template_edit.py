"""What of the decisions on a template's pods can be written into the template.

Where a controller adds to its pods, the operations on them are made again on the template as far as
they have a place there (workloads/transfer), and jsonpatch proves the result as it proves a pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from webhook.model.decision import Decision, PatchOp
from webhook.model.pod import PodManifest
from webhook.preview.patches import applied, proven
from webhook.preview.workloads.controllers import live_pods
from webhook.preview.workloads.templates import Template
from webhook.preview.workloads.transfer import transferred


class TemplateEdit(NamedTuple):
    """The operations on a template, and what is left to admission."""

    ops: tuple[PatchOp, ...]  #: with paths below the template
    pod: PodManifest  #: the template with the operations, which jsonpatch applied
    held: tuple[str, ...] = ()  #: the mutations of which a part has no place there


def template_edit(
    template: Template,
    decisions: Sequence[Decision],
    decide_on: Callable[[PodManifest], Decision],
) -> TemplateEdit:
    """Return what can be written into a template, given the decisions on its live pods in order.

    If a controller makes several kinds of pods from one template, each is decided on again with
    what was written for those before it, so that nothing is written twice. Raises
    UnprovenPatchError.

    The status is left out: it tells what was done to one pod at its admission, by one
    configuration. In a template it would soon be stale, and its pods would look as if the webhook
    had been called for them.
    """
    if template.bare:
        return _spec_edit(template, *decisions)
    lives = live_pods(template)
    if len(lives) == 1 and lives[0].pod is template.pod:
        ops = tuple(_edits(decisions[0]))
        return TemplateEdit(ops, applied(template.pod, ops))
    pod, all_ops, held = template.pod, list[PatchOp](), dict[str, None]()
    for index, decision in enumerate(decisions):
        live = live_pods(template._replace(pod=pod))[index]
        again = decide_on(live.pod) if index else decision
        made = transferred(pod, live.pod, _edits(again))
        pod = proven(pod, made.ops, made.pod)
        all_ops += made.ops
        held.update(dict.fromkeys(_mutations(again, made.held)))
    return TemplateEdit(tuple(all_ops), pod, tuple(held))


def _spec_edit(template: Template, decision: Decision) -> TemplateEdit:
    """Edit a pod spec without metadata: there is no place for mutations that annotate the pod."""
    edits = _edits(decision)
    annotating = set(_mutations(decision, [op for op in edits if not op["path"].startswith(_SPEC)]))
    left = [op for one in decision.outcomes if one.mutation in annotating for op in one.ops]
    kept = [op for op in edits if not any(op is one for one in left)]
    made = transferred(template.pod, template.pod, kept)
    ops: list[PatchOp] = [{**op, "path": op["path"].removeprefix(_SPEC[:-1])} for op in made.ops]
    spec = proven(template.pod["spec"], ops, made.pod["spec"])
    return TemplateEdit(tuple(ops), spec, tuple(sorted(annotating)))


_SPEC = "/spec/"


def _edits(decision: Decision) -> list[PatchOp]:
    """List the operations of the outcomes, which are the patch without the status."""
    return [op for one in decision.outcomes for op in one.ops] if decision.patch else []


def _mutations(decision: Decision, held: Sequence[PatchOp]) -> Iterator[str]:
    """Name the mutations that these operations belong to."""
    for outcome in decision.outcomes:
        if any(op is one for op in outcome.ops for one in held):
            yield outcome.mutation
