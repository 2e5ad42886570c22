"""The pods of a pair, for the scheduler, the webhook and the kubelet."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.diagnose.verify.runs.plans import FABRIC, HCAS, plan_of
from webhook.cli import main
from webhook.config import EXAMPLE
from webhook.diagnose.verify.results import NodePair
from webhook.diagnose.verify.runs.plan import RunPlan
from webhook.diagnose.verify.runs.pods import client_pod, run_selector, server_pod

PAIR = NodePair("gpu-0", "gpu-1")
ROOT = Path(__file__).parents[5]
SCRIPT = (ROOT / "webhook" / "diagnose" / "verify" / "runs" / "pair.sh").read_text()


def pair_pods(plan: RunPlan) -> list[dict[str, Any]]:
    """Return the pods of a pair."""
    return [server_pod(plan, 0, PAIR), client_pod(plan, 0, PAIR, "10.1.2.3", 0)]


def container(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the only container of a pod."""
    (only_container,) = pod["spec"]["containers"]
    assert isinstance(only_container, dict)
    return only_container


def expanded(word: str, variables: dict[str, str]) -> str:
    """Expand a word of a command as the kubelet does (third_party/forked/golang/expansion)."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", value, word)


def test_the_webhook_equips_them(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Both have RDMA over the fabric, and NCCL's devices, from the example's fabrics file."""
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pair_pods(plan_of())}))
    main(["preview", "-c", str(EXAMPLE), str(file), "-o", "json", "--enable", "-n", "lab"])
    decisions = json.loads(capsysbinary.readouterr().out)["decisions"]
    assert [(decision["rdma"], decision["fabric"]) for decision in decisions] == [
        ("yes", "v100-ib")
    ] * 2
    for decision in decisions:
        (equipped,) = decision["object"]["spec"]["containers"]
        assert equipped["resources"]["limits"]["rdma/rdma_v100"] == "1"
        assert {"name": "NCCL_IB_HCA", "value": "=mlx5_0,mlx5_1"} in equipped["env"]
        assert equipped["command"][2] == container(server_pod(plan_of(), 0, PAIR))["command"][2]


def test_the_kubelet_runs_the_script_as_it_is() -> None:
    """It expands only the server's address, whatever variables the container has."""
    variables = dict.fromkeys(re.findall(r"\$\(([^)]*)\)", SCRIPT), "no")
    for pod in pair_pods(plan_of()):
        (shell, flag, script) = container(pod)["command"]
        assert (shell, flag) == ("sh", "-c")
        assert expanded(script, variables) == SCRIPT.replace("@ROOT@", "")
    arguments = [
        expanded(argument, {"POD_IP": "10.1.2.3"})
        for argument in container(pair_pods(plan_of())[0])["args"]
    ]
    assert arguments[:3] == ["rdma-verify", "server", "10.1.2.3"]
    assert container(pair_pods(plan_of())[1])["args"][2] == "10.1.2.3"


def test_the_script_has_no_directives() -> None:
    """`kubectl get pod -o yaml` shows it; and $$ would become the number of a process."""
    assert "shellcheck" not in SCRIPT
    assert "$$" not in SCRIPT


def test_both_ends_measure_the_same() -> None:
    """Seconds, tests and HCAs agree."""
    plan = plan_of(tests=("ib_write_bw", "ib_write_lat"), seconds=7)
    server, client = (container(pod)["args"] for pod in pair_pods(plan))
    assert server[3:] == client[3:]
    assert server[3:] == ["0", "7", "37", "ib_write_bw ib_write_lat", *HCAS]


def test_they_stay_where_they_should() -> None:
    """Each is pinned to its node by affinity, so that the scheduler still decides."""
    for pod, node in zip(pair_pods(plan_of()), ("gpu-1", "gpu-0"), strict=True):
        required = pod["spec"]["affinity"]["nodeAffinity"]
        (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term == {
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]
        }
        assert "nodeName" not in pod["spec"]


def test_they_have_labels_and_a_deadline() -> None:
    """They have the labels of all runs and of their run, and end once their tests must have."""
    plan = plan_of()
    for pod in pair_pods(plan):
        labels = pod["metadata"]["labels"]
        for selector in (run_selector(), run_selector(plan.name)):
            assert dict(label.split("=") for label in selector.split(",")).items() <= labels.items()
        assert (
            not dict([run_selector("verify-other").split(",")[1].split("=")]).items()
            <= labels.items()
        )
        assert pod["spec"]["activeDeadlineSeconds"] == 2 * 60 + 2 * 40
        assert pod["spec"]["restartPolicy"] == "Never"
    unknown = plan_of(fabric=replace(FABRIC, hcas=()))
    assert pair_pods(unknown)[0]["spec"]["activeDeadlineSeconds"] == 2 * 60 + 16 * 40


def test_what_they_do_not_need() -> None:
    """They have no token, Service variables, GPU, limits or security context."""
    for pod in pair_pods(plan_of()):
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["enableServiceLinks"] is False
        assert list(container(pod)["resources"]) == ["requests"]
        assert not {"hostNetwork", "imagePullSecrets"} & set(pod["spec"])
        assert "securityContext" not in container(pod)


def test_what_may_be_asked_for() -> None:
    """Pull secrets, tolerations, a number of devices, and the host's network if needed."""
    plan = plan_of(
        fabric=replace(FABRIC, mode="host-network"),
        devices=4,
        pull_secrets=("registry",),
        tolerations=({"key": "gpu", "operator": "Exists"},),
    )
    for pod in pair_pods(plan):
        assert pod["metadata"]["annotations"]["rdma.lab/devices"] == "4"
        assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
        assert pod["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
        assert pod["spec"]["hostNetwork"] is True
        assert pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
