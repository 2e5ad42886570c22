"""`rdma-webhook fabrics` with an API server over HTTP, and with a file of nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.builders import READY
from tests.integration.command_runner import CommandRunner, command_runner
from webhook.admission.registration import SHIPPED
from webhook.config import EXAMPLE
from webhook.preview.fabrics.record import fabrics_schema

HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
OBJECT = "/apis/rdma.lab/v1alpha1/fabricconfigurations/default"
VALIDATOR = Draft202012Validator(json.loads(fabrics_schema()))


def node(name: str, product: str, **offered: str) -> dict[str, Any]:
    """Make a Node; `v100="8"` is nvidia.com/v100, `rdma_v100="63"` is rdma/rdma_v100."""
    amounts = {
        f"rdma/{key}" if key.startswith("rdma") else f"nvidia.com/{key}": amount
        for key, amount in offered.items()
    }
    labels = {"nvidia.com/gpu.product": product}
    status = {"allocatable": amounts, "conditions": READY}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


V100 = [node(f"v{n}", "Tesla-V100-SXM2", v100="8", rdma_v100="63") for n in range(3)]
A100 = [node("a0", "NVIDIA-A100-SXM4-40GB", a100="8", rdma_a100="63")]
LIMITS = {"nvidia.com/v100": "4", "rdma/rdma_v100": "1"}
POD = {
    "metadata": {"name": "train", "namespace": "lab"},
    "spec": {"nodeName": "v0", "containers": [{"name": "main", "resources": {"limits": LIMITS}}]},
    "status": {"phase": "Running"},
}


def listed(*items: Any) -> dict[str, Any]:
    """Make a list of one page."""
    return {"metadata": {"resourceVersion": "1"}, "items": [*items]}


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[CommandRunner]:
    """Serve a cluster with the fabrics of the example."""
    answers = {
        HOOKS: listed(SHIPPED),
        OBJECT: yaml.safe_load(EXAMPLE.read_text()),
        "/api/v1/nodes": listed(*V100, *A100),
        "/api/v1/pods": listed(POD),
    }
    with command_runner(tmp_path, answers, "fabrics") as runner:
        yield runner


def form(runner: CommandRunner, *arguments: str) -> dict[str, Any]:
    """Run the command with -o json, which fits its schema."""
    answer = runner.form(*arguments)
    VALIDATOR.validate(answer)
    return answer


def test_the_cluster_with_its_own_fabrics(runner: CommandRunner) -> None:
    """Nothing is wrong, and no pods are read."""
    answer = runner.run()
    assert answer.code == 0, answer
    assert "v100-ib  3      nvidia.com/v100: 24  rdma/rdma_v100: 189" in answer.out
    assert "4 nodes in total" in answer.out
    assert not any(path.startswith("/api/v1/pods") for path in runner.api.asked)


def test_free_amounts(runner: CommandRunner) -> None:
    """With --free, pods are read with the caller's rights."""
    first, second = form(runner, "--free")["fabrics"]
    assert first["free"] == {"nvidia.com/v100": 20, "rdma/rdma_v100": 188}
    assert second["free"] == {"nvidia.com/a100": 8, "rdma/rdma_a100": 63}


def test_amounts_that_cannot_be_counted(runner: CommandRunner) -> None:
    """The API server accepts them from a kubelet and from users; all others still count."""
    odd = {**POD, "metadata": {"name": "odd", "namespace": "lab"}}
    limits = {"nvidia.com/v100": "1e30"}
    odd["spec"] = {"nodeName": "v1", "containers": [{"name": "a", "resources": {"limits": limits}}]}
    runner.api.answers["/api/v1/pods"] = listed(odd, POD)
    runner.api.answers["/api/v1/nodes"] = listed(
        *V100[:2], node("v2", "Tesla-V100-SXM2", v100="1e30", rdma_v100="63"), *A100
    )
    first, _ = form(runner, "--free")["fabrics"]
    assert first["free"] == {"nvidia.com/v100": 12, "rdma/rdma_v100": 188}


def test_without_the_right_to_read_pods(runner: CommandRunner) -> None:
    """Everything else is shown; free amounts are unknown."""
    del runner.api.answers["/api/v1/pods"]
    answer = runner.run("--free", "-o", "json")
    assert json.loads(answer.out)["fabrics"][0]["free"] is None
    assert answer.code == 0
    assert answer.err == (
        "rdma-webhook: note: free amounts are unknown: pods cannot be listed (the API server "
        "answered 403: cannot get /api/v1/pods)\n"
    )


def test_without_the_right_to_read_nodes(runner: CommandRunner) -> None:
    """Without nodes there is nothing to show."""
    del runner.api.answers["/api/v1/nodes"]
    answer = runner.run()
    assert (answer.code, answer.out) == (2, "")
    assert "cannot list nodes: the API server answered 403" in answer.err
    assert "besides the fabrics, only the right to list nodes is needed" in answer.err


def test_without_the_clusters_fabrics_a_file_is_needed(runner: CommandRunner) -> None:
    """The error explains why they could not be read, and names the option to give."""
    runner.api.answers[OBJECT] = 403
    answer = runner.run()
    assert answer.code == 2
    assert "the cluster's fabrics are unknown" in answer.err
    assert "pass the fabrics file with -c" in answer.err
    assert runner.run("-c", str(EXAMPLE)).code == 0


def test_a_problem_is_shown_and_counts(runner: CommandRunner) -> None:
    """The exit code is 1; `wide` names all nodes."""
    bare = node("v3", "Tesla-V100-SXM2", v100="8")
    stray = node("p0", "Tesla-P100", v100="8")
    runner.api.answers["/api/v1/nodes"] = listed(*V100, bare, stray)
    answer = runner.run("-o", "wide")
    assert answer.code == 1
    assert "v0, v1, v2, v3" in answer.out
    assert (
        "✘ v100-ib: 1 node has the GPU nvidia.com/v100, but not rdma/rdma_v100 (v3)" in answer.out
    )
    assert "✘ a100-ib: no node belongs to the fabric" in answer.out
    assert "✘ 1 node matches no fabric (nearest: v100-ib): label nvidia.com" in answer.out


def test_nodes_of_a_file(runner: CommandRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is made; the fabrics come from -c, or from the environment."""
    file = runner.folder / "nodes.json"
    file.write_text(json.dumps({"kind": "NodeList", "items": [*V100, *A100]}))
    given = form(runner, "-c", str(EXAMPLE), "-f", str(file))
    assert (given["well"], given["nodes"]) == (True, 4)
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", str(EXAMPLE))
    assert form(runner, "-f", str(file)) == given
    assert runner.api.asked == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["-f", "nodes.yaml"],
            "no fabrics; pass the fabrics file with -c, or set $RDMA_WEBHOOK_CONFIG",
        ),
        (["-f", "nodes.yaml", "--free"], "--free counts the pods of a cluster; omit -f"),
        (["-f", "none.yaml", "-c", str(EXAMPLE)], "none.yaml"),
    ],
    ids=["no fabrics", "free without pods", "no such file"],
)
def test_wrong_usage(runner: CommandRunner, arguments: list[str], message: str) -> None:
    """One line names the remedy."""
    answer = runner.run(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
