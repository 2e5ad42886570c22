"""Pods of a cluster in memory; tests/e2e/verify has a real cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from webhook.diagnose.verify.results import NodePair
from webhook.diagnose.verify.runs.plan import RunEnvironment, RunPlan
from webhook.diagnose.verify.runs.run import NodeRun
from webhook.model.finding import Finding

Pod = dict[str, Any]
#: The status of a pod at each poll after its creation; the last status stays.
Story = list[Pod]


def running(*, ready: bool = False) -> Pod:
    """Return the status of a pod whose container runs."""
    return {
        "phase": "Running",
        "podIP": "10.1.2.3",
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        "containerStatuses": [{"name": "perftest", "state": {"running": {"startedAt": "x"}}}],
    }


def ended_status(code: int = 0, reason: str = "Completed") -> Pod:
    """Return the status of a pod whose container has run and ended."""
    state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": "x"}}
    return {
        "phase": "Failed" if code else "Succeeded",
        "podIP": "10.1.2.3",
        "containerStatuses": [{"name": "perftest", "state": state}],
    }


def pending(message: str) -> Pod:
    """Return the status of a pod that the scheduler cannot place."""
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


def waiting(reason: str, message: str = "") -> Pod:
    """Return the status of a pod whose container waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "perftest", "state": state}]}


#: The fields of a status besides its verdict, of a call that left nothing to compare.
STATUS = {"because": "Equipped", "fabric": "v100-ib", "applied": [], "config": "0123456789ab"}
SERVER: Story = [running(), running(ready=True)]
CLIENT: Story = [running(), ended_status()]


def role_of(pod: Pod) -> str:
    """Return whether a pod is a server or a client."""
    return str(pod["metadata"]["labels"]["app.kubernetes.io/component"])


def node_of(pod: Pod) -> str:
    """Return the node that a pod must run on."""
    terms = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (field_,) = term["matchFields"]
    return str(field_["values"][0])


@dataclass
class FakePods:
    """Pods that follow their stories, one status at each list."""

    stories: Callable[[Pod], Story] = lambda pod: SERVER if role_of(pod) == "server" else CLIENT
    logs: Callable[[Pod], str] = lambda _: ""
    rdma: str | None = "yes"
    #: Whether a pod is deleted from outside the run.
    vanishes: Callable[[Pod], bool] = lambda _: False
    #: Raised by the requests with this name, in this order; None lets a request pass.
    errors: dict[str, list[Exception | None]] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    created: list[Pod] = field(default_factory=list)
    #: The nodes that had pods, at each list.
    busy: list[list[str]] = field(default_factory=list)
    _age: dict[str, int] = field(default_factory=dict)

    def create(self, pod: Pod) -> Pod:
        """Create a pod, with the status that the webhook would write."""
        self._maybe_fail("create")
        created_pod = deepcopy(pod)
        if self.rdma is not None:
            written = json.dumps({"rdma": self.rdma, **STATUS}, separators=(",", ":"))
            created_pod["metadata"]["annotations"]["rdma.lab/status"] = written
        created_pod["metadata"]["namespace"] = "lab"
        created_pod["status"] = {"phase": "Pending"}  # as the API server answers
        name = created_pod["metadata"]["name"]
        assert name not in self.pods
        self.pods[name] = created_pod
        self._age[name] = 0
        self.created.append(created_pod)
        return deepcopy(created_pod)

    def list(self, selector: str) -> list[Pod]:
        """Let time pass, and return the pods with these labels."""
        self._maybe_fail("list")
        labels = dict(label.split("=") for label in selector.split(","))
        self.pods = {name: pod for name, pod in self.pods.items() if not self.vanishes(pod)}
        for name, pod in self.pods.items():
            story = self.stories(pod)
            pod["status"] = story[min(self._age[name], len(story) - 1)]
            self._age[name] += 1
        self.busy.append([node_of(pod) for pod in self.pods.values()])
        matching = (
            pod for pod in self.pods.values() if labels.items() <= pod["metadata"]["labels"].items()
        )
        return [deepcopy(pod) for pod in matching]

    def delete(self, pod: Pod) -> None:
        """Delete a pod."""
        self._maybe_fail("delete")
        self.pods.pop(pod["metadata"]["name"], None)

    def log(self, name: str, container: str) -> str:
        """Return a log."""
        self._maybe_fail("log")
        assert container == "perftest"
        return self.logs(self.pods[name])

    def _maybe_fail(self, request: str) -> None:
        planned = self.errors.get(request)
        error = planned.pop(0) if planned else None
        if error is not None:
            raise error


@dataclass
class FakeEnvironment:
    """A run on fake pods, whose clock advances by each pause."""

    pods: FakePods
    #: The number of pauses after which the run must end.
    ends_after: int | None = None
    problem: Finding | None = None
    progress: list[str] = field(default_factory=list)
    saved_logs: dict[NodePair, str] = field(default_factory=dict)
    time: float = 0
    _pauses: int = 0

    @property
    def environment(self) -> RunEnvironment:
        """The environment of a run."""
        return RunEnvironment(
            self.pods,
            lambda _: self.problem,
            self._report_progress,
            self._save_log,
            self.wait_for_end,
            lambda: self.time,
        )

    def run(self, plan: RunPlan) -> NodeRun:
        """Measure, and return the run, which has the report."""
        run = NodeRun(plan, self.environment)
        run.measure()
        return run

    def wait_for_end(self, seconds: float) -> bool:
        """Let time pass."""
        self.time += seconds
        self._pauses += 1
        assert self._pauses < 10_000, "the run does not end"
        return self.ends_after is not None and self._pauses > self.ends_after

    def _report_progress(self, pair: NodePair | None, message: str) -> None:
        self.progress.append(f"{pair.client} → {pair.server}: {message}" if pair else message)

    def _save_log(self, pair: NodePair, text: str) -> None:
        self.saved_logs[pair] = text
