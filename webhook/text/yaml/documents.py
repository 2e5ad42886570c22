"""Read YAML or JSON from any source: within limits, like kubectl, with line numbers.

Every failure is a DocumentError of one line, such as
`pod.yaml: document 2, line 14, column 3: not YAML: a dash needs a space after it; write `- name``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, NoReturn

from webhook.errors import DocumentError, NotKubernetesError
from webhook.model.json import JsonObject
from webhook.model.quoting import describe
from webhook.text.yaml.hints import explain_misread_key, explain_misread_text, hint_on, mistake_of
from webhook.text.yaml.tree import (
    LineIndex,
    NotYamlError,
    Root,
    TextLimits,
    UnreadableTextError,
    roots_of,
)
from webhook.text.yaml.values import LocatedKey, Values, read_json

#: 8 MiB is the cap of a request body, too; 200,000 values are about a thousand pods, or two
#: seconds of work.
DOCUMENT_LIMITS = TextLimits(size=8 << 20, values=200_000, depth=200)

# All characters that YAML 1.1 does not allow in a stream (5.1), as libyaml checks it.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MEANT_AS_JSON = re.compile(r'\s*\{\s*["}]')
_DOCUMENT_MARKER = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n|%[^\n]*\n)*---(?:\s|\Z)")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_NOT_A_MAPPING = "expected a Kubernetes object, which is a mapping, but this is {}"
_MAX_KEY_LENGTH = 100
_MAX_PROBLEMS = 20  # of one document


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A non-empty document of an input."""

    name: str  #: the name of the input: a file's, "<stdin>", "body" or "the cluster"
    index: int  #: its position in the input from 0, empty documents included
    value: JsonObject  #: JSON; an anchor and its aliases share one value
    line: int  #: the line of its first value, from 1, in the input
    text: str  #: its part of the input, with its own `---`: all parts together are the input
    syntax: Literal["yaml", "json"]
    #: Sentences about probable mistakes in readable text, such as a repeated key.
    problems: tuple[str, ...] = ()


class _NotAMappingError(UnreadableTextError):
    """A document is a list, a string or a number."""


def read_documents(data: bytes | str, name: str = "<stdin>") -> list[Document]:
    """Read a stream of YAML documents, or one JSON text; an empty input gives an empty list.

    Every message begins with `name`. Raises DocumentError for an input that exceeds
    DOCUMENT_LIMITS, is not UTF-8, or is neither YAML nor JSON; its subclass NotKubernetesError
    for a document that is not a mapping, and for a template that is not YAML.
    """
    text = _decode(data, name)
    if text.lstrip()[:1] != "{":
        return _read_yaml(text, name)
    lines = LineIndex(text)
    try:
        value, duplicates = read_json(text, DOCUMENT_LIMITS)
    except UnreadableTextError as error:
        _fail(name, 0, text, error)
    except ValueError as syntax:
        return _read_flow(text, name, syntax)
    return [
        Document(
            name=name,
            index=0,
            value=value,
            line=lines.line(len(text) - len(text.lstrip())),
            text=text,
            syntax="json",
            problems=_duplicate_key_problems(name, 0, lines, duplicates),
        )
    ]


def join_documents(texts: list[str]) -> str:
    """Join the texts of documents, with `---` before each text that lacks it."""
    parts: list[str] = []
    for text in texts:
        last = next((part for part in reversed(parts) if part), "")
        if last and not last.endswith("\n"):
            parts.append("\n")
        if last and not _DOCUMENT_MARKER.match(text):
            parts.append("---\n")
        parts.append(text)
    return "".join(parts)


def _decode(data: bytes | str, name: str) -> str:
    try:
        encoded = data.encode() if isinstance(data, str) else data
        if len(encoded) > DOCUMENT_LIMITS.size:
            raise DocumentError(f"{name}: longer than the maximum of 8 MiB")
        text = data if isinstance(data, str) else data.decode()
    except UnicodeEncodeError as error:
        raise DocumentError(f"{name}: unpaired surrogate at character {error.start}") from None
    except UnicodeDecodeError as error:
        also = ", but UTF-16" if error.object[:2] in _UTF16 else ""
        byte = error.object[error.start]
        raise DocumentError(
            f"{name}: not UTF-8{also}: byte 0x{byte:02x} at offset {error.start}; save the file as "
            "UTF-8"
        ) from None
    return text.removeprefix("\ufeff")


