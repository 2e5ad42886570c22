"""Gloo: in PyTorch it uses TCP alone (PyTorch 2.9, docs/source/distributed.md, backends)."""

from __future__ import annotations

from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.decision import Reason, Verdict

GLOO_OVER_TCP = Reason(
    "GlooOverTcp",
    "The command chooses Gloo as PyTorch's backend, and Gloo uses only TCP.",
    remedy="Choose the backend nccl, for example with --backend=nccl. This backend needs GPUs.",
    rdma="no",
)


def judge_gloo(_: PatchedPod, patched: PatchedTarget) -> Verdict:
    """Return the verdict on a target whose data Gloo moves."""
    name = patched.target.name
    message = f"container {name} chooses PyTorch's backend gloo, which uses TCP; choose nccl"
    return Verdict.of(GLOO_OVER_TCP, message)
