"""Whether the API server called the webhook when the pod was created, and if not, why."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.admission.match import MIRROR
from webhook.admission.registration import EXCLUDED
from webhook.diagnose.why.evidence import Gathered, Item, items_at, strings_at, title, word_at
from webhook.diagnose.why.explanation import Sentence
from webhook.model.annotations import ENABLE, STATUS, opted_in
from webhook.model.decision import Denial
from webhook.model.facts import LABEL
from webhook.model.pod import Path, at, controller_reference
from webhook.preview.workloads.hints import OptInHints
from webhook.preview.workloads.templates import Template, templates_of

_AGAIN = "create the pod again"


def tell_called(gathered: Gathered) -> Sentence:
    """Tell whether the webhook was called; the code says why not."""
    annotations = gathered.annotations
    if malformed := _malformed_value(gathered):
        return malformed
    if annotations.get(ENABLE) in (None, "false"):
        return _not_asked(gathered)
    if never := _never(gathered):
        return never
    if gathered.status is not None:
        return Sentence("Called", "good", "Yes: the pod has the webhook's rdma.lab/status.")
    if STATUS in annotations:
        text = f"Not certain: {STATUS} is there, but this version of the webhook did not write it."
        return Sentence("StatusUnreadable", "unsure", text, _template(gathered))
    return next(_unseen(gathered))


def _malformed_value(gathered: Gathered) -> Sentence | None:
    """Say of a value other than "true" and "false" that the webhook would have denied it."""
    written = at(gathered.pod, ("metadata", "annotations", ENABLE))
    try:
        opted_in({ENABLE: written})
    except Denial as denial:
        text = f"No: {denial}. The webhook denies such pods, so it was not called for this one."
        remedy = f'Write {ENABLE}: "true" in {_of_template(gathered)}, and {_AGAIN}.'
        return _no(denial.reason.code, text, remedy)
    return None


def _never(gathered: Gathered) -> Sentence | None:
    """Name what the API server never calls the webhook for."""
    if MIRROR in gathered.annotations:
        text = "No: the pod is the mirror of a static pod, and a change to it has no effect."
        return _no("MirrorPod", text, "Write what RDMA needs into the file on the node.")
    if word_at(gathered.pod, ("spec", "os", "name")) == "windows":
        text = "No: the pod runs on Windows, where there is no RDMA."
        return _no("WindowsPod", text, "Run the job in a Linux container.")
    if gathered.home in EXCLUDED:
        text = f"No: the webhook is never called for namespace {gathered.home}."
        return _no("NamespaceExcluded", text, "Run the job in another namespace.")
    return None


def _no(code: str, text: str, remedy: str) -> Sentence:
    return Sentence(code, "problem", text, remedy)


def _not_asked(gathered: Gathered) -> Sentence:
    """Say why a pod has not opted in: nothing suggests it, or it is misspelt or elsewhere."""
    hint = _hint(gathered)
    copied = (
        " Its rdma.lab/status was copied or written by hand."
        if STATUS in gathered.annotations
        else ""
    )
    where = _of_template(gathered)
    remedy = f'Write {ENABLE}: "true" under metadata.annotations of {where}, and {_AGAIN}.'
    if not hint:
        text = f"No: the pod has no annotation {ENABLE}.{copied}"
        return _no("NotOptedIn", text, remedy)
    refused = gathered.annotations.get(ENABLE) == "false"
    code = "OptedOut" if refused else "AnnotationMisspelt"
    return _no(code, f"No: {hint}.{copied}", remedy)


def _hint(gathered: Gathered) -> str:
    for item in (gathered.pod, *gathered.owners):
        for template in _templates(item, own=item is gathered.pod):
            if hint := OptInHints(item).of(template):
                return hint if item is gathered.pod else f"in {title(item)}: {hint}"
    return ""


def _templates(item: Item, *, own: bool) -> list[Template]:
    if not own:
        return templates_of(item)[:8]
    name = word_at(item, ("metadata", "name"))
    return [Template((), "Pod", name, word_at(item, ("metadata", "namespace")), item)]


def _of_template(gathered: Gathered) -> str:
    """Name the object whose template the pod was made from, as a place to write something."""
    owner = next((one for one in reversed(gathered.owners) if templates_of(one)), None)
    if owner is not None:
        return f"the pod template of {title(owner)}"
    reference = controller_reference(gathered.pod)
    if reference is not None:
        kind, name = word_at(reference, ("kind",)), word_at(reference, ("name",))
        return f"the pod template of {kind} {name}"
    return "the pod"


def _template(gathered: Gathered) -> str:
    return f"Remove {STATUS} from {_of_template(gathered)}, and {_AGAIN}."


def _unseen(gathered: Gathered) -> Iterator[Sentence]:
    """Yield why a pod that asks was not seen, the most certain reason first."""
    yield from _unlabelled(gathered)
    yield from _not_installed(gathered)
    yield from _too_early(gathered)
    yield from _not_answered(gathered)


def _unlabelled(gathered: Gathered) -> Iterator[Sentence]:
    if gathered.namespace is None:
        return
    name = gathered.home
    value = strings_at(gathered.namespace, ("metadata", "labels")).get(LABEL)
    if value == "true":
        return
    found = "" if value is None else f"; its value is {value!r:.80}"
    text = f'No: namespace {name} does not have the label {LABEL}: "true"{found}.'
    remedy = (
        "Ask an administrator of the namespace to run: kubectl label --overwrite namespace "
        f"{name} {LABEL}=true. Then {_AGAIN}."
    )
    yield _no("NamespaceNotLabelled", text, remedy)


def _not_installed(gathered: Gathered) -> Iterator[Sentence]:
    if gathered.webhooks == ():
        text = "No: this cluster has no webhook pods.rdma.lab."
        remedy = "Ask whoever runs the cluster to install rdma-webhook: docs/installation.md."
        yield _no("NotInstalled", text, remedy)
    for setup in gathered.webhooks or ():
        if not word_at(setup.webhook, ("clientConfig", "caBundle")):
            text = "No: the webhook's configuration has no caBundle, so it cannot be called."
            remedy = "Ask whoever runs the cluster to run: rdma-webhook certs status."
            yield _no("NoCaBundle", text, remedy)


def _too_early(gathered: Gathered) -> Iterator[Sentence]:
    """Compare when the pod was created with when what it needs came to be."""
    created = word_at(gathered.pod, ("metadata", "creationTimestamp"))
    if not created:
        return
    labelled = _written(gathered.namespace, ("f:metadata", "f:labels", f"f:{LABEL}"))
    annotated = _written(gathered.pod, ("f:metadata", "f:annotations", f"f:{ENABLE}"))
    installed = min(
        (word_at(one.configuration, _CREATED) for one in gathered.webhooks or ()), default=""
    )
    again = f"{_AGAIN[0].upper()}{_AGAIN[1:]}: the webhook will now be called."
    if installed > created:
        text = (
            f"No: the pod was created at {created}, before the webhook was installed, at "
            f"{installed}."
        )
        yield _no("CreatedBeforeWebhook", text, again)
    if annotated > created:
        text = (
            f"No: the annotation {ENABLE} was written at {annotated}, after the pod had been "
            f"created at {created}; the webhook changes pods only when they are created."
        )
        remedy = f"Write it in {_of_template(gathered)}, and {_AGAIN}."
        yield _no("AnnotatedLater", text, remedy)
    if labelled > created:
        text = (
            f"No: the pod was created at {created}, before namespace {gathered.home} got the label "
            f"{LABEL} (its labels were last written at {labelled})."
        )
        yield _no("CreatedBeforeLabel", text, again)


_CREATED: Path = ("metadata", "creationTimestamp")


def _written(item: Item | None, fields: Path) -> str:
    """Return when the manager that owns a field last wrote; "" if that is not known.

    Times of the API server are RFC 3339 in UTC and in whole seconds, so they compare as text.
    """
    managers = items_at(item, ("metadata", "managedFields"))
    owning = (one for one in managers if at(one, ("fieldsV1", *fields)) is not None)
    return max((word_at(one, ("time",)) for one in owning), default="")


def _not_answered(gathered: Gathered) -> Iterator[Sentence]:
    policies = {word_at(one.webhook, ("failurePolicy",)) for one in gathered.webhooks or ()}
    if "Ignore" in policies:
        text = (
            "No: the webhook did not answer when the pod was created, and with failurePolicy "
            "Ignore the API server then creates the pod as it is."
        )
        remedy = f"Check that the webhook is ready, and {_AGAIN}."
        yield _no("DidNotAnswer", text, remedy)
    missing = [
        what
        for what, found in (
            (f"the label of namespace {gathered.home}", gathered.namespace),
            ("the webhook's configuration", gathered.webhooks),
        )
        if found is None
    ]
    if missing:
        text = (
            "No: the pod has the annotation, but no rdma.lab/status. The reason is not certain, "
            f"since {' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not known."
        )
        remedy = (
            f'Check that the namespace has the label {LABEL}: "true" (kubectl get namespace '
            f"{gathered.home} --show-labels), and {_AGAIN}."
        )
        yield _no("NotCalled", text, remedy)
    else:
        text = (
            "No: the pod has the annotation and its namespace the label, but it was created "
            "before one of them was set, or before the webhook was installed."
        )
        again = f"{_AGAIN[0].upper()}{_AGAIN[1:]}: the webhook will now be called."
        yield _no("CreatedEarlier", text, again)
