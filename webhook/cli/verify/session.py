"""A run in this process: announce it, measure, and delete its objects however it ends.

`RunSession` is a run of pairs of pods, `NcclSession` one of nccl-tests.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import NamedTuple, Self

from webhook.cli.output import print_message
from webhook.cli.verify.output import NOT_COMPLETED
from webhook.diagnose.verify.results import Evaluation, RunReport
from webhook.diagnose.verify.runs.nccl_job import NcclPlan
from webhook.diagnose.verify.runs.nccl_run import NcclEnvironment, NcclRun
from webhook.diagnose.verify.runs.plan import RunEnvironment, RunPlan
from webhook.diagnose.verify.runs.pods import remove_pods, run_selector
from webhook.diagnose.verify.runs.run import NodeRun
from webhook.diagnose.why.answer import explain_pod
from webhook.diagnose.why.collector import CollectOptions, Collector, PodReads
from webhook.diagnose.why.explanation import Explanation
from webhook.errors import ClusterError, DocumentError, WebhookError
from webhook.kube.api import ObjectReads, StatusError
from webhook.model.finding import Finding
from webhook.model.names import counted

# A run of pairs of pods.


class RunEnd(NamedTuple):
    """How a run ended."""

    report: RunReport
    #: The exit code, if the level does not decide it.
    code: int | None


class RunSession:
    """One run; `signals` must be in force."""

    def __init__(
        self, plan: RunPlan, namespace: str, environment: RunEnvironment, signals: RunSignals
    ) -> None:
        self._plan = plan
        self._namespace = namespace
        self._environment = environment
        self._signals = signals
        self._run = NodeRun(plan, environment)

    def complete(self) -> RunEnd:
        """Measure, and clean up, unless a second signal comes.

        Raises ClusterError at once, not after a minute, if the pods cannot even be listed.
        """
        self._environment.pods.list(run_selector(self._plan.name))
        self._announce()
        try:
            completed = self._measure()
        except SecondSignalError:
            print_message("error", f"stopped without cleaning up; {self._hint}")
            completed = False
        return RunEnd(
            self._run.report, self._signals.exit_code or (None if completed else NOT_COMPLETED)
        )

    def _announce(self) -> None:
        plan = self._plan
        self._environment.report_progress(
            None,
            f"{plan.name} in namespace {self._namespace}: fabric {plan.fabric.name}, "
            f"{len(plan.nodes)} nodes, {counted(plan.pair_count, 'pair')}, image {plan.image}",
        )

    def _measure(self) -> bool:
        """Measure, and clean up; return whether both were completed."""
        try:
            measured = self._run_to_completion()
        except Exception:
            self._clean()
            raise
        return self._clean() and measured

    def _run_to_completion(self) -> bool:
        """Return whether the run was completed; print why not."""
        try:
            self._run.measure()
        except ClusterError as error:
            print_run_error(error)
        else:
            return True
        return False

    def _clean(self) -> bool:
        """Delete the remaining pods; return whether that succeeded, and print why not."""
        selector = run_selector(self._plan.name)
        try:
            remove_pods(
                self._environment.pods, selector, self._signals.sleep, self._environment.now
            )
        except ClusterError as error:
            print_message("error", f"{error}; {self._hint}")
            return False
        return True

    @property
    def _hint(self) -> str:
        command = f"rdma-webhook verify clean -n {self._namespace} --run {self._plan.name}"
        return f"pods may remain: {command}"


# A run of nccl-tests in this process: it is announced, measured, and its job is deleted.


class NcclSession:
    """One run; `signals` must be in force."""

    def __init__(
        self, plan: NcclPlan, namespace: str, environment: NcclEnvironment, signals: RunSignals
    ) -> None:
        self._plan = plan
        self._namespace = namespace
        self._environment = environment
        self._signals = signals
        self._run = NcclRun(plan, environment)

    def complete(self) -> tuple[Evaluation | None, bool]:
        """Return the results, None without any, and whether everything was deleted.

        Raises ClusterError at once, not after a minute, if the pods cannot even be listed.
        """
        plan = self._plan
        self._environment.run_environment.pods.list(run_selector(plan.name))
        self._environment.report_progress(
            f"{plan.name} in namespace {self._namespace}: fabric {plan.fabric.name}, "
            f"{plan.test} on {len(plan.nodes)} nodes with {plan.gpus} {plan.gpu_resource} each, "
            f"image {plan.image}"
        )
        try:
            try:
                evaluation = self._measure()
            except Exception:
                self._clean()
                raise
            return evaluation, self._clean()
        except SecondSignalError:
            print_message("error", f"stopped without cleaning up; {self._hint}")
            return None, False

    def _measure(self) -> Evaluation | None:
        try:
            return self._run.measure()
        except ClusterError as error:
            print_run_error(error)
        return None

    def _clean(self) -> bool:
        try:
            self._run.remove(self._signals.sleep)
        except ClusterError as error:
            print_message("error", f"{error}; {self._hint}")
            return False
        return True

    @property
    def _hint(self) -> str:
        command = f"rdma-webhook verify clean -n {self._namespace} --run {self._plan.name}"
        return f"an MPIJob and pods may remain: {command}"


# Why a pod of a run has no RDMA, or does not start: the finding of `why`.


def pod_problems(
    reads: ObjectReads, pod_reads: PodReads, namespace: str
) -> Callable[[str], Finding | None]:
    """Return a function from a pod's name to its problem; None for an unreadable or healthy pod."""
    collector = Collector(reads, pod_reads, CollectOptions())

    def explain(name: str) -> Finding | None:
        try:
            return _main_problem(explain_pod(collector.collect(namespace, name)))
        except WebhookError:
            return None

    return explain


