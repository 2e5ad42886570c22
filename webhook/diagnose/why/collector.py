"""Read a cluster for what there is to know about one pod.

Only the right to read the pod is needed. What else may not be read is left out, with a sentence,
and nothing is read that the explanation does not need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from webhook.admission.registration import WebhookSetup, webhooks_in
from webhook.diagnose.tools.logs import read_log
from webhook.diagnose.why.evidence import (
    ContainerLog,
    ContainerProcesses,
    Gathered,
    MissingClaim,
    PinnedProcess,
    items_at,
    number_at,
    title,
    waits_for_node,
    word_at,
)
from webhook.diagnose.why.file_collector import in_order
from webhook.errors import ClusterError, WebhookError
from webhook.kube.api import ObjectReads, Query, RefusedError
from webhook.kube.cluster_reads import (
    FORBIDDEN,
    NOT_FOUND,
    OwnerChain,
    PermittedFacts,
    PermittedReads,
    Unread,
    permitted_nodes,
    reason_of,
)
from webhook.kube.objects import KubernetesObject, Manifest
from webhook.model.fabric import Fabrics
from webhook.model.facts import Facts
from webhook.model.nodes import node_of
from webhook.model.pod import at

#: Bytes of a log: NCCL and UCX write what matters at the start, and what failed at the end.
HEAD, TAIL_LINES = 4 << 20, 3000
#: Finds the processes that have an RDMA device open; only `ls` is not part of the shell itself.
SCRIPT = """\
command -v ls >/dev/null || { echo no-ls; exit 0; }
hidden=0
for p in /proc/[0-9]*; do
  if ! seen=$(ls -l "$p/fd" 2>/dev/null); then
    [ -d "$p/fd" ] && hidden=$((hidden + 1))
    continue
  fi
  case $seen in *"/dev/infiniband/uverbs"*)
    name=? pin=0
    while read -r key value rest; do
      case $key in Name:) name=$value ;; VmPin:) pin=$value ;; esac
    done <"$p/status"
    echo "process ${p#/proc/} $pin $name" ;;
  esac
