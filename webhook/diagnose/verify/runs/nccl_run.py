"""A run of nccl-tests: the MPIJob, its pods, and the output of the launcher.

mpi-operator creates the pods: first the workers, and the launcher once they are ready.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from webhook.diagnose.verify.evaluate import evaluate, read_benchmark_files
from webhook.diagnose.verify.grade import NO_RESULT
from webhook.diagnose.verify.results import BenchmarkResult, Evaluation
from webhook.diagnose.verify.runs import errors
from webhook.diagnose.verify.runs import pods as pod_state
from webhook.diagnose.verify.runs.nccl_job import ROLE_LABEL, NcclPlan, mpi_job
from webhook.diagnose.verify.runs.plan import RunEnvironment
from webhook.diagnose.verify.runs.pods import NCCL_CONTAINER, PodPoll, remove_pods, run_selector
from webhook.errors import ClusterError
from webhook.kube.objects import Manifest, PodRecord
from webhook.model.finding import Code

NO_NCCL_TESTS = Code(
    "NoNcclTests",
    "The image lacks nccl-tests, mpirun, ssh or sshd.",
    "Use an image (--image) with nccl-tests, Open MPI, ssh and sshd. If the nccl-tests program "
    "(such as all_reduce_perf) is not on the PATH, pass its path with --test.",
)

#: Seconds between two polls of the pods.
_PAUSE = 1.0
#: Seconds that the launcher's pod may take in addition to its program.
_LAUNCHER_OVERHEAD = 60.0
_LAUNCHER, _WORKER = "launcher", "worker"


class MpiJobAccess(Protocol):
    """MPIJobs; `webhook.kube.pods` implements them over HTTP."""

    def create(self, job: Manifest) -> None:
        """Create a job; raise StatusError if the cluster has no MPIJobs, or rejects it."""

    def list(self, selector: str) -> list[Manifest]:
        """Return the jobs with these labels."""

    def delete(self, job: Manifest) -> None:
        """Delete a job, and thereby its pods."""


class NcclEnvironment(NamedTuple):
    """The environment of a run of nccl-tests."""

    run_environment: RunEnvironment
    jobs: MpiJobAccess
    #: Takes a message on progress.
    report_progress: Callable[[str], None]
    #: Takes the log of the launcher.
    save_log: Callable[[str], None]


class NcclRun:
    """A run; `remove` deletes its objects."""

    def __init__(self, plan: NcclPlan, environment: NcclEnvironment) -> None:
        self._plan = plan
        self._environment = environment
        self._pod_poll = PodPoll(environment.run_environment, run_selector(plan.name))
        self._last_message = ""

    def measure(self) -> Evaluation:
        """Run the job to its end, and grade its output.

        Raises StatusError if the job is refused, for instance without mpi-operator, and
        ClusterError if the API server stays silent.
        """
        try:
            return self._measure()
        except errors.MeasurementError as error:
            return Evaluation((error.result.with_location(_LAUNCHER, ()),))
        except errors.RunStopError as stop:
            return Evaluation((), (stop.finding,))

    def remove(self, sleep: Callable[[float], object]) -> list[PodRecord]:
        """Delete the job and its pods, and return the pods once all are gone."""
        selector = run_selector(self._plan.name)
        return remove_jobs_and_pods(self._environment, selector, sleep)

    def _measure(self) -> Evaluation:
        self._pod_poll.with_retries(lambda: self._environment.jobs.create(mpi_job(self._plan)))
        self._report_progress("MPIJob created")
        self._until(self._plan.start_timeout, self._started_launcher)
        self._report_progress("running")
        launcher = self._until(
            self._plan.program_timeout + _LAUNCHER_OVERHEAD, self._ended_launcher
        )
        self._report_progress("reading the launcher's log")
        log = self._log(launcher, _LAUNCHER)
        self._environment.save_log(log)
        return grade_launcher(_LAUNCHER, log, self._plan)

    def _until(self, timeout: float, done: Callable[[], PodRecord | None]) -> PodRecord:
        """Poll the pods until `done` returns a pod, and return it."""
        run_environment = self._environment.run_environment
        deadline = run_environment.now() + timeout
        while True:
            self._pod_poll.poll()
            for pod in self._pod_poll.pods.values():
                self._check(pod)
            if (matching_pod := done()) is not None:
                return matching_pod
            if run_environment.now() > deadline:
                raise self._timeout_error(timeout)
            if run_environment.wait_for_end(_PAUSE):
                raise _interruption()

    def _started_launcher(self) -> PodRecord | None:
        """Return the launcher if its container runs, or has ended; None otherwise."""
        launcher = self._of_role(_LAUNCHER)
        if launcher and pod_state.has_started(launcher[0]):
            return launcher[0]
        for pod in (*launcher, *self._of_role(_WORKER)):
            if awaited := pod_state.waiting_reason(pod):
                self._report_progress(f"{_role_of(pod)} is waiting: {awaited}")
        return None

    def _ended_launcher(self) -> PodRecord | None:
        launcher = self._of_role(_LAUNCHER)
        if not launcher:
            raise errors.pod_deletion(_LAUNCHER, "its node")
        return launcher[0] if pod_state.has_ended(launcher[0]) else None

    def _check(self, pod: PodRecord) -> None:
        """Raise an error if something keeps the pod from measuring."""
        name, role, node = pod.metadata.name, _role_of(pod), pod_state.node_of(pod)
        rdma = pod_state.rdma_of(pod)
        if rdma is None:
            raise errors.webhook_not_called(name, self._environment.run_environment.explain(name))
        if rdma == "no":
            raise errors.missing_rdma(name, self._environment.run_environment.explain(name))
        if pod_state.can_never_start(pod):
            raise errors.impossible_start(
                role, node, self._environment.run_environment.explain(name)
            )
        if role == _WORKER and pod_state.has_ended(pod) and not self._of_role(_LAUNCHER):
            self._fail_for_worker(pod, node)

    def _fail_for_worker(self, pod: PodRecord, node: str) -> None:
        """Raise the error for a worker that ended before the launcher began."""
        log = self._log(pod, _WORKER)
        if missing := missing_program(log):
            raise errors.MeasurementError(missing_program_result(missing))
        raise errors.pod_failure(_WORKER, node, pod, before="the launcher began")

    def _log(self, pod: PodRecord, role: str) -> str:
        """Return the log of a pod that has ended; raises MeasurementError if it has none."""
        node = pod_state.node_of(pod)
        if pod_state.was_killed_for_memory(pod):
            raise errors.memory_kill(role, node)
        if not pod_state.has_run(pod):
            raise errors.pod_failure(role, node, pod)
        name = pod.metadata.name
        try:
            return self._pod_poll.with_retries(
                lambda: self._environment.run_environment.pods.log(name, NCCL_CONTAINER)
            )
        except ClusterError as error:
            raise errors.log_failure(role, node, str(error)) from None

    def _timeout_error(self, timeout: float) -> errors.MeasurementError:
        """Return the error for pods that missed their deadline."""
        pods = [*self._of_role(_LAUNCHER), *self._of_role(_WORKER)]
        if not pods:
            return errors.MeasurementError(_no_pods(timeout))
        launcher = self._of_role(_LAUNCHER)
        if launcher and pod_state.has_started(launcher[0]):
            return errors.timeout(_LAUNCHER, pod_state.node_of(launcher[0]), timeout)
        pod = next((pod for pod in pods if not pod_state.is_ready(pod)), pods[0])
        problem = self._environment.run_environment.explain(pod.metadata.name)
        return errors.missed_start(_role_of(pod), pod_state.node_of(pod), timeout, problem)

    def _of_role(self, role: str) -> list[PodRecord]:
        return [pod for pod in self._pod_poll.pods.values() if _role_of(pod) == role]

    def _report_progress(self, message: str) -> None:
        """Report progress, unless the last message was the same."""
        if message != self._last_message:
            self._environment.report_progress(message)
        self._last_message = message


def remove_jobs_and_pods(
    environment: NcclEnvironment, selector: str, sleep: Callable[[float], object]
) -> list[PodRecord]:
    """Delete jobs, which would replace their pods, and then the pods with these labels."""
    for job in environment.jobs.list(selector):
        environment.jobs.delete(job)
    return remove_pods(
        environment.run_environment.pods, selector, sleep, environment.run_environment.now
    )


def _role_of(pod: PodRecord) -> str:
    return pod.metadata.labels.get(ROLE_LABEL) or "pod"


def _no_pods(timeout: float) -> BenchmarkResult:
    text = f"mpi-operator created no pod of the MPIJob within {timeout:g} s."
    remedy = (
        "Check that mpi-operator runs (kubectl get pods -A -l app=mpi-operator) and watches this "
        "namespace, and read its log."
    )
    return BenchmarkResult(errors.NOT_STARTED.finding("unsure", text, remedy))


def _interruption() -> errors.RunStopError:
    text = "The run was interrupted before the launcher ended."
    return errors.RunStopError(errors.INTERRUPTED.finding("unsure", text, "Run the command again."))


# Grade the output of the launcher of nccl-tests.

_NOTE = "rdma-verify: this image has no "


def grade_launcher(name: str, log: str, plan: NcclPlan) -> Evaluation:
    """Return the results of the log of a launcher, at least one; `name` is their file."""
    if missing := missing_program(log):
        return Evaluation((missing_program_result(missing).with_location(name, ()),))
    files = read_benchmark_files(name, log)
    evaluation = evaluate(files, plan.rate, plan.fabric.hcas, plan.machine)
    if evaluation.results:
        return evaluation
    return Evaluation((_no_result(log).with_location(name, ()),))


def missing_program(log: str) -> str:
    """Return the program that an image lacks, as our scripts note; "" if it has all."""
    for line in log.splitlines():
        if line.startswith(_NOTE):
            return line.removeprefix(_NOTE).strip()
    return ""


def missing_program_result(program: str) -> BenchmarkResult:
    """Return the result for an image without a program."""
    return BenchmarkResult(NO_NCCL_TESTS.finding("unsure", f"The image has no {program}."))


def _no_result(log: str) -> BenchmarkResult:
    last = next((line for line in reversed(log.splitlines()) if line.strip()), "")
    quote = f" Its last line: {last.strip():.200}" if last else ""
    text = f"The launcher printed no output of nccl-tests.{quote}"
    remedy = "Read the launcher's complete output, which --logs DIR saves."
    return BenchmarkResult(NO_RESULT.finding("unsure", text, remedy))
