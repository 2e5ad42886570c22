"""Read YAML that people wrote: safe, bounded, with lines, and without YAML 1.1's surprises.

Plain words become null, true, false or a decimal whole number; everything else
stays the string that was written: `on`, `2024-01-01`, `1:30`, `010`, `0x10`,
`1.5`. So every scalar can be turned back into its text. A repeated key, a tag,
a merge key (`<<`) and a key that is no word are errors.

The data is built from parser events, without recursion: PyYAML's composers
overflow the stack on deep input, the C one by a segmentation fault.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any, NamedTuple

import yaml

from webhook.config.findings import Finding, InvalidConfiguration, foremost, refused
from webhook.pod.path import Path
from webhook.yamltext.directives import REFUSAL, directive

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    "true": True,
    "false": False,
}
#: Up to 18 digits: what turns back into the same text, and fits 64 bits.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_STRING_TAGS = (None, "!", "tag:yaml.org,2002:str")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH = 100


class Limits(NamedTuple):
    """How much of a file is read."""

    octets: int = 1 << 20  #: etcd holds no larger ConfigMap; aliases counted as often as used
    nodes: int = 35_000  #: a thousand fabrics; aliases counted as often as they are used


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document, with the line of every key and item."""

    data: Any
    first_line: int
    #: id of a mapping or list in `data` → key or index → line.
    marks: dict[int, dict[str | int, int]]

    def line(self, path: Path) -> int:
        """Return the line of what is at the path, or of the nearest thing around it."""
        node, line = self.data, self.first_line
        for step in path:
            known = self.marks.get(id(node), {})
            if step not in known:
                break
            node, line = node[step], known[step]
        return line


def read_file(path: File, limits: Limits) -> bytes:
    """Read a regular file; InvalidConfiguration says why it cannot be."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise refused(str(path), "is a directory: name the file in it")
        if not stat.S_ISREG(mode):
            raise refused(str(path), "is not a regular file")
        with path.open("rb") as file:
            content = file.read(limits.octets + 1)
    except FileNotFoundError:
        raise refused(str(path), "there is no such file") from None
    except OSError as error:
        raise refused(str(path), f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise refused(repr(str(path)), f"is no file name: {error}") from None
    if len(content) > limits.octets:
        raise refused(str(path), f"is larger than {limits.octets:,} bytes")
    return content


def decode(content: bytes, name: str) -> str:
    """Decode UTF-8, with or without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wrong = content[error.start]
        raise refused(name, f"byte 0x{wrong:02x} is not UTF-8: save it as UTF-8", line) from None


def read_documents(text: str, name: str, limits: Limits) -> list[Document]:
    """Read every document of a YAML text; InvalidConfiguration lists what is wrong with it."""
    builder = _Builder(name, limits)
    if (offset := directive(text)) is not None:
        raise refused(name, REFUSAL, text.count("\n", 0, offset) + 1)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except (yaml.YAMLError, UnicodeError) as error:
        raise _not_yaml(name, error) from None
    if builder.findings:
        raise InvalidConfiguration(name, *foremost(builder.findings))
    return builder.documents


def _not_yaml(name: str, error: Exception) -> InvalidConfiguration:
    if not isinstance(error, yaml.MarkedYAMLError):  # a character that YAML forbids
        reason = getattr(error, "reason", None) or error
        return refused(name, f"is not YAML: {reason}")
    problem = f"is not YAML: {error.problem or error.context}"
    if "cannot start any token" in problem:
        problem += " (quote what begins with @, % or a backquote; indent with spaces)"
    mark: Any = error.problem_mark or error.context_mark
    begun: Any = error.context_mark
    if begun and begun.line != mark.line:
        problem += f", {error.context} that begins on line {begun.line + 1}"
    return refused(name, problem, mark.line + 1 if mark else None)


class _Size(NamedTuple):
    """How many values something is, and how many characters, with aliases expanded."""

    nodes: int
    characters: int


@dataclass(slots=True)
class _Frame:
    """A mapping or a list that is being filled."""

    node: Any
    line: int
    anchor: str | None
    before: _Size
    lines: dict[str | int, int] = field(default_factory=dict)
    key: str | None = None  #: of a mapping, once read


