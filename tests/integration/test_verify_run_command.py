"""`verify run` and `verify clean` against an API server over HTTP; tests/e2e has real pods."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from jsonschema import Draft202012Validator
from kubernetes.client import ApiClient

from tests.integration.pods_api import PodsApi
from tests.unit.diagnose.verify.page_tables import tables_of
from tests.unit.diagnose.verify.runs.fake_pods import (
    SERVER,
    FakePods,
    ended_status,
    node_of,
    pending,
    role_of,
    running,
)
from tests.unit.diagnose.verify.runs.plans import client_log, command
from tests.unit.diagnose.verify.runs.test_fabric_nodes import node
from tests.waiting import until
from webhook.cli import main
from webhook.config import EXAMPLE
from webhook.diagnose.verify.matrix_output import matrix_schema
from webhook.diagnose.verify.runs import run
from webhook.diagnose.verify.runs.pods import RUN_LABEL

LABEL = {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}
FABRICS = ("-c", str(EXAMPLE))
CONFIGURED = "/apis/rdma.lab/v1alpha1/fabricconfigurations/default"


class Answer(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


class VerifyCommands:
    """Runs commands against the API server."""

    def __init__(self, api: PodsApi, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        self.api = api
        self._captured = capsysbinary

    def __call__(self, *words: str) -> Answer:
        """Run a command below `verify`; a usage error of argparse is an answer too."""
        try:
            code = main(["verify", *words, "--kubeconfig", str(self.api.kubeconfig)])
        except SystemExit as stop:
            code = int(stop.code or 0)
        written = self._captured.readouterr()
        return Answer(code, written.out.decode(), written.err.decode())

    def run(self, *words: str) -> Answer:
        """Run `verify run` in the namespace, for a fabric of the file."""
        return self("run", *FABRICS, "--fabric", "v100-ib", "-n", "lab", *words)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start `verify run` as a process."""
        access = ("--kubeconfig", str(self.api.kubeconfig), "-n", "lab")
        fabric = (*FABRICS, "--fabric", "v100-ib")
        with heeded(signal.SIGHUP):
            return subprocess.Popen(
                [sys.executable, "-m", "webhook", "verify", "run", *access, *fabric, *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "COLUMNS": "100"},
            )


@contextmanager
def heeded(number: signal.Signals) -> Iterator[None]:
    """Let processes that begin in the block handle a signal, even if nohup started this one."""
    before = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, before)


def labeled(name: str, **how: Any) -> dict[str, Any]:
    """Return a node of the fabric."""
    labeled_node = node(name, **how)
    labeled_node["metadata"]["labels"] = LABEL
    return labeled_node


