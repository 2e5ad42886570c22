"""The webhooks and policies that may change a pod, and those that may do so after this webhook.

The API server calls the webhooks by the names of their configurations, after all policies. If one
changed the pod, those with `reinvocationPolicy: IfNeeded`, whatever their names, come once more
(kubernetes/apiserver, pkg/admission/plugin/webhook/generic and plugin/policy/mutating).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter

from webhook.admission.match import predict_call
from webhook.admission.registration import WEBHOOK_NAME, Registration, read_registration
from webhook.admission.review import mapping_at, string_at
from webhook.model.facts import NamespaceFacts
from webhook.model.pod import PodManifest


def later_mutators(
    webhook_configurations: Iterable[Mapping[str, object]],
    policies: Iterable[Mapping[str, object]],
    pod: PodManifest,
    namespace: NamespaceFacts,
) -> list[str]:
    """List the titles of what may have changed the pod after this webhook, in order.

    A condition that needs CEL is not evaluated, so a webhook that has one is listed.
    """
    registrations = _registrations(webhook_configurations)
    ours = _ours(registrations)
    later = [
        *(registration for registration in registrations if _is_later(registration, ours)),
        *filter(_is_reinvoked, map(_of_policy, policies)),
    ]
    return _titles(later, pod, namespace)


def other_mutators(
    webhook_configurations: Iterable[Mapping[str, object]],
    policies: Iterable[Mapping[str, object]],
    pod: PodManifest,
    namespace: NamespaceFacts,
) -> list[str]:
    """List the titles of what may have changed the pod at any time, as `later_mutators`."""
    registrations = _registrations(webhook_configurations)
    ours = _ours(registrations)
    others = [
        registration
        for registration in registrations
        if registration.webhook_configuration_name not in ours
    ]
    return _titles([*others, *map(_of_policy, policies)], pod, namespace)


def _titles(
    registrations: Iterable[Registration], pod: PodManifest, namespace: NamespaceFacts
) -> list[str]:
    """List the titles of the registrations that may select the pod."""
    titles = [
        _title(registration)
        for registration in registrations
        if predict_call(pod, namespace, [registration])[0] is not False
    ]
    return list(dict.fromkeys(titles))


def _registrations(
    webhook_configurations: Iterable[Mapping[str, object]],
) -> list[Registration]:
    """List the webhooks in the order of their calls."""
    webhooks = sorted(map(_webhooks, webhook_configurations), key=itemgetter(0))
    return [registration for _, listed in webhooks for registration in listed]


def _ours(registrations: Iterable[Registration]) -> set[str]:
    return {
        registration.webhook_configuration_name
        for registration in registrations
        if registration.webhook.get("name") == WEBHOOK_NAME
    }


def _webhooks(configuration: Mapping[str, object]) -> tuple[str, list[Registration]]:
    """Return the name of a webhook configuration, and its webhooks."""
    webhooks = configuration.get("webhooks")
    return string_at(mapping_at(configuration, "metadata"), "name"), [
        read_registration(configuration, webhook)
        for webhook in (webhooks if isinstance(webhooks, list) else ())
        if isinstance(webhook, dict)
    ]


def _is_later(registration: Registration, ours: Collection[str]) -> bool:
    """Return whether a webhook of somebody else is called after ours, or once more."""
    name = registration.webhook_configuration_name
    comes_after = name > min(ours, default="")
    return name not in ours and (comes_after or _is_reinvoked(registration))


def _of_policy(policy: Mapping[str, object]) -> Registration:
    """Read a MutatingAdmissionPolicy as the webhook that would select the same objects."""
    spec = mapping_at(policy, "spec")
    constraints = mapping_at(spec, "matchConstraints")
    selection = {**constraints, "rules": constraints.get("resourceRules"), "policy": True}
    conditions, again = spec.get("matchConditions"), spec.get("reinvocationPolicy")
    webhook = {**selection, "matchConditions": conditions, "reinvocationPolicy": again}
    return read_registration(policy, webhook)


def _is_reinvoked(registration: Registration) -> bool:
    return registration.webhook.get("reinvocationPolicy") == "IfNeeded"


def _title(registration: Registration) -> str:
    name = registration.webhook_configuration_name
    if registration.webhook.get("policy"):
        return f"MutatingAdmissionPolicy {name}"
    return f"webhook {registration.webhook.get('name')} of {name}"
