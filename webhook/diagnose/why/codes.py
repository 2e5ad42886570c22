"""All codes of findings of `why`, besides reasons of decisions and known lines of logs."""

from __future__ import annotations

from webhook.diagnose.why import (
    additions,
    answer,
    attached_networks,
    bound_node,
    changed_afterwards,
    config_map_values,
    container_status,
    init_containers,
    memory_rights,
    missed_call,
    no_pods,
    node_setup,
    old_template,
    pending_claims,
    pending_nodes,
    pending_placement,
    pending_scheduler,
    pending_volumes,
    pod_status,
    redecide,
    refusals,
    request,
    runtime_evidence,
    webhook_call,
)
from webhook.model.finding import Code

_MODULES = (
    webhook_call,
    missed_call,
    additions,
    old_template,
    request,
    pod_status,
    node_setup,
    container_status,
    init_containers,
    attached_networks,
    no_pods,
    refusals,
    pending_claims,
    pending_nodes,
    pending_placement,
    pending_scheduler,
    pending_volumes,
    runtime_evidence,
    memory_rights,
    redecide,
    bound_node,
    answer,
    config_map_values,
    changed_afterwards,
)
CODES: tuple[Code, ...] = tuple(code for module in _MODULES for code in module.CODES)
