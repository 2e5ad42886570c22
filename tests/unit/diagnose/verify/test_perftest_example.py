"""manifests/examples/perftest.yaml: its pods get RDMA, and their logs are readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, row
from tests.unit.diagnose.verify.evaluated import evaluated
from webhook.cli import main
from webhook.config import EXAMPLE

FILE = Path(__file__).parents[4] / "manifests" / "examples" / "perftest.yaml"
PODS: list[dict[str, Any]] = [
    manifest
    for manifest in yaml.safe_load_all(FILE.read_text(encoding="utf-8"))
    if manifest["kind"] == "Pod"
]


def test_its_pods_have_rdma(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Both are equipped for the fabric that they name, from the example's fabrics file."""
    main(["preview", "-c", str(EXAMPLE), str(FILE), "-o", "json", "--enable"])
    decisions = json.loads(capsysbinary.readouterr().out)["decisions"]
    assert [(decision["name"], decision["rdma"], decision["fabric"]) for decision in decisions] == [
        ("server", "yes", "v100-ib"),
        ("client", "yes", "v100-ib"),
    ]


def _commands(pod: dict[str, Any]) -> list[str]:
    """Return the commands of perftest as `sh -x` prints them."""
    (container,) = pod["spec"]["containers"]
    lines = container["args"][0].splitlines()
    return [f"+ {line}" for line in lines if "ib_write_bw" in line]


def test_its_logs_are_understood() -> None:
    """The commands that the shell prints name the device of each run, even of a failed run."""
    for pod in PODS:
        first, second = _commands(pod)
        log = f"{first}\nPort number 1 state is Down\n{second}\n{bandwidth(row(96), qps=4)}"
        log = log.replace("mlx5_4", "mlx5_1")
        evaluation = evaluated(log, hcas=["mlx5_0", "mlx5_1"])
        runs = [result.measurement for result in evaluation.results]
        assert [run and run.device for run in runs] == ["mlx5_0", "mlx5_1"]
        assert [result.finding.code for result in evaluation.results] == ["PortDown", "AtRate"]


def test_both_ends_run_the_same() -> None:
    """Server and client name the same devices and ports, in the same order."""
    server, client = ([line.split() for line in _commands(pod)] for pod in PODS)
    assert [words[3:] for words in server] == [words[3:-1] for words in client]
    assert {words[-1] for words in client} == {"server.perftest"}
