"""The pods of a pair: what the scheduler, the webhook and the kubelet make of them."""

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


def both(plan: RunPlan) -> list[dict[str, Any]]:
    """Return the pods of a pair."""
    return [server_pod(plan, 0, PAIR), client_pod(plan, 0, PAIR, "10.1.2.3", 0)]


def container(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the only container of a pod."""
    (found,) = pod["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def expanded(word: str, variables: dict[str, str]) -> str:
    """Expand a word of a command as the kubelet does (third_party/forked/golang/expansion)."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return variables.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", value, word)


def test_the_webhook_equips_them(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Both have RDMA over the fabric, by the example's fabrics, and the devices of NCCL."""
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": both(plan_of())}))
    main(["preview", "-c", str(EXAMPLE), str(file), "-o", "json", "--enable", "-n", "lab"])
    decisions = json.loads(capsysbinary.readouterr().out)["decisions"]
    assert [(one["rdma"], one["fabric"]) for one in decisions] == [("yes", "v100-ib")] * 2
    for one in decisions:
        (made,) = one["object"]["spec"]["containers"]
        assert made["resources"]["limits"]["rdma/rdma_v100"] == "1"
        assert {"name": "NCCL_IB_HCA", "value": "=mlx5_0,mlx5_1"} in made["env"]
        assert made["command"][2] == container(server_pod(plan_of(), 0, PAIR))["command"][2]


def test_the_kubelet_runs_the_script_as_it_is() -> None:
    """It expands the server's address alone, whatever variables the container has."""
    every = dict.fromkeys(re.findall(r"\$\(([^)]*)\)", SCRIPT), "no")
    for pod in both(plan_of()):
        (shell, flag, script) = container(pod)["command"]
        assert (shell, flag) == ("sh", "-c")
        assert expanded(script, every) == SCRIPT.replace("@ROOT@", "")
    arguments = [
        expanded(one, {"POD_IP": "10.1.2.3"}) for one in container(both(plan_of())[0])["args"]
    ]
    assert arguments[:3] == ["rdma-verify", "server", "10.1.2.3"]
    assert container(both(plan_of())[1])["args"][2] == "10.1.2.3"


def test_the_script_has_no_directives() -> None:
    """It is shown by `kubectl get pod -o yaml`; and $$ would become another process's number."""
    assert "shellcheck" not in SCRIPT
    assert "$$" not in SCRIPT


def test_both_ends_measure_the_same() -> None:
    """Seconds, tests and HCAs agree."""
    plan = plan_of(tests=("ib_write_bw", "ib_write_lat"), seconds=7)
    server, client = (container(pod)["args"] for pod in both(plan))
    assert server[3:] == client[3:]
    assert server[3:] == ["0", "7", "37", "ib_write_bw ib_write_lat", *HCAS]


def test_they_stay_where_they_should() -> None:
    """Each is pinned to its node by affinity, which leaves the scheduler its say."""
    for pod, node in zip(both(plan_of()), ("gpu-1", "gpu-0"), strict=True):
        required = pod["spec"]["affinity"]["nodeAffinity"]
        (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term == {
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]
        }
        assert "nodeName" not in pod["spec"]


def test_they_can_be_found_and_end() -> None:
    """By the labels of all runs, or of one; and no pod lives longer than its tests may take."""
    plan = plan_of()
    for pod in both(plan):
        labels = pod["metadata"]["labels"]
        for selector in (run_selector(), run_selector(plan.name)):
            assert dict(one.split("=") for one in selector.split(",")).items() <= labels.items()
        assert (
            not dict([run_selector("verify-other").split(",")[1].split("=")]).items()
            <= labels.items()
        )
        assert pod["spec"]["activeDeadlineSeconds"] == 2 * 60 + 2 * 40
        assert pod["spec"]["restartPolicy"] == "Never"
    unknown = plan_of(fabric=replace(FABRIC, hcas=()))
    assert both(unknown)[0]["spec"]["activeDeadlineSeconds"] == 2 * 60 + 16 * 40


def test_what_they_do_not_need() -> None:
    """No token, no environment of Services, no GPU, no limits, no power."""
    for pod in both(plan_of()):
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["enableServiceLinks"] is False
        assert list(container(pod)["resources"]) == ["requests"]
        assert not {"hostNetwork", "imagePullSecrets"} & set(pod["spec"])
        assert "securityContext" not in container(pod)


def test_what_may_be_asked_for() -> None:
    """Pull secrets, tolerations, a number of devices, and the host's network where it is needed."""
    plan = plan_of(
        fabric=replace(FABRIC, mode="host-network"),
        devices=4,
        pull_secrets=("registry",),
        tolerations=({"key": "gpu", "operator": "Exists"},),
    )
    for pod in both(plan):
        assert pod["metadata"]["annotations"]["rdma.lab/devices"] == "4"
        assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
        assert pod["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
        assert pod["spec"]["hostNetwork"] is True
        assert pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
