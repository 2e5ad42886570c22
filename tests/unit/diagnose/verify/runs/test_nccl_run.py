"""A run of nccl-tests: its results, its explanations, and its cleanup."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import nccl_tests
from tests.unit.diagnose.verify.runs.fake_operator import (
    ENDED,
    FAILED,
    OVER_RDMA,
    PENDING,
    RUNNING,
    FakeOperator,
    container,
)
from webhook.diagnose.verify.results import BenchmarkResult
from webhook.errors import ClusterError
from webhook.kube.api import StatusError
from webhook.model.finding import Finding


def the_only(operator: FakeOperator) -> BenchmarkResult:
    """Run, and return the only result; no job or pod remains."""
    (result,) = operator.run().results
    assert (operator.jobs, operator.pods) == ([], [])
    assert result.finding.location.file == "launcher"
    return result


def the_finding(operator: FakeOperator) -> Finding:
    """Run, and return the finding that ended the run; no job or pod remains."""
    evaluation = operator.run()
    assert (evaluation.results, operator.jobs, operator.pods) == ((), [], [])
    (finding,) = evaluation.findings
    return finding


def test_a_good_run() -> None:
    """The launcher's log is graded and saved; each step is reported once."""
    operator = FakeOperator()
    result = the_only(operator)
    assert (result.finding.level, result.finding.code) == ("ok", "OverRdma")
    assert operator.progress == ["MPIJob created", "running", "reading the launcher's log"]
    assert operator.saved_logs == [nccl_tests() + OVER_RDMA]


def test_wrong_results() -> None:
    """The result is the one of `verify judge` on the same log."""
    operator = FakeOperator(logs={"launcher": nccl_tests(wrong=3)})
    assert the_only(operator).finding.code == "WrongResults"


@pytest.mark.parametrize("program", ["mpirun", "ssh", "/opt/all_reduce_perf"])
def test_an_image_without_a_program(program: str) -> None:
    """The result names the program."""
    log = f"rdma-verify: this image has no {program}\n"
    result = the_only(FakeOperator(launcher=[FAILED], logs={"launcher": log}))
    assert (result.finding.level, result.finding.code) == ("unsure", "NoNcclTests")
    assert result.finding.text == f"The image has no {program}."


def test_an_image_without_sshd() -> None:
    """A worker ends before the launcher begins."""
    log = "rdma-verify: this image has no sshd\n"
    result = the_only(FakeOperator(workers=[RUNNING, FAILED], logs={"worker": log}))
    assert (result.finding.code, result.finding.text) == ("NoNcclTests", "The image has no sshd.")


def test_a_worker_that_ends() -> None:
    """A worker that ends for another reason is named with its node."""
    result = the_only(FakeOperator(workers=[RUNNING, ENDED]))
    assert result.finding.code == "PodFailed"
    assert result.finding.text == "The worker on node-of-worker-0 failed before the launcher began."


def test_nothing_known_was_printed() -> None:
    """The last line is quoted."""
    result = the_only(FakeOperator(logs={"launcher": "what\nis this\n\n"}))
    assert (result.finding.level, result.finding.code) == ("unsure", "NoResult")
    assert (
        result.finding.text
        == "The launcher printed no output of nccl-tests. Its last line: is this"
    )
    silent = the_only(FakeOperator(logs={"launcher": ""}))
    assert silent.finding.text == "The launcher printed no output of nccl-tests."


def test_workers_that_do_not_start() -> None:
    """They are explained like by `why`, or by the reason for which they wait."""
    problem = Finding("error", "Insufficient", "No node has room.", "Free a GPU.")
    operator = FakeOperator(workers=[PENDING], problem=problem)
    result = the_only(operator)
    assert (result.finding.level, result.finding.code, result.finding.remedy) == (
        "unsure",
        "Insufficient",
        "Free a GPU.",
    )
    assert "did not start within 60 s. No node has room." in result.finding.text
    assert "worker is waiting: no room" in operator.progress


def test_a_name_of_no_image() -> None:
    """The run does not wait for a permanent problem."""
    operator = FakeOperator(workers=[container(waiting={"reason": "InvalidImageName"})])
    finding = the_only(operator).finding
    text = "The worker on node-of-worker-0 cannot start."
    assert (finding.code, finding.text) == ("NotStarted", text)
    assert operator.time < 2


def test_an_operator_that_does_not_act() -> None:
    """Without any pod, the remedy is to check the operator."""
    result = the_only(FakeOperator(makes_pods=False))
    assert result.finding.code == "NotStarted"
    assert result.finding.text == "mpi-operator created no pod of the MPIJob within 60 s."


def test_a_launcher_that_does_not_end() -> None:
    """It has the time of mpirun, and a minute."""
    operator = FakeOperator(launcher=[RUNNING])
    result = the_only(operator)
    assert (result.finding.code, operator.time > 660) == ("NotEnded", True)
    assert result.finding.text.startswith(
        "The launcher on node-of-launcher did not end within 660 s."
    )


def test_a_launcher_that_is_deleted() -> None:
    """The pods were deleted from outside the run."""
    assert the_only(FakeOperator(launcher=[RUNNING], vanishes_after=5)).finding.code == "PodGone"


def test_a_launcher_that_was_killed() -> None:
    """The kernel killed it because memory was short."""
    dead = container(terminated={"exitCode": 137, "reason": "OOMKilled", "startedAt": "x"})
    assert the_only(FakeOperator(launcher=[RUNNING, dead])).finding.code == "OOMKilled"


def test_a_launcher_that_never_ran() -> None:
    """It has ended, and has no log."""
    dead = {**container(terminated={"exitCode": 128}), "message": "no such file", "reason": "Error"}
    result = the_only(FakeOperator(launcher=[dead]))
    assert (
        result.finding.text
        == "The launcher on node-of-launcher failed before it ran. Error: no such file"
    )


def test_a_log_that_cannot_be_read() -> None:
    """Without the right to logs, the result has the error."""
    result = the_only(FakeOperator(errors={"log": StatusError(403, "forbidden")}))
    assert (result.finding.code, "could not be read: " in result.finding.text) == (
        "LogUnreadable",
        True,
    )


@pytest.mark.parametrize(
    ("rdma", "code"), [(None, "NotCalled"), ("no", "NoRdma")], ids=["not-called", "no-rdma"]
)
def test_workers_without_rdma(rdma: str | None, code: str) -> None:
    """Every other worker would fail as well: the run ends immediately."""
    operator = FakeOperator(rdma={"launcher": "none", "worker": rdma})
    finding = the_finding(operator)
    assert (finding.level, finding.code) == ("error", code)
    assert operator.time < 2


def test_interrupted() -> None:
    """A signal ends the run."""
    assert the_finding(FakeOperator(ends_after=1)).code == "Interrupted"


def test_no_mpi_jobs() -> None:
    """An error of the cluster is raised to the caller."""
    operator = FakeOperator(errors={"create": StatusError(403, "forbidden")})
    with pytest.raises(ClusterError):
        operator.run()
