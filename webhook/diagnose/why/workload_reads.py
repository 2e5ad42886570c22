"""The pods of a controller, read from a cluster; or what may explain why it has none."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from webhook.diagnose.why.collector import NoPodError
from webhook.diagnose.why.file_collector import in_order
from webhook.diagnose.why.workload_kinds import WorkloadKind
from webhook.errors import ClusterError
from webhook.kube.api import ObjectReads, StatusError, path_segment
from webhook.kube.cluster_reads import FORBIDDEN, NOT_FOUND, BestEffortReads, ReadFailure
from webhook.kube.objects import Conditions, Event, KubernetesObject, Metadata
from webhook.kube.reflector import read_list
from webhook.kube.watched_resources import Item, WatchedResource
from webhook.model.names import natural_key

#: The largest number of a controller's pods that are explained, the newest ones.
MAX_PODS = 3
_RAY, _BATCH, _APPS = "ray.io/v1", "batch/v1", "apps/v1"
_JOB = WorkloadKind(_BATCH, "Job")
_RAY_CLUSTER = WorkloadKind(_RAY, "RayCluster")
_FLEET_REPLICAS = WorkloadKind("orchestration.aibrix.ai/v1alpha1", "RayClusterReplicaSet")
#: Kind → the kinds of the objects between it and its pods: its intermediates.
_INTERMEDIATE_KINDS: dict[str, tuple[WorkloadKind, ...]] = {
    "CronJob": (_JOB,),
    "Deployment": (WorkloadKind(_APPS, "ReplicaSet"),),
    "JobSet": (_JOB,),
    "LeaderWorkerSet": (WorkloadKind(_APPS, "StatefulSet"),),
    "MPIJob": (_JOB,),
    "RayClusterFleet": (_FLEET_REPLICAS, _RAY_CLUSTER),
    "RayClusterReplicaSet": (_RAY_CLUSTER,),
    "RayJob": (_RAY_CLUSTER, _JOB),
    "RayService": (_RAY_CLUSTER,),
}


class Workload(NamedTuple):
    """A controller with the objects between it and its pods."""

    namespace: str
    controller: KubernetesObject
    #: Its ReplicaSets, Jobs and the like, newest first.
    intermediates: tuple[KubernetesObject, ...] = ()
    #: The names of its pods, newest first, but the newest of each owner before its others.
    pods: tuple[str, ...] = ()
    #: The names of its pods that are not ready, in natural order.
    unready: tuple[str, ...] = ()
    #: When the newest of its pods was created; "" without one.
    newest: str = ""
    #: Events about the controller and its intermediates, oldest first.
    events: tuple[Event, ...] = ()
    #: The ResourceQuotas of the namespace; () if it has pods.
    quotas: tuple[KubernetesObject, ...] = ()
    #: The namespace itself; None if it has pods, or if it cannot be read.
    namespace_object: KubernetesObject | None = None
    read_failures: tuple[ReadFailure, ...] = ()


class _Owned(NamedTuple):
    """The metadata of a pod or of an intermediate, which is all that finds the pods."""

    metadata: Metadata
    owner_uids: frozenset[str]
    is_ready: bool = False


class WorkloadReads:
    """Reads the controllers of one namespace, and their pods."""

    def __init__(self, reads: ObjectReads, namespace: str) -> None:
        """Read with limited rights; only the controller and its pods must be readable."""
        self._reads = reads
        self._namespace = namespace

    def of(self, kinds: Sequence[WorkloadKind], name: str) -> Workload:
        """Read a controller; raise NoPodError if it does not exist, or cannot be read."""
        best_effort_reads = BestEffortReads(self._reads)
        controller = self._controller(kinds, name)
        intermediates = [
            child
            for kind in _INTERMEDIATE_KINDS.get(controller.kind, ())
            for child in self._listed(kind, best_effort_reads)
        ]
        pods = self._pods()
        uids = _descendants(controller.metadata.uid, [*map(_owned, intermediates), *pods])
        owned = [child for child in intermediates if child.metadata.uid in uids]
        pods_of_it = [pod for pod in pods if pod.metadata.uid in uids]
        names = _newest_pods(pods_of_it)
        events = self._events([controller, *owned], best_effort_reads)
        quotas = () if names else self._quotas(best_effort_reads)
        return Workload(
            self._namespace,
            controller,
            tuple(sorted(owned, key=_creation_time, reverse=True)),
            names,
            _unready(pods_of_it),
            max((pod.metadata.creation_timestamp for pod in pods_of_it), default=""),
            events,
            quotas,
            None if names else self._namespace_object(best_effort_reads),
            tuple(best_effort_reads.failures),
        )

    def _controller(self, kinds: Sequence[WorkloadKind], name: str) -> KubernetesObject:
        """Return the object, in the first version that the API server serves."""
        for kind in kinds:
            path = f"{kind.root}/namespaces/{self._namespace}/{kind.plural}/{path_segment(name)}"
            try:
                manifest = self._reads.get(path, {})
            except StatusError as error:
                if error.code == NOT_FOUND and not error.says_missing(name):
                    continue  # the version is not served
                raise self._refusal(kind, name, error) from None
            typed = {**manifest, "apiVersion": kind.api_version, "kind": kind.kind}
            return KubernetesObject.read(typed)
        title = kinds[0].kind
        raise NoPodError(f"there is no {title} {name}: the cluster does not serve the kind {title}")

    def _refusal(
        self, kind: WorkloadKind, name: str, error: StatusError
    ) -> ClusterError | NoPodError:
        title, namespace = f"{kind.kind} {name}", self._namespace
        if error.code == NOT_FOUND:
            command = f"kubectl get {kind.plural} -n {shlex.quote(namespace)}"
            return NoPodError(
                f"there is no {title} in namespace {namespace}; to list them: {command}"
            )
        if error.code == FORBIDDEN:
            message = f"you do not have the right to read {title} in namespace {namespace}"
            return NoPodError(f"{message}; pass one of its pods")
        return error

    def _pods(self) -> list[_Owned]:
        pods = WatchedResource(resource="pods", project=_pod, namespace=self._namespace)
        try:
            return [*read_list(self._reads, pods).projections.values()]
        except StatusError as error:
            if error.code == FORBIDDEN:
                message = f"you do not have the right to list the pods of {self._namespace}"
                raise NoPodError(f"{message}; pass the name of a pod") from None
            raise

    def _listed(
        self, kind: WorkloadKind, best_effort_reads: BestEffortReads
    ) -> Iterable[KubernetesObject]:
        path = f"{kind.root}/namespaces/{self._namespace}/{kind.plural}"
        listed = best_effort_reads.list(path, f"{kind.plural} of namespace {self._namespace}")
        typed = ({**manifest, "kind": kind.kind} for manifest in listed or ())
        return map(KubernetesObject.read, typed)

    def _events(
        self, about: Iterable[KubernetesObject], best_effort_reads: BestEffortReads
    ) -> tuple[Event, ...]:
        """Return the Events about objects, from one list: they may be many."""
        path = f"/api/v1/namespaces/{self._namespace}/events"
        listed = best_effort_reads.list(path, "events", {"fieldSelector": "type=Warning"})
        subjects = {subject.title: subject for subject in about}
        events = list(map(Event.model_validate, listed or ()))
        return in_order(
            event
            for event in events
            if event.about.title in subjects and event.concerns(subjects[event.about.title])
        )

    def _quotas(self, best_effort_reads: BestEffortReads) -> tuple[KubernetesObject, ...]:
        path = f"/api/v1/namespaces/{self._namespace}/resourcequotas"
        listed = best_effort_reads.list(path, f"resourcequotas of namespace {self._namespace}")
        return tuple(map(KubernetesObject.read, listed or ()))

    def _namespace_object(self, best_effort_reads: BestEffortReads) -> KubernetesObject | None:
        path = f"/api/v1/namespaces/{self._namespace}"
        manifest = best_effort_reads.get(path, f"namespace {self._namespace}")
        return None if manifest is None else KubernetesObject.read(manifest)


class _Pod(KubernetesObject):
    status: Conditions = Conditions()


def _pod(manifest: Item) -> _Owned:
    pod = _Pod.read(manifest)
    return _owned(pod)._replace(is_ready=pod.status.is_ready)


def _owned(child: KubernetesObject) -> _Owned:
    metadata = child.metadata
    return _Owned(metadata, frozenset(owner.uid for owner in metadata.owner_references))


def _descendants(root: str, objects: Sequence[_Owned]) -> set[str]:
    """Return the UIDs of an object's owned objects, theirs, and so on, in linear time."""
    children: dict[str, list[str]] = {}
    for owned in objects:
        for uid in owned.owner_uids:
            children.setdefault(uid, []).append(owned.metadata.uid)
    reached, waiting = {""}, [root]
    while waiting:
        for uid in children.get(waiting.pop(), ()):
            if uid not in reached:
                reached.add(uid)
                waiting.append(uid)
    return reached - {""}


def _newest_pods(pods: Iterable[_Owned]) -> tuple[str, ...]:
    """Return the names, newest first, and the newest of each owner before all others."""
    by_name = sorted(pods, key=lambda pod: natural_key(pod.metadata.name))
    newest = sorted(by_name, key=lambda pod: pod.metadata.creation_timestamp, reverse=True)
    firsts: dict[frozenset[str], _Owned] = {}
    for pod in newest:
        firsts.setdefault(pod.owner_uids, pod)
    ordered = [*firsts.values(), *newest]
    return tuple(dict.fromkeys(pod.metadata.name for pod in ordered))


def _unready(pods: Iterable[_Owned]) -> tuple[str, ...]:
    names = (pod.metadata.name for pod in pods if not pod.is_ready)
    return tuple(sorted(names, key=natural_key))


def _creation_time(child: KubernetesObject) -> str:
    return child.metadata.creation_timestamp
