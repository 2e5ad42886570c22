"""Libraries other than NCCL on a fabric that is reached through libfabric, such as AWS EFA.

EFA has no verbs that UCX's usual transports, Mooncake, MoRI or NVSHMEM's default could use: each
library needs a part for libfabric, which a variable chooses or the image's build decides.

Sources: NIXL's src/plugins/libfabric; NVSHMEM's environment variables (NVSHMEM_REMOTE_TRANSPORT);
aws-ofi-nccl's README; Open MPI and Intel MPI in the EFA installer.
"""

from __future__ import annotations

from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.decision import Reason, Verdict
from webhook.model.traffic_libraries import TrafficLibrary
from webhook.model.transport_variables import nixl_backend

NOT_OVER_LIBFABRIC = Reason(
    "LibraryOverLibfabric",
    "The fabric is reached only through libfabric, and a library that moves the pod's data might "
    "not use libfabric.",
    remedy=(
        "For NIXL, choose the backend LIBFABRIC; for NVSHMEM, set "
        "NVSHMEM_REMOTE_TRANSPORT=libfabric. For other libraries, check that the image's build of "
        "the library uses libfabric."
    ),
    rdma="unsure",
)
#: The libraries that NCCL's rules or their own judge on every fabric.
_JUDGED_ELSEWHERE: tuple[TrafficLibrary, ...] = ("NCCL", "Gloo")
_LIBFABRIC = "libfabric"


def is_over_libfabric(pod: PatchedPod, library: TrafficLibrary) -> bool:
    """Return whether a library must use libfabric to reach the pod's fabric."""
    return pod.transport == _LIBFABRIC and library not in _JUDGED_ELSEWHERE


def judge_over_libfabric(patched: PatchedTarget, library: TrafficLibrary) -> Verdict | None:
    """Return the verdict on a library that might not use libfabric; None if env chooses it."""
    _, backend = nixl_backend(patched.effective_env)
    transport = patched.effective_env.get("NVSHMEM_REMOTE_TRANSPORT") or ""
    chosen = {"NIXL": backend, "NVSHMEM": transport}.get(library, "")
    if chosen.lower() == _LIBFABRIC:
        return None
    message = f"{library} in container {patched.target.name} might not use libfabric"
    return Verdict.of(NOT_OVER_LIBFABRIC, message)
