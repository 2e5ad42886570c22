"""Merge everything about one node: the observations of tools, and its Kubernetes objects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from webhook.diagnose.discover.gpu_products import AMD_LABEL, product_of_gpu, product_of_labels
from webhook.diagnose.discover.listed_devices import listed_devices
from webhook.diagnose.discover.ports import join_ports, pci_key
from webhook.diagnose.discover.site import (
    GpuCount,
    KubeNode,
    MergedNode,
    Reconciled,
    SourcedObservation,
    Statement,
    disagreement,
    reconcile,
)
from webhook.diagnose.tools.gpus import AMD_ID
from webhook.diagnose.tools.observations import (
    CableObservation,
    CardObservation,
    CounterObservation,
    DistanceObservation,
    GidObservation,
    GpuObservation,
    InterfaceObservation,
    NodeProperty,
    Observation,
    PropertyObservation,
    ToolFailure,
)
from webhook.diagnose.tools.products import machine_type_of
from webhook.model.finding import Code, Finding, Location
from webhook.model.names import natural_key

_Kind = TypeVar("_Kind", bound=Observation)
_GPU_NAME = re.compile(r"GPU\d{1,4}")

GPU_PRODUCT_DIFFERS = Code(
    "GpuProductDiffers",
    "The node label nvidia.com/gpu.product or amd.com/gpu.product-name names a different GPU "
    "product than the tools show.",
    "Check that the output is from this node. If it is, restart GPU feature discovery (for AMD "
    "GPUs, the Node Labeller) on the node.",
)


def merge_node(
    name: str, observations: Sequence[SourcedObservation], cluster_node: KubeNode | None = None
) -> MergedNode:
    """Merge the observations of one node; their order has no influence."""
    ports, findings = join_ports(name, [*observations, *listed_devices(observations)])
    properties, differing = _properties(name, observations)
    gpus, gpu_findings = _gpus(name, observations, cluster_node)
    interfaces = _of_kind(observations, InterfaceObservation)
    node = MergedNode(
        name=name,
        gpus=gpus,
        ports=ports,
        findings=(*findings, *differing, *gpu_findings),
        properties=properties,
        interfaces=tuple(interface for interface in interfaces if interface.state is not None),
        interface_mtus=_interface_mtus(interfaces),
        distances=_of_kind(observations, DistanceObservation),
        counters=_of_kind(observations, CounterObservation),
        gids=_of_kind(observations, GidObservation),
        cables=_of_kind(observations, CableObservation),
        cards=_of_kind(observations, CardObservation),
        failures=_of_kind(observations, ToolFailure),
        cluster_node=cluster_node,
        amd_gpus=_has_amd_gpus(observations, cluster_node),
    )
    return node._replace(
        machine_type=machine_type_of([sourced.observation for sourced in observations])
    )


def _of_kind(observations: Iterable[SourcedObservation], kind: type[_Kind]) -> tuple[_Kind, ...]:
    distinct = {
        sourced.observation for sourced in observations if isinstance(sourced.observation, kind)
    }
    return tuple(
        sorted(
            distinct,
            key=lambda observation: (natural_key(str(observation[1:])), observation.origin),
        )
    )


def _properties(
    node: str, observations: Iterable[SourcedObservation]
) -> tuple[dict[NodeProperty, str], list[Finding]]:
    by_name: dict[NodeProperty, list[Statement[str | None]]] = {}
    for file, observation in observations:
        if isinstance(observation, PropertyObservation):
            statement = Statement[str | None](
                observation.value, observation.origin.tool, file, observation.origin.line
            )
            by_name.setdefault(observation.name, []).append(statement)
    properties: dict[NodeProperty, str] = {}
    findings: list[Finding] = []
    for name, statements in by_name.items():
        result: Reconciled[str] = reconcile(statements)
        if result.value is not None:
            properties[name] = result.value
        if result.conflict is not None:
            location = Location(nodes=(node,))
            findings.append(disagreement(location, f"the property {name}", result.conflict))
    return properties, findings


def _interface_mtus(interfaces: Iterable[InterfaceObservation]) -> dict[str, int]:
    """Return the MTU of each network interface for which tools show a single one."""
    mtus: dict[str, set[int]] = {}
    for interface in interfaces:
        if interface.mtu is not None:
            mtus.setdefault(interface.netdev, set()).add(interface.mtu)
    return {netdev: min(values) for netdev, values in mtus.items() if len(values) == 1}


def _has_amd_gpus(
    observations: Iterable[SourcedObservation], cluster_node: KubeNode | None
) -> bool:
    labels = cluster_node.labels if cluster_node else {}
    return product_of_labels(labels)[0] == AMD_LABEL or any(
        gpu.vendor_id == AMD_ID for gpu in _of_kind(observations, GpuObservation)
    )


_GpuCounts = tuple[GpuCount, ...]


def _gpus(
    node: str, observations: Sequence[SourcedObservation], cluster_node: KubeNode | None
) -> tuple[_GpuCounts, list[Finding]]:
    """Count the GPUs by product: as nvidia-smi and other tools list them, else by the labels."""
    listed: Reconciled[_GpuCounts] = reconcile(_gpu_statements(observations))
    location = Location(nodes=(node,))
    if listed.conflict is not None:
        return (), [disagreement(location, "the GPUs", listed.conflict, _gpus_text)]
    if listed.value is None:
        return _by_label_or_topology(observations, cluster_node), []
    name, label = product_of_labels(cluster_node.labels) if cluster_node else ("", "")
    if label and label not in {gpu.product for gpu in listed.value}:
        text = (
            f"tools show {_gpus_text(listed.value)}, but the product in the node's label {name} is "
            f"{label}"
        )
        return (), [GPU_PRODUCT_DIFFERS.finding("warning", text, location=location)]
    return listed.value, []


def _gpu_statements(
    observations: Sequence[SourcedObservation],
) -> Iterator[Statement[_GpuCounts | None]]:
    """Yield the GPUs that each tool lists; a tool that was run twice lists each GPU once.

    A tool that shows one GPU with two products contradicts itself, which makes two statements. One
    that shows a product of only some of its GPUs makes none.
    """
    partly = set(_tools_without_some_products(observations))
    listed: dict[tuple[str, str], dict[tuple[object, ...], set[str]]] = {}
    lines: dict[tuple[str, str], int] = {}
    for file, gpu in observations:
        product = product_of_gpu(gpu) if isinstance(gpu, GpuObservation) else None
        if isinstance(gpu, GpuObservation) and product is not None:
            key = (gpu.origin.tool, file)
            identity = (gpu.number, gpu.uuid, gpu.pci and pci_key(gpu.pci))
            if identity == (None, None, None):
                identity = (gpu.origin.line, None, None)
            products = listed.setdefault(key, {}).setdefault(identity, set())
            products.add(product)
            lines[key] = min(gpu.origin.line, lines.get(key, gpu.origin.line))
    for key, gpus in listed.items():
        if key in partly:
            continue
        for counted in {_by_product(map(min, gpus.values())), _by_product(map(max, gpus.values()))}:
            yield Statement(counted, key[0], key[1], lines[key])


def _tools_without_some_products(
    observations: Iterable[SourcedObservation],
) -> Iterator[tuple[str, str]]:
    """Yield each tool, with its file, that names a GPU without showing its product anywhere."""
    with_product: dict[tuple[str, str], dict[int | str, bool]] = {}
    for file, gpu in observations:
        if isinstance(gpu, GpuObservation):
            name = gpu.pci if gpu.number is None else gpu.number
            if name is not None:
                gpus = with_product.setdefault((gpu.origin.tool, file), {})
                gpus[name] = gpus.get(name, False) or gpu.product is not None
    yield from (key for key, gpus in with_product.items() if not all(gpus.values()))


def _by_product(products: Iterable[str]) -> _GpuCounts:
    counts = Counter(products)
    return tuple(GpuCount(name, counts[name]) for name in sorted(counts))


def _gpus_text(gpus: _GpuCounts) -> str:
    return ", ".join(f"{gpu.number} {gpu.product}" for gpu in gpus)


def _by_label_or_topology(
    observations: Sequence[SourcedObservation], cluster_node: KubeNode | None
) -> tuple[GpuCount, ...]:
    if cluster_node is not None and cluster_node.gpu_product:
        return (GpuCount(cluster_node.gpu_product, cluster_node.gpu_count),)
    gpus = _of_kind(observations, GpuObservation)
    numbers = {gpu.number for gpu in gpus if gpu.number is not None}
    pci_functions = {pci_key(gpu.pci) for gpu in gpus if gpu.pci is not None}
    gpus_in_topology = {
        row.gpu
        for row in _of_kind(observations, DistanceObservation)
        if _GPU_NAME.fullmatch(row.gpu)
    }
    gpu_count = max(len(numbers), len(gpus_in_topology), len(pci_functions))
    return (GpuCount(None, gpu_count),) if gpu_count else ()
