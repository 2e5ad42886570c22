"""All codes of findings of `why`, besides reasons of decisions and known lines of logs."""

from __future__ import annotations

from webhook.diagnose.why import (
    answer,
    bound_node,
    container_status,
    no_pods,
    pending_claims,
    pending_nodes,
    pending_placement,
    pending_scheduler,
    pending_volumes,
    pod_status,
    redecide,
    request,
    runtime_evidence,
    webhook_call,
)
from webhook.model.finding import Code

_MODULES = (
    webhook_call,
    request,
    pod_status,
    container_status,
    no_pods,
    pending_claims,
    pending_nodes,
    pending_placement,
    pending_scheduler,
    pending_volumes,
    runtime_evidence,
    redecide,
    bound_node,
    answer,
)
CODES: tuple[Code, ...] = tuple(code for module in _MODULES for code in module.CODES)
