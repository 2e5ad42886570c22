"""The changes that a new fabrics file would make to the workloads of a cluster."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.install import Webhook
from tests.command_line import run_command
from tests.e2e.documents import Document
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


def test_live_workloads_are_compared_by_their_templates(
    webhook: Webhook, space: Space, tmp_path: Path
) -> None:
    """The pod is patched already; the templates of its Job and of an idle Deployment are not."""
    space.create(*workloads(space))
    space.kubectl("wait", "--for=jsonpath={.status.active}=1", "job/compared-job", "--timeout=300s")
    access = ("--kubeconfig", space.cluster.kubeconfig, "-n", space.name)
    old = Path(webhook.fabrics).read_text(encoding="utf-8")
    unchanged = tmp_path / "same.yaml"
    unchanged.write_text(f"{old}\n# a comment\n", encoding="utf-8")
    code, report = changed(unchanged, *access)
    assert (code, report["changes"]) == (0, [])
    assert report["compared"] >= 2

    new = tmp_path / "new.yaml"
    new.write_text(old.replace("rdma/rdma_v100", "rdma/rdma_v100_new"), encoding="utf-8")
    code, report = changed(new, *access)
    assert code == 1
    mine = [change for change in report["changes"] if change["name"].startswith("compared-")]
    assert sorted(change["kind"] for change in mine) == ["Deployment", "Job"]
    for change in mine:
        paths = {difference["path"] for difference in change["differences"]}
        assert "spec.containers[main].resources.limits[rdma/rdma_v100_new]" in paths
    space.kubectl("delete", "job/compared-job", "deployment/compared-idle", "--wait=false")
