"""What is wrong with the nodes of a fabric, in sentences that name nodes, or only count them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook.model.fabric import Fabric, Fabrics
from webhook.model.nodes import NodeGroup
from webhook.model.resources import is_gpu

#: The most nodes that a sentence names.
SHOWN = 3


class NodeProblem(NamedTuple):
    """Something that is wrong with the nodes of a fabric."""

    code: str
    #: The nodes that it concerns; none if it concerns the fabric.
    nodes: tuple[str, ...]
    #: What is wrong; with nodes, what follows "node n7 has".
    what: str

    @property
    def text(self) -> str:
        """The sentence, with the names of some nodes."""
        if not self.nodes:
            return self.what
        if len(self.nodes) == 1:
            return f"node {self.nodes[0]} has {self.what}"
        return f"{len(self.nodes)} nodes ({some(self.nodes)}) have {self.what}"

    @property
    def anonymous(self) -> str:
        """The sentence without names, for those who may not know them."""
        if not self.nodes:
            return self.what
        many = len(self.nodes)
        return f"{'1 node has' if many == 1 else f'{many} nodes have'} {self.what}"


def some(nodes: Sequence[str]) -> str:
    """List the first nodes, and count the others."""
    more = len(nodes) - SHOWN
    if more <= 0:
        return ", ".join(nodes)
    return f"{', '.join(nodes[:SHOWN])} and {more} more"


def problems_of(
    fabric: Fabric, groups: Sequence[NodeGroup], fabrics: Fabrics
) -> Iterator[NodeProblem]:
    """Yield what is wrong with the nodes of a fabric, which are these groups."""
    if not groups:
        yield NodeProblem("FabricWithoutNodes", (), "no node belongs to the fabric")
        return
    for resource in fabric.resources:
        name = resource.name
        lacking = [group for group in groups if name not in group.resources]
        if len(lacking) == len(groups):
            yield NodeProblem("ResourceNotOffered", (), f"resource {name} is offered by no node")
            continue
        for group in lacking:
            gpus = sorted(one for one in group.resources if is_gpu(one, fabrics))
            what = f"the GPU {gpus[0]}, but not {name}" if gpus else f"no {name}"
            yield NodeProblem("NodeWithoutResource", tuple(group.names), what)
