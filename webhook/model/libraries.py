"""The environment variables that the webhook sets for RDMA libraries, in one table.

A row has the library, the name and the source of the value. The rest follows from the table: the
variables of a pod and their order, the names that `check-config` accepts as correctly spelled, and
the names that tests allow in a patch.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

Library = Literal["nccl", "ucx", "gloo", "nvshmem", "mooncake", "openmpi"]
#: The libraries' names as people spell them.
LIBRARIES: dict[Library, str] = {
    "nccl": "NCCL",
    "ucx": "UCX",
    "gloo": "Gloo",
    "nvshmem": "NVSHMEM",
    "mooncake": "Mooncake",
    "openmpi": "Open MPI",
}
#: Sources of values that depend on the fabric alone; `webhook.config.environment` renders them.
FabricSource = Literal[
    "nccl hcas",
    "nvshmem prefix",
    "nvshmem hcas",
    "mooncake hcas",
    "traffic class",
    "service level",
    "fifo traffic class",
    "gid index",
    "ucx pkey",
]
#: Sources of values that also depend on the pod; `webhook.decide.fabric_variables` computes them.
PodSource = Literal["socket", "hcas and interfaces", "interfaces", "interfaces of mpi"]
POD_SOURCES: frozenset[str] = frozenset(get_args(PodSource))
ValueSource = FabricSource | PodSource


class Variable(NamedTuple):
    """A variable that a library reads; it is not set if its value is empty."""

    library: Library
    name: str
    source: ValueSource


#: In their order in a pod.
VARIABLES: tuple[Variable, ...] = (
    Variable("nccl", "NCCL_IB_HCA", "nccl hcas"),
    Variable("nccl", "NCCL_IB_TC", "traffic class"),
    Variable("nccl", "NCCL_IB_SL", "service level"),
    Variable("nccl", "NCCL_IB_FIFO_TC", "fifo traffic class"),
    Variable("nccl", "NCCL_IB_GID_INDEX", "gid index"),
    Variable("nccl", "NCCL_SOCKET_IFNAME", "socket"),
    Variable("gloo", "GLOO_SOCKET_IFNAME", "socket"),
    Variable("ucx", "UCX_NET_DEVICES", "hcas and interfaces"),
    Variable("ucx", "UCX_IB_TRAFFIC_CLASS", "traffic class"),
    Variable("ucx", "UCX_IB_SL", "service level"),
    Variable("ucx", "UCX_IB_GID_INDEX", "gid index"),
    Variable("ucx", "UCX_IB_PKEY", "ucx pkey"),
    Variable("nvshmem", "NVSHMEM_HCA_PREFIX", "nvshmem prefix"),
    Variable("nvshmem", "NVSHMEM_HCA_LIST", "nvshmem hcas"),
    Variable("nvshmem", "NVSHMEM_IB_TRAFFIC_CLASS", "traffic class"),
    Variable("nvshmem", "NVSHMEM_IB_SL", "service level"),
    Variable("nvshmem", "NVSHMEM_IB_GID_INDEX", "gid index"),
    Variable("nvshmem", "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "interfaces"),
    Variable("mooncake", "MC_MS_FILTERS", "mooncake hcas"),
    Variable("mooncake", "MC_GID_INDEX", "gid index"),
    # Open MPI's TCP between ranks, and between its daemons: until version 4, and from version 5 on.
    Variable("openmpi", "OMPI_MCA_btl_tcp_if_include", "interfaces of mpi"),
    Variable("openmpi", "OMPI_MCA_oob_tcp_if_include", "interfaces of mpi"),
    Variable("openmpi", "PRTE_MCA_prte_if_include", "interfaces of mpi"),
)
#: The names of the variables that this webhook sets; an earlier call may have set them.
WEBHOOK_VARIABLES = frozenset(row.name for row in VARIABLES)
