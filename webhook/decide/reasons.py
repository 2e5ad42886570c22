"""The reasons that concern a pod as a whole; each mutation's file has its own reasons.

docs/reasons.md lists all of them.
"""

from __future__ import annotations

from webhook.decide.admission_warnings import HAZARD_REASONS
from webhook.decide.examine import FABRIC_NOT_NEEDED, HOST_NETWORK_MISSING, MIRROR_POD, WINDOWS_POD
from webhook.decide.examine.fabric_choice import FABRIC_AMBIGUOUS, FABRIC_CONFLICT, FABRIC_UNKNOWN
from webhook.decide.examine.foreign_nic import FOREIGN_NIC
from webhook.decide.examine.gpu_conflict import GPU_NOT_ON_FABRIC
from webhook.decide.examine.node_selection import SELECTOR_UNKNOWN
from webhook.decide.examine.targets import (
    CONTAINERS_REQUIRED,
    DEVICE_NOT_LISTED,
    GPU_BY_CLAIM,
    NO_TARGET,
    NODE_DEVICES,
    PRIVILEGED_WITH_GPU,
    TAKEN_FOR_LAUNCHER,
)
from webhook.decide.limits import POD_TOO_LARGE
from webhook.decide.mutations.env import USER_VALUE_REASONS
from webhook.decide.mutations.memory_limit import UNKNOWN as LIMITS_UNKNOWN
from webhook.decide.verdict import JUDGE_REASONS, ROOT_ASSUMED
from webhook.model.annotations import INVALID_ANNOTATION
from webhook.model.decision import Reason

PATCHED = Reason("Patched", "The pod was changed; the mutations show how.", remedy="")
ALREADY_PATCHED = Reason(
    "AlreadyPatched",
    "The pod already has everything that the webhook would add, so nothing was changed.",
    remedy="",
)
#: The pod has the webhook's patch, whatever the verdict: with these, a decision has no reason that
#: concerns the pod as a whole. Mutations may still be skipped, such as those that need hostNetwork;
#: their outcomes have the reasons.
PATCH_REASONS = (PATCHED, ALREADY_PATCHED)
NOT_OPTED_IN = Reason(
    "NotOptedIn",
    'The pod has no annotation rdma.lab/enable: "true".',
    remedy=(
        'Set the annotation rdma.lab/enable: "true" in the pod\'s manifest or, for a workload, in '
        "the pod template, and create the pod again."
    ),
)
INVALID_POD = Reason(
    "InvalidPod",
    "A field of the pod has a type or value that the API server rejects.",
    remedy="Correct the field that the denial names.",
    rdma="no",
)
MUTATION_FAILED = Reason(
    "MutationFailed",
    "A mutation failed, so the webhook denied the pod; the denial gives the reason.",
    remedy="Correct the problem that the denial reports, or skip the mutation with rdma.lab/skip.",
    rdma="no",
)
#: The reasons for denying a pod.
DENIALS = (
    INVALID_ANNOTATION,
    CONTAINERS_REQUIRED,
    FABRIC_CONFLICT,
    FABRIC_AMBIGUOUS,
    INVALID_POD,
    POD_TOO_LARGE,
    MUTATION_FAILED,
)
#: All reasons for a decision, as documented in docs/reasons.md.
DECISION_REASONS = (
    PATCHED,
    ALREADY_PATCHED,
    NOT_OPTED_IN,
    MIRROR_POD,
    WINDOWS_POD,
    DEVICE_NOT_LISTED,
    NO_TARGET,
    NODE_DEVICES,
    PRIVILEGED_WITH_GPU,
    GPU_BY_CLAIM,
    FABRIC_UNKNOWN,
    GPU_NOT_ON_FABRIC,
    FOREIGN_NIC,
    *DENIALS,
)
UNKNOWN_ANNOTATION = Reason(
    "UnknownAnnotation",
    "The pod has an rdma.lab/* annotation that the webhook does not recognize.",
    remedy="Correct or remove the key; docs/annotations.md lists all keys.",
)
FACTS_UNKNOWN = Reason(
    "NamespaceUnknown",
    "Nothing is known about the namespace, so memory limits are kept and the namespace's "
    "annotation rdma.lab/fabric is ignored.",
    remedy=LIMITS_UNKNOWN.remedy,
)
CLAIM_UNKNOWN = Reason(
    "ClaimUnknown",
    "A ResourceClaim of the pod could not be read, so the webhook inferred the claim's devices "
    "from the names of the claim and of its request.",
    remedy=(
        "Check that the ResourceClaim exists in the namespace: without it, the pod stays "
        "Pending. If it exists now, create the pod again. For a preview, use --live, or add "
        "the claim to the file that you pass to --facts."
    ),
)
NAMESPACE_FABRIC = Reason(
    "NamespaceFabric",
    "The namespace's rdma.lab/fabric is ignored: it names a fabric that does not exist, or it is a "
    "label, not an annotation.",
    remedy=(
        "Set the namespace's annotation rdma.lab/fabric to the name of an existing fabric, or "
        "remove the annotation. Remove the label rdma.lab/fabric if there is one."
    ),
)
OTHER_INJECTOR = Reason(
    "OtherInjector",
    "The pod also requests RDMA from another webhook, so resources may be added twice.",
    remedy="Remove the annotation that asks the other webhook for RDMA.",
)
OTHER_CONFIGURATION = Reason(
    "OtherConfiguration",
    "The pod's annotation rdma.lab/status was written under a different configuration, so the "
    "webhook treats everything in the pod as written by you.",
    remedy=(
        "If the pod was created from the manifest of an older pod, remove from that manifest "
        "rdma.lab/status and everything that the webhook added. Otherwise, no action is needed."
    ),
)
SKIPPED_BY_USER = Reason(
    "SkippedByUser",
    "The pod lists this mutation in rdma.lab/skip.",
    remedy="Remove the mutation from rdma.lab/skip, unless you make its changes yourself.",
)
#: The reasons that explain a verdict; no other reason determines one.
VERDICT_REASONS = tuple(
    dict.fromkeys(
        reason
        for reason in (
            *JUDGE_REASONS,
            *DECISION_REASONS,
            HOST_NETWORK_MISSING,
            *USER_VALUE_REASONS,
            *HAZARD_REASONS,
        )
        if reason.rdma is not None
    )
)
#: The reasons of remarks about the pod before any mutation runs, and those for not running one.
REASONS_OUTSIDE_MUTATIONS = (
    SKIPPED_BY_USER,
    TAKEN_FOR_LAUNCHER,
    FABRIC_NOT_NEEDED,
    HOST_NETWORK_MISSING,
    FABRIC_UNKNOWN,
    FABRIC_AMBIGUOUS,
    GPU_NOT_ON_FABRIC,
    FOREIGN_NIC,
    UNKNOWN_ANNOTATION,
    FACTS_UNKNOWN,
    CLAIM_UNKNOWN,
    NAMESPACE_FABRIC,
    OTHER_INJECTOR,
    OTHER_CONFIGURATION,
    SELECTOR_UNKNOWN,
    *HAZARD_REASONS,
    ROOT_ASSUMED,
)
