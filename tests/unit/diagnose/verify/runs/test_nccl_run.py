"""A run of nccl-tests: its judgements, its explanations, and its cleanup."""

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
from webhook.diagnose.verify.results import BenchmarkResult, Remark
from webhook.diagnose.verify.runs.plan import PodProblem
from webhook.errors import ClusterError
from webhook.kube.api import RefusedError


def the_only(operator: FakeOperator) -> BenchmarkResult:
    """Run, and return the only judgement; no job or pod remains."""
    (judgement,) = operator.run().judgements
    assert (operator.jobs, operator.pods) == ([], [])
    assert judgement.file == "launcher"
    return judgement


def the_remark(operator: FakeOperator) -> Remark:
    """Run, and return the remark that ended the run; no job or pod remains."""
    assessment = operator.run()
    assert (assessment.judgements, operator.jobs, operator.pods) == ((), [], [])
    (remark,) = assessment.remarks
    return remark


def test_a_good_run() -> None:
    """The launcher's log is judged and saved; each step is reported once."""
    operator = FakeOperator()
    judgement = the_only(operator)
    assert (judgement.verdict, judgement.code) == ("pass", "OverRdma")
    assert operator.progress == ["MPIJob created", "runs", "reads what the launcher printed"]
    assert operator.saved_logs == [nccl_tests() + OVER_RDMA]


def test_wrong_results() -> None:
    """The judgement is the one of `verify judge` on the same log."""
    operator = FakeOperator(logs={"launcher": nccl_tests(wrong=3)})
    assert the_only(operator).code == "WrongResults"


@pytest.mark.parametrize(
    ("program", "part"),
    [
        ("mpirun", "Open MPI"),
        ("ssh", "an ssh client"),
        ("all_reduce_perf", "nccl-tests"),
        ("/opt/all_reduce_perf", "nccl-tests"),
    ],
)
def test_an_image_without_a_program(program: str, part: str) -> None:
    """The judgement names the program, and the part to install."""
    log = f"rdma-verify: this image has no {program}\n"
    judgement = the_only(FakeOperator(launcher=[FAILED], logs={"launcher": log}))
    assert (judgement.verdict, judgement.code) == ("inconclusive", "NoNcclTests")
    assert judgement.because == f"The image has no {program}."
    assert judgement.remedy.startswith(f"Name an image that has {part}:")


def test_an_image_without_sshd() -> None:
    """A worker ends before the launcher begins."""
    log = "rdma-verify: this image has no sshd\n"
    judgement = the_only(FakeOperator(workers=[RUNNING, FAILED], logs={"worker": log}))
    assert (judgement.code, judgement.because) == ("NoNcclTests", "The image has no sshd.")


def test_a_worker_that_ends() -> None:
    """A worker that ends for another reason is named with its node."""
    judgement = the_only(FakeOperator(workers=[RUNNING, ENDED]))
    assert judgement.code == "PodFailed"
    assert "The worker on node-of-worker-0 failed" in judgement.because


def test_nothing_known_was_printed() -> None:
    """The last line is quoted."""
    judgement = the_only(FakeOperator(logs={"launcher": "what\nis this\n\n"}))
    assert (judgement.verdict, judgement.code) == ("inconclusive", "NoResult")
    assert judgement.because == "The launcher printed nothing that is known. Its last line: is this"
    silent = the_only(FakeOperator(logs={"launcher": ""}))
    assert silent.because == "The launcher printed nothing that is known."


def test_workers_that_do_not_start() -> None:
    """They are explained like by `why`, or by the reason for which they wait."""
    problem = PodProblem("Insufficient", "No node has room.", "Free a GPU.")
    operator = FakeOperator(workers=[PENDING], problem=problem)
    judgement = the_only(operator)
    assert (judgement.verdict, judgement.code, judgement.remedy) == (
        "inconclusive",
        "Insufficient",
        "Free a GPU.",
    )
    assert "did not start within 60 s. No node has room." in judgement.because
    assert "worker waits: no room" in operator.progress


def test_a_name_of_no_image() -> None:
    """The run does not wait for a permanent problem."""
    operator = FakeOperator(workers=[container(waiting={"reason": "InvalidImageName"})])
    assert the_only(operator).code == "NotStarted"
    assert operator.time < 2


def test_an_operator_that_does_not_act() -> None:
    """Without any pod, the remedy is to check the operator."""
    judgement = the_only(FakeOperator(makes_pods=False))
    assert judgement.code == "NotStarted"
    assert judgement.because == "mpi-operator made no pod of the MPIJob within 60 s."


def test_a_launcher_that_does_not_end() -> None:
    """It has the time of mpirun, and a minute."""
    operator = FakeOperator(launcher=[RUNNING])
    judgement = the_only(operator)
    assert (judgement.code, operator.time > 660) == ("NotEnded", True)
    assert judgement.because.startswith(
        "The launcher on node-of-launcher did not end within 660 s."
    )


def test_a_launcher_that_is_deleted() -> None:
    """The pods were deleted from outside the run."""
    assert the_only(FakeOperator(launcher=[RUNNING], vanishes_after=5)).code == "PodGone"


def test_a_launcher_that_was_killed() -> None:
    """The kernel killed it because memory was short."""
    dead = container(terminated={"exitCode": 137, "reason": "OOMKilled", "startedAt": "x"})
    assert the_only(FakeOperator(launcher=[RUNNING, dead])).code == "OomKilled"


def test_a_launcher_that_never_ran() -> None:
    """It has ended, and has no log."""
    dead = {**container(terminated={"exitCode": 128}), "message": "no such file", "reason": "Error"}
    judgement = the_only(FakeOperator(launcher=[dead]))
    assert (
        judgement.because
        == "The launcher on node-of-launcher failed before it ran. Error: no such file"
    )


def test_a_log_that_cannot_be_read() -> None:
    """Without the right to logs, the judgement has the error."""
    judgement = the_only(FakeOperator(errors={"log": RefusedError(403, "forbidden")}))
    assert (judgement.code, "could not be read: " in judgement.because) == ("LogUnreadable", True)


@pytest.mark.parametrize(
    ("rdma", "code"), [(None, "NotCalled"), ("no", "NoRdma")], ids=["not-called", "no-rdma"]
)
def test_workers_without_rdma(rdma: str | None, code: str) -> None:
    """Every other worker would fail as well: the run ends immediately."""
    operator = FakeOperator(rdma={"launcher": "none", "worker": rdma})
    remark = the_remark(operator)
    assert (remark.verdict, remark.code) == ("fail", code)
    assert operator.time < 2


def test_interrupted() -> None:
    """A signal ends the run."""
    assert the_remark(FakeOperator(ends_after=1)).code == "Interrupted"


def test_no_mpi_jobs() -> None:
    """An error of the cluster is raised to the caller."""
    operator = FakeOperator(errors={"create": RefusedError(403, "forbidden")})
    with pytest.raises(ClusterError):
        operator.run()
