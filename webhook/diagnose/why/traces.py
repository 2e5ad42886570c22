"""The traces that each mutation leaves on a pod, whatever the configuration.

A pod on which a mutation was applied has its trace, at least in one container, until somebody
removes it. `memory-limit` leaves none: it removes something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from webhook.decide.launchers.openmpi import HCOLL_VARIABLE
from webhook.decide.mutations.claims import MUTATION as CLAIMS
from webhook.decide.mutations.config_files import MUTATION as CONFIG_FILES
from webhook.decide.mutations.config_files import VOLUME_NAME
from webhook.decide.mutations.env import MUTATION as ENV
from webhook.decide.mutations.hcoll import MUTATION as HCOLL
from webhook.decide.mutations.ipc_lock import CAPABILITY, memlock_annotation_key
from webhook.decide.mutations.ipc_lock import MUTATION as IPC_LOCK
from webhook.decide.mutations.networks import MUTATION as NETWORKS
from webhook.decide.mutations.nvlink import MUTATION as NVLINK
from webhook.decide.mutations.placement import MUTATION as PLACEMENT
from webhook.decide.mutations.rdma_resources import MUTATION as RDMA_RESOURCES
from webhook.decide.mutations.shared_memory import MUTATION as SHARED_MEMORY
from webhook.decide.mutations.shared_memory import VOLUME
from webhook.decide.shell.argv import remap_length
from webhook.diagnose.why.stand_in import extended_resources, is_gpu_name
from webhook.model.annotations import NETWORKS_ANNOTATION
from webhook.model.pod import Container, Pod


class Trace(NamedTuple):
    """What a mutation leaves on a pod."""

    #: What it adds, and to what, after "added".
    description: str
    is_left: Callable[[Pod], bool]


def _in_a_container(is_left: Callable[[Container], object]) -> Callable[[Pod], bool]:
    return lambda pod: any(map(is_left, pod.containers))


def _may_lock_memory(pod: Pod) -> bool:
    return any(
        container.privileged
        or container.capabilities.grants(CAPABILITY)
        or memlock_annotation_key(pod.annotations, container.name)
        for container in pod.containers
    )


def _may_have_a_nic(container: Container) -> bool:
    """Return whether one of its resources may be a NIC. A GPU is not."""
    resources = extended_resources([container])
    return len(resources) > 1 or not all(map(is_gpu_name, resources))


#: Mutation → its trace.
TRACES: Mapping[str, Trace] = {
    IPC_LOCK.name: Trace(f"{CAPABILITY} to securityContext.capabilities.add", _may_lock_memory),
    RDMA_RESOURCES.name: Trace(
        "an RDMA resource to resources.limits",
        lambda pod: any(map(_may_have_a_nic, pod.containers)),
    ),
    CLAIMS.name: Trace(
        "a claim to resources.claims", _in_a_container(lambda container: container.claims)
    ),
    NETWORKS.name: Trace(
        f"a network to the annotation {NETWORKS_ANNOTATION}",
        lambda pod: bool(pod.annotation(NETWORKS_ANNOTATION)),
    ),
    ENV.name: Trace("a variable to env", _in_a_container(lambda container: container.env_items)),
    CONFIG_FILES.name: Trace(
        f"a mount of the volume {VOLUME_NAME}",
        _in_a_container(lambda container: any(container.mounted_volumes((VOLUME_NAME,)))),
    ),
    HCOLL.name: Trace(
        f"{HCOLL_VARIABLE} to env",
        _in_a_container(lambda container: HCOLL_VARIABLE in container.env_names),
    ),
    NVLINK.name: Trace(
        "the script rdma-remap to a command",
        _in_a_container(lambda container: remap_length(container.command)),
    ),
    SHARED_MEMORY.name: Trace(
        f"a mount of the volume {VOLUME}",
        _in_a_container(lambda container: any(container.mounted_volumes((VOLUME,)))),
    ),
    PLACEMENT.name: Trace("a node label to nodeSelector", lambda pod: bool(pod.node_selector)),
}
