"""The only reader of YAML: parser events become a tree with positions, within limits.

The fabrics file, the facts file and previewed documents are all read through `roots_of`. They
differ in limits, in the meaning of a scalar (`values`), and in the messages about mistakes.

The tree is built without recursion and no alias is expanded: the composer of PyYAML's C loader
overflows the C stack on 50,000 nested `[`, and any loader expands an alias bomb.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple

import yaml

TAG = "tag:yaml.org,2002:"

_BLOCK_SCALARS = ("|", ">")

Kind = Literal["scalar", "mapping", "sequence", "alias"]
Limit = Literal["size", "values", "depth"]


class TextLimits(NamedTuple):
    """The limits of a readable text; each use of an alias counts as much as its anchor."""

    size: int  #: the bytes of the text, and the characters of its scalars
    values: int  #: the number of scalars, keys included, and of collections
    depth: int  #: the levels of collections


class UnreadableTextError(Exception):
    """A text cannot be read; `str()` is the sentence that a preview shows.

    `offset` is the position of the mistake, in characters; None if the parser does not report it.
    """

    def __init__(self, offset: int | None, message: str) -> None:
        super().__init__(message)
        self.offset = offset


class NotYamlError(UnreadableTextError):
    """The text breaks the rules of YAML."""

    def __init__(self, error: Exception) -> None:
        #: The problem in the parser's own words.
        self.problem: str = (
            getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        )
        #: The unfinished construct, such as "while parsing a flow sequence"; or None.
        self.context: str | None = getattr(error, "context", None)
        context_mark: yaml.Mark | None = getattr(error, "context_mark", None)
        mark: yaml.Mark | None = getattr(error, "problem_mark", None) or context_mark
        #: The offset at which it began, in characters; None if the parser does not report it.
        self.context_offset: int | None = context_mark.index if context_mark else None
        super().__init__(mark.index if mark else None, f"not YAML: {self.problem}")


class AliasError(UnreadableTextError):
    """An alias has no anchor before it, or is inside its own anchor."""

    def __init__(
        self, offset: int, message: str, anchor: str, *, inside_itself: bool = False
    ) -> None:
        super().__init__(offset, message)
        self.anchor = anchor
        self.inside_itself = inside_itself


class OverLimitError(UnreadableTextError):
    """The text exceeds one of its limits."""

    def __init__(self, offset: int, limits: TextLimits, exceeded: Limit) -> None:
        super().__init__(offset, _limit_messages(limits)[exceeded])
        self.exceeded = exceeded


def _limit_messages(limits: TextLimits) -> dict[Limit, str]:
    maximum = f"{limits.size >> 20} MiB"
    return {
        "size": f"longer than the maximum of {maximum}, with aliases expanded",
        "values": f"more than the maximum of {limits.values:,} values, with aliases expanded",
        "depth": f"nested deeper than {limits.depth} levels",
    }


class YamlNode:
    """A node of the tree; offsets count characters of the text."""

    __slots__ = (
        "anchor", "children", "depth", "end", "flow", "kind", "length", "plain",
        "size", "start", "style", "tag", "text",
    )  # fmt: skip

    def __init__(self, kind: Kind, event: yaml.NodeEvent) -> None:
        assert event.start_mark is not None
        assert event.end_mark is not None
        self.kind = kind
        self.start = event.start_mark.index  #: the start of its anchor or tag if it has one
        self.end = event.end_mark.index  #: for a block collection, the next token's start
        self.anchor = event.anchor  #: its own anchor, or the target of an alias
        self.tag: str | None = None
        self.text = ""
        self.style = ""  #: one of '"|> for a scalar that is not plain
        self.plain = False  #: whether only its text determines the value of a scalar
        self.flow = False
        if isinstance(event, yaml.ScalarEvent):
            self.tag, self.text, self.style = event.tag, event.value, event.style or ""
            self.plain = event.implicit[0]
        elif isinstance(event, yaml.CollectionStartEvent):
            self.tag, self.flow = event.tag, bool(event.flow_style)
        #: Keys and values in turn, items, or the target of an alias.
        self.children: list[YamlNode] = []
        # Each of the three measures includes the targets of aliases.
        self.size = 1  #: the number of nodes
        self.length = len(self.text)  #: the characters of scalars
        self.depth = 0  #: the levels of collections; -1 while the node is open

    @property
    def pairs(self) -> Iterator[tuple[YamlNode, YamlNode]]:
        """The keys of a mapping with their values."""
        flat = iter(self.children)
        return zip(flat, flat, strict=True)

    @property
    def is_block(self) -> bool:
        """Whether it has lines of its own: a block collection, or a literal or folded string."""
        if self.style in _BLOCK_SCALARS:
            return True
        return bool(self.children) and not self.flow and self.kind != "alias"

    @property
    def merges(self) -> bool:
        """Whether this is the key `<<`."""
        return self.text == "<<" and (self.plain or self.tag == f"{TAG}merge")

    def content_end(self, text: str) -> int:
        """Return the offset after the last character of its content.

        The end mark of a block collection is at the next token, and the end mark of a literal or
        folded string is below the blank lines that follow.
        """
        node = self
        while node.children and not node.flow and node.kind != "alias":
            node = node.children[-1]
        if node.style not in _BLOCK_SCALARS:
            return node.end
        source = text[node.start : node.end]
        keeps = "+" in source.partition("\n")[0].partition("#")[0]
        return node.end - 1 if keeps else node.start + len(source.rstrip("\r\n"))


class Root(NamedTuple):
    """One document of a stream."""

    start: int  #: the start of its `---`, or of its first token without it
    node: YamlNode


def roots_of(text: str, limits: TextLimits) -> Iterator[Root]:
    """Parse documents one by one, empty ones included; the limits apply to the whole stream.

    Raises NotYamlError, AliasError or OverLimitError, and UnreadableTextError for a directive.
    """
    if (offset := directive(text)) is not None:
        raise UnreadableTextError(offset, DIRECTIVE_REFUSAL)
    builder = _TreeBuilder(limits)
    try:
        for event in yaml.parse(text, Loader=LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                builder.begin(event)
            elif isinstance(event, yaml.DocumentEndEvent):
                yield Root(builder.start, builder.root[0])
            else:
                builder.take(event)
    except (yaml.YAMLError, UnicodeError) as error:
        raise NotYamlError(error) from None


class _TreeBuilder:
    """A builder of the tree of one document at a time."""

    def __init__(self, limits: TextLimits) -> None:
        self.start = 0
        self.root: list[YamlNode] = []
        self._limits = limits
        self._open: list[YamlNode] = []
        self._anchors: dict[str, YamlNode] = {}
        self._value_count = 0
        self._length = 0

    def begin(self, event: yaml.DocumentStartEvent) -> None:
        assert event.start_mark is not None
        self.start = event.start_mark.index
        self.root = []
        self._anchors = {}

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._attach(self._count_node(YamlNode("scalar", event)))
        elif isinstance(event, yaml.MappingStartEvent):
            self._descend(YamlNode("mapping", event))
        elif isinstance(event, yaml.SequenceStartEvent):
            self._descend(YamlNode("sequence", event))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._ascend(event)
        elif isinstance(event, yaml.AliasEvent):
            self._attach(self._alias(event))

    def _descend(self, node: YamlNode) -> None:
        if len(self._open) >= self._limits.depth:
            raise OverLimitError(node.start, self._limits, "depth")
        self._open.append(self._count_node(node))
        node.depth = -1

    def _ascend(self, event: yaml.CollectionEndEvent) -> None:
        assert event.end_mark is not None
        node = self._open.pop()
        node.end = event.end_mark.index
        node.depth = 1 + max((child.depth for child in node.children), default=0)
        self._attach(node)

    def _alias(self, event: yaml.AliasEvent) -> YamlNode:
        node, anchor = YamlNode("alias", event), event.anchor
        assert anchor is not None
        target = self._anchors.get(anchor)
        if target is None:
            message = f"not YAML: the alias *{anchor} has no anchor before it"
            raise AliasError(node.start, message, anchor)
        if target.depth < 0:
            message = f"the alias *{anchor} is inside its own anchor"
            raise AliasError(node.start, message, anchor, inside_itself=True)
        node.children = [target]
        node.size, node.length, node.depth = target.size, target.length, target.depth
        if len(self._open) + node.depth > self._limits.depth:
            raise OverLimitError(node.start, self._limits, "depth")
        self._count(node)
        return node

    def _count_node(self, node: YamlNode) -> YamlNode:
        """Count a node that is not an alias, and record its anchor."""
        self._count(node)
        if node.anchor is not None:
            self._anchors[node.anchor] = node
        return node

    def _count(self, node: YamlNode) -> None:
        self._value_count += node.size
        self._length += node.length
        if self._value_count > self._limits.values:
            raise OverLimitError(node.start, self._limits, "values")
        if self._length > self._limits.size:
            raise OverLimitError(node.start, self._limits, "size")

    def _attach(self, node: YamlNode) -> None:
        if not self._open:
            self.root.append(node)
            return
        parent = self._open[-1]
        parent.children.append(node)
        parent.size += node.size
        parent.length += node.length


# Find directives (%YAML, %TAG) in a YAML text before a parser reads it.
#
# libyaml's parser compares each `%TAG` with all before it, in a call that cannot be interrupted.
# Only scanners run here, which read each character once.

LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: The five line breaks of YAML 1.1 (5.4). A `%` after one begins a directive, or is text.
_BREAKS = "\n\r\x85\u2028\u2029"
#: Only comments and blank lines before a `%`, which then begins a directive.
_BEFORE_DIRECTIVE = re.compile("\ufeff?(?:[ \t]*(?:#[^\n\r]*)?\r?\n)*(?=%)")

DIRECTIVE_REFUSAL = "directives (%YAML, %TAG and others) are not supported; remove the line"


def directive(text: str) -> int | None:
    """Return the offset of the first directive of a YAML stream; None without a directive.

    A line inside a string may begin with `%` too. If the text before it is not YAML, None is
    returned as well: the parser then reports the mistake.
    """
    if "%" not in text:
        return None
    if before := _BEFORE_DIRECTIVE.match(text):
        return before.end()
    return (
        _scan_directive(text) if any(f"{line_break}%" in text for line_break in _BREAKS) else None
    )


def _scan_directive(text: str) -> int | None:
    try:
        for token in yaml.scan(text, Loader=LOADER):
            if isinstance(token, yaml.DirectiveToken):
                return int(token.start_mark.index)
    except (yaml.YAMLError, UnicodeError):
        return None
    return None


# Line numbers of offsets in a text.

#: The size of a block: lines are counted from the beginning of their block, because an entry for
#: every line would take forty times the memory of a text of empty lines.
_BLOCK_LENGTH = 4096  # characters


class LineIndex:
    r"""The lines of a text; as in editors, only "\n" ends one.

    The text is searched when a line is first requested.
    `above`: the number of lines before the text in its file.
    """

    def __init__(self, text: str, above: int = 0) -> None:
        self._text = text
        self._above = above

    def line(self, offset: int) -> int:
        """Return the line number, from 1, of an offset."""
        block = offset // _BLOCK_LENGTH
        ended = self._before[block] + self._text.count("\n", block * _BLOCK_LENGTH, offset)
        return 1 + self._above + ended

    def column(self, offset: int) -> int:
        """Return the column, from 1, of an offset on its line, in characters."""
        return offset - self._text.rfind("\n", 0, offset)

    @cached_property
    def _before(self) -> list[int]:
        """The number of lines that end before each block."""
        starts = range(0, len(self._text), _BLOCK_LENGTH)
        counts = (self._text.count("\n", start, start + _BLOCK_LENGTH) for start in starts)
        return list(accumulate(counts, initial=0))
