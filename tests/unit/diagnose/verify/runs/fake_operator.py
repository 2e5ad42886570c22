"""A cluster in memory, with an immediate mpi-operator; tests/e2e/verify has the real one."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.unit.diagnose.tools.benchmarks.outputs import nccl_log, nccl_tests
from tests.unit.diagnose.verify.runs.plans import FABRIC
from webhook.diagnose.verify.results import Evaluation, PortRate
from webhook.diagnose.verify.runs.nccl_job import NcclPlan
from webhook.diagnose.verify.runs.nccl_run import NcclEnvironment, NcclRun
from webhook.diagnose.verify.runs.plan import RunEnvironment
from webhook.model.finding import Finding

Object = dict[str, Any]
ROLE = "training.kubeflow.org/job-role"
OVER_RDMA = nccl_log()
PLAN = NcclPlan(
    name="verify-0123abcd",
    fabric=FABRIC,
    nodes=("a", "b"),
    gpus=4,
    gpu_resource="nvidia.com/v100",
    image="nccl",
    test="all_reduce_perf",
    largest="1G",
    start_timeout=60,
    rate=PortRate(200, "--rate 200"),
)


def container(**state: Any) -> Object:
    """Return the status of a pod with a container in a state."""
    return {"containerStatuses": [{"name": "nccl-tests", "state": state}]}


RUNNING = container(running={"startedAt": "x"})
READY = {**RUNNING, "conditions": [{"type": "Ready", "status": "True"}]}
ENDED = container(terminated={"exitCode": 0, "startedAt": "x"})
FAILED = container(terminated={"exitCode": 127, "startedAt": "x"})
PENDING = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}]}


@dataclass
class FakeOperator:
    """Pods that follow their stories, one part at each poll; the launcher follows the workers."""

    workers: list[Object] = field(default_factory=lambda: [RUNNING, READY])
    launcher: list[Object] = field(default_factory=lambda: [RUNNING, ENDED])
    logs: dict[str, str] = field(
        default_factory=lambda: {"launcher": nccl_tests() + OVER_RDMA, "worker": ""}
    )
    rdma: dict[str, str | None] = field(
        default_factory=lambda: {"launcher": "none", "worker": "yes"}
    )
    makes_pods: bool = True
    problem: Finding | None = None
    ends_after: int | None = None
    vanishes_after: int | None = None
    errors: dict[str, Exception] = field(default_factory=dict)
    jobs: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)
    progress: list[str] = field(default_factory=list)
    saved_logs: list[str] = field(default_factory=list)
    time: float = 0
    _polls: int = 0
    _pauses: int = 0

    def run(self, plan: NcclPlan = PLAN) -> Evaluation:
        """Measure, and delete the objects of the run."""
        run = NcclRun(plan, self.environment)
        try:
            return run.measure()
        finally:
            run.remove(lambda _: None)

    @property
    def environment(self) -> NcclEnvironment:
        """The environment of a run."""
        run = RunEnvironment(
            self, lambda _: self.problem, lambda *_: None, lambda *_: None, self.wait_for_end,
            lambda: self.time,
        )  # fmt: skip
        return NcclEnvironment(run, _Jobs(self), self.progress.append, self.saved_logs.append)

    def wait_for_end(self, seconds: float) -> bool:
        """Let time pass."""
        self.time += seconds
        self._pauses += 1
        assert self._pauses < 10_000, "the run does not end"
        return self.ends_after is not None and self._pauses > self.ends_after

    def create(self, pod: Object) -> Object:
        """Fail: the operator creates the pods."""
        raise AssertionError(pod)

    def list(self, selector: str) -> list[Object]:
        """Let the operator act, and return the pods."""
        assert selector.endswith("=verify-0123abcd")
        if self.jobs and self.makes_pods:
            self._act(self.jobs[0])
        if self.vanishes_after is not None and self._polls > self.vanishes_after:
            self.pods = []
        return deepcopy(self.pods)

    def delete(self, pod: Object) -> None:
        """Delete a pod."""
        name = pod["metadata"]["name"]
        self.pods = [existing for existing in self.pods if existing["metadata"]["name"] != name]

    def log(self, name: str, container: str) -> str:
        """Return a log."""
        if error := self.errors.get("log"):
            raise error
        assert container == "nccl-tests"
        return self.logs["launcher" if "launcher" in name else "worker"]

    def _act(self, job: Object) -> None:
        specs = job["spec"]["mpiReplicaSpecs"]
        poll, self._polls = self._polls, self._polls + 1
        workers = [
            self._pod(f"worker-{number}", "worker", specs["Worker"], _part(self.workers, poll))
            for number in range(specs["Worker"]["replicas"])
        ]
        launcher_poll = poll - len(self.workers)
        launcher = [
            self._pod(
                "launcher", "launcher", specs["Launcher"], _part(self.launcher, launcher_poll)
            )
        ]
        ready = self.workers[-1] is READY and launcher_poll >= 0
        self.pods = [*workers, *(launcher if ready else [])]

    def _pod(self, name: str, role: str, replica: Object, status: Object) -> Object:
        template = deepcopy(replica["template"])
        metadata = template["metadata"]
        metadata |= {"name": f"verify-0123abcd-{name}", "namespace": "lab"}
        metadata["labels"][ROLE] = role
        if (rdma := self.rdma[role]) is not None:
            metadata["annotations"]["rdma.lab/status"] = json.dumps({"rdma": rdma})
        template["spec"]["nodeName"] = f"node-of-{name}"
        return {**template, "status": status}


def _part(story: list[Object], poll: int) -> Object:
    return story[min(max(poll, 0), len(story) - 1)]


@dataclass
class _Jobs:
    operator: FakeOperator

    def create(self, job: Object) -> None:
        if error := self.operator.errors.get("create"):
            raise error
        self.operator.jobs.append(job)

    def list(self, selector: str) -> list[Object]:
        assert selector.endswith("=verify-0123abcd")
        return list(self.operator.jobs)

    def delete(self, job: Object) -> None:
        self.operator.jobs.remove(job)