@pytest.fixture
def lab(
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[VerifyCommands]:
    """Serve two nodes of a fabric and their pods, which measure well."""
    monkeypatch.setattr(run, "_PAUSE", 0.01)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("RDMA_WEBHOOK_CONFIG", raising=False)
    pods = FakePods(logs=lambda pod: client_log() if role_of(pod) == "client" else "")
    items = [labeled("gpu-0"), labeled("gpu-1"), labeled("gpu-2", cordoned=True)]
    nodes = {"metadata": {"resourceVersion": "1"}, "items": items}
    with PodsApi(pods, {"/api/v1/nodes": nodes}, tmp_path) as api:
        yield VerifyCommands(api, capsysbinary)


def test_a_run(lab: VerifyCommands, tmp_path: Path) -> None:
    """Progress goes to standard error, the result to standard output, logs into a folder."""
    answer = lab.run("--logs", str(tmp_path / "logs"))
    assert answer.code == 0
    assert "gpu-0 → gpu-1    ✔ 95.0  ✔ 95.0\n" in answer.out
    lines = [line.removeprefix("rdma-webhook: ") for line in answer.err.splitlines()]
    name = lines[1].split()[1]
    assert lines == [
        "note: omitted: gpu-2 is cordoned",
        (
            f"run: {name} in namespace lab: fabric v100-ib, 2 nodes, 1 pair, image "
            "rdma-webhook-perftest:0.1.0"
        ),
        "gpu-0 → gpu-1: server created on gpu-1",
        "gpu-0 → gpu-1: client created on gpu-0",
        "gpu-0 → gpu-1: measuring",
        "gpu-0 → gpu-1: reading both logs",
        "gpu-0 → gpu-1: ok (AtRate)",
    ]
    assert (tmp_path / "logs" / "gpu-0_gpu-1.txt").read_text() == client_log()
    assert not lab.api.pods.pods


def test_forms_and_exit_codes(lab: VerifyCommands) -> None:
    """They are the same as for `verify judge`; --quiet leaves out the progress."""
    answer = lab.run("-o", "json", "-q", "--nodes", "gpu-0,gpu-1")
    assert (answer.code, answer.err) == (0, "")
    form = json.loads(answer.out)
    Draft202012Validator(json.loads(matrix_schema())).validate(form)
    (pair,) = form["pairs"]
    assert (pair["client"], pair["server"]) == ("gpu-0", "gpu-1")
    assert [result["finding"]["code"] for result in pair["results"]] == ["AtRate"] * 2
    assert lab.run("-o", "junit").out.count('<testcase classname="gpu-0 → gpu-1"') == 2
    assert lab.run("--rate", "110").code == 0
    assert lab.run("--rate", "110", "--strict").code == 1
    assert lab.run("--rate", "400").code == 1
    lab.api.pods.logs = lambda _: ""
    assert lab.run().code == 3


def test_a_page(lab: VerifyCommands, tmp_path: Path) -> None:
    """--html writes a page in addition to the printed text."""
    page = tmp_path / "run.html"
    assert lab.run("--html", str(page)).code == 0
    (table,) = tables_of(page.read_text())
    assert table.rows == {"gpu-0 gpu-1": ["✔ok 95.0", "✔ok 95.0"]}


@pytest.mark.parametrize(
    ("page", "message"),
    [("", " is a directory; pass the name of a file"), ("none/run.html", "run.html: directory ")],
    ids=["directory", "no-directory"],
)
def test_a_page_that_cannot_be_written(
    lab: VerifyCommands, tmp_path: Path, page: str, message: str
) -> None:
    """The error comes before anything is measured."""
    answer = lab.run("--html", str(tmp_path / page))
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
    assert not lab.api.pods.created


def test_a_page_on_a_full_disk(lab: VerifyCommands) -> None:
    """The measurements are printed nevertheless."""
    answer = lab.run("--html", "/dev/full")
    assert answer.code == 2
    assert "✔ 95.0" in answer.out
    assert answer.err.endswith("error: /dev/full: cannot be written: No space left on device\n")


def test_what_the_pods_are_given(lab: VerifyCommands) -> None:
    """Options arrive in the pods."""
    lab.run(
        *("--image", "perf:1", "--image-pull-secret", "registry", "--devices", "2"),
        *("--toleration", "dedicated=rdma:NoSchedule", "--toleration", "spot", "--seconds", "7"),
        *("--latency", "--timeout", "2m"),
    )
    pod = lab.api.pods.created[0]
    assert pod["metadata"]["annotations"]["rdma.lab/devices"] == "2"
    spec = pod["spec"]
    assert spec["containers"][0]["image"] == "perf:1"
    assert spec["containers"][0]["args"][4:7] == ["7", "37", "ib_write_bw ib_write_lat"]
    assert spec["activeDeadlineSeconds"] == 2 * 120 + 4 * 37
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    taint = {"operator": "Exists", "effect": "NoSchedule"}
    assert spec["tolerations"] == [
        {"key": "nvidia.com/gpu", **taint},
        {"key": "nvidia.com/v100", **taint},
        {"key": "dedicated", "operator": "Equal", "value": "rdma", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists"},
    ]


@pytest.mark.parametrize(
    ("words", "seconds", "limits"),
    [
        ([], "10", {(3, 10), (3, 30)}),
        (["--request-timeout", "2s"], "10", {(2, 2)}),
        (["--request-timeout", "5s", "--seconds", "7"], "7", {(3, 5)}),
    ],
    ids=["none", "request", "both"],
)
def test_measurements_and_requests_have_limits_of_their_own(
    lab: VerifyCommands,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    seconds: str,
    limits: set[tuple[float, float]],
) -> None:
    """`--seconds` arrives in both pods of the pair, `--request-timeout` at every request."""
    timeouts = set()
    call_api = ApiClient.call_api

    def record(*request: Any, **options: Any) -> Any:
        timeouts.add(options["_request_timeout"])
        return call_api(*request, **options)

    monkeypatch.setattr(ApiClient, "call_api", record)
    assert lab.run(*words, "--nodes", "gpu-0,gpu-1").code == 0
    pods = [pod["spec"]["containers"][0] for pod in lab.api.pods.created]
    assert [container["args"][4] for container in pods] == [seconds, seconds]
    assert timeouts == limits


def test_all_pairs(lab: VerifyCommands) -> None:
    """Three nodes are three pairs; a node that does not fit is measured if it is named."""
    answer = lab.run("--all-pairs", "--nodes", "gpu-0,gpu-1", "--nodes", "gpu-2")
    assert answer.code == 0
    assert "rdma-webhook: note: node gpu-2 is cordoned\n" in answer.err
    assert "3 nodes, 3 pairs" in answer.err
    clients = [node_of(pod) for pod in lab.api.pods.created if role_of(pod) == "client"]
    assert sorted(clients) == ["gpu-0", "gpu-0", "gpu-1"]


def test_the_fabrics_of_the_cluster(lab: VerifyCommands) -> None:
    """Without a file they are read from the object."""
    configuration = yaml.safe_load(EXAMPLE.read_text())
    lab.api.answers[CONFIGURED] = configuration
    assert lab("run", "--fabric", "v100-ib", "-n", "lab").code == 0
    answer = lab("run", "-n", "lab")
    assert (answer.code, answer.out) == (2, "")
    source = "fabricconfigurations.rdma.lab/default"
    assert f"choose a fabric with --fabric; {source} has: v100-ib, a100-ib" in answer.err
    del configuration["spec"]["fabrics"][1:]
    assert lab("run", "-n", "lab").code == 0


def test_the_fabrics_of_the_environment(
    lab: VerifyCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are used, with a note, if the cluster's fabrics cannot be read."""
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", str(EXAMPLE))
    answer = lab("run", "--fabric", "v100-ib", "-n", "lab")
    assert answer.code == 0
    lacking = "as you lack the right to get fabricconfigurations"
    assert f"{lacking}; using the fabrics of {EXAMPLE}" in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fabric", "v100_ib"], "no fabric 'v100_ib' (did you mean v100-ib?)"),
        (
            ["--fabric", "a100-ib"],
            "fabric a100-ib has no node that can run the benchmark; a pair needs two nodes",
        ),
        (
            ["--nodes", "gpu-0"],
            "--nodes names one node, gpu-0; a pair needs two nodes (--nodes A,B)",
        ),
        (
            ["--nodes", "gpu-0,gpu-00"],
            "--nodes: node 'gpu-00' does not exist (did you mean gpu-0?)",
        ),
        (["--nodes", "gpu-0,zzz"], "--nodes: node 'zzz' does not exist"),
        (["--nodes", "GPU 0"], "'GPU 0' is not a valid object name; write at most 253"),
        (["--seconds", "4"], "'4' is not a number of seconds from 5 to 3600"),
        (["--devices", "0"], "'0' is not a number of devices from 1 to 64"),
        (["--timeout", "0"], "'0' is not a time from 1s to 1h"),
        (["--timeout", "soon"], "'soon' is not a duration such as 90s"),
        (["--toleration", "a=b=c"], "'a=b=c' is not KEY[=VALUE][:EFFECT], such as"),
        (["--toleration", "a:Never"], "'a:Never' is not KEY[=VALUE][:EFFECT]"),
        (["--ring", "--all-pairs"], "--all-pairs cannot be combined with --ring"),
        (["--logs", "/proc/none"], "/proc/none: cannot be created: "),
        (["--fabrics", "x"], "unknown option: --fabrics"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_usage(lab: VerifyCommands, words: list[str], message: str) -> None:
    """The error is one line with the value and the remedy; no pod is created."""
    answer = lab.run(*words)
    errors = [line for line in answer.err.splitlines() if ": error: " in line]
    assert (answer.code, answer.out, len(errors)) == (2, "", 1)
    assert message in errors[0]
    assert not lab.api.pods.created


def test_rights_that_are_lacking(lab: VerifyCommands) -> None:
    """Without the lists of nodes and fabrics, options take their place."""
    lab.api.answers.clear()
    answer = lab.run()
    assert answer.code == 2
    assert "(you lack the right to list nodes); name them with --nodes A,B" in answer.err
    assert lab.run("--nodes", "gpu-0,gpu-1").code == 0
    answer = lab("run", "--fabric", "v100-ib", "-n", "lab", "--nodes", "gpu-0,gpu-1")
    assert answer.code == 2
    lacking = "as you lack the right to get fabricconfigurations"
    assert f"{lacking}; pass -c FABRICS" in answer.err
    assert "error: the cluster's fabrics are unknown; pass -c FABRICS" in answer.err


def test_pods_that_may_not_be_created(lab: VerifyCommands) -> None:
    """The API server's words, and where the rights are listed."""
    from webhook.kube.api import StatusError  # noqa: PLC0415

    message = 'pods is forbidden: User "x" cannot create resource "pods"'
    lab.api.pods.errors["create"] = [StatusError(403, message)]
    answer = lab.run()
    assert (answer.code, answer.out) == (2, "")
    assert "cannot create resource" in answer.err
    assert "(docs/verify.md lists the rights that a run needs)" in answer.err


def test_an_api_server_that_does_not_answer(lab: VerifyCommands) -> None:
    """The error comes at once, in one line: nothing was created that could be left."""
    words = ("--nodes", "gpu-0,gpu-1", "--server", "http://127.0.0.1:1")
    answer = lab.run(*words)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "rdma-webhook: error: cannot reach the API server http://127.0.0.1:1: Connection refused\n"
    )


def test_a_webhook_that_is_not_called(lab: VerifyCommands) -> None:
    """`why` explains the pod, as far as the rights go; the pods are deleted."""
    lab.api.pods.rdma = None
    lab.api.answers["/api/v1/namespaces/lab"] = {"metadata": {"name": "lab"}}
    answer = lab.run("-o", "json")
    form = json.loads(answer.out)
    assert (answer.code, form["level"], form["code"]) == (1, "error", "NamespaceNotLabeled")
    assert not lab.api.pods.pods


def test_a_pod_that_cannot_be_scheduled(lab: VerifyCommands) -> None:
    """The scheduler's message is printed when it changes, and explained at the end."""
    message = "0/2 nodes are available: 2 Insufficient rdma/rdma_v100."
    waits = pending(message)
    waits["conditions"][0]["reason"] = "Unschedulable"
    lab.api.pods.stories = lambda _: [waits]
    answer = lab.run("--timeout", "1", "-o", "json")
    form = json.loads(answer.out)
    assert (answer.code, form["code"]) == (3, "Insufficient")
    assert answer.err.count(message) == 1


def test_a_log_folder_that_goes(lab: VerifyCommands, tmp_path: Path) -> None:
    """The run goes on, and reports what it could not write."""
    (tmp_path / "logs" / "gpu-0_gpu-1.txt").mkdir(parents=True)
    answer = lab.run("--logs", str(tmp_path / "logs"))
    assert answer.code == 0
    assert "gpu-0_gpu-1.txt: cannot be written: Is a directory" in answer.err


def test_clean(lab: VerifyCommands) -> None:
    """It prints what it deleted, and where there was nothing."""
    assert lab("clean", "-n", "lab") == (
        0,
        "",
        "rdma-webhook: note: nothing to delete in namespace lab\n",
    )
    assert "in any namespace" in lab("clean", "-A").err
    from tests.unit.diagnose.verify.runs.test_cleaning import filled  # noqa: PLC0415

    filled(lab.api.pods)
    answer = lab("clean", "-n", "lab", "--run", "verify-one")
    assert answer == (0, "deleted pod lab/verify-one-0-server of verify-one\n", "")
    lab.api.pods.pods["verify-two-0-server"]["spec"]["nodeName"] = "gpu-1"
    answer = lab("clean", "-A")
    assert answer.out == "deleted pod lab/verify-two-0-server of verify-two on gpu-1\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--run", "app=x"], "'app=x' is not the name of a run, such as verify-1a2b3c4d"),
        (["-n", "lab", "-A"], "cannot be combined with"),
    ],
    ids=["run", "both"],
)
def test_usage_of_clean(lab: VerifyCommands, words: list[str], message: str) -> None:
    """A name can only be that of a run, so that no other pods are chosen."""
    answer = lab("clean", *words)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal(lab: VerifyCommands, number: signal.Signals, code: int) -> None:
    """The pods are deleted, and the measurements are shown."""
    lab.api.pods.stories = lambda _: [running()]
    process = lab.start()
    until(lambda: lab.api.pods.pods)
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    assert "The run was interrupted after 0 of 1 pair." in out
    assert not lab.api.pods.pods


