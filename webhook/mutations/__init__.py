"""The ten mutations, in the order in which they run; each sees what the earlier ones did."""

from __future__ import annotations

from webhook.core.scope import Mutation
from webhook.mutations import (
    config_files,
    env,
    hcoll,
    ipc_lock,
    memory_limit,
    networks,
    nvlink,
    placement,
    rdma_resources,
    shared_memory,
)

#: The order is that of the documentation; rdma.lab/skip, the tables and the metrics follow it.
MUTATIONS: tuple[Mutation, ...] = (
    ipc_lock.MUTATION,
    rdma_resources.MUTATION,
    networks.MUTATION,
    memory_limit.MUTATION,
    env.MUTATION,
    config_files.MUTATION,
    hcoll.MUTATION,
    nvlink.MUTATION,
    shared_memory.MUTATION,
    placement.MUTATION,
)
