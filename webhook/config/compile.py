"""Compile a checked fabrics file to the records for decisions."""

from __future__ import annotations

import hashlib
import json

from webhook.config.environment import fabric_env
from webhook.config.model import (
    API_VERSION,
    KIND,
    ClaimEntry,
    DefaultsEntry,
    FabricConfigurationSpec,
    FabricEntry,
    ResourceEntry,
)
from webhook.config.rules.matching import labels_of
from webhook.model.decision import VERSION
from webhook.model.fabric import (
    ClaimTemplateReference,
    CompiledConfiguration,
    Defaults,
    Fabric,
    Globs,
    RdmaResource,
    build_configuration,
)

_HASH_DIGITS = 12


def compile_configuration(model: FabricConfigurationSpec) -> CompiledConfiguration:
    """Compile a file that all rules accept."""
    return build_configuration(
        tuple(_fabric(fabric) for fabric in model.fabrics),
        defaults=_defaults(model.defaults),
        nvlink_namespaces=frozenset(model.nvlink.allow_namespaces),
        foreign_resources=tuple(model.foreign_nics.resources),
        foreign_annotations=tuple(model.foreign_nics.annotations),
        config_hash=config_hash(model),
    )


def config_hash(model: FabricConfigurationSpec) -> str:
    """Hash the meaning of the file for this release's decisions.

    Comments and the order of keys do not matter.

    Values that equal a default are left out, so that a version with a new field gives old files
    the same hash. Only `socketInterface` is always hashed if it has an effect: if its default
    changed, every pod would get a different interface.
    """
    dumped = model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for hashed_fabric, fabric in zip(dumped["fabrics"], model.fabrics, strict=True):
        if fabric.mode != "host-network" or "socket_interface" in fabric.model_fields_set:
            hashed_fabric["socketInterface"] = fabric.socket_interface
    hashed = {"apiVersion": API_VERSION, "kind": KIND, "decision": VERSION, **dumped}
    meaning = json.dumps(hashed, sort_keys=True)
    return hashlib.sha256(meaning.encode()).hexdigest()[:_HASH_DIGITS]


def _defaults(entry: DefaultsEntry) -> Defaults:
    return Defaults(
        fabric=entry.fabric,
        memory_limit=entry.memory_limit,
        hcoll=entry.hcoll,
        config_files=entry.config_files,
        on_ambiguous=entry.on_ambiguous,
        pod_security=entry.pod_security,
        memlock=entry.memlock,
        nodes=entry.nodes,
        non_root_images=Globs(tuple(entry.non_root_images)),
    )


def _fabric(entry: FabricEntry) -> Fabric:
    return Fabric(
        name=entry.name,
        mode=entry.mode,
        link_layer=entry.link_layer,
        transport=entry.transport,
        rate_gbps=entry.rate_gbps,
        hcas=tuple(dict.fromkeys(hca.partition(":")[0] for hca in entry.hcas)),
        gpu_resources=frozenset(entry.match.gpu_resources),
        device_classes=frozenset(entry.match.device_classes),
        node_labels=labels_of(entry),
        resources=tuple(_resource(resource) for resource in entry.resources),
        claim_templates=tuple(_claim(claim) for claim in entry.claims),
        inject_resources=entry.inject_resources,
        libraries=frozenset(entry.libraries),
        env=fabric_env(entry),
        socket_interface=entry.socket_interface or None,
        host_socket_interface=entry.host_socket_interface,
        networks=tuple(entry.networks),
        annotations=dict(entry.annotations),
        shared_memory=entry.shared_memory,
        pin_selector=dict(entry.node_selector) if entry.pin == "always" else None,
    )


def _resource(entry: ResourceEntry) -> RdmaResource:
    return RdmaResource(
        name=entry.name,
        count=None if entry.count == "per-gpu" else entry.count,
        gpus_per_device=entry.gpus_per_device,
        devices_per_gpu=entry.devices_per_gpu,
        maximum=entry.maximum,
        aliases=tuple(entry.aliases),
        network=entry.network,
    )


def _claim(entry: ClaimEntry) -> ClaimTemplateReference:
    return ClaimTemplateReference(template=entry.template, request=entry.request, per=entry.per)