def _read_flow(text: str, name: str, syntax: ValueError) -> list[Document]:
    """Read a text that begins with `{` but is not JSON: it may be a flow mapping of YAML."""
    try:
        return _read_yaml(text, name)
    except DocumentError:
        if not _MEANT_AS_JSON.match(text):
            raise
        offset, problem = getattr(syntax, "pos", 0), getattr(syntax, "msg", str(syntax))
        _fail(name, 0, text, UnreadableTextError(offset, f"not JSON: {problem}"))


def _read_yaml(text: str, name: str) -> list[Document]:
    _check_characters(text, name)
    documents: list[Document] = []
    starts: list[int] = []
    index, lines = 0, LineIndex(text)
    try:
        for root in roots_of(text, DOCUMENT_LIMITS):
            document = _document(name, index, root, lines)
            index += 1
            if document is not None:
                documents.append(document)
                starts.append(root.start)
    except UnreadableTextError as error:
        _fail(name, index, text, error)
    # Anything before the first document belongs to its text.
    bounds = [0, *starts[1:], len(text)]
    parts = [text[bounds[number] : bounds[number + 1]] for number in range(len(documents))]
    return [replace(document, text=part) for document, part in zip(documents, parts, strict=True)]


def _document(name: str, index: int, root: Root, lines: LineIndex) -> Document | None:
    """Return a document, still without its part of the input; None if it is empty."""
    values = Values()
    value = values.of(root.node)
    if value is None:
        return None
    if not isinstance(value, dict):
        hint = explain_misread_text(value) if isinstance(value, str) else ""
        message = _NOT_A_MAPPING.format(describe(value)) + (f" ({hint})" if hint else "")
        raise _NotAMappingError(root.node.start, message)
    return Document(
        name=name,
        index=index,
        value=value,
        line=lines.line(root.node.start),
        text="",
        syntax="yaml",
        problems=(
            *_duplicate_key_problems(name, index, lines, values.duplicates),
            *_misread_key_problems(name, index, lines, values.suspicious_keys),
        ),
    )


def _check_characters(text: str, name: str) -> None:
    match = _FORBIDDEN.search(text)
    if match:
        message = f"the control character U+{ord(match[0]):04X} is not allowed in YAML"
        _fail(name, None, text, UnreadableTextError(match.start(), message))


def _duplicate_key_problems(
    name: str, index: int, lines: LineIndex, duplicates: list[LocatedKey]
) -> tuple[str, ...]:
    return tuple(
        f"{_location(name, index, lines.line(offset))}: the mapping has the key {_show_key(key)} "
        "twice; only the last one is used"
        for offset, key in duplicates[:_MAX_PROBLEMS]
    )


def _misread_key_problems(
    name: str, index: int, lines: LineIndex, keys: list[LocatedKey]
) -> tuple[str, ...]:
    return tuple(
        f"{_location(name, index, lines.line(offset))}: in the key {_show_key(key)}, "
        f"{explain_misread_key(key)}"
        for offset, key in keys[:_MAX_PROBLEMS]
    )


def _fail(name: str, index: int | None, text: str, error: UnreadableTextError) -> NoReturn:
    lines = LineIndex(text)
    if isinstance(error, NotYamlError):
        offset, explanation = mistake_of(text, error)
        location = f"{_location(name, index, lines.line(offset))}, column {lines.column(offset)}"
        message = f"{location}: not YAML: {explanation}"
    else:
        offset = error.offset or 0
        message = f"{_location(name, index, lines.line(offset))}: {error}{hint_on(text, error)}"
    not_kubernetes = isinstance(error, _NotAMappingError) or "{{" in text
    raise (NotKubernetesError if not_kubernetes else DocumentError)(
        " ".join(message.split())
    ) from None


def _location(name: str, index: int | None, line: int) -> str:
    document = "" if index is None else f"document {index + 1}, "
    return f"{name}: {document}line {line}"


def _show_key(key: str) -> str:
    return key if key.isprintable() and len(key) <= _MAX_KEY_LENGTH else repr(key[:_MAX_KEY_LENGTH])
