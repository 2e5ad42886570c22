"""The mutations, in their order; each sees the changes of the earlier ones.

A mutation is one file or folder: its reasons, `mutate(draft, analysis)`, and `MUTATION`, which is
listed here. It does not depend on other mutations. For a short example, see `placement`.
"""

from __future__ import annotations

from webhook.decide.analysis import Mutation
from webhook.decide.mutations.claims import MUTATION as CLAIMS
from webhook.decide.mutations.config_files import MUTATION as CONFIG_FILES
from webhook.decide.mutations.env import MUTATION as ENV
from webhook.decide.mutations.hcoll import MUTATION as HCOLL
from webhook.decide.mutations.ipc_lock import MUTATION as IPC_LOCK
from webhook.decide.mutations.memory_limit import MUTATION as MEMORY_LIMIT
from webhook.decide.mutations.networks import MUTATION as NETWORKS
from webhook.decide.mutations.nvlink import MUTATION as NVLINK
from webhook.decide.mutations.placement import MUTATION as PLACEMENT
from webhook.decide.mutations.rdma_resources import MUTATION as RDMA_RESOURCES
from webhook.decide.mutations.shared_memory import MUTATION as SHARED_MEMORY

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
