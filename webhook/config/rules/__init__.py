"""The rules for a fabrics file, beyond the types of its fields; each rule is one function.

A rule is an error if pods would break or be rejected, or if the file contradicts itself. It is a
warning if the file works, but something has no effect or is probably not what was meant.
"""

from __future__ import annotations

from webhook.config.rules import defaults, devices, environment, gpus, hcas, matching, naming
from webhook.config.rules.rule import Parts, Problem, Rule

__all__ = ["RULES", "Parts", "Problem", "Rule"]

RULES: tuple[Rule, ...] = (
    Rule("error", naming.fabric_names, alone=True),
    Rule("error", naming.unique_names, alone=True),
    Rule("error", naming.default_fabric, alone=True),
    Rule("warning", defaults.old_memlock, alone=True),
    Rule("error", naming.resource_names, alone=True),
    Rule("error", naming.plugin_resource_names, alone=True),
    Rule("error", naming.label_names, alone=True),
    Rule("error", naming.label_globs, alone=True),
    Rule("error", naming.variable_names, alone=True),
    Rule("error", naming.interface_names, alone=True),
    Rule("error", naming.network_names, alone=True),
    Rule("error", naming.shared_memory, alone=True),
    Rule("error", naming.namespaces, alone=True),
    Rule("error", naming.foreign_globs, alone=True),
    Rule("warning", matching.same_gpus),
    Rule("warning", matching.many_wildcards),
    Rule("error", matching.aliases_of_two),
    Rule("error", matching.alias_is_resource),
    Rule("error", matching.repeated_resources),
    Rule("error", gpus.gpu_as_rdma),
    Rule("warning", gpus.gpu_model_as_rdma),
    Rule("error", matching.products_twice),
    Rule("warning", matching.stripped_suffixes, alone=True),
    Rule("error", matching.pin_without_labels),
    Rule("warning", matching.selector_without_pin),
    Rule("error", matching.selector_against_match),
    Rule("error", hcas.hca_names, alone=True),
    Rule("error", hcas.hca_ranges, alone=True),
    Rule("error", hcas.hca_stems, alone=True),
    Rule("warning", hcas.hca_interfaces, alone=True),
    Rule("warning", hcas.hca_capitals, alone=True),
    Rule("error", hcas.one_hca_list),
    Rule("error", hcas.hcas_without_names),
    Rule("error", hcas.hca_limit),
    Rule("warning", hcas.open_prefixes),
    Rule("warning", hcas.prefixes_of_others),
    Rule("warning", hcas.bond_on_infiniband),
    Rule("warning", hcas.one_nvshmem_prefix),
    Rule("error", devices.roce_networks),
    Rule("warning", devices.networks_on_host),
    Rule("warning", devices.own_device_networks),
    Rule("error", devices.network_interfaces),
    Rule("error", devices.per_gpu_shared),
    Rule("warning", devices.many_units),
    Rule("warning", devices.per_gpu_fields),
    Rule("error", devices.per_gpu_both_ways),
    Rule("warning", devices.no_resource),
    Rule("error", environment.rdma_switched_off, alone=True),
    Rule("warning", environment.debugging_variables, alone=True),
    Rule("error", environment.infinite_timeout, alone=True),
    Rule("error", environment.sockets_twice),
    Rule("warning", environment.sockets_in_env),
    Rule("warning", environment.ucx_without_interface),
    Rule("warning", environment.ucx_devices_without_interface),
    Rule("warning", environment.openmpi_on_host),
    Rule("warning", environment.rendered_twice),
    Rule("error", environment.nccl_values),
    Rule("error", environment.nccl_ib_hca_value, alone=True),
    Rule("warning", environment.ucx_without_rdma),
    Rule("warning", environment.gid_index_per_pod),
    Rule("error", environment.pkey_without_infiniband),
    Rule("warning", environment.pkey_without_nccl),
    Rule("error", environment.roce_priority),
    Rule("warning", environment.small_shared_memory, alone=True),
)
