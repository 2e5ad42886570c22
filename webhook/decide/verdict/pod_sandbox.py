"""The sandbox: whether the pod's container runtime lets a container reach RDMA devices at all."""

from __future__ import annotations

from webhook.decide.verdict.judged_pod import Seen
from webhook.model.decision import Reason, Verdict
from webhook.model.runtime_class import is_gvisor, is_kata

GVISOR = Reason("GvisorSandbox", "gVisor's kernel has no RDMA devices.", rdma="no")
KATA = Reason(
    "KataSandbox",
    "In a Kata virtual machine only a NIC that is passed through works.",
    rdma="unsure",
)
SANDBOX_REASONS = (GVISOR, KATA)


def judge_pod_sandbox(seen: Seen) -> Verdict | None:
    """Return what the pod's runtimeClassName says against RDMA, None if nothing."""
    name = seen.pod["spec"].get("runtimeClassName")
    if is_gvisor(name):
        message = f"runtimeClassName {name} is gVisor, which has no RDMA devices"
        return Verdict.of(GVISOR, message)
    if is_kata(name):
        message = f"runtimeClassName {name} is Kata, where only a NIC that is passed through works"
        return Verdict.of(KATA, message)
    return None
