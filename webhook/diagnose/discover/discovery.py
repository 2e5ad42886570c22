"""Discover the fabrics of a site from the observations of its nodes, and the nodes without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.diagnose.discover.checks import site_findings
from webhook.diagnose.discover.drift import drift_findings
from webhook.diagnose.discover.expected import unexpected_counts
from webhook.diagnose.discover.fabric_entry import FabricEntryForm
from webhook.diagnose.discover.fabrics_yaml import accepted_entries, fabrics_yaml
from webhook.diagnose.discover.groups import group_nodes
from webhook.diagnose.discover.node import merge_node
from webhook.diagnose.discover.node_form import NodeForm, node_form
from webhook.diagnose.discover.plan import FabricPlan, RefusedGroup, plan_fabrics
from webhook.diagnose.discover.port_selection import NodePorts, select_ports
from webhook.diagnose.discover.site import (
    DiscoverOptions,
    KubeNode,
    MergedNode,
    SourcedObservation,
)
from webhook.diagnose.discover.unanswered import HOST_UNANSWERED
from webhook.model.finding import Finding
from webhook.model.names import natural_key


class Discovery(NamedTuple):
    """The fabrics of a site, and the nodes and findings that they come from."""

    nodes: tuple[MergedNode, ...]
    ports_of_nodes: tuple[NodePorts, ...]
    plans: tuple[FabricPlan | RefusedGroup, ...]
    findings: tuple[Finding, ...]
    #: The fabrics file.
    text: str
    #: Its fabrics.
    entries: tuple[FabricEntryForm, ...]

    @property
    def fabrics(self) -> tuple[FabricPlan, ...]:
        """The planned fabrics, without the refused groups."""
        return tuple(plan for plan in self.plans if isinstance(plan, FabricPlan))

    @property
    def accepted_fabrics(self) -> tuple[FabricPlan, ...]:
        """The fabrics that the file has as entries, not as comments."""
        names = {entry["name"] for entry in self.entries}
        return tuple(plan for plan in self.fabrics if plan.name in names)

    @property
    def needs_a_fix(self) -> bool:
        """Whether any finding is an error."""
        return any(finding.level == "error" for finding in self.findings)


def discover_site(
    observations: Mapping[str, Sequence[SourcedObservation]],
    cluster_nodes: Mapping[str, KubeNode],
    options: DiscoverOptions,
    input_findings: Sequence[Finding] = (),
    earlier: Sequence[NodeForm] | None = None,
) -> Discovery:
    """Merge the observations of all nodes and plan their fabrics.

    `input_findings`: about the input and the cluster; `earlier`: the nodes of an earlier output.
    """
    paired = _pair_with_cluster(observations, cluster_nodes)
    nodes = tuple(
        merge_node(name, observed, kube_node)
        for name, (observed, kube_node) in sorted(
            paired.items(), key=lambda pair: natural_key(pair[0])
        )
    )
    ports_of_nodes = tuple(select_ports(node) for node in nodes)
    plans = tuple(plan_fabrics(group_nodes(ports_of_nodes), options))
    refused = [plan.finding for plan in plans if isinstance(plan, RefusedGroup)]
    planned = [plan for plan in plans if isinstance(plan, FabricPlan)]
    further_findings = [*refused, *input_findings, *unexpected_counts(ports_of_nodes, options)]
    if earlier is not None:
        further_findings += _drift(earlier, nodes, input_findings)
    findings = site_findings(nodes, ports_of_nodes, planned, further_findings)
    text = fabrics_yaml(plans, len(nodes))
    return Discovery(
        nodes, ports_of_nodes, plans, tuple(findings), text, tuple(accepted_entries(plans, text))
    )


def _drift(
    earlier: Sequence[NodeForm], nodes: Sequence[MergedNode], input_findings: Sequence[Finding]
) -> Iterator[Finding]:
    """Yield what changed since the earlier output."""
    unanswered = [
        host
        for finding in input_findings
        if finding.code == HOST_UNANSWERED.code
        for host in finding.location.nodes
    ]
    return drift_findings(earlier, [node_form(node) for node in nodes], unanswered)


def _pair_with_cluster(
    observations: Mapping[str, Sequence[SourcedObservation]], cluster_nodes: Mapping[str, KubeNode]
) -> dict[str, tuple[Sequence[SourcedObservation], KubeNode | None]]:
    """Pair observations with nodes of the cluster by name.

    Names match even if only one of the two includes a domain. Without any observations, return
    all nodes of the cluster.
    """
    short = _nodes_by_short_name(cluster_nodes)
    pairs: dict[str, tuple[Sequence[SourcedObservation], KubeNode | None]] = {}
    for name, observed in observations.items():
        node = cluster_nodes.get(name) or short.get(name.partition(".")[0].lower())
        pairs[node.name if node else name] = (observed, node)
    if not observations:
        pairs = {name: ((), node) for name, node in cluster_nodes.items()}
    return pairs


def _nodes_by_short_name(cluster_nodes: Mapping[str, KubeNode]) -> dict[str, KubeNode]:
    by_short: dict[str, list[KubeNode]] = {}
    for name, node in cluster_nodes.items():
        by_short.setdefault(name.partition(".")[0].lower(), []).append(node)
    return {name: nodes[0] for name, nodes in by_short.items() if len(nodes) == 1}


# Nodes without a fabric, and the reasons.


def unplaced_nodes(discovery: Discovery) -> Iterator[tuple[str, str]]:
    """Yield each node without a fabric, and the reason."""
    placed = {name for plan in discovery.fabrics for name in plan.group.nodes}
    refused = {
        name
        for plan in discovery.plans
        if isinstance(plan, RefusedGroup)
        for name in plan.group.nodes
    }
    for node_ports in discovery.ports_of_nodes:
        name = node_ports.node.name
        if name not in placed:
            yield (
                name,
                "see What to fix first" if name in refused else "; ".join(_obstacles(node_ports)),
            )


def _obstacles(node_ports: NodePorts) -> Iterator[str]:
    if not node_ports.node.ports:
        yield "no tool shows an RDMA device"
    reasons: dict[str, list[str]] = {}
    for port, reason in node_ports.other_ports.items():
        reasons.setdefault(reason, []).append(port.name)
    for reason, names in reasons.items():
        yield f"{', '.join(names)}: {reason}"
