"""Whether the objects of the manifests exist, and whether the API server calls the webhook."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.admission.expected_registration import (
    NO_CONFIGURATION,
    ExpectedRegistration,
    registration_mistakes,
)
from webhook.admission.registration import CONFIGURATIONS
from webhook.admission.selection import OTHER_SERVICE, SELECTS_TOO_LITTLE, SELECTS_TOO_MUCH
from webhook.diagnose.install.facts import CHECKED, NAME, InstallFacts, Reading, unread_findings
from webhook.diagnose.install.records import (
    DefinitionRecord,
    DeploymentRecord,
    ready_endpoints,
    waiting_reasons,
)
from webhook.kube.remedies import APPLY_AGAIN, RESTORE
from webhook.model.finding import Code, Finding, Level
from webhook.model.names import capitalized, counted, enumerated

_APPLY, _RESTORE = (f"{capitalized(clause)}." for clause in (APPLY_AGAIN, RESTORE))
_APPLY_DEFINITION = "kubectl apply -k manifests/crd or helm upgrade"

OBJECT_MISSING = Code(
    "ObjectMissing",
    "An object that the webhook's manifests define does not exist in the cluster.",
    _APPLY,
)
DEFINITION_NOT_SERVED = Code(
    "DefinitionNotServed",
    "The API server does not serve FabricConfigurations in the API version that this program "
    "reads.",
    "Apply the CustomResourceDefinition that belongs to the version of this program "
    f"({_APPLY_DEFINITION}).",
)
REPLICAS_UNAVAILABLE = Code(
    "ReplicasUnavailable",
    "The Deployment has fewer ready replicas than it should have.",
    "Find the reason with `kubectl -n NAMESPACE describe pods --show-events`, and with `kubectl -n "
    "NAMESPACE logs deployment/rdma-webhook`.",
)
ROLLOUT_INCOMPLETE = Code(
    "RolloutIncomplete",
    "Replicas are ready, but not all of them were created from the Deployment's current "
    "template, as during an upgrade.",
    "Wait for the rollout to complete: `kubectl -n NAMESPACE rollout status "
    "deployment/rdma-webhook`. If it does not complete, find the reason with `kubectl -n "
    "NAMESPACE describe pods --show-events`.",
)
PREVIEW_UNAVAILABLE = Code(
    "PreviewUnavailable",
    "The Deployment that makes previews, rdma-webhook-preview, has fewer ready pods than it "
    "should have. Users' pods are not affected.",
    "Find the reason with `kubectl -n NAMESPACE describe pods --show-events`, and with `kubectl -n "
    "NAMESPACE logs deployment/rdma-webhook-preview`.",
)
NO_ENDPOINTS = Code(
    "NoEndpoints",
    "Replicas are ready, but the Service has no ready endpoints, so the API server cannot reach "
    "any replica.",
    "Compare the selector of the Service with the labels of the replicas' pods. If they do not "
    f"match, {APPLY_AGAIN}.",
)
NO_WEBHOOK_CONFIGURATION = Code(
    NO_CONFIGURATION,
    "A webhook configuration, or the webhook in it, does not exist. Without the mutating one, "
    "pods that opted in run without RDMA; without the validating one, changes to the "
    "FabricConfiguration are not checked.",
    _APPLY,
)
_SELECTS_TOO_LITTLE = Code(
    SELECTS_TOO_LITTLE,
    "The rules or selectors of a webhook configuration exclude requests that the webhook should "
    "get.",
    _RESTORE,
)
_SELECTS_TOO_MUCH = Code(
    SELECTS_TOO_MUCH,
    "A webhook configuration does not require the namespace label rdma.lab/enable, or requires "
    "neither an annotation nor a label of the pod, so it also selects pods that did not opt in.",
    _RESTORE,
)
_OTHER_SERVICE = Code(
    OTHER_SERVICE,
    "A webhook configuration calls a Service or a path other than the webhook's.",
    _RESTORE,
)
FAIL_OPEN = Code(
    "FailOpen",
    "A webhook configuration has failurePolicy Ignore. While no replica answers, pods that opted "
    "in are created without RDMA (MutatingWebhookConfiguration), or changes to fabrics are not "
    "checked (ValidatingWebhookConfiguration).",
    "No action is needed if that is intended. Otherwise, for the MutatingWebhookConfiguration, "
    "remove components/fail-open from the kustomization or, with Helm, set failOpen to false in "
    "the chart's values. For the ValidatingWebhookConfiguration, apply the manifests again.",
)
CODES = (
    OBJECT_MISSING,
    DEFINITION_NOT_SERVED,
    REPLICAS_UNAVAILABLE,
    ROLLOUT_INCOMPLETE,
    PREVIEW_UNAVAILABLE,
    NO_ENDPOINTS,
    NO_WEBHOOK_CONFIGURATION,
    _SELECTS_TOO_LITTLE,
    _SELECTS_TOO_MUCH,
    _OTHER_SERVICE,
    FAIL_OPEN,
)
#: The codes of what is wrong with a webhook configuration.
REGISTRATION_CODES = {
    code.code: code
    for code in (NO_WEBHOOK_CONFIGURATION, _SELECTS_TOO_LITTLE, _SELECTS_TOO_MUCH, _OTHER_SERVICE)
}


#: Label → what happens while no replica answers, and how to change it.
_FAIL_OPEN_EFFECTS = {
    "mutating": (
        "pods that opted in are created without RDMA",
        (
            "remove components/fail-open from the kustomization, or set failOpen to false in the "
            "chart's values"
        ),
    ),
    "validating": ("changes to fabrics are not checked", APPLY_AGAIN),
}


def object_findings(facts: InstallFacts) -> Iterator[Finding]:
    """Yield findings on the objects of the manifests, apart from policies and certificates."""
    yield _definition_finding(facts.definition)
    yield _deployment_finding(facts)
    yield from _preview_findings(facts)
    yield from _service_findings(facts)
    for expected, reading in zip(
        facts.names.registrations, facts.webhook_configurations, strict=True
    ):
        yield from _registration_findings(expected, reading)
    yield from _existence_findings((facts.lease, *facts.others))


def _missing(reading: Reading) -> Finding:
    """Return why an object that is needed cannot be judged: it is missing, or was not read."""
    if not reading.is_missing:
        return reading.unread_finding()
    return OBJECT_MISSING.finding("error", f"{reading.title} does not exist")


def _definition_finding(reading: Reading) -> Finding:
    if reading.manifest is None:
        remedy = f"Apply it ({_APPLY_DEFINITION}), and then your fabrics."
        missing = _missing(reading)
        return missing._replace(remedy=remedy) if reading.is_missing else missing
    definition = DefinitionRecord.model_validate(reading.manifest)
    served = any(
        version.served and version.name == CONFIGURATIONS.version
        for version in definition.spec.versions
    )
    if not served or definition.status.condition("Established").status == "False":
        text = f"{reading.title} does not serve {CONFIGURATIONS.version}"
        return DEFINITION_NOT_SERVED.finding("error", text)
    return CHECKED.finding("ok", f"{reading.title} serves {CONFIGURATIONS.version}")


def _deployment_finding(facts: InstallFacts) -> Finding:
    reading = facts.deployment
    if reading.manifest is None:
        return _missing(reading)
    deployment = DeploymentRecord.read(reading.manifest)
    desired, ready = deployment.spec.replicas, deployment.status.ready_replicas
    if not desired:
        text = f"{reading.title} has no replicas: it is scaled to 0"
        remedy = f"Run `kubectl -n {facts.names.namespace} scale deployment {NAME} --replicas=2`."
        return REPLICAS_UNAVAILABLE.finding("error", text, remedy)
    text = f"{reading.title}: {ready} of {counted(desired, 'replica')} ready"
    reasons = "".join(f"; {reason}" for reason in waiting_reasons(facts.pods.manifest))
    if ready < desired:
        level: Level = "warning" if ready else "error"
        return _of_namespace(REPLICAS_UNAVAILABLE, level, text + reasons, facts)
    updated = deployment.status.updated_replicas
    if updated < desired or reasons:
        text += f", but {updated} of {desired} updated" if updated < desired else ""
        return _of_namespace(ROLLOUT_INCOMPLETE, "warning", text + reasons, facts)
    return CHECKED.finding("ok", text)


def _preview_findings(facts: InstallFacts) -> Iterator[Finding]:
    """Yield a finding on the Deployment of previews, if it exists and is not scaled to 0.

    A missing right to read it is also missing for the Deployment of the replicas.
    """
    reading = facts.preview
    deployment = DeploymentRecord.read(reading.manifest)
    desired, ready = deployment.spec.replicas, deployment.status.ready_replicas
    text = f"{reading.title}: {ready} of {counted(desired, 'pod')} ready"
    if ready < desired:
        yield _of_namespace(PREVIEW_UNAVAILABLE, "warning", text, facts)
    elif desired:
        yield CHECKED.finding("ok", text)


def _of_namespace(code: Code, level: Level, text: str, facts: InstallFacts) -> Finding:
    return code.finding(level, text, code.remedy.replace("NAMESPACE", facts.names.namespace))


def _service_findings(facts: InstallFacts) -> Iterator[Finding]:
    if facts.service.manifest is None:
        yield _missing(facts.service)
    elif facts.endpoints.manifest is None:
        yield facts.endpoints.unread_finding()
    elif count := ready_endpoints(facts.endpoints.manifest):
        endpoints = counted(count, "ready endpoint")
        yield CHECKED.finding("ok", f"{facts.service.title} has {endpoints}")
    elif _has_ready_replicas(DeploymentRecord.read(facts.deployment.manifest)):
        text = f"{facts.service.title} has no ready endpoints, although replicas are ready"
        yield NO_ENDPOINTS.finding("error", text)


def _has_ready_replicas(deployment: DeploymentRecord) -> bool:
    """After a scale to 0, status.readyReplicas may change later than the endpoints do."""
    return deployment.spec.replicas > 0 and deployment.status.ready_replicas > 0


def _registration_findings(expected: ExpectedRegistration, reading: Reading) -> Iterator[Finding]:
    if reading.obstacle:
        yield reading.unread_finding()
        return
    mistakes = list(registration_mistakes(expected, reading.manifest))
    for mistake in mistakes:
        text = f"{expected.configuration} {mistake.text}"
        yield REGISTRATION_CODES[mistake.reason].finding("error", text)
    if not mistakes:
        text = f"{expected.configuration} selects {expected.objects} and calls {expected.service}"
        yield CHECKED.finding("ok", text)
        yield from _fail_open_findings(expected, reading)


def _fail_open_findings(expected: ExpectedRegistration, reading: Reading) -> Iterator[Finding]:
    registration = expected.registration(reading.manifest or {})
    if registration is not None and registration.failure_policy == "Ignore":
        effect, change = _FAIL_OPEN_EFFECTS[expected.label]
        text = (
            f"{expected.configuration} has failurePolicy Ignore: while no replica answers, {effect}"
        )
        remedy = f"No action is needed if that is intended. Otherwise, {change}."
        yield FAIL_OPEN.finding("info", text, remedy)


def _existence_findings(readings: tuple[Reading, ...]) -> Iterator[Finding]:
    """Yield a finding for each object that is missing or unread, and one for all the others."""
    present = [reading.title for reading in readings if reading.manifest is not None]
    yield from (_missing(reading) for reading in readings if reading.is_missing)
    yield from unread_findings(readings)
    if present:
        yield CHECKED.finding("ok", f"{enumerated(present)} exist{'s' * (len(present) == 1)}")