class _Builder:
    """Builds documents out of events; `findings` holds what can be told and passed over."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.documents: list[Document] = []
        self.findings: list[Finding] = []
        self._name = name
        self._limits = limits
        self._size = _Size(0, 0)
        self._stack: list[_Frame] = []
        self._marks: dict[int, dict[str | int, int]] = {}
        #: Anchor → its value, and how large that is.
        self._anchors: dict[str, tuple[Any, _Size]] = {}

    def take(self, event: yaml.Event) -> None:
        mark: Any = event.start_mark
        line = mark.line + 1
        match event:
            case yaml.ScalarEvent():
                self._count(_Size(1, len(event.value)), line)
                self._check_tag(event.tag, line)
                self._scalar(event, line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._check_tag(event.tag, line, collection=True)
                self._open(event, line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()
            case yaml.AliasEvent():
                self._alias(event.anchor or "", line)
            case yaml.DocumentStartEvent():
                self._anchors, self._marks = {}, {}
            case _:
                pass

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame and frame.node.__class__ is dict and frame.key is None:
            self._key(frame, event, line)
            return
        value: Any = event.value
        if event.implicit[0] and event.tag is None:
            value = _WORDS.get(value, value)
            if value.__class__ is str and _INTEGER.fullmatch(value):
                value = int(value)
        self._put(value, line, event.anchor, _Size(1, len(event.value)))

    def _key(self, frame: _Frame, event: yaml.ScalarEvent, line: int) -> None:
        key = frame.key = event.value
        if key == "<<" and event.implicit[0]:
            self._say(line, "merge keys (<<) are not read: repeat what they would merge")
        elif key in frame.lines:
            self._say(line, f"{key!r:.80} stands here and on line {frame.lines[key]}: remove one")
        else:
            frame.lines[key] = line

    def _open(self, event: yaml.CollectionStartEvent, line: int) -> None:
        parent = self._stack[-1] if self._stack else None
        if parent and parent.node.__class__ is dict and parent.key is None:
            raise refused(self._name, "a key must be a word, not a list or a mapping", line)
        self._count(_Size(1, 0), line)
        if len(self._stack) >= _DEPTH:
            raise refused(self._name, f"is nested deeper than {_DEPTH} levels", line)
        node: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._stack.append(_Frame(node, line, event.anchor, self._size))

    def _close(self) -> None:
        frame = self._stack.pop()
        self._marks[id(frame.node)] = frame.lines
        nodes, characters = self._size
        size = _Size(nodes - frame.before.nodes + 1, characters - frame.before.characters)
        self._put(frame.node, frame.line, frame.anchor, size)

    def _alias(self, anchor: str, line: int) -> None:
        if anchor not in self._anchors:
            raise refused(self._name, f"alias *{anchor:.80} has no anchor before it", line)
        value, size = self._anchors[anchor]
        self._count(size, line)
        frame = self._stack[-1]  # the parser takes no alias as a document
        if frame.node.__class__ is dict and frame.key is None:
            raise refused(self._name, f"alias *{anchor:.80} cannot be a key: write the word", line)
        self._put(value, line, None, size)

    def _put(self, value: Any, line: int, anchor: str | None, size: _Size) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)
        if not self._stack:
            self.documents.append(Document(value, line, self._marks))
            return
        frame = self._stack[-1]
        if frame.node.__class__ is list:
            frame.lines[len(frame.node)] = line
            frame.node.append(value)
            return
        assert frame.key is not None
        frame.node[frame.key] = value
        frame.key = None

    def _count(self, size: _Size, line: int) -> None:
        nodes, characters = self._size
        self._size = now = _Size(nodes + size.nodes, characters + size.characters)
        if now.nodes > self._limits.nodes:
            raise refused(self._name, f"holds more than {self._limits.nodes:,} values", line)
        if now.characters > self._limits.octets:
            most = f"{self._limits.octets:,} characters"
            raise refused(self._name, f"holds more than {most} with aliases expanded", line)

    def _check_tag(self, tag: str | None, line: int, *, collection: bool = False) -> None:
        if tag is not None and (collection or tag not in _STRING_TAGS):
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            self._say(line, f"the tag {shown:.80} is not read: write the plain value")

    def _say(self, line: int, message: str) -> None:
        self.findings.append(Finding("error", "", line, message))
