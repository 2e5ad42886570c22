"""Discover fabrics: from what was seen of each node to the fabrics, and the nodes left outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.diagnose.discover.checks import site_findings
from webhook.diagnose.discover.fabrics_yaml import accepted, fabrics_yaml
from webhook.diagnose.discover.groups import group_nodes
from webhook.diagnose.discover.node import merge_node
from webhook.diagnose.discover.plan import FabricPlan, Refused, plan_fabrics
from webhook.diagnose.discover.plan_fields import FabricEntry
from webhook.diagnose.discover.port_selection import PortSelection, select_ports
from webhook.diagnose.discover.site import (
    DiscoverOptions,
    KubeNode,
    SiteFinding,
    SiteNode,
    SourcedObservation,
    natural,
)


class Discovery(NamedTuple):
    """What was found out about a site."""

    nodes: tuple[SiteNode, ...]
    choices: tuple[PortSelection, ...]
    plans: tuple[FabricPlan | Refused, ...]
    findings: tuple[SiteFinding, ...]
    #: The fabrics file.
    text: str
    #: Its fabrics.
    entries: tuple[FabricEntry, ...]

    @property
    def fabrics(self) -> tuple[FabricPlan, ...]:
        """The fabrics that could be planned."""
        return tuple(one for one in self.plans if isinstance(one, FabricPlan))

    @property
    def written(self) -> tuple[FabricPlan, ...]:
        """The fabrics that stand in the file, and not in its comments."""
        names = {entry["name"] for entry in self.entries}
        return tuple(plan for plan in self.fabrics if plan.name in names)

    @property
    def needs_a_fix(self) -> bool:
        """Whether jobs would fail, or run slower than they could."""
        return any(one.severity == "error" for one in self.findings)


def discover_site(
    sighted: Mapping[str, Sequence[SourcedObservation]],
    kube: Mapping[str, KubeNode],
    wishes: DiscoverOptions,
    said: Sequence[SiteFinding] = (),
) -> Discovery:
    """Put together all nodes by name, and plan their fabrics; `said` are findings from before."""
    paired = _paired(sighted, kube)
    nodes = tuple(
        merge_node(name, seen, found)
        for name, (seen, found) in sorted(paired.items(), key=lambda one: natural(one[0]))
    )
    choices = tuple(select_ports(node) for node in nodes)
    plans = tuple(plan_fabrics(group_nodes(choices), wishes))
    refused = [one.finding for one in plans if isinstance(one, Refused)]
    planned = [one for one in plans if isinstance(one, FabricPlan)]
    findings = site_findings(nodes, choices, planned, [*refused, *said])
    text = fabrics_yaml(plans, len(nodes))
    return Discovery(nodes, choices, plans, tuple(findings), text, tuple(accepted(plans, text)))


def _paired(
    sighted: Mapping[str, Sequence[SourcedObservation]], kube: Mapping[str, KubeNode]
) -> dict[str, tuple[Sequence[SourcedObservation], KubeNode | None]]:
    """Pair what tools showed with nodes of the cluster, also where one has the domain's name.

    Of a cluster's nodes without any output, those with RDMA resources or network cards stay.
    """
    short = _unambiguous(kube)
    found: dict[str, tuple[Sequence[SourcedObservation], KubeNode | None]] = {}
    for name, seen in sighted.items():
        node = kube.get(name) or short.get(name.partition(".")[0].lower())
        found[node.name if node else name] = (seen, node)
    if not sighted:
        found = {name: ((), node) for name, node in kube.items()}
    return found


def _unambiguous(kube: Mapping[str, KubeNode]) -> dict[str, KubeNode]:
    by_short: dict[str, list[KubeNode]] = {}
    for name, node in kube.items():
        by_short.setdefault(name.partition(".")[0].lower(), []).append(node)
    return {name: nodes[0] for name, nodes in by_short.items() if len(nodes) == 1}


# Nodes that are in no fabric, and what is known of their ports.


def unplaced_nodes(found: Discovery) -> Iterator[tuple[str, str]]:
    """Yield each node that is in no fabric, and why."""
    placed = {name for plan in found.fabrics for name in plan.group.nodes}
    refused = {
        name for plan in found.plans if isinstance(plan, Refused) for name in plan.group.nodes
    }
    for choice in found.choices:
        name = choice.node.name
        if name not in placed:
            yield name, "refused, see above" if name in refused else "; ".join(_lacking(choice))


def _lacking(choice: PortSelection) -> Iterator[str]:
    if not choice.node.ports:
        yield "no RDMA device"
    reasons: dict[str, list[str]] = {}
    for port, because in choice.left_out.items():
        reasons.setdefault(because, []).append(port.name)
    for because, names in reasons.items():
        yield f"{', '.join(names)}: {because}"
