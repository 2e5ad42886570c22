"""What a pod waits for, read from a cluster: claims, volumes, its node, and the pods on nodes.

A read that is forbidden is recorded, and everything else is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.diagnose.why.evidence import MissingClaim, PodEvidence, UnfinishedPod, UnmountableClaim
from webhook.diagnose.why.pending_scheduler import DEFAULT_SCHEDULER, preemptor_uid
from webhook.errors import ClusterError, ShapeError
from webhook.kube.api import ObjectReads, StatusError, path_segment
from webhook.kube.cluster_reads import FORBIDDEN, NOT_FOUND, BestEffortReads
from webhook.kube.objects import KubernetesObject, Manifest, NodeRecord, PodRecord
from webhook.kube.records import LenientObject, Text, text_of
from webhook.kube.reflector import read_list
from webhook.kube.watched_resources import Item, WatchedResource
from webhook.model.pod import Pod
from webhook.model.resources import scheduler_requests

_STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


class PendingReads:
    """Reads about the pods of one namespace that are pending, or not ready."""

    def __init__(
        self, reads: ObjectReads, best_effort_reads: BestEffortReads, namespace: str
    ) -> None:
        """Read with limited rights; `best_effort_reads` records failed reads."""
        self._reads = reads
        self._best_effort_reads = best_effort_reads
        self._namespace = namespace

    def own_node(self, pod: PodRecord) -> tuple[NodeRecord, ...] | None:
        """Return the node of a running pod that is not ready, or is being deleted.

        () if it does not exist; None for other pods, and if it cannot be read.
        """
        name = pod.spec.node_name
        is_unready = pod.status.condition("Ready").status == "False"
        if pod.status.phase != "Running" or not (is_unready or pod.metadata.is_deleted):
            return None
        node = self._existing("/api/v1/nodes", "node", name)
        if node is None:
            return ()
        return (NodeRecord.model_validate(node),) if node else None

    def missing_claims(self, pod: PodRecord) -> Iterator[MissingClaim]:
        """Yield the ResourceClaims in a pod's spec that keep it from getting a node."""
        if not pod.waits_for_node:
            return
        for name in dict.fromkeys(claim.resource_claim_name for claim in pod.spec.resource_claims):
            if name and (missing := self._missing_claim(name)):
                yield missing

    def _missing_claim(self, name: str) -> MissingClaim | None:
        collection = f"/apis/resource.k8s.io/v1/namespaces/{self._namespace}/resourceclaims"
        claim = self._existing(collection, "ResourceClaim", name)
        if claim is None:
            return MissingClaim(name)
        is_ending = KubernetesObject.read(claim).metadata.is_deleted
        return MissingClaim(name, is_ending=True) if is_ending else None

    def unmountable_claims(self, pod: PodRecord) -> Iterator[UnmountableClaim]:
        """Yield the PersistentVolumeClaims of a pod without a node that it cannot mount."""
        for name in pod.spec.volume_claim_names if pod.waits_for_node else ():
            if problem := self._unmountable_claim(name):
                yield problem

    def _unmountable_claim(self, name: str) -> UnmountableClaim | None:
        collection = f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims"
        manifest = self._existing(collection, "PersistentVolumeClaim", name)
        if manifest is None:
            return UnmountableClaim(name, "missing")
        claim = _VolumeClaimRecord.read(manifest)
        if claim.metadata.is_deleted:
            return UnmountableClaim(name, "ending")
        if claim.status.phase != "Pending":
            return None
        storage_class = claim.spec.storage_class_name
        class_manifest: Manifest | None = {}
        if storage_class:
            class_manifest = self._existing(_STORAGE_CLASSES, "StorageClass", storage_class)
        provisioner = text_of((class_manifest or {}).get("provisioner"))
        return UnmountableClaim(name, "unbound", storage_class, class_manifest is None, provisioner)

    def _existing(self, collection: str, kind: str, name: str) -> Manifest | None:
        """Return an object, {} if it could not be read; None if it does not exist."""
        try:
            return self._reads.get(f"{collection}/{path_segment(name)}", {})
        except ClusterError as error:
            if isinstance(error, StatusError) and error.code == NOT_FOUND:
                return None if error.says_missing(name) else {}
            self._best_effort_reads.record_failure(f"{kind} {name}", error)
            return {}

    def unfinished_pods(self, evidence: PodEvidence) -> tuple[UnfinishedPod, ...] | None:
        """Return the pods that may explain what a pod waits for; None if they are not needed.

        Without the right to list all pods, those of the namespace are listed.
        """
        if not _needs_pods(evidence):
            return None
        for namespace in ("", self._namespace):
            pods = WatchedResource(resource="pods", project=_unfinished_pod, namespace=namespace)
            try:
                listed = read_list(self._reads, pods).projections
            except ClusterError as error:
                subject = (
                    f"pods of namespace {namespace}" if namespace else "pods of all namespaces"
                )
                self._best_effort_reads.record_failure(subject, error)
                if not isinstance(error, StatusError) or error.code != FORBIDDEN:
                    return None
            else:
                return tuple(listed.values())
        return None


def _needs_pods(evidence: PodEvidence) -> bool:
    pod = evidence.pod
    if not pod.waits_for_node:
        return bool(preemptor_uid(evidence))
    scheduled = pod.status.condition("PodScheduled")
    if not scheduled.status:
        return pod.spec.scheduler_name not in ("", DEFAULT_SCHEDULER)
    return "Insufficient " in scheduled.message


def _unfinished_pod(manifest: Item) -> UnfinishedPod | None:
    """Return what is of interest about a pod; None for a pod that has ended."""
    pod = PodRecord.read(manifest)
    if pod.status.has_ended:
        return None
    try:
        amounts = scheduler_requests(Pod(pod.manifest))
    except ShapeError:
        amounts = {}
    metadata, spec = pod.metadata, pod.spec
    return UnfinishedPod(
        f"{metadata.namespace}/{metadata.name}",
        metadata.uid,
        spec.node_name,
        spec.scheduler_name,
        amounts,
        metadata.controller.title if metadata.controller else "",
    )


class _VolumeClaimSpec(LenientObject):
    storage_class_name: Text = ""


class _VolumeClaimStatus(LenientObject):
    phase: Text = ""


class _VolumeClaimRecord(KubernetesObject):
    """A PersistentVolumeClaim."""

    spec: _VolumeClaimSpec = _VolumeClaimSpec()
    status: _VolumeClaimStatus = _VolumeClaimStatus()
