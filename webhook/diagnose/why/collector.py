"""The evidence about a pod, read from a cluster.

Only the right to read the pod is needed. Unreadable objects are omitted, with a sentence, and
nothing is read that the explanation does not need.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, Protocol

from webhook.admission.registration import Registration, registrations_in
from webhook.decide.verdict.default_limit import DEFAULT_LIMIT
from webhook.diagnose.tools.logs import read_log
from webhook.diagnose.why.additions import depends_on_mutators
from webhook.diagnose.why.admission_reads import (
    WEBHOOKS_PATH,
    installed_configuration,
    mutators_of,
)
from webhook.diagnose.why.bound_node import node_to_compare, node_without_fabric
from webhook.diagnose.why.comparison import compare
from webhook.diagnose.why.config_map_reads import with_config_maps
from webhook.diagnose.why.evidence import (
    ContainerLog,
    ContainerProcesses,
    PodEvidence,
    StatusAnnotation,
)
from webhook.diagnose.why.file_collector import in_order
from webhook.diagnose.why.pending_reads import PendingReads
from webhook.diagnose.why.process_reads import PROCESS_SCRIPT, read_processes
from webhook.errors import ClusterError, ShapeError, WebhookError
from webhook.kube.api import ObjectReads, Query, StatusError, path_segment
from webhook.kube.cluster_reads import (
    FORBIDDEN,
    NOT_FOUND,
    BestEffortReads,
    FactsReader,
    OwnerChain,
    ReadFailure,
    best_effort_nodes,
    reason_of,
)
from webhook.kube.container_states import ContainerStatus
from webhook.kube.objects import Event, KubernetesObject, NodeRecord, PodRecord, PodStatus
from webhook.kube.watched_resources import countable_node
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts
from webhook.model.nodes import Node as NodeFacts

#: Of a log, the bytes at its start and the lines at its end that are read: NCCL and UCX write their
#: transports at the start, and failures at the end.
HEAD, TAIL_LINES = 4 << 20, 3000


class CollectOptions(NamedTuple):
    """Evidence to collect in addition to objects."""

    processes: bool = False
    logs: bool = False
    configuration: CompiledConfiguration | None = None


class PodReads(Protocol):
    """Reads from inside a pod; they raise the errors of `ObjectReads`."""

    def log(self, path: str, query: Query, limit: int) -> str:
        """Return at most `limit` bytes of a log."""

    def run(self, namespace: str, pod: str, container: str, command: list[str]) -> str:
        """Run a command in a container, and return its output."""


class NoPodError(WebhookError):
    """The error for a pod that does not exist, or cannot be read."""


class Collector:
    """A collector of the evidence about pods; it reads the nodes once for all of them."""

    def __init__(self, reads: ObjectReads, pod_access: PodReads, options: CollectOptions) -> None:
        self._reads = reads
        self._pod_access = pod_access
        self._options = options
        self._best_effort_reads = BestEffortReads(reads)
        self._all_nodes: dict[str, _ReadNode] | None = None

    def collect(self, namespace: str, name: str) -> PodEvidence:
        """Collect the evidence about a pod; raise NoPodError if the pod itself cannot be read."""
        self._best_effort_reads = BestEffortReads(self._reads)
        pod = self._pod(namespace, name)
        owners = OwnerChain(self._best_effort_reads, namespace).of(pod)
        pod_only = PodEvidence(pod=pod)
        has_status = pod_only.status is not None
        options = self._options
        pending = PendingReads(self._reads, self._best_effort_reads, namespace)
        live_reader = (
            self._read_facts(namespace, options.configuration) if options.configuration else None
        )
        evidence = PodEvidence(
            pod=pod,
            owners=owners,
            namespace=self._namespace(namespace, live_reader),
            registrations=None if has_status else self._registrations(),
            events=self._events(namespace, (pod, *owners)),
            nodes=self._shown_nodes() if pod.status.phase == "Pending" else pending.own_node(pod),
            placement_nodes=self._node_facts() if pod.waits_for_node else {},
            missing_claims=tuple(pending.missing_claims(pod)),
            unmountable_claims=tuple(pending.unmountable_claims(pod)),
            processes=self._processes(pod_only, namespace) if options.processes else None,
            logs=self._logs(pod_only, namespace) if options.logs else None,
            configuration=options.configuration,
            cluster_configuration=self._cluster_configuration(pod_only.status)
            if pod_only.status
            else None,
            facts=(live_reader or self._read_limits(pod_only, namespace)).facts(Facts()),
        )
        if not pod.waits_for_node:
            evidence = replace(evidence, placement_nodes=self._bound_node(evidence))
        evidence = replace(evidence, unfinished_pods=pending.unfinished_pods(evidence))
        evidence = with_config_maps(evidence, FactsReader(self._reads, self._best_effort_reads))
        if depends_on_mutators(evidence, compare(evidence)):
            later, others, runtime_class = mutators_of(
                self._reads, self._best_effort_reads, evidence
            )
            evidence = replace(
                evidence,
                later_mutators=later,
                other_mutators=others,
                runtime_class=runtime_class,
            )
        unread_sentences = tuple(
            dict.fromkeys(map(unread_sentence, self._best_effort_reads.failures))
        )
        return replace(evidence, unread_sentences=unread_sentences)

    def _cluster_configuration(self, status: StatusAnnotation) -> CompiledConfiguration | None:
        """Return the cluster's configuration, unless the given one is that of the admission."""
        given = self._options.configuration
        if given is not None and given.config_hash == status.config:
            return None
        return installed_configuration(self._reads, self._best_effort_reads)

    def _pod(self, namespace: str, name: str) -> PodRecord:
        path = f"/api/v1/namespaces/{namespace}/pods/{path_segment(name)}"
        try:
            return PodRecord.read({"apiVersion": "v1", "kind": "Pod", **self._reads.get(path, {})})
        except StatusError as error:
            if error.code == NOT_FOUND:
                raise NoPodError(self._absent(namespace, name)) from None
            if error.code == FORBIDDEN:
                message = f"you do not have the right to read pod {name} in namespace {namespace}"
                raise NoPodError(message) from None
            raise

    def _absent(self, namespace: str, name: str) -> str:
        """Return the message for a missing pod: who stopped it, or why it was not created."""
        absent = f"there is no pod {name} in namespace {namespace}"
        path = f"/api/v1/namespaces/{namespace}/events"
        selector = {"fieldSelector": f"involvedObject.kind=Pod,involvedObject.name={name}"}
        about = self._best_effort_reads.list(path, "events", selector) or ()
        for event in reversed(in_order(map(Event.model_validate, about))):
            if (cause := _STOPS.get(event.reason)) and not event.text.startswith("Cancelling"):
                return f"{absent}; {cause} at {event.time}: {event.text}"
        listed = self._best_effort_reads.list(path, "events", _FAILED_CREATE)
        for event in map(Event.model_validate, reversed(listed or [])):
            owner = event.about
            if owner.name and name.startswith(owner.name):
                return f"{absent}; {owner.title} could not create a pod: {event.text}"
        return f"{absent}; to list the pods: kubectl get pods -n {shlex.quote(namespace)}"

    def _read_facts(self, namespace: str, configuration: CompiledConfiguration) -> FactsReader:
        """Read the facts for a decision on the pod, like `preview --live`."""
        live_reader = FactsReader(self._reads, self._best_effort_reads)
        live_reader.read_namespace(namespace)
        if configuration.uses_claims:
            live_reader.read_claims(namespace)
        if not live_reader.is_unreachable():
            live_reader.nodes = self._node_facts()
        return live_reader

    def _read_limits(self, pod_only: PodEvidence, namespace: str) -> FactsReader:
        """Read the LimitRanges, if the verdict is about the limit that one of them has set."""
        limits_reader = FactsReader(self._reads, self._best_effort_reads)
        status = pod_only.status
        if status is not None and status.verdict_reason == DEFAULT_LIMIT.code:
            limits_reader.read_namespace(namespace)
        return limits_reader

    def _namespace(
        self, namespace: str, live_reader: FactsReader | None
    ) -> KubernetesObject | None:
        if live_reader is not None:
            objects = map(KubernetesObject.read, live_reader.objects)
            return next((item for item in objects if item.kind == "Namespace"), None)
        path = f"/api/v1/namespaces/{namespace}"
        manifest = self._best_effort_reads.get(path, f"namespace {namespace}")
        return None if manifest is None else KubernetesObject.read(manifest)

    def _registrations(self) -> tuple[Registration, ...] | None:
        listed = self._best_effort_reads.list(WEBHOOKS_PATH, "mutatingwebhookconfigurations")
        return None if listed is None else registrations_in(listed)

    def _events(
        self, namespace: str, about: tuple[KubernetesObject, ...]
    ) -> tuple[Event, ...] | None:
        path = f"/api/v1/namespaces/{namespace}/events"
        events: list[Event] = []
        for item in about:
            selector = f"involvedObject.kind={item.kind},involvedObject.name={item.metadata.name}"
            listed = self._best_effort_reads.list(
                path, f"the events of {item.title}", {"fieldSelector": selector}
            )
            if listed is None:
                return None
            read = map(Event.model_validate, listed)
            events.extend(event for event in read if event.concerns(item))
        return in_order(events)

    def _nodes(self) -> dict[str, _ReadNode] | None:
        """Return the nodes, read once for all pods; None if they cannot be read."""
        if self._all_nodes is None:
            self._all_nodes = best_effort_nodes(_read_node, self._reads, self._best_effort_reads)
        return self._all_nodes

    def _shown_nodes(self) -> tuple[NodeRecord, ...] | None:
        nodes = self._nodes()
        return None if nodes is None else tuple(node.view for node in nodes.values())

    def _node_facts(self) -> dict[str, NodeFacts]:
        return {name: node.facts for name, node in (self._nodes() or {}).items()}

    def _bound_node(self, evidence: PodEvidence) -> dict[str, NodeFacts]:
        """Return the facts of the pod's node, if the verdict depends on them."""
        name = node_to_compare(evidence) or node_without_fabric(evidence)
        if not name:
            return {}
        manifest = self._best_effort_reads.get(
            f"/api/v1/nodes/{path_segment(name)}", f"node {name}"
        )
        try:
            return {} if manifest is None else {name: countable_node(manifest)}
        except ShapeError:
            return {}  # no API server has such a node

    def _processes(self, pod_only: PodEvidence, namespace: str) -> tuple[ContainerProcesses, ...]:
        containers: list[ContainerProcesses] = []
        for name in _running_containers(pod_only.pod):
            if pod_only.pod.spec.host_pid:
                problem = (
                    "the pod has hostPID: true, so the processes of other pods would count too"
                )
                containers.append(ContainerProcesses(name, problem=problem))
                continue
            try:
                command = ["/bin/sh", "-c", PROCESS_SCRIPT]
                output = self._pod_access.run(namespace, pod_only.name, name, command)
            except ClusterError as error:
                problem = f"{reason_of(error)} ({_EXEC_REQUIREMENTS})"
                containers.append(ContainerProcesses(name, problem=problem))
            else:
                containers.append(read_processes(name, output))
        return tuple(containers)

    def _logs(self, pod_only: PodEvidence, namespace: str) -> tuple[ContainerLog, ...]:
        logs: list[ContainerLog] = []
        for status in _containers_with_logs(pod_only.pod.status):
            runs = (False, True) if status.restart_count else (False,)
            for previous in runs:
                text = self._log(pod_only, namespace, status.name, previous=previous)
                if text is not None:
                    logs.append(ContainerLog(status.name, read_log(text), previous))
        return tuple(logs)

    def _log(
        self, pod_only: PodEvidence, namespace: str, name: str, *, previous: bool
    ) -> str | None:
        """Return a log, or its start and its end if it is long; None if it cannot be read."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod_only.name}/log"
        query = {"container": name, "limitBytes": str(HEAD)}
        if previous:
            query["previous"] = "true"
        try:
            text = self._pod_access.log(path, query, HEAD)
            if len(text.encode(errors="replace")) >= HEAD:
                tail_query = {**query, "tailLines": str(TAIL_LINES)}
                text = f"{text}\n{self._pod_access.log(path, tail_query, HEAD)}"
        except ClusterError as error:
            self._best_effort_reads.record_failure(f"the log of container {name}", error)
            return None
        if text.startswith(_NO_LOG):
            removed = ClusterError("the node no longer has it")
            self._best_effort_reads.record_failure(f"the log of container {name}", removed)
            return None
        return text


#: The kubelet's answer, with the status 200, if the runtime has removed the container: see
#: https://github.com/kubernetes/kubernetes/issues/142258
_NO_LOG = "unable to retrieve container logs for "
_EXEC_REQUIREMENTS = "this requires the right to create pods/exec, and a shell in the image"
#: The reasons of Events about a pod that was deleted. Source: kubernetes,
#: pkg/controller/tainteviction (which also reports a deletion that it cancels),
#: pkg/scheduler/framework/preemption.
_STOPS = {
    "TaintManagerEviction": "a NoExecute taint of its node evicted it",
    "Preempted": "the scheduler stopped it for a pod of higher priority",
}
_FAILED_CREATE = {"fieldSelector": "reason=FailedCreate"}


def unread_sentence(failure: ReadFailure) -> str:
    """Return a sentence on an object that could not be read."""
    if failure.code == FORBIDDEN:
        return f"You do not have the right to read {failure.subject}."
    message = "not found" if failure.code == NOT_FOUND else failure.message
    return f"Could not read {failure.subject}: {message}."


class _ReadNode(NamedTuple):
    """The parts of a node for the explanation and for a decision; its manifest is dropped."""

    view: NodeRecord
    facts: NodeFacts


def _read_node(node: Mapping[str, object]) -> _ReadNode:
    return _ReadNode(NodeRecord.model_validate(node), countable_node(node))


def _containers_with_logs(status: PodStatus) -> Iterator[ContainerStatus]:
    """Yield the init containers that failed, and the others that do not wait for them."""
    for container in status.init_container_statuses:
        ended = container.state.terminated or container.last_state.terminated
        if ended is not None and ended.exit_code:
            yield container
    for container in status.container_statuses:
        waiting = container.state.waiting
        if waiting is None or waiting.reason != "PodInitializing":
            yield container


def _running_containers(pod: PodRecord) -> list[str]:
    """Return the names of the containers that are running."""
    return [status.name for status in pod.status.container_statuses if status.state.is_running]
