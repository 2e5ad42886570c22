"""Pods whose controller has got another template, but does not replace them, as `why` sees them.

The remedies are carried out as they are printed.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from tests.cluster.node import NAME as REAL
from tests.e2e.documents import ENABLE, Document, workload
from tests.e2e.installed.space import Space
from tests.e2e.installed.test_why import PRODUCT, V100, explained, texts
from tests.waiting import until

OFF = {"env": [{"name": "NCCL_IB_DISABLE", "value": "1"}]}
STATUS = "rdma.lab/status"
_COMMAND = re.compile(r"`kubectl (.+?)`")


def controller(space: Space, kind: str, pod: Document, strategy: Document) -> Document:
    """Return a controller that makes such pods, with the name `rolled`."""
    labels = {"app": "probe"}
    metadata = {"labels": labels, "annotations": pod["metadata"]["annotations"]}
    template = {"metadata": metadata, "spec": pod["spec"]}
    document = workload(kind, space.name, template, name="rolled")
    document["spec"]["updateStrategy"] = strategy
    return document


def only_pod(space: Space) -> Document:
    """Wait for the pod of the controller, and return it."""
    pods: list[Document] = []

    def is_there() -> bool:
        listed = space.kubectl("get", "pods", "--selector=app=probe", "--output=json")
        pods[:] = json.loads(listed)["items"]
        return len(pods) == 1 and "deletionTimestamp" not in pods[0]["metadata"]

    until(is_there)
    return pods[0]


def patched(space: Space, subject: str, patch: Any) -> None:
    """Apply a JSON patch to a controller, and wait until that has seen it."""
    space.kubectl("patch", subject, "--type=json", f"--patch={json.dumps(patch)}")

    def is_observed() -> bool:
        document = json.loads(space.kubectl("get", subject, "--output=json"))
        observed = document["status"].get("observedGeneration")
        return bool(observed == document["metadata"]["generation"])

    until(is_observed)


def carried_out(space: Space, remedy: str, before: Document) -> Document:
    """Run the commands of a remedy, and return the pod that replaces the one before."""
    commands = _COMMAND.findall(remedy)
    assert commands
    for command in commands:
        # A controller may delete the pod before the command does.
        space.cluster.kubectl(*shlex.split(command), check=False)
    until(lambda: only_pod(space)["metadata"]["uid"] != before["metadata"]["uid"])
    return only_pod(space)


def test_a_stateful_set_with_a_partition(space: Space) -> None:
    """The variable comes from the old template, and no webhook; the partition holds the pod."""
    pod = space.pod("unused", V100, container=OFF)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    space.create(controller(space, "StatefulSet", pod, strategy))
    before = only_pod(space)
    first = explained(space, "statefulset/rolled")
    assert first["answer"]["code"] == "NcclIbDisabled"
    removal = [{"op": "remove", "path": "/spec/template/spec/containers/0/env"}]
    patched(space, "statefulset/rolled", removal)
    explanation = explained(space, "statefulset/rolled")
    assert explanation["answer"]["code"] == "NcclIbDisabled"
    assert (
        "NCCL_IB_DISABLE=1 in container main: not in the present pod template of StatefulSet "
        "rolled, which has been changed since the pod was created; the StatefulSet has not "
        "replaced the pod, since updateStrategy.rollingUpdate.partition of StatefulSet rolled is 1."
    ) in explanation["answer"]["text"]
    assert "AddedAtAdmission" not in texts(explanation)
    carried_out(space, explanation["answer"]["remedy"], before)
    replaced = explained(space, "statefulset/rolled")
    assert (replaced["rdma"], replaced["answer"]["code"]) == ("yes", "Equipped")
    assert "OldTemplate" not in texts(replaced)
    space.kubectl("delete", "statefulset", "rolled", "--wait=true")
    until(lambda: not space.kubectl("get", "pods", "--selector=app=probe", "--output=name"))


def test_a_daemon_set_whose_pods_people_delete(space: Space) -> None:
    """The annotation is in its template by now, so the remedy is to delete the pod."""
    pod = space.pod("unused", V100, annotations={})
    pod["spec"]["nodeSelector"] = {PRODUCT: "Tesla-V100-SXM2-32GB", "kubernetes.io/hostname": REAL}
    space.create(controller(space, "DaemonSet", pod, {"type": "OnDelete"}))
    before = only_pod(space)
    annotation = {"op": "add", "path": "/spec/template/metadata/annotations"}
    patched(space, "daemonset/rolled", [{**annotation, "value": {ENABLE: "true"}}])
    explanation = explained(space, "daemonset/rolled")
    assert explanation["answer"]["code"] == "NotOptedIn"
    assert (
        "DaemonSet rolled has rdma.lab/enable in spec.template.metadata.annotations now, but has "
        "not replaced the pod, since the updateStrategy of DaemonSet rolled is OnDelete."
    ) in explanation["answer"]["text"]
    assert "OldTemplate" in texts(explanation, "podStatus")
    after = carried_out(space, explanation["answer"]["remedy"], before)
    assert STATUS in after["metadata"]["annotations"]
    assert "OldTemplate" not in texts(explained(space, "daemonset/rolled"))
