"""Read our own YAML files, the fabrics file and the facts file."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as File

from webhook.config import FACTS_COMMAND
from webhook.config.findings import (
    CONFIGURATION_TOO_LARGE,
    FILE_UNREADABLE,
    INVALID_FACTS,
    NOT_YAML,
    YAML_UNSUPPORTED,
    InvalidConfiguration,
    invalid_configuration,
    limit_findings,
)
from webhook.config.messages import show_value
from webhook.errors import ShapeError, read_failure
from webhook.model.facts import Facts
from webhook.model.finding import Finding, Location
from webhook.model.pod import Path, at
from webhook.model.quoting import quoted
from webhook.text.yaml.hints import hint_on, mistake_of
from webhook.text.yaml.tree import (
    TAG,
    AliasError,
    LineIndex,
    NotYamlError,
    OverLimitError,
    Root,
    TextLimits,
    UnreadableTextError,
    YamlNode,
    roots_of,
)
from webhook.text.yaml.values import literal_value

# Read a file, with the line of every value.
#
# `webhook.text.yaml` parses the text and enforces the limits. This part reads the file, applies the
# additional rules for these files (a repeated key, a tag, a merge key and a key that is not a plain
# word are errors), and writes the message for every error.

_STRING_TAGS = (None, "!", f"{TAG}str")
#: The id of a mapping or list → key or index → offset of that key or item in the text.
_Offsets = dict[int, dict[str | int, int]]


@dataclass(frozen=True, slots=True)
class LocatedData:
    """The data of one YAML document, and the line of every key and item in it."""

    data: object
    first_line: int
    lines: LineIndex
    offsets: _Offsets

    def line(self, path: Path) -> int:
        """Return the line of the value at a path, or of the nearest existing value around it."""
        node, offset = self.data, None
        for step in path:
            offsets = self.offsets.get(id(node), {})
            if step not in offsets:
                break
            node, offset = at(node, (step,)), offsets[step]
        return self.first_line if offset is None else self.lines.line(offset)


def read_file(path: File, limits: TextLimits) -> bytes:
    """Read a regular file; raise InvalidConfiguration if it cannot be read."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
        if not stat.S_ISREG(mode):
            raise invalid_configuration(FILE_UNREADABLE, str(path), "is not a regular file")
        with path.open("rb") as file:
            content = file.read(limits.size + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise invalid_configuration(FILE_UNREADABLE, str(path), read_failure(error)) from None
    if len(content) > limits.size:
        raise invalid_configuration(
            FILE_UNREADABLE, str(path), f"is larger than the maximum of {limits.size:,} bytes"
        )
    return content


def decode(content: bytes, name: str) -> str:
    """Decode UTF-8, with or without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise invalid_configuration(
            FILE_UNREADABLE, name, f"byte 0x{byte:02x} is not UTF-8; save the file as UTF-8", line
        ) from None


def parse_yaml(text: str, name: str, limits: TextLimits) -> list[LocatedData]:
    """Read every document of a YAML text; raise InvalidConfiguration if anything is wrong."""
    lines = LineIndex(text)
    findings: list[Finding] = []
    try:
        documents = [
            _Reading(name, lines, findings).document(root) for root in roots_of(text, limits)
        ]
    except UnreadableTextError as error:
        raise _unreadable_text_error(name, error, text, lines, limits) from None
    if findings:
        raise InvalidConfiguration(name, *limit_findings(findings))
    return documents


class _Reading:
    """A reader of one document; errors that do not stop it go to `findings`."""

    def __init__(self, name: str, lines: LineIndex, findings: list[Finding]) -> None:
        self._name = name
        self._lines = lines
        self._findings = findings
        self._offsets: _Offsets = {}
        self._anchored: dict[YamlNode, object] = {}

    def document(self, root: Root) -> LocatedData:
        data = self._data_of(root.node)
        return LocatedData(data, self._lines.line(root.node.start), self._lines, self._offsets)

    def _data_of(self, node: YamlNode) -> object:
        """Return the data of a node, which an anchor and its aliases share."""
        if node.kind == "alias":
            node = node.children[0]
        if node in self._anchored:
            return self._anchored[node]
        if node.kind == "scalar":
            data = self._scalar(node)
        else:
            data = self._mapping(node) if node.kind == "mapping" else self._sequence(node)
            node.children.clear()  # frees memory: a large file needs its data, not its tree
        if node.anchor is not None:
            self._anchored[node] = data
        return data

    def _scalar(self, node: YamlNode) -> object:
        self._check_tag(node)
        return literal_value(node.text) if node.plain and node.tag is None else node.text

    def _mapping(self, node: YamlNode) -> dict[str, object]:
        self._check_tag(node)
        data: dict[str, object] = {}
        offsets: dict[str | int, int] = {}
        for key_node, value_node in node.pairs:
            key = self._key(key_node)
            if key == "<<" and key_node.plain:
                self._report(
                    key_node, "merge keys (<<) are not supported; write the merged fields out"
                )
            elif key in offsets:
                first = self._lines.line(offsets[key])
                self._report(key_node, f"{quoted(key)} is here and on line {first}; remove one")
            else:
                offsets[key] = key_node.start
            data[key] = self._data_of(value_node)
        self._offsets[id(data)] = offsets
        return data

    def _sequence(self, node: YamlNode) -> list[object]:
        self._check_tag(node)
        data = [self._data_of(item) for item in node.children]
        self._offsets[id(data)] = {index: item.start for index, item in enumerate(node.children)}
        return data

    def _key(self, node: YamlNode) -> str:
        if node.kind == "alias":
            message = f"alias *{node.anchor:.80} cannot be a key; write the key out"
            raise UnreadableTextError(node.start, message)
        if node.kind != "scalar":
            message = "a key must be a string, not a list or a mapping"
            raise UnreadableTextError(node.start, message)
        self._check_tag(node)
        return node.text

    def _check_tag(self, node: YamlNode) -> None:
        tag = node.tag
        if tag is not None and (node.kind != "scalar" or tag not in _STRING_TAGS):
            self._report(
                node,
                f"the tag {tag.replace(TAG, '!!'):.80} is not supported; write the plain value",
            )

    def _report(self, node: YamlNode, message: str) -> None:
        location = Location(file=self._name, line=self._lines.line(node.start))
        self._findings.append(YAML_UNSUPPORTED.finding("error", message, location=location))


def _unreadable_text_error(
    name: str, error: UnreadableTextError, text: str, lines: LineIndex, limits: TextLimits
) -> InvalidConfiguration:
    """Return the error for a text that cannot be read any further."""
    if error.offset is None:
        return invalid_configuration(NOT_YAML, name, str(error))
    if isinstance(error, NotYamlError):
        offset, message = mistake_of(text, error)
        return invalid_configuration(
            NOT_YAML, name, f"not YAML: {message}", lines.line(offset), lines.column(offset)
        )
    message = _sentence(error, limits) + hint_on(text, error)
    code = CONFIGURATION_TOO_LARGE if isinstance(error, OverLimitError) else YAML_UNSUPPORTED
    return invalid_configuration(code, name, message, lines.line(error.offset))


def _sentence(error: UnreadableTextError, limits: TextLimits) -> str:
    match error:
        case AliasError(inside_itself=True):
            return f"alias *{error.anchor:.80} is inside its own anchor"
        case AliasError():
            return f"alias *{error.anchor:.80} has no anchor before it"
        case OverLimitError(exceeded="values"):
            return f"contains more than the maximum of {limits.values:,} values"
        case OverLimitError(exceeded="size"):
            return (
                f"contains more than the maximum of {limits.size:,} characters, with aliases "
                "expanded"
            )
        case OverLimitError(exceeded="depth"):
            return f"is nested deeper than {limits.depth} levels"
        case _:
            return str(error)


# Read the facts of a cluster from a file, for a preview without a cluster.
#
# The file has the output of FACTS_COMMAND (or json): a List.
# Typed lists, as the API returns them, and several documents are accepted as well.

FACT_KINDS = (
    *("Namespace", "LimitRange", "ResourceQuota", "Node"),
    *("ResourceClaimTemplate", "ResourceClaim"),
)
#: Limits for 10,000 nodes, which with their images take about 150 MB.
FACTS_LIMITS = TextLimits(size=256 << 20, values=20_000_000, depth=100)


def load_facts(path: File) -> Facts:
    """Load a facts file; raise InvalidConfiguration if it has no usable facts."""
    name = str(path)
    return parse_facts(decode(read_file(path, FACTS_LIMITS), name), name)


def parse_facts(text: str, name: str, command: str = FACTS_COMMAND) -> Facts:
    """Parse facts; raise InvalidConfiguration if the text has no usable facts.

    `command` is what the message recommends to get a usable file.
    """
    try:
        objects = [item for data in _documents(text, name) for item in _objects(data)]
    except _UnusableObjectsError as error:
        raise _unusable_facts(name, str(error), command) from None
    if not objects:
        raise _unusable_facts(name, "contains no objects", command)
    try:
        return Facts.from_objects(objects)
    except ShapeError as error:
        raise _invalid_facts(name, f"contains an invalid object: {error}") from None


class _UnusableObjectsError(Exception):
    """A document is not a list of objects of the kinds that facts have."""


def _unusable_facts(name: str, problem: str, command: str) -> InvalidConfiguration:
    message = f"cannot be used: it {problem}"
    return _invalid_facts(name, f"{message}; pass the output of `{command}` instead")


def _invalid_facts(name: str, message: str) -> InvalidConfiguration:
    return invalid_configuration(INVALID_FACTS, name, message)


def _documents(text: str, name: str) -> Iterator[object]:
    """Read JSON, which is many times faster for a large cluster, or else YAML."""
    if not text.lstrip().startswith("{"):
        yield from (document.data for document in parse_yaml(text, name, FACTS_LIMITS))
        return
    try:
        yield json.loads(text)
    except RecursionError:
        raise _invalid_facts(name, "is nested too deeply") from None
    except ValueError:  # YAML that begins with a brace, or several documents
        yield from (document.data for document in parse_yaml(text, name, FACTS_LIMITS))


def _objects(data: object) -> Iterator[dict[str, object]]:
    if data is None:
        return
    fields = data if isinstance(data, dict) else {}
    kind = fields.get("kind")
    if kind in FACT_KINDS:
        yield fields
        return
    if not isinstance(kind, str) or not kind.endswith("List"):
        raise _UnusableObjectsError(f"contains {_describe(data, kind)}")
    items = fields.get("items")
    if not isinstance(items, list):
        raise _UnusableObjectsError(f"contains a {kind} without a list of items")
    for item in items:
        # The items of a typed list have no kind.
        item_kind = item.get("kind", kind.removesuffix("List")) if isinstance(item, dict) else None
        if item_kind not in FACT_KINDS:
            raise _UnusableObjectsError(f"contains {_describe(item, item_kind)}")
        yield {**item, "kind": item_kind}


def _describe(data: object, kind: object) -> str:
    return f"an object of kind {quoted(kind)}" if kind else f"{show_value(data)} without a kind"
