"""Read YAML or JSON that nobody vouches for: within limits, as kubectl does, with lines.

Every failure is a DocumentError of one line, such as
`pod.yaml: document 2, line 14: not YAML: mapping values are not allowed in this context`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, NoReturn

from webhook.errors import DocumentError
from webhook.pod.manifest import describe
from webhook.yamltext.json_text import read_json
from webhook.yamltext.tree import Root, UnreadableError, roots_of
from webhook.yamltext.values import Duplicate, Values

LONGEST = 8 * 1024 * 1024  # bytes; the cap of a request body, too

# All that YAML 1.1 allows in a stream (5.1), as libyaml checks it.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MEANT_AS_JSON = re.compile(r'\s*\{\s*["}]')
_OWN_MARKER = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n|%[^\n]*\n)*---(?:\s|\Z)")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_TEMPLATE = " (this is a template: render it first, for instance with `helm template`)"
_TAB = " (a tab cannot indent YAML: use spaces)"
_NO_MAPPING = "a Kubernetes object, which is a mapping, is wanted here, but this is {}"
_LONGEST_KEY = 100
_MOST_PROBLEMS = 20  # of one document


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document that is not empty."""

    name: str  #: of the input: a file's name or "<stdin>"
    index: int  #: counted from 0 in the input, empty documents included
    value: dict[str, Any]  #: JSON; aliases of one anchor share one value
    line: int  #: of its first value, counted from 1 in the input
    text: str  #: its part of the input, with its own `---`: all parts together are the input
    syntax: Literal["yaml", "json"]
    #: Sentences on what is readable and hardly meant: a key written twice.
    problems: tuple[str, ...] = ()


def read_documents(data: bytes | str, name: str = "<stdin>") -> list[Document]:
    """Read a stream of YAML documents, or one of JSON; an input without any gives an empty list.

    `name` stands before every message. Raises DocumentError for an input that is longer than 8
    MiB, deeper than 200 levels or of more than 200,000 values, that is not UTF-8, or neither YAML
    nor JSON, and for a document that is no mapping.
    """
    text = _decoded(data, name)
    if text.lstrip()[:1] != "{":
        return _read_yaml(text, name)
    try:
        value, duplicates = read_json(text)
    except UnreadableError as error:
        _fail(name, 0, _Place(text), error)
    except ValueError as syntax:
        return _read_flow(text, name, syntax)
    whole = _Place(text)
    return [
        Document(
            name=name,
            index=0,
            value=value,
            line=whole.moved(len(text) - len(text.lstrip())).line,
            text=text,
            syntax="json",
            problems=_problems(name, 0, whole, duplicates),
        )
    ]


def joined(texts: list[str]) -> str:
    """Put documents' texts together again, with `---` between those that have none of their own."""
    parts: list[str] = []
    for text in texts:
        last = next((part for part in reversed(parts) if part), "")
        if last and not last.endswith("\n"):
            parts.append("\n")
        if last and not _OWN_MARKER.match(text):
            parts.append("---\n")
        parts.append(text)
    return "".join(parts)


def _decoded(data: bytes | str, name: str) -> str:
    try:
        encoded = data.encode() if isinstance(data, str) else data
        if len(encoded) > LONGEST:
            raise DocumentError(f"{name}: longer than 8 MiB, which is not read")
        text = data if isinstance(data, str) else data.decode()
    except UnicodeEncodeError as error:
        raise DocumentError(f"{name}: half a surrogate pair at character {error.start}") from None
    except UnicodeDecodeError as error:
        also = ", but UTF-16" if error.object[:2] in _UTF16 else ""
        byte = error.object[error.start]
        raise DocumentError(
            f"{name}: not UTF-8{also}: byte 0x{byte:02x} at offset {error.start}"
        ) from None
    return text.removeprefix("\ufeff")


def _read_flow(text: str, name: str, syntax: ValueError) -> list[Document]:
    """Read what begins with `{` and is no JSON: YAML has this form, too."""
    try:
        return _read_yaml(text, name)
    except DocumentError:
        if not _MEANT_AS_JSON.match(text):
            raise
        offset, problem = getattr(syntax, "pos", 0), getattr(syntax, "msg", str(syntax))
        _fail(name, 0, _Place(text), UnreadableError(offset, f"not JSON: {problem}"))


def _read_yaml(text: str, name: str) -> list[Document]:
    _check_characters(text, name)
    found: list[Document] = []
    starts: list[int] = []
    index, place = 0, _Place(text)
    try:
        for root in roots_of(text):
            place = place.moved(root.node.start)
            document = _document(name, index, root, place)
            index += 1
            if document is not None:
                found.append(document)
                starts.append(root.start)
    except UnreadableError as error:
        _fail(name, index, place, error)
    # What stands before the first document is the first one's, too.
    bounds = [0, *starts[1:], len(text)]
    parts = [text[bounds[number] : bounds[number + 1]] for number in range(len(found))]
    return [replace(document, text=part) for document, part in zip(found, parts, strict=True)]


def _document(name: str, index: int, root: Root, place: _Place) -> Document | None:
    """Make the document without its part of the input; None for an empty one."""
    values = Values()
    value = values.of(root.node)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise UnreadableError(root.node.start, _NO_MAPPING.format(describe(value)))
    return Document(
        name=name,
        index=index,
        value=value,
        line=place.line,
        text="",
        syntax="yaml",
        problems=_problems(name, index, place, list(values.duplicates)),
    )


def _check_characters(text: str, name: str) -> None:
    match = _FORBIDDEN.search(text)
    if match:
        what = f"the control character U+{ord(match[0]):04X} is not allowed in YAML"
        _fail(name, None, _Place(text), UnreadableError(match.start(), what))


def _problems(name: str, index: int, place: _Place, duplicates: list[Duplicate]) -> tuple[str, ...]:
    return tuple(
        f"{_where(name, index, place.moved(offset).line)}: the key {_shown(key)} stands there a "
        f"second time in one mapping; the last one counts"
        for offset, key in duplicates[:_MOST_PROBLEMS]
    )


def _fail(name: str, index: int | None, place: _Place, error: UnreadableError) -> NoReturn:
    line = place.moved(error.offset).line
    message = f"{_where(name, index, line)}: {error}{_hint(place.text, error.offset)}"
    raise DocumentError(" ".join(message.split())) from None


def _where(name: str, index: int | None, line: int) -> str:
    document = "" if index is None else f"document {index + 1}, "
    return f"{name}: {document}line {line}"


class _Place(NamedTuple):
    """An offset with its line, from which others are counted: a stream may have many documents."""

    text: str
    offset: int = 0
    line: int = 1

    def moved(self, offset: int) -> _Place:
        offset = max(offset, self.offset)
        return _Place(self.text, offset, self.line + self.text.count("\n", self.offset, offset))


def _hint(text: str, offset: int) -> str:
    """Explain the two mistakes that the parser's own words do not explain."""
    before = text.rfind("\n", 0, max(text.rfind("\n", 0, offset), 0)) + 1  # the line before it
    end = text.find("\n", offset)
    if "{{" in text[before : end if end >= 0 else len(text)]:
        return _TEMPLATE
    return _TAB if text[offset : offset + 1] == "\t" else ""


def _shown(key: str) -> str:
    return key if key.isprintable() and len(key) <= _LONGEST_KEY else repr(key[:_LONGEST_KEY])
