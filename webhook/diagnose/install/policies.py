"""Whether the admission policies are bound, and keep the webhook's own account within its limits.

The program has no copy of the manifests: of a policy, it compares what makes the API server apply
it (the account, the resources, failurePolicy, the binding), and not the rules themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.diagnose.install.facts import (
    CHECKED,
    NAME,
    NOT_CHECKED,
    InstallFacts,
    PolicyReading,
    ReplicaReading,
    unread_findings,
)
from webhook.diagnose.install.records import BindingRecord, PolicyRecord
from webhook.kube.remedies import APPLY_AGAIN, RESTORE_POLICY
from webhook.model.finding import Code, Finding, Level
from webhook.model.names import capitalized, counted, enumerated
from webhook.text.readiness import UNKNOWN, WARNING, ReadinessCheck

_APPLY, _RESTORE = (f"{capitalized(clause)}." for clause in (APPLY_AGAIN, RESTORE_POLICY))
#: The condition with which the guards match the webhook's own account.
OWN_ACCOUNT = (
    "request.userInfo.username.startsWith('system:serviceaccount:') && "
    f"request.userInfo.username.endsWith(':{NAME}')"
)
#: The guards, each with the resources that it protects.
GUARDS = {
    f"{NAME}-guard": frozenset(
        {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
    ),
    f"{NAME}-guard-secrets": frozenset({"secrets"}),
    f"{NAME}-guard-events": frozenset({"events"}),
    f"{NAME}-guard-lease": frozenset({"leases"}),
    f"{NAME}-guard-status": frozenset({"fabricconfigurations", "fabricconfigurations/status"}),
}
#: The policies that warn users.
ADVISERS = (f"{NAME}-advice", f"{NAME}-detector", f"{NAME}-removal")
#: The name of the replicas' own check in `/readyz`.
_GUARD_CHECK = "guard"

POLICY_MISSING = Code(
    "PolicyMissing",
    "A policy that the webhook's manifests define does not exist in the cluster. If it is a guard "
    "(a policy that limits what the webhook's own account may change), somebody who stole that "
    "account's token could change more than the webhook needs to. If it is one of the other "
    "policies, users do not get its warnings.",
    _APPLY,
)
POLICY_NOT_BOUND = Code(
    "PolicyNotBound",
    "A policy has no binding, or its binding names another policy, applies to only some of the "
    "objects that the policy covers, or (for a policy that limits the webhook's own account) "
    "lacks the validation action Deny; so the API server does not apply the policy as intended.",
    _RESTORE,
)
POLICY_CHANGED = Code(
    "PolicyChanged",
    "A guard (a policy that limits what the webhook's own account may change) does not match this "
    "account, does not match all of the objects that it should protect, or allows requests that "
    "the guard cannot evaluate (failurePolicy Ignore).",
    _RESTORE,
)
NOT_GUARDED = Code(
    "NotGuarded",
    "A dry run by a replica has shown that a guard (a policy that limits what the webhook's own "
    "account may change) does not work: the account can change more of a webhook configuration "
    "than caBundle.",
    _RESTORE,
)
CODES = (POLICY_MISSING, POLICY_NOT_BOUND, POLICY_CHANGED, NOT_GUARDED)


def policy_findings(facts: InstallFacts) -> Iterator[Finding]:
    """Yield findings on the policies, and on what replicas have found out about their account."""
    guards = (
        "guards match the webhook's account and the resources that they protect, have "
        "failurePolicy Fail, and are bound"
    )
    advisers = "policies that only show warnings to users are present and bound"
    yield from _group_findings(facts, tuple(GUARDS), "error", guards)
    yield from _group_findings(facts, ADVISERS, "warning", advisers)
    yield from unread_findings(reading.policy for reading in facts.policies.values())
    yield from unread_findings(reading.binding for reading in facts.policies.values())
    yield from _own_check_findings(facts.replicas)


def _group_findings(
    facts: InstallFacts, names: tuple[str, ...], level: Level, title: str
) -> Iterator[Finding]:
    sound: list[str] = []
    for name in names:
        reading = facts.policies[name]
        if any(part.obstacle for part in reading):
            continue
        if defect := _defect(name, level, reading):
            yield defect
        else:
            sound.append(name)
    if sound:
        text = f"{len(sound)} of {len(names)} {title}: {enumerated(sound)}"
        yield CHECKED.finding("ok", text)


def _defect(name: str, level: Level, reading: PolicyReading) -> Finding | None:
    """Return the first defect of a policy whose objects were read; None without any."""
    if reading.policy.manifest is None:
        return POLICY_MISSING.finding(level, f"{reading.policy.title} does not exist")
    policy = PolicyRecord.model_validate(reading.policy.manifest)
    if name in GUARDS and (change := _change(name, policy)):
        return POLICY_CHANGED.finding(level, f"{reading.policy.title} {change}")
    if reading.binding.manifest is None:
        return POLICY_NOT_BOUND.finding(level, f"{reading.binding.title} does not exist", _APPLY)
    binding = BindingRecord.model_validate(reading.binding.manifest)
    if problem := _binding_problem(name, binding):
        return POLICY_NOT_BOUND.finding(level, f"{reading.binding.title} {problem}")
    return None


def _change(name: str, policy: PolicyRecord) -> str:
    """Return how a guard differs from the manifests; "" if it does not."""
    if policy.conditions != (OWN_ACCOUNT,):
        return f"does not match the account {NAME} as in the manifests"
    if missing := sorted(GUARDS[name] - policy.resources):
        return f"does not match {enumerated(missing)}"
    if policy.spec.failure_policy != "Fail":
        return f"has failurePolicy {policy.spec.failure_policy}, not Fail"
    return ""


def _binding_problem(name: str, binding: BindingRecord) -> str:
    """Return why a binding does not apply its policy; "" if it does."""
    if binding.spec.policy_name != name:
        return f"binds the policy {binding.spec.policy_name}"
    if binding.spec.match_resources:
        return "has matchResources, so it applies to only some of the objects"
    if name in GUARDS and "Deny" not in binding.spec.validation_actions:
        actions = ", ".join(binding.spec.validation_actions)
        return f"has the validationActions {actions}, without Deny"
    return ""


def _own_check_findings(replicas: tuple[ReplicaReading, ...]) -> Iterator[Finding]:
    """Yield the results of the replicas' dry runs; unread replicas are reported elsewhere."""
    checks = [
        (replica.pod, check)
        for replica in replicas
        for check in replica.checks
        if check.name == _GUARD_CHECK
    ]
    refused = [pod for pod, check in checks if _is_refused(check)]
    for pod, check in checks:
        if check.detail.startswith(WARNING):
            yield NOT_GUARDED.finding("error", f"{pod}: {check.detail.removeprefix(WARNING)}", "")
        elif check.detail.startswith(UNKNOWN):
            text = f"{pod}: the guard was not tried: {check.detail.removeprefix(UNKNOWN)}"
            yield NOT_CHECKED.finding("unsure", text, "Run the command again in a minute.")
    if refused:
        text = (
            "in the last hour, the API server refused the dry runs in which "
            f"{counted(len(refused), 'replica')} tried to change a field other than caBundle of a "
            "webhook configuration"
        )
        yield CHECKED.finding("ok", text)


def _is_refused(check: ReadinessCheck) -> bool:
    return not check.detail.startswith((WARNING, UNKNOWN))