def test_a_second_signal(lab: VerifyCommands) -> None:
    """It does not wait for pods that do not end, and prints how to delete them."""
    lab.api.pods.stories = lambda _: [running()]
    lab.api.pods.delete = lambda pod: None  # type: ignore[method-assign]  # noqa: ARG005
    process = lab.start()
    until(lambda: lab.api.pods.pods)
    process.send_signal(signal.SIGINT)
    until(lambda: any(request.startswith("DELETE") for request in lab.api.asked))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    (name,) = {pod["metadata"]["labels"][RUN_LABEL] for pod in lab.api.pods.created}
    assert err.splitlines()[-1] == (
        "rdma-webhook: error: stopped without cleaning up; pods may remain: rdma-webhook verify "
        f"clean -n lab --run {name}"
    )


def test_a_server_that_dies(lab: VerifyCommands) -> None:
    """Its log has the cause."""
    lab.api.pods.stories = lambda pod: (
        [running(), ended_status(1)] if role_of(pod) == "server" else SERVER
    )
    lab.api.pods.logs = lambda _: f"{command('mlx5_0', 18515)}IB device mlx5_0 not found\n"
    answer = lab.run("-o", "json")
    assert (answer.code, json.loads(answer.out)["code"]) == (1, "DeviceNotFound")