done
echo "hidden $hidden"
"""


class Wanted(NamedTuple):
    """What to collect besides what can be read as an object."""

    processes: bool = False
    logs: bool = False
    fabrics: Fabrics | None = None


class PodReads(Protocol):
    """Reads of what is inside a pod; raises as `ObjectReads` does."""

    def log(self, path: str, query: Query, most: int) -> str:
        """Return at most `most` bytes of a log."""

    def run(self, namespace: str, pod: str, container: str, command: list[str]) -> str:
        """Run a command in a container, and return its output."""


class NoPodError(WebhookError):
    """There is no such pod, or it cannot be read."""


class Collector:
    """Collects what is known about pods, one after the other."""

    def __init__(self, reads: ObjectReads, inside: PodReads, wanted: Wanted) -> None:
        self._reads = reads
        self._inside = inside
        self._wanted = wanted
        self._permitted = PermittedReads(reads)
        self._all_nodes: tuple[Manifest, ...] | None = None

    def collect(self, namespace: str, name: str) -> Gathered:
        """Collect what is known about a pod; NoPodError if it cannot be read itself."""
        self._permitted = PermittedReads(self._reads)
        pod = self._pod(namespace, name)
        chain = OwnerChain(self._permitted, namespace).of(KubernetesObject.read(pod))
        owners = tuple(owner.manifest for owner in chain)
        bare = Gathered(pod=pod)
        seen = bare.status is not None
        wanted = self._wanted
        known = self._known(namespace, wanted.fabrics) if wanted.fabrics else None
        return Gathered(
            pod=pod,
            owners=owners,
            namespace=None if seen else self._namespace(namespace, known),
            webhooks=None if seen else self._webhooks(),
            events=self._events(namespace, (pod, *owners)),
            nodes=self._nodes() if _is_pending(pod) else None,
            missing_claims=tuple(self._missing_claims(namespace, pod)),
            processes=self._processes(bare, namespace) if wanted.processes else None,
            logs=self._logs(bare, namespace) if wanted.logs else None,
            fabrics=wanted.fabrics,
            facts=known.facts(Facts()) if known else Facts(),
            lacking=tuple(dict.fromkeys(map(_lacking, self._permitted.unread))),
        )

    def _pod(self, namespace: str, name: str) -> Manifest:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        try:
            return {"apiVersion": "v1", "kind": "Pod", **self._reads.get(path, {})}
        except RefusedError as error:
            if error.code == NOT_FOUND:
                raise NoPodError(self._absent(namespace, name)) from None
            if error.code == FORBIDDEN:
                message = f"you do not have the right to read pod {name} in namespace {namespace}"
                raise NoPodError(message) from None
            raise

    def _absent(self, namespace: str, name: str) -> str:
        """Say that a pod is not there, and why its controller may have failed to create it."""
        told = f"there is no pod {name} in namespace {namespace}"
        found = self._permitted.list(
            f"/api/v1/namespaces/{namespace}/events", "events", _FAILED_CREATE
        )
        for event in reversed(found or []):
            owner = word_at(event, ("involvedObject", "name"))
            if owner and name.startswith(owner):
                kind = word_at(event, ("involvedObject", "kind"))
                return f"{told}; {kind} {owner} could not create a pod: {event.get('message')}"
        return f"{told}; to list its pods: kubectl get pods -n {namespace}"

    def _known(self, namespace: str, fabrics: Fabrics) -> PermittedFacts:
        """Read what a decision on the pod depends on, as `preview --live` does."""
        known = PermittedFacts(self._reads, self._permitted)
        known.read_namespace(namespace)
        if fabrics.by_template:
            known.read_claims(namespace)
        if not known.is_silent():
            known.nodes = {word_at(one, _NAME): node_of(one) for one in self._nodes() or ()}
        return known

    def _namespace(self, namespace: str, known: PermittedFacts | None) -> Manifest | None:
        if known is not None:
            return next((one for one in known.objects if one["kind"] == "Namespace"), None)
        return self._permitted.get(f"/api/v1/namespaces/{namespace}", f"namespace {namespace}")

    def _webhooks(self) -> tuple[WebhookSetup, ...] | None:
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        found = self._permitted.list(path, "mutatingwebhookconfigurations", {})
        return None if found is None else webhooks_in(found)

    def _events(self, namespace: str, about: tuple[Manifest, ...]) -> tuple[Manifest, ...] | None:
        path = f"/api/v1/namespaces/{namespace}/events"
        found: list[Manifest] = []
        for one in about:
            kind, name = word_at(one, ("kind",)), word_at(one, ("metadata", "name"))
            selector = f"involvedObject.kind={kind},involvedObject.name={name}"
            events = self._permitted.list(
                path, f"the events of {title(one)}", {"fieldSelector": selector}
            )
            if events is None:
                return None
            found.extend(events)
        return in_order(found)

    def _nodes(self) -> tuple[Manifest, ...] | None:
        """Read name, labels and allocatable resources of all nodes: once, for all pods."""
        if self._all_nodes is None:
            found = permitted_nodes(_of_node, self._reads, self._permitted)
            self._all_nodes = None if found is None else tuple(found.values())
        return self._all_nodes

    def _missing_claims(self, namespace: str, pod: Manifest) -> Iterator[MissingClaim]:
        """Yield the ResourceClaims that a pod names and that keep it from getting a node."""
        if not waits_for_node(pod):
            return
        claims = items_at(pod, ("spec", "resourceClaims"))
        for name in dict.fromkeys(word_at(one, ("resourceClaimName",)) for one in claims):
            if name and (missing := self._missing_claim(namespace, name)):
                yield missing

    def _missing_claim(self, namespace: str, name: str) -> MissingClaim | None:
        path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"
        try:
            found = self._reads.get(path, {})
        except ClusterError as error:
            if isinstance(error, RefusedError) and error.code == NOT_FOUND:
                # An API server without this version of the kind also answers 404, without a name.
                return MissingClaim(name) if f'"{name}" not found' in str(error) else None
            self._permitted.lack(f"ResourceClaim {name}", error)
            return None
        is_ending = at(found, ("metadata", "deletionTimestamp")) is not None
        return MissingClaim(name, is_ending=True) if is_ending else None

    def _processes(self, bare: Gathered, namespace: str) -> tuple[ContainerProcesses, ...]:
        found: list[ContainerProcesses] = []
        for name in _running(bare.pod):
            if at(bare.pod, ("spec", "hostPID")) is True:
                problem = (
                    "the pod has hostPID: true, so the processes of other pods would count too"
                )
                found.append(ContainerProcesses(name, problem=problem))
                continue
            try:
                command = ["/bin/sh", "-c", SCRIPT]
                said = self._inside.run(namespace, bare.name, name, command)
            except ClusterError as error:
                needed = "this needs the right to pods/exec, and a shell in the image"
                problem = f"{reason_of(error)} ({needed})"
                found.append(ContainerProcesses(name, problem=problem))
            else:
                found.append(read_processes(name, said))
        return tuple(found)

    def _logs(self, bare: Gathered, namespace: str) -> tuple[ContainerLog, ...]:
        found: list[ContainerLog] = []
        for status in items_at(bare.pod, ("status", "containerStatuses")):
            name = word_at(status, ("name",))
            runs = (False, True) if number_at(status, ("restartCount",)) else (False,)
            for previous in runs:
                text = self._log(bare, namespace, name, previous=previous)
                if text is not None:
                    found.append(ContainerLog(name, read_log(text), previous))
        return tuple(found)

    def _log(self, bare: Gathered, namespace: str, name: str, *, previous: bool) -> str | None:
        """Return the start of a log, and its end if the start is not all."""
        path = f"/api/v1/namespaces/{namespace}/pods/{bare.name}/log"
        query = {"container": name, "limitBytes": str(HEAD)}
        if previous:
            query["previous"] = "true"
        try:
            text = self._inside.log(path, query, HEAD)
            if len(text.encode(errors="replace")) >= HEAD:
                rest = {**query, "tailLines": str(TAIL_LINES)}
                text = f"{text}\n{self._inside.log(path, rest, HEAD)}"
        except ClusterError as error:
            self._permitted.lack(f"the log of container {name}", error)
            return None
        return text


_NAME = ("metadata", "name")
_FAILED_CREATE = {"fieldSelector": "reason=FailedCreate"}


def _lacking(unread: Unread) -> str:
    """Say what could not be read, in a sentence."""
    what = unread.what
    if unread.code == FORBIDDEN:
        return f"You do not have the right to read {what}."
    if unread.code == NOT_FOUND:
        return f"{what[0].upper()}{what[1:]}: no longer there."
    return f"{what[0].upper()}{what[1:]}: {unread.said}."


def _of_node(node: Mapping[str, Any]) -> Manifest:
    """Return the few fields of a node that are kept."""
    kept = {"allocatable": at(node, ("status", "allocatable")) or {}}
    labels = at(node, ("metadata", "labels")) or {}
    return {"metadata": {"name": word_at(node, _NAME), "labels": labels}, "status": kept}


def _is_pending(pod: Manifest) -> bool:
    return word_at(pod, ("status", "phase")) == "Pending"


def _running(pod: Manifest) -> list[str]:
    """List the containers that run now."""
    return [
        word_at(status, ("name",))
        for status in items_at(pod, ("status", "containerStatuses"))
        if at(status, ("state", "running")) is not None
    ]


def read_processes(container: str, said: str) -> ContainerProcesses:
    """Read what SCRIPT printed in a container."""
    pinned: list[PinnedProcess] = []
    hidden: Any = None
    for line in said.splitlines():
        words = line.split(maxsplit=3)
        if words[:1] == ["process"] and len(words) == 4 and words[2].isdigit():  # noqa: PLR2004
            pinned.append(PinnedProcess(int(words[1]), words[3], int(words[2])))
        elif words[:1] == ["hidden"]:
            hidden = words[-1]
    if hidden is None:
        why = "the image has no ls" if "no-ls" in said else f"it answered {said.strip()!r:.120}"
        return ContainerProcesses(container, problem=why)
    if hidden != "0" and not pinned:
        problem = f"{hidden} of its processes belong to another user and cannot be inspected"
        return ContainerProcesses(container, problem=problem)
    return ContainerProcesses(container, tuple(pinned))
