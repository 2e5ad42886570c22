"""Compare a workload's preview with the pods that its controller made, and our webhook patched."""

from __future__ import annotations

from typing import Any

from tests.api_server import defaulted
from tests.e2e.controllers.lab import WORKLOADS, Document, WorkloadNamespace, status
from tests.fabrics_file import load_fabrics
from webhook.config import EXAMPLE
from webhook.model.facts import OPT_IN_LABEL
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.report.record import Preview
from webhook.text.yaml.documents import read_documents

#: The parts of a container that a decision reads or writes.
_PARTS = ("command", "args", "env", "resources", "securityContext")
#: The volume that the API server adds to every pod.
_TOKEN = "kube-api-access-"
_OURS = "rdma.lab/"


def previews_of(lab: WorkloadNamespace, manifest: str) -> dict[str, Preview]:
    """Preview a manifest of `workloads` as it is created in the lab; return the pods by place."""
    text = (WORKLOADS / f"{manifest}.yaml").read_text()
    documents = read_documents(text.replace("image: mpi\n", f"image: {lab.image}\n"))
    for document in documents:
        document.value["metadata"]["namespace"] = lab.namespace
    options = PreviewOptions(
        configuration=load_fabrics(EXAMPLE).compiled, namespace_labels={OPT_IN_LABEL: "true"}
    )
    report = preview_documents(documents, options)
    assert report.notes == ()
    return {preview.path: preview for preview in report.previews}


def check_preview(preview: Preview, pod: Document) -> None:
    """Check that the preview matches the pod: the call, the decision, and all decided parts."""
    assert preview.called
    # The status has the fabric, the reason, each outcome's code and all that concerns the pod
    # as a whole. It names the configuration, which is the same file here and there.
    assert status(preview.pod) == status(pod)
    previewed, actual = decided_parts(defaulted(preview.pod)), decided_parts(pod)
    differing = {
        part: (previewed[part], actual[part])
        for part in previewed
        if previewed[part] != actual[part]
    }
    assert not differing, differing


def decided_parts(pod: Document) -> dict[str, Any]:
    """Return the parts of a pod that a decision reads or writes, lists as maps by name."""
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    return {
        "annotations": {key: value for key, value in annotations.items() if key.startswith(_OURS)},
        "hostNetwork": spec.get("hostNetwork", False),
        "dnsPolicy": spec["dnsPolicy"],
        "nodeSelector": spec.get("nodeSelector", {}),
        "volumes": [volume["name"] for volume in spec.get("volumes", []) if _is_ours(volume)],
        "containers": {
            container["name"]: _container(container) for container in spec["containers"]
        },
        # The arguments of a controller's own init container do not matter.
        "initContainers": {
            container["name"]: {**_container(container), "args": []}
            for container in spec.get("initContainers", [])
        },
    }


def _container(container: Document) -> dict[str, Any]:
    parts = {part: container[part] for part in _PARTS if part in container}
    if "env" in parts:
        parts["env"] = [
            {"value": "", **variable} if len(variable) == 1 else variable
            for variable in parts["env"]
        ]
    mounts = [mount for mount in container.get("volumeMounts", []) if _is_ours(mount)]
    return {**parts, "volumeMounts": mounts}


def _is_ours(volume: Document) -> bool:
    """Return whether a volume or a mount does not belong to the service account's token."""
    return not volume["name"].startswith(_TOKEN)
