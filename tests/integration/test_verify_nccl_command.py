"""`verify nccl` against an API server over HTTP; tests/e2e has the real mpi-operator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.integration.pods_api import PodsApi
from tests.unit.diagnose.tools.benchmarks.outputs import nccl_job, nccl_log, nccl_tests
from tests.unit.diagnose.verify.runs.fake_operator import OVER_RDMA, FakeOperator
from tests.unit.diagnose.verify.runs.fake_pods import FakePods
from tests.unit.diagnose.verify.runs.test_fabric_nodes import node
from webhook.cli import main
from webhook.config import EXAMPLE
from webhook.diagnose.verify.runs import nccl_run
from webhook.kube.api import StatusError

JOBS = "/apis/kubeflow.org/v2beta1/namespaces/lab/mpijobs"
PODS = "/api/v1/namespaces/lab/pods"
LABEL = {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}
MANY_GPUS = """\
apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration
spec:
  fabrics:
  - name: mixed
    match: {gpuResources: [nvidia.com/h100, nvidia.com/h200]}
    linkLayer: InfiniBand
    resources: [{name: rdma/a}]
    hcas: [mlx5_0]
"""


class Answer(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


class OperatorApi(PodsApi):
    """Also serves MPIJobs, whose pods a fake operator makes."""

    def __init__(self, operator: FakeOperator, answers: dict[str, Any], folder: Path) -> None:
        self.operator = operator
        super().__init__(FakePods(), answers, folder)

    def answer(self, method: str, target: str, body: Any) -> Any:
        """Answer from the operator; all runs have the same name here."""
        path = target.partition("?")[0]
        if path.startswith(JOBS):
            return self._of_jobs(method, body)
        if path == PODS:
            return {"items": self.operator.list("=verify-0123abcd")}
        if path.startswith(PODS) and path.endswith("/log"):
            return self.operator.log(path.split("/")[-2], "nccl-tests")
        if path.startswith(PODS) and method == "DELETE":
            self.operator.delete({"metadata": {"name": path.split("/")[-1]}})
            return {}
        return super().answer(method, target, body)

    def _of_jobs(self, method: str, body: Any) -> Any:
        if "jobs" in self.operator.errors:
            raise self.operator.errors["jobs"]
        if method == "POST":
            body["metadata"]["namespace"] = "lab"
            self.operator.jobs.append(body)
        elif method == "DELETE":
            self.operator.jobs.clear()
        return {"items": list(self.operator.jobs)}


class VerifyCommands:
    """Runs commands against the API server."""

    def __init__(self, api: OperatorApi, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        self.api = api
        self.operator = api.operator
        self._captured = capsysbinary

    def __call__(self, *words: str) -> Answer:
        """Run `verify nccl` in the namespace; a usage error of argparse is an answer too."""
        access = ("--kubeconfig", str(self.api.kubeconfig), "-n", "lab", "--image", "nccl:1")
        try:
            code = main(["verify", "nccl", *access, *words])
        except SystemExit as stop:
            code = int(stop.code or 0)
        written = self._captured.readouterr()
        return Answer(code, written.out.decode(), written.err.decode())

    def run(self, *words: str) -> Answer:
        """Run it for a fabric of the example."""
        return self("-c", str(EXAMPLE), "--fabric", "v100-ib", *words)


@pytest.fixture
def lab(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Iterator[VerifyCommands]:
    """Serve two nodes of a fabric, and an operator whose jobs succeed."""
    monkeypatch.setattr(nccl_run, "_PAUSE", 0.01)
    monkeypatch.setenv("COLUMNS", "100")
    nodes = [node("gpu-0"), node("gpu-1")]
    for labeled in nodes:
        labeled["metadata"]["labels"] = LABEL
    answers = {"/api/v1/nodes": {"items": nodes}}
    with OperatorApi(FakeOperator(), answers, tmp_path) as api:
        yield VerifyCommands(api, capsysbinary)


def test_a_run(lab: VerifyCommands, tmp_path: Path) -> None:
    """Progress goes to standard error, the result to standard output, the log into a folder."""
    answer = lab.run("--logs", str(tmp_path / "logs"), "--gpus", "4")
    assert answer.code == 0, answer.err
    assert "all_reduce_perf  launcher:2\n  ✔ Bus bandwidth 46.65 GB/s over RDMA" in answer.out
    lines = [line.removeprefix("rdma-webhook: run: ") for line in answer.err.splitlines()]
    name = lines[0].split()[0]
    assert lines == [
        (
            f"{name} in namespace lab: fabric v100-ib, all_reduce_perf on 2 nodes with 4 "
            "nvidia.com/v100 each, image nccl:1"
        ),
        "MPIJob created",
        "running",
        "reading the launcher's log",
    ]
    assert (tmp_path / "logs" / f"{name}.txt").read_text() == nccl_tests() + OVER_RDMA
    assert (lab.operator.jobs, lab.operator.pods) == ([], [])


def test_forms_and_exit_codes(lab: VerifyCommands) -> None:
    """They are the same as for `verify judge`; --quiet leaves out the progress."""
    answer = lab.run("-o", "json", "-q")
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out)["code"] == "OverRdma"
    assert lab.run("-o", "junit").out.startswith("<?xml")
    lab.operator.logs["launcher"] = nccl_tests(wrong=1)
    assert lab.run().code == 1
    lab.operator.logs["launcher"] = ""
    assert lab.run().code == 3


def test_the_minimum_of_the_machine(lab: VerifyCommands) -> None:
    """A result below what the cloud publishes is a warning; without the option, it passes."""
    lab.operator.logs["launcher"] = nccl_job(test="all_gather_perf", gbytes="230") + nccl_log(8)
    words = ("--test", "all_gather_perf", "--rate", "400", "-o", "json")
    assert json.loads(lab.run(*words).out)["code"] == "OverRdma"
    answer = lab.run(*words, "--machine", "a3-ultragpu-8g", "--strict")
    assert (answer.code, json.loads(answer.out)["code"]) == (1, "BelowPublished")


def test_without_mpi_operator(lab: VerifyCommands) -> None:
    """One line names what to install, at once, without another attempt."""
    lab.operator.errors["jobs"] = StatusError(404, "not found")
    answer = lab.run("-q")
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "the cluster has no MPIJobs (kubeflow.org/v2beta1); install mpi-operator" in answer.err
    assert [request for request in lab.api.asked if request.startswith("POST")] == [f"POST {JOBS}"]


def test_without_the_right(lab: VerifyCommands) -> None:
    """The error names the page with the rights, and the objects that may be left."""
    lab.operator.errors["jobs"] = StatusError(403, "you may not")
    answer = lab.run("-q")
    assert (answer.code, answer.out) == (2, "")
    assert "you may not (docs/verify.md lists the rights that a run needs)" in answer.err
    assert "an MPIJob and pods may remain: rdma-webhook verify clean -n lab --run" in answer.err


def test_logs_that_cannot_be_kept(lab: VerifyCommands, tmp_path: Path) -> None:
    """A folder that cannot be made ends the command before anything is created."""
    (tmp_path / "file").write_text("")
    answer = lab.run("--logs", str(tmp_path / "file" / "logs"))
    assert (answer.code, answer.out) == (2, "")
    assert "cannot be created: Not a directory" in answer.err


def test_the_gpu_resource(lab: VerifyCommands, tmp_path: Path) -> None:
    """A fabric with several GPU resources needs the option."""
    path = tmp_path / "fabrics.yaml"
    path.write_text(MANY_GPUS)
    words = ("-c", str(path), "--nodes", "gpu-0,gpu-1")
    answer = lab(*words)
    assert (answer.code, answer.out) == (2, "")
    assert "has several GPU resources, nvidia.com/h100, nvidia.com/h200; choose" in answer.err
    assert lab(*words, "--gpu-resource", "nvidia.com/h200", "--rate", "200").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--gpus", "0"), "'0' is not a number of GPUs from 1 to 64"),
        (("--largest", "big"), "'big' is not a size such as 256M"),
        (
            ("--machine", "Standard_ND96isr_H100_v5"),
            "--machine: 'Standard_ND96isr_H100_v5' is not one of a3-ultragpu-8g",
        ),
    ],
    ids=["gpus", "largest", "machine without a minimum for nccl-tests"],
)
def test_wrong_usage(lab: VerifyCommands, words: tuple[str, ...], message: str) -> None:
    """One line shows valid values."""
    answer = lab.run(*words)
    assert answer.code == 2
    assert message in answer.err