def _main_problem(explanation: Explanation) -> Finding | None:
    """Return the reason why the pod has no RDMA, or else why it does not run."""
    if explanation.rdma == "no":
        return explanation.answer
    for chapter in explanation.chapters:
        if chapter.name == "podStatus":
            return next((finding for finding in chapter.findings if finding.level == "error"), None)
    return None


# Errors of the API server during a run.


def print_run_error(error: ClusterError) -> None:
    """Print the error; for a missing right, name the page that lists the rights."""
    forbidden = isinstance(error, StatusError) and error.code == HTTPStatus.FORBIDDEN
    hint = " (docs/verify.md lists the rights that a run needs)" if forbidden else ""
    print_message("error", f"{error}{hint}")


# The directory for the logs of a run.


def make_folder(path: Path) -> None:
    """Create the directory unless it exists; raise DocumentError if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DocumentError(f"{path}: cannot be created: {error.strerror}") from None


def write_log(path: Path, text: str) -> None:
    """Write a file; a failure is only printed, since the run continues."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        print_message("error", f"{path}: cannot be written: {error.strerror}")


# The signals that end a run: the first lets it clean up, the second one does not.

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: A handler of a signal, SIG_DFL or SIG_IGN; None for a handler that Python did not set.
_Handler = Callable[[int, FrameType | None], object] | int | None
#: Shells add this to the number of a signal to get the exit code.
_SIGNAL_EXIT_BASE = 128


class SecondSignalError(KeyboardInterrupt):
    """The user sent a second signal."""


class RunSignals:
    """Handlers that record the first signal, so that it does not end the process."""

    def __init__(self) -> None:
        self._number = 0
        #: Ends the wait. A handler runs at any moment of it, where `threading.Event.set` may wait
        #: forever for a lock; `put` of this queue may be called there.
        self._signaled: SimpleQueue[None] = SimpleQueue()
        self._previous_handlers: dict[signal.Signals, _Handler] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            # A signal that is ignored, by nohup say, stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous_handlers[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    @property
    def exit_code(self) -> int | None:
        """The exit code of shells for the signal; None without a signal."""
        return _SIGNAL_EXIT_BASE + self._number if self._number else None

    def wait_for_end(self, seconds: float) -> bool:
        """Wait for a signal, at most `seconds`; return whether there was one."""
        if not self._number:
            with suppress(Empty):
                self._signaled.get(timeout=seconds)
        return self._number != 0

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`, even after a signal."""
        time.sleep(seconds)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self._number:
            raise SecondSignalError
        self._number = number
        self._signaled.put(None)
