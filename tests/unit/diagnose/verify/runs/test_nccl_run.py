"""A run of nccl-tests: what is judged, what is explained, and that nothing is left."""

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
    """Run, and return the only judgement; nothing is left."""
    (found,) = operator.run().judgements
    assert (operator.jobs, operator.pods) == ([], [])
    assert found.file == "launcher"
    return found


def the_remark(operator: FakeOperator) -> Remark:
    """Run, and return the remark by which it ended; nothing is left."""
    found = operator.run()
    assert (found.judgements, operator.jobs, operator.pods) == ((), [], [])
    (remark,) = found.remarks
    return remark


def test_a_good_run() -> None:
    """The launcher's log is judged and kept; each step is told once."""
    operator = FakeOperator()
    found = the_only(operator)
    assert (found.verdict, found.code) == ("pass", "OverRdma")
    assert operator.told == ["MPIJob created", "runs", "reads what the launcher printed"]
    assert operator.kept == [nccl_tests() + OVER_RDMA]


def test_wrong_results() -> None:
    """What `verify judge` says of a log is said here."""
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
    """The program is named, and what to install."""
    log = f"rdma-verify: this image has no {program}\n"
    found = the_only(FakeOperator(launcher=[FAILED], logs={"launcher": log}))
    assert (found.verdict, found.code) == ("inconclusive", "NoNcclTests")
    assert found.because == f"The image has no {program}."
    assert found.remedy.startswith(f"Name an image that has {part}:")


def test_an_image_without_sshd() -> None:
    """A worker ends before the launcher begins."""
    log = "rdma-verify: this image has no sshd\n"
    found = the_only(FakeOperator(workers=[RUNNING, FAILED], logs={"worker": log}))
    assert (found.code, found.because) == ("NoNcclTests", "The image has no sshd.")


def test_a_worker_that_ends() -> None:
    """One that ends for another reason is named with its node."""
    found = the_only(FakeOperator(workers=[RUNNING, ENDED]))
    assert found.code == "PodFailed"
    assert "The worker on node-of-worker-0 failed" in found.because


def test_nothing_known_was_printed() -> None:
    """The last line is quoted."""
    found = the_only(FakeOperator(logs={"launcher": "what\nis this\n\n"}))
    assert (found.verdict, found.code) == ("inconclusive", "NoResult")
    assert found.because == "The launcher printed nothing that is known. Its last line: is this"
    silent = the_only(FakeOperator(logs={"launcher": ""}))
    assert silent.because == "The launcher printed nothing that is known."


def test_workers_that_do_not_start() -> None:
    """They are explained as `why` does it, or by what they wait for."""
    problem = PodProblem("Insufficient", "No node has room.", "Free a GPU.")
    operator = FakeOperator(workers=[PENDING], problem=problem)
    found = the_only(operator)
    assert (found.verdict, found.code, found.remedy) == (
        "inconclusive",
        "Insufficient",
        "Free a GPU.",
    )
    assert "did not start within 60 s. No node has room." in found.because
    assert "worker waits: no room" in operator.told


def test_a_name_of_no_image() -> None:
    """What no waiting repairs is not waited for."""
    operator = FakeOperator(workers=[container(waiting={"reason": "InvalidImageName"})])
    assert the_only(operator).code == "NotStarted"
    assert operator.time < 2


def test_an_operator_that_does_not_act() -> None:
    """No pod at all: it is the operator that has to be looked at."""
    found = the_only(FakeOperator(makes_pods=False))
    assert found.code == "NotStarted"
    assert found.because == "mpi-operator made no pod of the MPIJob within 60 s."


def test_a_launcher_that_does_not_end() -> None:
    """It has the time of mpirun, and a minute."""
    operator = FakeOperator(launcher=[RUNNING])
    found = the_only(operator)
    assert (found.code, operator.time > 660) == ("NotEnded", True)
    assert found.because.startswith("The launcher on node-of-launcher did not end within 660 s.")


def test_a_launcher_that_is_deleted() -> None:
    """Somebody else deleted the pods."""
    assert the_only(FakeOperator(launcher=[RUNNING], vanishes_after=5)).code == "PodGone"


def test_a_launcher_that_was_killed() -> None:
    """The kernel ended it since memory was short."""
    dead = container(terminated={"exitCode": 137, "reason": "OOMKilled", "startedAt": "x"})
    assert the_only(FakeOperator(launcher=[RUNNING, dead])).code == "OomKilled"


def test_a_launcher_that_never_ran() -> None:
    """It has ended, and has no log."""
    dead = {**container(terminated={"exitCode": 128}), "message": "no such file", "reason": "Error"}
    found = the_only(FakeOperator(launcher=[dead]))
    assert (
        found.because
        == "The launcher on node-of-launcher failed before it ran. Error: no such file"
    )


def test_a_log_that_cannot_be_read() -> None:
    """Without the right to logs, that is said."""
    found = the_only(FakeOperator(errors={"log": RefusedError(403, "forbidden")}))
    assert (found.code, "could not be read: " in found.because) == ("LogUnreadable", True)


@pytest.mark.parametrize(
    ("rdma", "code"), [(None, "NotCalled"), ("no", "NoRdma")], ids=["not-called", "no-rdma"]
)
def test_workers_without_rdma(rdma: str | None, code: str) -> None:
    """No other worker would fare better: the run ends at once."""
    operator = FakeOperator(rdma={"launcher": "none", "worker": rdma})
    remark = the_remark(operator)
    assert (remark.verdict, remark.code) == ("fail", code)
    assert operator.time < 2


def test_interrupted() -> None:
    """A signal ends the run."""
    assert the_remark(FakeOperator(ends_after=1)).code == "Interrupted"


def test_no_mpi_jobs() -> None:
    """An error of the cluster is the caller's."""
    operator = FakeOperator(errors={"create": RefusedError(403, "forbidden")})
    with pytest.raises(ClusterError):
        operator.run()
