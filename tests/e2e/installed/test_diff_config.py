"""What a new fabrics file would change for the workloads that live in a cluster."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.install import Webhook
from tests.command_line import run_command
from tests.e2e.asking import Document
from tests.e2e.installed.space import Space

V100 = "nvidia.com/v100"


def changed(*arguments: str | Path) -> tuple[int, Document]:
    """Run the command with -o json; return its exit code and its answer."""
    answer = run_command("diff-config", "-o", "json", *arguments)
    return answer.code, answer.form


def workloads(space: Space) -> list[Document]:
    """Make a Job whose pod lives, and a Deployment without any pod."""
    pod = space.pod("any", V100)
    metadata = {"annotations": pod["metadata"]["annotations"], "labels": {"app": "compared"}}
    template = {"metadata": metadata, "spec": {**pod["spec"], "restartPolicy": "Never"}}
    always = {"metadata": metadata, "spec": pod["spec"]}
    return [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "compared-job", "namespace": space.name},
            "spec": {"template": template},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "compared-idle", "namespace": space.name},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": metadata["labels"]},
                "template": always,
            },
        },
    ]


def test_what_lives_is_compared_by_its_template(
    webhook: Webhook, space: Space, tmp_path: Path
) -> None:
    """The pod is patched already; its Job's template and that of an idle Deployment are not."""
    space.create(*workloads(space))
    space.kubectl("wait", "--for=jsonpath={.status.active}=1", "job/compared-job", "--timeout=60s")
    access = ("--kubeconfig", space.cluster.kubeconfig, "-n", space.name)
    old = Path(webhook.fabrics).read_text(encoding="utf-8")
    same = tmp_path / "same.yaml"
    same.write_text(f"{old}\n# a comment\n", encoding="utf-8")
    code, found = changed(same, *access)
    assert (code, found["changes"]) == (0, [])
    assert found["compared"] >= 2

    new = tmp_path / "new.yaml"
    new.write_text(old.replace("rdma/rdma_v100", "rdma/rdma_v100_new"), encoding="utf-8")
    code, found = changed(new, *access)
    assert code == 1
    mine = [one for one in found["changes"] if one["name"].startswith("compared-")]
    assert sorted(one["kind"] for one in mine) == ["Deployment", "Job"]
    for one in mine:
        places = {leaf["place"] for leaf in one["leaves"]}
        assert "spec.containers[main].resources.limits[rdma/rdma_v100_new]" in places
    space.kubectl("delete", "job/compared-job", "deployment/compared-idle", "--wait=false")
