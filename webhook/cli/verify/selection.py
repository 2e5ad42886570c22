"""The fabric, nodes and pairs of nodes that `verify run` and `verify nccl` measure."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import NamedTuple

from webhook.cli.config_files import read_configuration
from webhook.cli.inputs import shown_name
from webhook.cli.options import config_name
from webhook.cli.output import print_message
from webhook.cli.verify.options import find_fabric
from webhook.diagnose.verify.runs.plan import (
    FabricNodes,
    Round,
    all_pair_rounds,
    fabric_nodes,
    ring_rounds,
)
from webhook.errors import ConfigError, DocumentError
from webhook.kube.api import ObjectReads
from webhook.kube.cluster_reads import FORBIDDEN, BestEffortReads
from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.names import counted
from webhook.model.nearest import suggestion
from webhook.preview.live import read_live

_MAX_LISTED = 8
#: Node names often differ only at the end, so a mistyped name is compared with all of them.
_MAX_COMPARED = 10_000
_FABRICS_ADVICE = "pass -c FABRICS"


class FabricSource(NamedTuple):
    """The fabrics, and where they come from."""

    configuration: CompiledConfiguration
    source: str


def fabric_source(config: str | None, reads: ObjectReads) -> FabricSource:
    """Read the fabrics of a file, else of the cluster, else of the environment's file.

    Raises ConfigError if there are none.
    """
    if config:
        return _read_source(config)
    path = config_name(None)
    unread_clause = f"using the fabrics of {path}" if path else _FABRICS_ADVICE
    reading = read_live(reads, (), read_fabrics=True, unread_clause=unread_clause)
    if reading.configuration is not None:
        return FabricSource(reading.configuration.compiled, reading.configuration.name)
    for note in reading.live_facts.notes:
        print_message("note", note)
    if path is None:
        raise ConfigError(f"the cluster's fabrics are unknown; {_FABRICS_ADVICE}")
    return _read_source(path)


def _read_source(name: str) -> FabricSource:
    return FabricSource(read_configuration(name), shown_name(name))


def chosen_fabric(name: str | None, source: FabricSource) -> Fabric:
    """Return the fabric with a name, or the only one."""
    if name:
        return find_fabric(name, *source)
    names = list(source.configuration.fabrics)
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise ConfigError(f"choose a fabric with --fabric; {source.source} has: {listed}")
    return source.configuration.fabrics[names[0]]


def require_verbs(fabric: Fabric) -> None:
    """Raise DocumentError for a fabric whose devices perftest cannot use."""
    if fabric.transport == "libfabric":
        raise DocumentError(
            f"fabric {fabric.name} is reached through libfabric, and perftest needs verbs; run "
            f"fi_pingpong between two pods, or `rdma-webhook verify nccl --fabric {fabric.name}` "
            "with an image that contains NCCL's plugin aws-ofi-nccl"
        )


def chosen_nodes(
    named: Iterable[str], fabric: Fabric, configuration: CompiledConfiguration, reads: ObjectReads
) -> tuple[str, ...]:
    """Return the named nodes, or else the nodes of the fabric that can run the benchmark.

    Raises DocumentError if there are fewer than two.
    """
    best_effort_reads = BestEffortReads(reads)
    listed = best_effort_reads.list("/api/v1/nodes", "nodes")
    given = tuple(dict.fromkeys(named))
    if listed is None:
        if given:
            return _require_two(given, "--nodes names", "")
        raise DocumentError(_listing_failure(best_effort_reads))
    cluster_nodes = fabric_nodes(listed, configuration, fabric)
    if given:
        _check_nodes(given, cluster_nodes, fabric)
        return _require_two(given, "--nodes names", "")
    if unfit := _obstacles(cluster_nodes):
        print_message("note", unfit)
    restriction = " that can run the benchmark"
    return _require_two(cluster_nodes.usable, f"fabric {fabric.name} has", restriction)


def _listing_failure(best_effort_reads: BestEffortReads) -> str:
    (failure,) = best_effort_reads.failures
    cause = "you lack the right to list nodes" if failure.code == FORBIDDEN else failure.message
    return f"the nodes could not be listed ({cause}); name them with --nodes A,B"


def _check_nodes(given: Iterable[str], cluster_nodes: FabricNodes, fabric: Fabric) -> None:
    """Reject names of unknown nodes, and note the obstacles on a node."""
    for name in given:
        if name not in cluster_nodes.all_names:
            hint = suggestion(name, sorted(cluster_nodes.all_names), compared=_MAX_COMPARED)
            raise DocumentError(f"--nodes: node {name!r:.80} does not exist{hint}")
        if obstacle := cluster_nodes.obstacles.get(name):
            print_message("note", f"node {name} {obstacle}")
        elif name not in cluster_nodes.usable:
            print_message("note", f"node {name} does not appear to belong to fabric {fabric.name}")


def _obstacles(cluster_nodes: FabricNodes) -> str:
    obstacles = [f"{name} {obstacle}" for name, obstacle in cluster_nodes.obstacles.items()]
    unlisted = len(obstacles) - _MAX_LISTED
    more = f"; and {counted(unlisted, 'more node')}" if unlisted > 0 else ""
    return f"omitted: {'; '.join(obstacles[:_MAX_LISTED])}{more}" if obstacles else ""


def _require_two(nodes: tuple[str, ...], start: str, restriction: str) -> tuple[str, ...]:
    if len(nodes) < 2:  # noqa: PLR2004 -- a pair
        has = f"one node{restriction}, {nodes[0]}" if nodes else f"no node{restriction}"
        raise DocumentError(f"{start} {has}; a pair needs two nodes (--nodes A,B)")
    return nodes


def chosen_rounds(nodes: tuple[str, ...], arguments: argparse.Namespace) -> tuple[Round, ...]:
    """Return the pairs in rounds: the ring, unless all pairs are requested."""
    return tuple(all_pair_rounds(nodes) if arguments.all_pairs else ring_rounds(nodes))


def gpu_tolerations(fabric: Fabric) -> tuple[dict[str, str], ...]:
    """Return tolerations of the taints that keep pods without a GPU from nodes with GPUs.

    Such a taint has the name of the GPU resource (NVIDIA's and GKE's documentation of their nodes).
    """
    names = sorted({*fabric.gpu_resources, "nvidia.com/gpu"})
    return tuple({"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in names)
