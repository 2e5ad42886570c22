"""`ipc-lock`: let the container pin the memory that it registers with the RDMA device.

Registering memory pins pages. Beyond RLIMIT_MEMLOCK (8 MiB in a container) the kernel fails
with ENOMEM unless the process has CAP_IPC_LOCK (drivers/infiniband/core/umem.c).

    securityContext                          outcome
    privileged: true                         already: it has every capability
    capabilities.drop: [IPC_LOCK]            skipped: containerd drops after it adds
    capabilities.add: [IPC_LOCK] or [ALL]    already
    capabilities.add: [CAP_IPC_LOCK]         added, warned: containerd makes it CAP_CAP_IPC_LOCK
    capabilities.drop: [ALL]                 added: containerd handles ALL separately

IPC_LOCK has no effect for a user other than root, who gets no capabilities, or in a user namespace,
and Pod Security may refuse it. `defaults.memlock` describes the nodes for these cases: `unlimited`
needs nothing, and `nri` gets the annotations of the NRI ulimit-adjuster. Otherwise there is a
warning.
"""

from __future__ import annotations

from collections.abc import Mapping

from webhook.decide.analysis import Mutation, PodAnalysis, RdmaAccess, Target
from webhook.decide.draft import Draft
from webhook.model.annotations import has_room
from webhook.model.decision import Reason
from webhook.model.fabric import Defaults
from webhook.model.facts import PSA_ENFORCE
from webhook.model.images import non_root_user
from webhook.model.pod import Path, Pod

CAPABILITY = "IPC_LOCK"

#: The remedy of last resort, as a clause; the verdict uses it, too.
RAISE_MEMLOCK = (
    "ask the cluster administrator to set LimitMEMLOCK=infinity for containerd and "
    "`defaults.memlock: unlimited` in the FabricConfiguration, or to run the NRI ulimit-adjuster "
    "and set `defaults.memlock: nri` in the FabricConfiguration."
)
_AS_ROOT = "as root (runAsUser: 0, without runAsNonRoot: true)"
_KEEP_USER = (
    "make sure that the container's command does not change to another user (with gosu, su or "
    f"runuser). If that is not possible, {RAISE_MEMLOCK}"
)
_IN_HOST_NAMESPACE = f"{_AS_ROOT}, remove hostUsers: false if it is set, and {_KEEP_USER}"
#: The remedy for a container in which IPC_LOCK has no effect; the verdict uses it, too.
RUN_AS_ROOT = f"Run the container {_IN_HOST_NAMESPACE}"
#: The remedy for a container in which IPC_LOCK is missing or has no effect.
RUN_AS_ROOT_WITH_IPC_LOCK = f"Give the container {CAPABILITY}, run it {_IN_HOST_NAMESPACE}"
#: The remedy for a container whose command may end the effect of IPC_LOCK, after a condition.
OTHERWISE_KEEP_IPC_LOCK = (
    f"Otherwise, run the container {_AS_ROOT}, and make sure that its command neither changes to "
    f"another user (with gosu, su or runuser) nor drops {CAPABILITY}. If that is not possible, "
    f"{RAISE_MEMLOCK}"
)
#: The remedy for a container that runs as root without IPC_LOCK; the verdict uses it, too.
ADD_CAPABILITY = f"Add {CAPABILITY} to securityContext.capabilities.add of the container."

ADDED = Reason("Added", "IPC_LOCK was added to the container's capabilities.", remedy="")
PRESENT = Reason("Present", "The container already has IPC_LOCK.", remedy="")
PRIVILEGED = Reason(
    "Privileged", "The container is privileged, so it has every capability.", remedy=""
)
RAISED = Reason(
    "MemlockRaised",
    "IPC_LOCK has no effect in this container, or Pod Security forbids it; annotations for the "
    "NRI ulimit-adjuster raise the memlock limit instead.",
    remedy="",
)
DROPPED = Reason(
    "DroppedByUser",
    "The container drops IPC_LOCK by name, so adding it has no effect.",
    remedy="Remove IPC_LOCK from securityContext.capabilities.drop; ALL may stay in that list.",
)
POD_SECURITY = Reason(
    "PodSecurity",
    "The namespace enforces a Pod Security level that forbids IPC_LOCK; without IPC_LOCK, the "
    "memlock limit must be raised.",
    remedy=(
        "Run the pod in a namespace with the Pod Security level `privileged`: the levels "
        f"`baseline` and `restricted` forbid IPC_LOCK. If that is not possible, {RAISE_MEMLOCK}"
    ),
    rdma="unsure",
)
MISSPELLED = Reason(
    "CapPrefix",
    "The container adds CAP_IPC_LOCK, which is not a valid name: the container runtime adds the "
    "prefix CAP_ itself.",
    remedy="Write IPC_LOCK instead of CAP_IPC_LOCK.",
)
NON_ROOT = Reason(
    "NonRoot",
    "The container runs as a user other than root, for whom IPC_LOCK has no effect; the memlock "
    "limit then depends on the node.",
    remedy=RUN_AS_ROOT,
)
USER_NAMESPACE = Reason(
    "UserNamespace",
    "The pod sets hostUsers: false, so IPC_LOCK has no effect; the memlock limit then depends on "
    "the node.",
    remedy=f"Remove hostUsers: false, run the container {_AS_ROOT}, and {_KEEP_USER}",
)
NOT_RAISED = Reason(
    "MemlockNotRaised",
    "No annotation raises the memlock limit: the ulimit annotation in the pod's manifest does "
    "not, or the webhook could not add one, because the container's name is too long or the pod's "
    "annotations have reached their size limit.",
    remedy=(
        "If the pod's manifest has a ulimit annotation for the container, remove it. If the "
        "container's name has more than 53 characters, shorten the name. If neither applies, "
        "shorten the pod's annotations (at most 256 KiB in total)."
    ),
)

