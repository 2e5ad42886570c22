"""What a fabrics file must make sense of, beyond its types: one rule, one function.

An error: pods would break or be refused, or the file contradicts itself. A
warning: it works, but something has no effect, or is hardly what was meant.
"""

from __future__ import annotations

from webhook.config.rules import devices, environment, matching, naming
from webhook.config.rules.parts import Parts, Problem, Rule

__all__ = ["RULES", "Parts", "Problem", "Rule"]

RULES: tuple[Rule, ...] = (
    Rule("error", naming.fabric_names),
    Rule("error", naming.unique_names),
    Rule("error", naming.default_fabric),
    Rule("error", naming.resource_names),
    Rule("error", naming.plugin_resource_names),
    Rule("error", naming.label_names),
    Rule("error", naming.label_globs),
    Rule("error", naming.env_names),
    Rule("error", naming.interface_names),
    Rule("error", naming.network_names),
    Rule("error", naming.shared_memory),
    Rule("error", naming.namespaces),
    Rule("error", naming.foreign_globs),
    Rule("warning", matching.same_gpus),
    Rule("error", matching.aliases_of_two),
    Rule("error", matching.alias_is_resource),
    Rule("error", matching.repeated_resources),
    Rule("error", matching.products_twice),
    Rule("warning", matching.stripped_suffixes),
    Rule("error", matching.pin_without_labels),
    Rule("warning", matching.selector_without_pin),
    Rule("error", matching.selector_against_match),
    Rule("error", devices.hca_names),
    Rule("error", devices.one_hca_list),
    Rule("error", devices.hcas_without_names),
    Rule("error", devices.hca_limit),
    Rule("warning", devices.open_prefixes),
    Rule("warning", devices.prefixes_of_others),
    Rule("warning", devices.bond_on_infiniband),
    Rule("error", devices.roce_networks),
    Rule("warning", devices.networks_on_host),
    Rule("warning", devices.own_device_networks),
    Rule("error", devices.network_interfaces),
    Rule("error", devices.per_gpu_shared),
    Rule("warning", devices.many_units),
    Rule("warning", devices.per_gpu_fields),
    Rule("warning", devices.no_resource),
    Rule("error", environment.rdma_switched_off),
    Rule("warning", environment.debugging_variables),
    Rule("error", environment.infinite_timeout),
    Rule("error", environment.sockets_twice),
    Rule("warning", environment.sockets_in_env),
    Rule("warning", environment.rendered_twice),
    Rule("error", environment.nccl_values),
    Rule("error", environment.nccl_ib_hca_value),
    Rule("warning", environment.ucx_without_rdma),
    Rule("warning", environment.gid_index_per_pod),
    Rule("error", environment.pkey_without_infiniband),
    Rule("warning", environment.pkey_without_nccl),
    Rule("error", environment.roce_priority),
    Rule("warning", environment.small_shared_memory),
)
