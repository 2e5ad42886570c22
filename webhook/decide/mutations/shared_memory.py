"""`shared-memory`: mount a /dev/shm of the size that the fabric configures.

containerd gives a container 64 MiB, too little for NCCL and PyTorch's data loaders. A memory
volume without sizeLimit may grow to the node's memory once the pod has no memory limit (kubelet,
calculateEmptyDirMemorySize), so ours always has a sizeLimit. With hostIPC the container has the
node's /dev/shm, which NVLink between pods needs.
"""

from __future__ import annotations

from webhook.decide.analysis import Mutation, PodAnalysis, RdmaAccess
from webhook.decide.draft import Draft
from webhook.model.decision import Reason
from webhook.model.pod.volumes import VOLUMES

MOUNT_PATH = "/dev/shm"  # noqa: S108 -- a mount point
VOLUME = "rdma-lab-shm"

ADDED = Reason(
    "Added",
    "A memory-backed volume of the size that the configuration sets for the fabric was mounted "
    "at /dev/shm.",
    remedy="",
)
PRESENT = Reason(
    "Present", "The webhook's memory-backed volume is already mounted at /dev/shm.", remedy=""
)
NOT_CONFIGURED = Reason(
    "NotConfigured",
    "The pod's fabric is unknown, or the fabric sets no sharedMemory.",
    remedy="",
    reportable=False,
)
OWN_SHARED_MEMORY = Reason(
    "OwnSharedMemory",
    "The pod mounts its own volume at /dev/shm, so the webhook does not mount one there.",
    remedy=(
        "Either remove your own mount at /dev/shm, so that the webhook mounts a volume there, or "
        "give the volume of your mount the size that `sharedMemory` sets for the fabric."
    ),
    reportable=False,
)
HOST_IPC = Reason(
    "HostIPC",
    "The pod has hostIPC: true, so its /dev/shm is the node's own.",
    remedy="",
    reportable=False,
)
NVLINK = Reason(
    "NVLinkRequested",
    "No memory-backed volume was mounted at /dev/shm: NVLink between pods needs the node's own "
    "/dev/shm.",
    remedy="",
    reportable=False,
)
NAME_TAKEN = Reason(
    "VolumeNameTaken",
    f"The pod has its own volume named {VOLUME}, so the webhook mounted no memory-backed volume "
    "at /dev/shm.",
    remedy="Give the pod's own volume a different name.",
)


def mutate(draft: Draft, analysis: PodAnalysis) -> None:
    """Mount shared memory of the fabric's size into every target without a mount at /dev/shm."""
    size = None if analysis.fabric is None else analysis.fabric.shared_memory
    if size is None:
        draft.skipped("", NOT_CONFIGURED, NOT_CONFIGURED.clause)
    elif draft.view.host_ipc:
        draft.skipped("", HOST_IPC, "with hostIPC, /dev/shm is the node's own")
    elif analysis.annotations.nvlink:
        draft.skipped("", NVLINK, "NVLink between pods needs the node's own /dev/shm")
    else:
        _mount(draft, analysis, size)


def _mount(draft: Draft, analysis: PodAnalysis, size: str) -> None:
    volume = draft.view.volume(VOLUME)
    missing = volume is None
    name_taken = volume is not None and not volume.is_memory
    for target in analysis.targets:
        mount = draft.container(target.path).mount_at(MOUNT_PATH)
        if mount is not None and (name_taken or mount.get("name") != VOLUME):
            draft.skipped(target.name, OWN_SHARED_MEMORY, f"your own mount at {MOUNT_PATH} is kept")
        elif name_taken:
            message = f"rename your volume {VOLUME}, since the webhook uses that name"
            draft.skipped(target.name, NAME_TAKEN, message)
        elif mount is not None:
            draft.already(
                target.name, PRESENT, f"{MOUNT_PATH} is already the webhook's memory-backed volume"
            )
        else:
            if missing:
                source = {"medium": "Memory", "sizeLimit": size}
                draft.append(VOLUMES, {"name": VOLUME, "emptyDir": source})
                missing = False
            path = (*target.path, "volumeMounts")
            draft.append(path, {"name": VOLUME, "mountPath": MOUNT_PATH})
            draft.applied(target.name, ADDED, f"mounted {size} of shared memory at {MOUNT_PATH}")


MUTATION = Mutation(
    name="shared-memory",
    summary=(
        "mounts a memory-backed volume at /dev/shm, of the size that the configuration sets for "
        "the fabric"
    ),
    needs=RdmaAccess.NONE,
    reasons=(ADDED, PRESENT, NOT_CONFIGURED, OWN_SHARED_MEMORY, HOST_IPC, NVLINK, NAME_TAKEN),
    mutate=mutate,
)