_ANNOTATIONS: Path = ("metadata", "annotations")


def mutate(draft: Draft, analysis: PodAnalysis) -> None:
    """Let every target lock memory by IPC_LOCK, or else as `defaults.memlock` provides."""
    for target in analysis.targets:
        _allow_locking(draft, analysis, target)


def ineffective_reason(pod: Pod, target: Target, defaults: Defaults) -> Reason | None:
    """Return why the kernel ignores the capability (kubernetes/kubernetes#56374), else None.

    If the image determines the user, it may be known not to run as root.
    """
    if pod.has_user_namespace:
        return USER_NAMESPACE
    user = target.user
    if user == "image" and non_root_user(pod.container(target.path).image, defaults):
        user = "other"
    return NON_ROOT if user == "other" else None


def _allow_locking(draft: Draft, analysis: PodAnalysis, target: Target) -> None:
    container = draft.container(target.path)
    if container.privileged:
        message = "a privileged container has every capability"
        _leave(draft, analysis, target, PRIVILEGED, message)
        return
    capabilities = container.capabilities
    if CAPABILITY in capabilities.dropped:
        message = "capabilities.drop lists IPC_LOCK, so adding it has no effect; remove it there"
        draft.skipped(target.name, DROPPED, message)
        if analysis.configuration.defaults.memlock != "unlimited":
            draft.warned(target.name, DROPPED, message)
    elif capabilities.grants(CAPABILITY):
        _leave(draft, analysis, target, PRESENT, "the container already has IPC_LOCK")
    elif analysis.namespace.enforced_pod_security:
        _without_capability(draft, analysis, target, analysis.namespace.enforced_pod_security)
    else:
        _add(draft, analysis, target, misspelled="CAP_IPC_LOCK" in capabilities.added)


def _add(draft: Draft, analysis: PodAnalysis, target: Target, *, misspelled: bool) -> None:
    reason = ineffective_reason(analysis.original, target, analysis.configuration.defaults)
    draft.append((*target.path, "securityContext", "capabilities", "add"), CAPABILITY)
    raised = reason is not None and _raise_memlock(draft, analysis, target)
    details = f", and {_RAISED}" if raised else ""
    purpose = ", so that memory can be registered" if reason is None else ""
    draft.applied(target.name, ADDED, f"added capability IPC_LOCK{purpose}{details}")
    if misspelled:
        draft.warned(
            target.name, MISSPELLED, "capability CAP_IPC_LOCK is not valid; write IPC_LOCK"
        )
    if reason is not None:
        _warn(draft, analysis, target, reason)


def _leave(
    draft: Draft, analysis: PodAnalysis, target: Target, reason: Reason, message: str
) -> None:
    """Leave the capabilities unchanged; where they have no effect, raise memlock."""
    no_effect_reason = ineffective_reason(
        analysis.original, target, analysis.configuration.defaults
    )
    if no_effect_reason is not None and _raise_memlock(draft, analysis, target):
        draft.applied(target.name, RAISED, _RAISED)
    else:
        draft.already(target.name, reason, message)
    if no_effect_reason is not None:
        _warn(draft, analysis, target, no_effect_reason)


def _without_capability(draft: Draft, analysis: PodAnalysis, target: Target, level: str) -> None:
    memlock = analysis.configuration.defaults.memlock
    if memlock == "unlimited":
        message = (
            f"not added, since Pod Security {level} forbids it, and locked memory is unlimited"
        )
        draft.skipped(target.name, POD_SECURITY, message)
    elif _raise_memlock(draft, analysis, target):
        message = f"{_RAISED}; Pod Security {level} forbids IPC_LOCK"
        draft.applied(target.name, RAISED, message)
    elif _is_raised(draft, analysis, target):
        draft.already(target.name, RAISED, "an annotation already raises the memlock limit")
    else:
        _report_refusal(draft, analysis, target, level)


