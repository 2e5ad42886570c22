"""What somebody else added to a pod at its admission, if the verdict blames the pod for it.

Another webhook or a policy may set a variable or a user in the pod before this webhook is called,
or is called again. The verdict is then right, but its remedy is not: the template from which the
people created the pod has no such thing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from webhook.decide.examine.node_selection import SELECTOR_UNKNOWN
from webhook.decide.mutations.ipc_lock import NON_ROOT, USER_NAMESPACE
from webhook.decide.mutations.placement import MUTATION as PLACEMENT
from webhook.decide.settings.terms import OFF_VALUE_BY_VARIABLE
from webhook.decide.verdict.node_reasons import ALWAYS_EXCLUDED, EXCLUDED
from webhook.diagnose.why.comparison import Comparison, verdict_of
from webhook.diagnose.why.evidence import PodEvidence, StatusAnnotation
from webhook.diagnose.why.old_template import old_template_finding
from webhook.diagnose.why.pod_template import template_title
from webhook.diagnose.why.redecide import UnpatchedPod, pod_from_template
from webhook.diagnose.why.replacement import has_old_template
from webhook.model.finding import Code, Finding, Level
from webhook.model.pod import PodManifest, at, fields_or_empty

ADDED_AT_ADMISSION = Code(
    "AddedAtAdmission",
    "The setting that caused the verdict is not in the template that the pod was created from: "
    "another webhook or a policy added it when the pod was created.",
    "Find out which webhook or policy made the addition: `kubectl get "
    "mutatingwebhookconfigurations` and `kubectl get mutatingadmissionpolicies` list the "
    "candidates. Correct that webhook or policy, and create the pod again.",
)
CODES = (ADDED_AT_ADMISSION,)

#: Where kubectl apply keeps the manifest that it applied last.
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NAMES = frozenset(OFF_VALUE_BY_VARIABLE)
_CONTAINER_FIELDS = ("initContainers", "containers")
_USER = ("securityContext", "runAsUser")
_POD_LEAVES = (("hostUsers",), ("runtimeClassName",), _USER)
#: The remarks of the status that are about such additions, besides the verdict.
REMARKS_ON_ADDITIONS = (NON_ROOT.code, USER_NAMESPACE.code, SELECTOR_UNKNOWN.code)
#: The reasons for which the nodeSelector is to blame, if it was changed.
_OF_SELECTION = (EXCLUDED.code, ALWAYS_EXCLUDED.code)
_MAX_VALUE = 80
#: The largest number of leaves to examine, one by one.
_MAX_LEAVES = 32
_Path = tuple[str | int, ...]


class _Leaf(NamedTuple):
    """A leaf of the pod that differs from its template."""

    path: _Path
    #: For sentences: "NCCL_NET=Socket in container main".
    title: str
    #: The value in the template; None without one.
    original: object


class Additions(NamedTuple):
    """The leaves that the verdict blames."""

    titles: tuple[str, ...] = ()
    #: "the pod template of Deployment serve".
    template: str = ""
    #: Whether they are labels of the nodeSelector.
    are_labels: bool = False

    def finding(self, level: Level, evidence: PodEvidence) -> Finding:
        """Return a finding with what may have added them, or on the template that had them."""
        if has_old_template(evidence):
            return old_template_finding(evidence, level, self.titles)
        authors = label_authors(evidence) if self.are_labels else _AUTHORS
        text = (
            f"{', '.join(self.titles)}: not in {self.template}, so {authors} added it when the pod "
            "was created."
        )
        remedy = mutators_remedy(evidence, are_labels=self.are_labels)
        return ADDED_AT_ADMISSION.finding(level, text, remedy)


NOTHING_ADDED = Additions()
_AUTHORS = "another webhook or a policy"


def additions_of(evidence: PodEvidence, comparison: Comparison) -> Additions:
    """Return what was added to a pod and is the reason for its verdict; never raise.

    For a pod with an old template: what its present template does not have.
    """
    status, verdict = evidence.status, comparison.verdict_now
    if status is None or status.rdma not in ("no", "unsure") or verdict is None:
        return NOTHING_ADDED
    if status.verdict_reason in _OF_SELECTION:
        return _added_labels(evidence)
    title, template = _present_original(evidence)
    if template is None or verdict.because.code != status.verdict_reason:
        return NOTHING_ADDED
    leaves = [*islice(_leaves(evidence.pod.manifest, template), _MAX_LEAVES)]
    deciding = _deciding(evidence, status, leaves)
    return Additions(tuple(leaf.title for leaf in deciding), title) if deciding else NOTHING_ADDED


def _added_labels(evidence: PodEvidence) -> Additions:
    """Return the labels in the nodeSelector that are not in the template."""
    if _may_have_placed(evidence):
        return NOTHING_ADDED
    selector, (title, template) = _node_selector(evidence.pod.manifest), _present_original(evidence)
    added = added_selectors(evidence)
    if template is not None and has_old_template(evidence):
        before = _node_selector(template)
        added = [key for key in selector if before.get(key) != selector[key]]
    keys = [key for key in islice(selector, _MAX_LEAVES) if key in added]
    titles = tuple(f"{key}={selector[key]}"[:_MAX_VALUE] + " in nodeSelector" for key in keys)
    return Additions(titles, title, are_labels=True) if titles else NOTHING_ADDED


def _deciding(evidence: PodEvidence, status: StatusAnnotation, leaves: list[_Leaf]) -> list[_Leaf]:
    """Return the leaves without which the verdict has another reason: no more than needed."""
    if not leaves or not _reason_changes_without(evidence, status, leaves):
        return []
    for leaf in leaves:
        others = [other for other in leaves if other is not leaf]
        if _reason_changes_without(evidence, status, others):
            leaves = others
    return leaves


def depends_on_mutators(evidence: PodEvidence, comparison: Comparison) -> bool:
    """Return whether the explanation names what may have changed the pod at its admission."""
    if comparison.changes:
        return True
    if has_old_template(evidence):
        return False
    if additions_of(evidence, comparison).titles:
        return True
    return evidence.pod.waits_for_node and bool(added_selectors(evidence))


def label_authors(evidence: PodEvidence) -> str:
    """Return what may add a label to a pod's nodeSelector at admission, as a subject.

    The API server merges `scheduling` of a RuntimeClass into its pods, and of its other fields only
    `overhead` (plugin/pkg/admission/runtimeclass).
    """
    has_class = at(evidence.pod.manifest, ("spec", "runtimeClassName")) is not None
    return f"its RuntimeClass, {_AUTHORS}" if has_class else _AUTHORS


def creation_source_title(evidence: PodEvidence) -> str:
    """Return the title of what the pod was created from; "" if that is unknown."""
    return _original(evidence).source


def mutators_remedy(evidence: PodEvidence, *, are_labels: bool) -> str:
    """Return what to do about an addition, with the names of what may have added it."""
    runtime_class = evidence.runtime_class if are_labels else ""
    authors = [*filter(None, [runtime_class]), *(evidence.other_mutators or ())]
    if not authors:
        return ADDED_AT_ADMISSION.remedy
    return (
        f"Check what changes pods at admission: {'; '.join(authors)}. Correct the one that "
        "added it, and create the pod again."
    )


def _may_have_placed(evidence: PodEvidence) -> bool:
    """Return whether the webhook itself may have added labels to the nodeSelector."""
    status = evidence.status
    return status is not None and (
        isinstance(status.applied, int) or PLACEMENT.name in status.applied
    )


def added_selectors(evidence: PodEvidence) -> list[str]:
    """Return the keys of the labels that somebody else added to the nodeSelector of a pod.

    [] if the template, which lacks them, is unknown.
    """
    template = None if _may_have_placed(evidence) else _original(evidence).manifest
    if template is None:
        return []
    before = _node_selector(template)
    return [key for key in _node_selector(evidence.pod.manifest) if key not in before]


def _node_selector(manifest: PodManifest) -> PodManifest:
    return fields_or_empty(_spec(manifest).get("nodeSelector"))


def _original(evidence: PodEvidence) -> UnpatchedPod:
    """Return what the pod was created from."""
    return UnpatchedPod() if has_old_template(evidence) else _present_original(evidence)


def _present_original(evidence: PodEvidence) -> UnpatchedPod:
    """Return what the controller creates pods from now, or else the applied manifest."""
    template = pod_from_template(evidence).manifest
    if template is not None:
        return UnpatchedPod(template_title(evidence), template)
    if evidence.pod.metadata.controller is not None:
        return UnpatchedPod()
    try:
        applied = json.loads(evidence.annotations.get(_LAST_APPLIED, ""))
    except (ValueError, RecursionError):
        return UnpatchedPod()
    manifest = applied if isinstance(applied, dict) else None
    return UnpatchedPod("the manifest that was applied", manifest)


def _leaves(pod: PodManifest, template: PodManifest) -> Iterator[_Leaf]:
    """Yield the leaves that may decide on RDMA and differ from the template."""
    before, now = _spec(template), _spec(pod)
    for path in _POD_LEAVES:
        yield from _leaf(("spec",), path, before, now, "the pod")
    for field in _CONTAINER_FIELDS:
        named = {container.get("name"): container for container in _items(before.get(field))}
        for index, container in enumerate(_items(now.get(field))):
            original = named.get(container.get("name"))
            if original is not None:
                place = ("spec", field, index)
                yield from _container_leaves(place, original, container)


def _container_leaves(place: _Path, before: PodManifest, now: PodManifest) -> Iterator[_Leaf]:
    title = f"container {now.get('name')}"
    yield from _leaf(place, _USER, before, now, title)
    originals = {item.get("name"): item for item in _items(before.get("env"))}
    for index, item in enumerate(_items(now.get("env"))):
        name = item.get("name")
        if name in _NAMES and item != originals.get(name):
            value = f"={item['value']}"[:_MAX_VALUE] if "value" in item else ""
            leaf = f"{name}{value} in {title}"
            yield _Leaf((*place, "env", index), leaf, originals.get(name))


def _leaf(
    place: _Path, path: tuple[str, ...], before: PodManifest, now: PodManifest, title: str
) -> Iterator[_Leaf]:
    original, value = at(before, path), at(now, path)
    if value is not None and value != original:
        written = str(value).lower() if isinstance(value, bool) else value
        yield _Leaf((*place, *path), f"{'.'.join(path)}: {written} in {title}", original)


def _reason_changes_without(
    evidence: PodEvidence, status: StatusAnnotation, leaves: list[_Leaf]
) -> bool:
    """Return whether the pod without these leaves has a verdict for another reason."""
    manifest: object = evidence.pod.manifest
    # From the last, so that the indexes of the others stay.
    for leaf in reversed(leaves):
        manifest = _with(manifest, leaf.path, leaf.original)
    assert isinstance(manifest, dict)
    verdict = verdict_of(evidence, status, manifest=manifest)
    return verdict is not None and verdict.because.code != status.verdict_reason


def _with(value: object, path: _Path, leaf: object) -> object:
    """Return a copy of a value with a leaf replaced, or removed if it is None."""
    step, rest = path[0], path[1:]
    if isinstance(value, list) and isinstance(step, int):
        inner = [leaf] if not rest else [_with(value[step], rest, leaf)]
        return [*value[:step], *(inner if rest or leaf is not None else ()), *value[step + 1 :]]
    copy = dict(value) if isinstance(value, dict) else {}
    if rest:
        copy[step] = _with(copy.get(step), rest, leaf)
    elif leaf is None:
        copy.pop(step, None)
    else:
        copy[step] = leaf
    return copy


def _spec(manifest: PodManifest) -> PodManifest:
    return fields_or_empty(manifest.get("spec"))


def _items(written: object) -> list[PodManifest]:
    return [item for item in written if isinstance(item, dict)] if isinstance(written, list) else []
