"""A run: the rounds in sequence, and the pairs of a round in parallel.

It runs in a single thread, and no request is interrupted, so that every created pod is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import count
from typing import TypeVar

from webhook.diagnose.verify.outliers import flag_outliers
from webhook.diagnose.verify.results import BenchmarkResult, NodePair, PairResult, RunReport
from webhook.diagnose.verify.runs import errors, pods
from webhook.diagnose.verify.runs.errors import RunStopError, interruption
from webhook.diagnose.verify.runs.pair_output import (
    PairLog,
    devices_in,
    grade_pair,
    pair_log,
)
from webhook.diagnose.verify.runs.plan import Round, RunEnvironment, RunPlan
from webhook.diagnose.verify.runs.pods import (
    CONTAINER,
    PodPoll,
    Role,
    client_pod,
    pod_name,
    run_selector,
    server_pod,
)
from webhook.errors import ClusterError
from webhook.kube.api import StatusError
from webhook.kube.objects import Manifest, PodRecord
from webhook.model.finding import Finding, severity

#: Seconds between two polls of the pods.
_PAUSE = 1.0


class NodeRun:
    """A run; `pods.remove_pods` deletes the pods that remain."""

    def __init__(self, plan: RunPlan, environment: RunEnvironment) -> None:
        self._plan = plan
        self._environment = environment
        self._pod_poll = PodPoll(environment, run_selector(plan.name))
        self._results: dict[int, PairResult] = {}
        self._findings: list[Finding] = []

    def measure(self) -> None:
        """Measure all pairs, or until the run must end; `report` has the results.

        Raises ClusterError if the API server stays silent, or pods may not be created.
        """
        numbers = count()
        try:
            for pairs in self._plan.rounds:
                self._round(pairs, numbers)
        except RunStopError as stop:
            self._findings.append(stop.finding)

    @property
    def report(self) -> RunReport:
        """The results so far; each number is compared with the numbers of its peers."""
        plan, pairs = self._plan, [self._results[number] for number in sorted(self._results)]
        compared = iter(flag_outliers([result for pair in pairs for result in pair.results]))
        return RunReport(
            plan.name,
            plan.fabric.name,
            plan.image,
            plan.nodes,
            tuple(
                PairResult(pair.pair, tuple(next(compared) for _ in pair.results)) for pair in pairs
            ),
            tuple(self._findings),
        )

    def _round(self, pairs: Round, numbers: Iterator[int]) -> None:
        active = {}
        for pair in pairs:
            number = next(numbers)
            active[number] = PairRun(
                self._plan, self._environment, self._pod_poll, number, pair
            ).steps()
        while active:
            self._pod_poll.poll()
            for number, steps in list(active.items()):
                try:
                    next(steps)
                except StopIteration as done:
                    self._results[number] = done.value
                    del active[number]
            if active and self._environment.wait_for_end(_PAUSE):
                raise interruption(len(self._results), self._plan.pair_count)


# One pair: its server, then its client, then the output of both.
#
# The steps are a generator, which yields wherever it has to wait for the next poll of the pods.

#: Polls of a server after its client has ended: it prints its last lines within a second.
_LAST_LOOKS = 5
_FORBIDDEN = 403
_T = TypeVar("_T")
_Steps = Generator[None, None, _T]


class PairRun:
    """A pair of a run; `number` counts the pairs from 0."""

    def __init__(
        self,
        plan: RunPlan,
        environment: RunEnvironment,
        pod_poll: PodPoll,
        number: int,
        pair: NodePair,
    ) -> None:
        self._plan = plan
        self._environment = environment
        self._pod_poll = pod_poll
        self._number = number
        self._pair = pair
        self._created: list[PodRecord] = []
        self._last_message = ""

    def steps(self) -> _Steps[PairResult]:
        """Measure, and delete the pods.

        Raises RunStopError if every other pair would fail as well.
        """
        try:
            results = yield from self._measure()
        except errors.MeasurementError as error:
            results = (error.result.with_location("", self._pair),)
        for pod in self._created:
            self._pod_poll.with_retries(_deletion(self._environment, pod))
        self._report_progress(_summary(results))
        return PairResult(self._pair, results)

    def _measure(self) -> _Steps[tuple[BenchmarkResult, ...]]:
        server = self._create("server", server_pod(self._plan, self._number, self._pair))
        pod = yield from self._await_start("server", server, pods.is_ready)
        if pods.has_ended(pod):
            return self._grade(pair_log("", self._log("server", pod)))
        device_count = 0 if self._plan.fabric.hcas else len(devices_in(self._log("server", pod)))
        client = self._create(
            "client",
            client_pod(self._plan, self._number, self._pair, pod.status.pod_ip, device_count),
        )
        yield from self._await_start("client", client, pods.has_started)
        self._report_progress("measuring")
        ended = yield from self._await_end("client", client)
        self._report_progress("reading both logs")
        server_log = yield from self._final_log(server)
        return self._grade(pair_log(self._log("client", ended), server_log))

    def _grade(self, log: PairLog) -> tuple[BenchmarkResult, ...]:
        self._environment.save_log(self._pair, log.text)
        return grade_pair(self._pair, log, self._plan)

    def _create(self, role: Role, manifest: Manifest) -> str:
        """Create a pod, and return its name."""
        node, name = self._node(role), pod_name(self._plan, self._number, role)
        try:
            pod = PodRecord.read(
                self._pod_poll.with_retries(lambda: self._environment.pods.create(manifest))
            )
        except StatusError as error:
            if error.code == _FORBIDDEN and "cannot create resource" in str(error):
                raise
            raise errors.pod_rejection(role, node, str(error)) from None
        self._created.append(pod)
        rdma = pods.rdma_of(pod)
        if rdma is None:
            raise errors.webhook_not_called(name, self._environment.explain(name))
        if rdma == "no":
            raise errors.missing_rdma(name, self._environment.explain(name))
        self._report_progress(f"{role} created on {node}")
        return name

    def _await_start(
        self, role: Role, name: str, done: Callable[[PodRecord], bool]
    ) -> _Steps[PodRecord]:
        """Wait until `done` is true for a pod, or the pod has ended."""
        start_timeout = self._plan.start_timeout
        deadline = self._environment.now() + start_timeout
        while True:
            yield
            pod = self._pod(role, name)
            if done(pod) or pods.has_ended(pod):
                return pod
            node = self._node(role)
            if pods.can_never_start(pod):
                raise errors.impossible_start(role, node, self._environment.explain(name))
            if self._environment.now() > deadline:
                problem = self._environment.explain(name)
                raise errors.missed_start(role, node, start_timeout, problem)
            if awaited := pods.waiting_reason(pod):
                self._report_progress(f"{role} on {node} is waiting: {awaited}")

    def _await_end(self, role: Role, name: str) -> _Steps[PodRecord]:
        deadline = self._environment.now() + self._plan.pair_timeout
        while not pods.has_ended(pod := self._pod(role, name)):
            if self._environment.now() > deadline:
                raise errors.timeout(role, self._node(role), self._plan.pair_timeout)
            yield
        return pod

    def _final_log(self, server: str) -> _Steps[str]:
        """Return the log of the server, "" if it cannot be read: the client's log matters most.

        The server may still print its last lines, and waits forever if no client connected.
        """
        for _ in range(_LAST_LOOKS):
            if server not in self._pod_poll.pods or pods.has_ended(self._pod_poll.pods[server]):
                break
            yield
        try:
            return self._log("server", self._pod("server", server))
        except errors.MeasurementError as error:
            if error.result.finding.level == "error":
                raise
            return ""

    def _pod(self, role: Role, name: str) -> PodRecord:
        """Return a pod as of the last poll; raise MeasurementError if it no longer exists."""
        pod = self._pod_poll.pods.get(name)
        if pod is None:
            raise errors.pod_deletion(role, self._node(role))
        return pod

    def _log(self, role: Role, pod: PodRecord) -> str:
        node = self._node(role)
        if pods.was_killed_for_memory(pod):
            raise errors.memory_kill(role, node)
        if pods.has_ended(pod) and not pods.has_run(pod):
            raise errors.pod_failure(role, node, pod)
        name = pod.metadata.name
        try:
            return self._pod_poll.with_retries(lambda: self._environment.pods.log(name, CONTAINER))
        except ClusterError as error:
            raise errors.log_failure(role, node, str(error)) from None

    def _node(self, role: Role) -> str:
        return self._pair.server if role == "server" else self._pair.client

    def _report_progress(self, message: str) -> None:
        """Report progress, unless the last message was the same."""
        if message != self._last_message:
            self._environment.report_progress(self._pair, message)
        self._last_message = message


def _deletion(environment: RunEnvironment, pod: PodRecord) -> Callable[[], None]:
    return lambda: environment.pods.delete(pod.manifest)


def _summary(results: tuple[BenchmarkResult, ...]) -> str:
    """Return the worst level, and the codes of the results with it."""
    findings = [result.finding for result in results]
    level = max((finding.level for finding in findings), key=severity)
    codes = dict.fromkeys(finding.code for finding in findings if finding.level == level)
    return f"{level} ({', '.join(codes)})"
