"""A YAML text as a tree whose nodes know where they stand, built within limits.

The tree is built from parser events, without recursion: the composer of PyYAML's C loader
overflows the C stack on 50,000 nested `[`, and any loader expands an alias bomb.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import yaml

from webhook.yamltext.directives import REFUSAL, directive

DEEPEST = 200
MOST_NODES = 200_000  # about a thousand pods, or two seconds of work
MOST_EXPANDED = 8 << 20  # characters of strings, with aliases expanded: as many as a text may have

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
TAG = "tag:yaml.org,2002:"

Kind = Literal["scalar", "mapping", "sequence", "alias"]


class UnreadableError(Exception):
    """The text cannot be read from `offset` on; becomes a DocumentError with a line."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


class Node:
    """A node of the tree; offsets count characters of the text."""

    __slots__ = (
        "children", "depth", "end", "flow", "kind", "length", "plain",
        "size", "start", "style", "tag", "text",
    )  # fmt: skip

    def __init__(self, kind: Kind, event: Any) -> None:
        self.kind = kind
        self.start: int = event.start_mark.index  #: of its anchor or tag, where it has one
        self.end: int = event.end_mark.index  #: of a block collection: the next token's start
        self.tag: str | None = getattr(event, "tag", None)
        self.text: str = getattr(event, "value", "")
        self.style: str = getattr(event, "style", None) or ""  #: one of '"|> or nothing
        self.flow: bool = bool(getattr(event, "flow_style", False))
        self.plain: bool = kind == "scalar" and bool(event.implicit[0])
        #: Keys and values in turn, items, or what an alias stands for.
        self.children: list[Node] = []
        self.size = 1  # nodes, with aliases expanded
        self.length = len(self.text)  # characters of scalars, with aliases expanded
        self.depth = 0  # levels of collections, with aliases expanded; -1 while it is open

    @property
    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """The keys of a mapping with their values."""
        flat = iter(self.children)
        return zip(flat, flat, strict=True)

    @property
    def is_block(self) -> bool:
        """Whether its lines are its own: a block collection, or a literal or folded string."""
        return bool(self.children and not self.flow and self.kind != "alias") or self.style in (
            "|",
            ">",
        )

    @property
    def merges(self) -> bool:
        """Whether this is the key `<<`."""
        return self.text == "<<" and (self.plain or self.tag == f"{TAG}merge")

    def content_end(self, text: str) -> int:
        """Return where the last character of its content ends.

        The mark of a block collection is at the token that follows, and that of a literal or
        folded string is below the blank lines that follow.
        """
        node = self
        while node.children and not node.flow and node.kind != "alias":
            node = node.children[-1]
        if node.style not in ("|", ">"):
            return node.end
        source = text[node.start : node.end]
        keeps = "+" in source.partition("\n")[0].partition("#")[0]
        return node.end - 1 if keeps else node.start + len(source.rstrip("\r\n"))


class Root(NamedTuple):
    """One document of a stream."""

    start: int  #: of its `---` or directive; of its first token where it has neither
    node: Node


def roots_of(text: str) -> Iterator[Root]:
    """Parse a stream of documents one by one, empty ones included.

    Raises UnreadableError for what is not YAML and for what is over the limits.
    """
    if (offset := directive(text)) is not None:
        raise UnreadableError(offset, REFUSAL)
    grower = _Grower()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                grower.begin(event)
            elif isinstance(event, yaml.DocumentEndEvent):
                yield Root(grower.start, grower.root[0])
            else:
                grower.take(event)
    except yaml.YAMLError as error:
        raise _syntax_error(error) from None


def _syntax_error(error: yaml.YAMLError) -> UnreadableError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return UnreadableError(mark.index if mark else 0, f"not YAML: {problem}")


class _Grower:
    """Grows the tree of one document at a time."""

    def __init__(self) -> None:
        self.start = 0
        self.root: list[Node] = []
        self._open: list[Node] = []
        self._anchors: dict[str, Node] = {}
        self._nodes = 0
        self._length = 0

    def begin(self, event: Any) -> None:
        self.start = event.start_mark.index
        self.root = []
        self._anchors = {}

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._named(Node("scalar", event), event))
        elif isinstance(event, yaml.MappingStartEvent):
            self._down(self._named(Node("mapping", event), event))
        elif isinstance(event, yaml.SequenceStartEvent):
            self._down(self._named(Node("sequence", event), event))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._up(event)
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._alias(event))

    def _named(self, node: Node, event: Any) -> Node:
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _down(self, node: Node) -> None:
        if len(self._open) >= DEEPEST:
            raise _too_deep(node)
        node.depth = -1
        self._open.append(node)

    def _up(self, event: Any) -> None:
        node = self._open.pop()
        node.end = event.end_mark.index
        node.depth = 1 + max((child.depth for child in node.children), default=0)
        self._add(node)

    def _alias(self, event: Any) -> Node:
        node = Node("alias", event)
        target = self._anchors.get(event.anchor)
        if target is None:
            raise UnreadableError(node.start, f"not YAML: no anchor &{event.anchor} for this alias")
        if target.depth < 0:
            raise UnreadableError(node.start, f"the alias *{event.anchor} stands inside itself")
        node.children = [target]
        node.size, node.length, node.depth = target.size, target.length, target.depth
        if len(self._open) + node.depth > DEEPEST:
            raise _too_deep(node)
        return node

    def _add(self, node: Node) -> None:
        self._nodes += node.size if node.kind == "alias" else 1
        if self._nodes > MOST_NODES:
            raise UnreadableError(
                node.start, f"more than {MOST_NODES} values, with aliases expanded, are not read"
            )
        self._length += node.length if node.kind in ("alias", "scalar") else 0
        if self._length > MOST_EXPANDED:
            raise UnreadableError(
                node.start, "longer than 8 MiB with aliases expanded, which is not read"
            )
        if self._open:
            self._open[-1].children.append(node)
            self._open[-1].size += node.size
            self._open[-1].length += node.length
        else:
            self.root.append(node)


def _too_deep(node: Node) -> UnreadableError:
    return UnreadableError(node.start, f"nested deeper than {DEEPEST} levels")
