"""The mutations, in the order in which they run; each sees the changes of the earlier ones."""

from __future__ import annotations

from webhook.decision.scope import Mutation
from webhook.mutations.claims import MUTATION as CLAIMS
from webhook.mutations.config_files import MUTATION as CONFIG_FILES
from webhook.mutations.env import MUTATION as ENV
from webhook.mutations.hcoll import MUTATION as HCOLL
from webhook.mutations.ipc_lock import MUTATION as IPC_LOCK
from webhook.mutations.memory_limit import MUTATION as MEMORY_LIMIT
from webhook.mutations.networks import MUTATION as NETWORKS
from webhook.mutations.nvlink import MUTATION as NVLINK
from webhook.mutations.placement import MUTATION as PLACEMENT
from webhook.mutations.rdma_resources import MUTATION as RDMA_RESOURCES
from webhook.mutations.shared_memory import MUTATION as SHARED_MEMORY

#: The documentation, rdma.lab/skip, the tables and the metrics use the same order.
MUTATIONS: tuple[Mutation, ...] = (
    IPC_LOCK,
    RDMA_RESOURCES,
    CLAIMS,
    NETWORKS,
    MEMORY_LIMIT,
    ENV,
    CONFIG_FILES,
    HCOLL,
    NVLINK,
    SHARED_MEMORY,
    PLACEMENT,
)