def _report_refusal(draft: Draft, analysis: PodAnalysis, target: Target, level: str) -> None:
    message = (
        f"Pod Security {level} forbids IPC_LOCK; set the namespace's label {PSA_ENFORCE} to "
        "privileged"
    )
    if analysis.configuration.defaults.pod_security == "deny":
        draft.failed(target.name, POD_SECURITY, message)
    else:
        draft.skipped(target.name, POD_SECURITY, message)
        # Keep it short: a warning is cut after 120 characters.
        message = f"the namespace's label {PSA_ENFORCE}={level} forbids IPC_LOCK"
        draft.warned(target.name, POD_SECURITY, message)


_RAISED = "annotated the pod, so that NRI raises the memlock limit"


def _raise_memlock(draft: Draft, analysis: PodAnalysis, target: Target) -> bool:
    """Add annotations that raise memlock, if the site has the plugin; return whether any."""
    if analysis.configuration.defaults.memlock != "nri":
        return False
    added = missing_annotations(draft.view.annotations, target.name)
    for key, value in added.items():
        draft.set((*_ANNOTATIONS, key), value)
    return bool(added)


def _is_raised(draft: Draft, analysis: PodAnalysis, target: Target) -> bool:
    annotations = draft.view.annotations
    is_read = analysis.configuration.defaults.memlock == "nri"
    return is_read and bool(memlock_annotation_key(annotations, target.name))


def _warn(draft: Draft, analysis: PodAnalysis, target: Target, reason: Reason) -> None:
    memlock = analysis.configuration.defaults.memlock
    if memlock == "unlimited" or _is_raised(draft, analysis, target):
        return
    if memlock == "nri":
        message = (
            "the memlock limit stays low: the annotation's key would be too long, or the "
            "annotations are full"
        )
        if any(key in draft.view.annotations for key in memlock_annotations(target.name)):
            message = "your ulimits annotation is kept, but does not raise RLIMIT_MEMLOCK"
        draft.warned(target.name, NOT_RAISED, message)
        return
    circumstance = _circumstance(analysis, target, reason)
    message = f"IPC_LOCK has no effect {circumstance}; containerd needs LimitMEMLOCK=infinity"
    draft.warned(target.name, reason, message)


def _circumstance(analysis: PodAnalysis, target: Target, reason: Reason) -> str:
    """Return when IPC_LOCK has no effect; a command that changes the user is named."""
    if reason is USER_NAMESPACE:
        return "with hostUsers: false"
    user = analysis.settings_reader.settings(target.path).user
    if user is None or not user.certain:
        return "for non-root users"
    return f"after {user.source.removesuffix(' in its command'):.30}"


MUTATION = Mutation(
    name="ipc-lock",
    summary=(
        "adds the IPC_LOCK capability, which exempts root from the limit on locked memory (memlock)"
    ),
    needs=RdmaAccess.NONE,
    reasons=(
        *(ADDED, PRESENT, PRIVILEGED, RAISED, DROPPED, POD_SECURITY),
        *(MISSPELLED, NON_ROOT, USER_NAMESPACE, NOT_RAISED),
    ),
    mutate=mutate,
)


# The annotations that make the NRI ulimit-adjuster raise RLIMIT_MEMLOCK for one container.
#
# Source: containerd/nri, plugins/ulimit-adjuster. Newer versions read the first key, older ones
# only the second. The limits are unsigned integers of 64 bits, and the largest means unlimited;
# `-1` does not parse, and the container fails.

_DOMAINS = ("ulimits.noderesource.dev", "ulimits.nri.containerd.io")
_UNLIMITED = 2**64 - 1
UNLIMITED = f"- {{type: RLIMIT_MEMLOCK, soft: {_UNLIMITED}, hard: {_UNLIMITED}}}"
#: The longest part of an annotation's key after the slash (apimachinery, IsQualifiedName).
_MAX_NAME_LENGTH = 63


def memlock_annotations(container: str) -> dict[str, str]:
    """Return the annotations for a container; {} if its name is too long for a key."""
    name = f"container.{container}"
    if len(name) > _MAX_NAME_LENGTH:
        return {}
    return {f"{domain}/{name}": UNLIMITED for domain in _DOMAINS}


def missing_annotations(annotations: Mapping[str, object], container: str) -> dict[str, str]:
    """Return the annotations to add: none if the user has either key, or there is no room."""
    added = memlock_annotations(container)
    if any(key in annotations for key in added) or not has_room(annotations, added):
        return {}
    return added


def memlock_annotation_key(annotations: Mapping[str, object], container: str) -> str:
    """Return the key of the annotation that sets memlock for a container; "" if none does."""
    for key in memlock_annotations(container):
        if "MEMLOCK" in str(annotations.get(key, "")).upper():
            return key
    return ""
