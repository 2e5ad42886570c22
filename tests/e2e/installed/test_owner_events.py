"""Events about RDMA at the owner of a pod, as `kubectl describe` shows them."""

from __future__ import annotations

import json

from tests.e2e.documents import Document
from tests.e2e.installed.space import Space
from tests.waiting import until

OFF = {"env": [{"name": "NCCL_IB_DISABLE", "value": "1"}]}


def _owning(space: Space, kind: str, name: str, **spec: object) -> Document:
    """Write a controller whose pods fit no node, and would have no RDMA."""
    pod = space.pod(name, "nvidia.com/v100", container=OFF, nodeSelector={"no": "node"})
    template = {
        "metadata": {"annotations": pod["metadata"]["annotations"], "labels": {"app": name}},
        "spec": pod["spec"],
    }
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**spec, "template": template},
    }


def test_a_job_has_an_event_that_its_pods_have_no_rdma(space: Space) -> None:
    """However many pods it has, and whichever replica decides, there is one event."""
    job = _owning(space, "Job", "silent", parallelism=3, completions=3)
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    space.create(job)
    message = space.event("silent", "NoRDMA")
    assert message == (
        "its pods will have no RDMA (NcclIbDisabled): container main sets "
        "NCCL_IB_DISABLE=1; remove the variable"
    )
    assert message in space.kubectl("describe", "job", "silent")
    until(lambda: len(space.kubectl("get", "pods", "-l", "app=silent", "-o", "name").split()) == 3)
    of = "--field-selector=involvedObject.name=silent,reason=NoRDMA"
    events = json.loads(space.kubectl("get", "events", of, "--output=json"))["items"]
    assert len(events) == 1
    space.kubectl("delete", "job", "silent", "--wait=false")


def test_a_deployment_gets_the_event_with_its_replica_set(space: Space) -> None:
    """People look at the Deployment, which no pod names."""
    labels = {"matchLabels": {"app": "server"}}
    space.create(_owning(space, "Deployment", "server", selector=labels))
    message = space.event("server", "NoRDMA")
    assert "NcclIbDisabled" in message
    assert message in space.kubectl("events", "--for", "deployment/server")
    sets = json.loads(space.kubectl("get", "replicasets", "--output=json"))["items"]
    assert space.event(sets[0]["metadata"]["name"], "NoRDMA") == message
    space.kubectl("delete", "deployment", "server", "--wait=false")


def test_a_dry_run_makes_no_event(space: Space) -> None:
    """A dry run leaves no trace; the next pod, which is created, does."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "tried", "uid": "7"}
    pod = space.pod("tried", "nvidia.com/v100", container=OFF)
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    assert '"rdma":"no"' in space.proposed(pod)["metadata"]["annotations"]["rdma.lab/status"]
    real = space.pod("real", "nvidia.com/v100", container=OFF)
    real["metadata"]["ownerReferences"] = [{**owner, "name": "real", "controller": True}]
    space.create(real)
    space.event("real", "NoRDMA")
    assert "tried" not in space.kubectl("get", "events", "--output=name")
