"""Compare a workload's preview with the pods that its controller made, and our webhook patched."""

from __future__ import annotations

from typing import Any

from tests.api_server import defaulted
from tests.e2e.controllers.lab import WORKLOADS, Document, Lab, status
from webhook.config import EXAMPLE
from webhook.config.load import load_fabrics
from webhook.model.facts import LABEL
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.report.record import Preview
from webhook.text.yaml.documents import read_documents

#: The parts of a container that a decision reads or writes.
_PARTS = ("command", "args", "env", "resources", "securityContext")
#: The volume that the API server adds to every pod.
_TOKEN = "kube-api-access-"
_OURS = "rdma.lab/"


def previews_of(lab: Lab, manifest: str) -> dict[str, Preview]:
    """Preview a manifest of `workloads` as it is created in the lab; return the pods by place."""
    text = (WORKLOADS / f"{manifest}.yaml").read_text()
    documents = read_documents(text.replace("image: mpi\n", f"image: {lab.image}\n"))
    for document in documents:
        document.value["metadata"]["namespace"] = lab.namespace
    options = PreviewOptions(
        fabrics=load_fabrics(EXAMPLE).fabrics, namespace_labels={LABEL: "true"}
    )
    report = preview_documents(documents, options)
    assert report.notes == ()
    return {preview.path: preview for preview in report.previews}


def check_came_out(preview: Preview, pod: Document) -> None:
    """Check that the preview told what came out: called, decision, and what was applied where."""
    assert preview.called
    # The status has the fabric, the reason, each outcome's code and whatever is said of the pod
    # as a whole. It names the configuration, which is the same file here and there.
    assert status(preview.pod) == status(pod)
    told, came = seen(defaulted(preview.pod)), seen(pod)
    differing = {part: (told[part], came[part]) for part in told if told[part] != came[part]}
    assert not differing, differing


def seen(pod: Document) -> dict[str, Any]:
    """Return what a decision reads and writes in a pod, by names where lists have names."""
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    return {
        "annotations": {key: value for key, value in annotations.items() if key.startswith(_OURS)},
        "hostNetwork": spec.get("hostNetwork", False),
        "dnsPolicy": spec["dnsPolicy"],
        "nodeSelector": spec.get("nodeSelector", {}),
        "volumes": [one["name"] for one in spec.get("volumes", []) if _is_ours(one)],
        "containers": {one["name"]: _container(one) for one in spec["containers"]},
        # The words of a controller's own init container matter to nobody.
        "initContainers": {
            one["name"]: {**_container(one), "args": []} for one in spec.get("initContainers", [])
        },
    }


def _container(container: Document) -> dict[str, Any]:
    parts = {part: container[part] for part in _PARTS if part in container}
    if "env" in parts:
        parts["env"] = [{"value": "", **one} if len(one) == 1 else one for one in parts["env"]]
    mounts = [one for one in container.get("volumeMounts", []) if _is_ours(one)]
    return {**parts, "volumeMounts": mounts}


def _is_ours(volume: Document) -> bool:
    """Return whether a volume or a mount is not that of the service account's token."""
    return not volume["name"].startswith(_TOKEN)
