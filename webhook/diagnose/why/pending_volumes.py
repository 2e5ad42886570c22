"""Reasons why PersistentVolumeClaims keep a pod pending, from the claims and the scheduler.

Sources, in Kubernetes 1.34 and 1.36: pkg/scheduler/framework/plugins/volumebinding (PreFilter, and
the messages of Filter), pkg/scheduler/framework/plugins/volumezone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from webhook.diagnose.why.evidence import PodEvidence, UnmountableClaim
from webhook.diagnose.why.messages import cut
from webhook.diagnose.why.pending_scheduler import is_being_bound
from webhook.model.finding import Code, Finding
from webhook.model.names import shortened_list

VOLUME_CLAIM_MISSING = Code(
    "VolumeClaimMissing",
    "The pod is pending: a PersistentVolumeClaim that it mounts does not exist, or is being "
    "deleted.",
    "Create the claim; if the earlier claim of this name is still being deleted, first wait until "
    "it is gone. The pod then starts automatically. If claimName is wrong, correct it in the "
    "pod's manifest or, for a workload, in the pod template, and create the pod again.",
)
VOLUME_CLAIM_UNBOUND = Code(
    "VolumeClaimUnbound",
    "The pod is pending: a PersistentVolumeClaim that it mounts has no volume yet.",
    "Look for the reason with `kubectl describe pvc`: for example, the StorageClass does not "
    "exist, there is no default StorageClass, the provisioner is not running, or no volume "
    "matches the claim.",
)
VOLUME_ELSEWHERE = Code(
    "VolumeElsewhere",
    "The pod is pending: one of its volumes cannot be reached from any node that could otherwise "
    "run the pod.",
    "Allow the pod to run on the nodes that the volume's nodeAffinity selects (kubectl get pv -o "
    "yaml), or give the pod a PersistentVolumeClaim whose volume can be reached from the nodes "
    "that have what the pod requests.",
)
CODES = (VOLUME_CLAIM_MISSING, VOLUME_CLAIM_UNBOUND, VOLUME_ELSEWHERE)

#: The provisioner of a StorageClass that has none.
_BY_HAND = "kubernetes.io/no-provisioner"
_NOT_FOUND = re.compile(r'persistentvolumeclaim "([^"]{1,253})" (not found|is being deleted)')
_UNBOUND = "unbound immediate PersistentVolumeClaims"
_ELSEWHERE = re.compile(
    r"volume node affinity conflict|didn't match PersistentVolume's node affinity"
    r"|no available volume zone"
)


def volume_findings(evidence: PodEvidence, message: str) -> Iterator[Finding]:
    """Yield the reasons why volumes keep a pod pending; `message` is the scheduler's, or ""."""
    if not evidence.pod.waits_for_node:
        return
    claims = {claim.name: claim for claim in evidence.unmountable_claims}
    for name, problem in _NOT_FOUND.findall(message):
        is_ending = problem == "is being deleted"
        claims[name] = UnmountableClaim(name, "ending" if is_ending else "missing")
    yield from (_missing(claim) for claim in claims.values() if claim.state != "unbound")
    if _UNBOUND in message or is_being_bound(evidence.pod):
        unbound = [claim for claim in claims.values() if claim.state == "unbound"]
        yield from map(_unbound, unbound)
        if not unbound and message:
            names = shortened_list(evidence.pod.spec.volume_claim_names)
            text = f"The pod is pending: one of its PersistentVolumeClaims ({names}) has no volume."
            yield VOLUME_CLAIM_UNBOUND.finding("error", text)
    if _ELSEWHERE.search(message):
        names = shortened_list(evidence.pod.spec.volume_claim_names)
        text = (
            "The pod is pending: no node that could otherwise run it can reach the volume of one "
            f"of the pod's PersistentVolumeClaims ({names}). The scheduler reports: {cut(message)}"
        )
        yield VOLUME_ELSEWHERE.finding("error", text)


def _missing(claim: UnmountableClaim) -> Finding:
    predicate = "is being deleted" if claim.state == "ending" else "does not exist"
    text = f"The pod is pending: its PersistentVolumeClaim {claim.name} {predicate}."
    is_ending = claim.state == "ending"
    action = "Once the claim is gone, create it again" if is_ending else "Create the claim"
    remedy = (
        f"{action}; the pod then starts automatically. If claimName is wrong, correct it in the "
        "pod template."
    )
    return VOLUME_CLAIM_MISSING.finding("error", text, remedy)


def _unbound(claim: UnmountableClaim) -> Finding:
    start = f"The pod is pending: its PersistentVolumeClaim {claim.name} has no volume"
    if claim.is_class_missing:
        text = f"{start}, since the StorageClass {claim.storage_class} does not exist."
        remedy = (
            f"Create the StorageClass {claim.storage_class}, or create the claim again with one of "
            "those that exist: `kubectl get storageclasses`."
        )
        return VOLUME_CLAIM_UNBOUND.finding("error", text, remedy)
    if not claim.storage_class:
        remedy = (
            "The claim names no StorageClass, and the cluster has set no default one; create the "
            "claim again with one of those that `kubectl get storageclasses` lists. `kubectl "
            f"describe pvc {shlex.quote(claim.name)}` shows its Events."
        )
        return VOLUME_CLAIM_UNBOUND.finding("error", f"{start}.", remedy)
    remedy = (
        f"`kubectl describe pvc {shlex.quote(claim.name)}` shows why; check that the provisioner "
        f"of the StorageClass {claim.storage_class} is running."
    )
    if claim.provisioner == _BY_HAND:
        remedy = (
            f"Volumes of the StorageClass {claim.storage_class} are made by hand, and none that is "
            "free matches the claim. Compare the size, the access modes and the selector of the "
            "claim with the volumes (kubectl get pv): "
            f"`kubectl describe pvc {shlex.quote(claim.name)}`. Create a PersistentVolume "
            "that matches, or create the claim again."
        )
    return VOLUME_CLAIM_UNBOUND.finding("error", f"{start} from {claim.storage_class}.", remedy)
