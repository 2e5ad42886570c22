"""Give the text of a document a new value; unaffected parts stay byte for byte.

The text is edited where the old and the new value differ. The result is always read back and
compared; if its value is different because of aliases or other unusual syntax, the document is
written anew, with a warning.

A text without a final line break still has none afterwards. A literal block at its end then has
no line break in its value either; if lines are added below it, its header becomes `|-`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from webhook.errors import DocumentError
from webhook.model.json import Json, JsonObject
from webhook.text.yaml.documents import DOCUMENT_LIMITS, Document, read_documents
from webhook.text.yaml.edits import Edits, kept_index_pairs, last_block_edit
from webhook.text.yaml.emit import Style, flow, json_lines, mapping_lines
from webhook.text.yaml.in_place import InPlaceEditor
from webhook.text.yaml.tree import LineIndex, UnreadableTextError, YamlNode, roots_of
from webhook.text.yaml.values import mapping_key, same_json

_WARNING = "rewritten without its comments and layout, because "


class Spliced(NamedTuple):
    """The text of a document with its new value."""

    text: str
    written_anew: bool  #: whether the document was written anew
    warning: str  #: what that loses, with the reason; "" for nothing


def splice(document: Document, value: JsonObject) -> Spliced:
    """Return the document's text, edited so that it has the new value."""
    if same_json(value, document.value):
        return Spliced(document.text, written_anew=False, warning="")
    root = _root(document.text)
    if root is not None:
        for text in _edited_texts(document, root, value):
            if _reads_as(text, document, value):
                return Spliced(text, written_anew=False, warning="")
    if root is None or document.syntax == "json":
        return Spliced(_write_json(document.text, value), written_anew=True, warning="")
    warning = _WARNING + fallback_cause(root, document.value, value, _lines(document, root))
    return Spliced(
        _write_anew(document.text, root, value, warning), written_anew=True, warning=warning
    )


def _lines(document: Document, root: YamlNode) -> LineIndex:
    """Return the lines of a document, counted in its input."""
    above = document.line - LineIndex(document.text).line(root.start)
    return LineIndex(document.text, above)


def _edited_texts(document: Document, root: YamlNode, value: JsonObject) -> Iterator[str]:
    """Yield the distinct edited texts, the best first."""
    tried = set[str]()
    for header_edit in dict.fromkeys((None, last_block_edit(document.text, root))):
        for inside_strings in (True, False):
            edits = Edits(document.text)
            if header_edit is not None:
                edits.replace(*header_edit)
            editor = InPlaceEditor(edits, _style(edits, root), inside_strings=inside_strings)
            editor.change_root(root, document.value, value)
            text = edits.result()
            if text not in tried:
                yield text
            tried.add(text)


def _root(text: str) -> YamlNode | None:
    try:
        nodes = (root.node for root in roots_of(text, DOCUMENT_LIMITS))
        return next((node for node in nodes if node.kind == "mapping"), None)
    except UnreadableTextError:  # JSON that is not YAML: it has escapes of its own
        return None


def _style(edits: Edits, root: YamlNode) -> Style:
    """Return the indentation: the step of the first level, and the style of most lists."""
    step = 0
    indented: list[bool] = []  # of each list
    stack = [root]
    while stack:
        node = stack.pop()
        if node.flow or node.kind == "alias":
            continue
        stack.extend(node.children)
        if node.kind != "mapping":
            continue
        for key, value in node.pairs:
            if value.is_block and value.kind == "mapping" and not step:
                step = edits.column(value.children[0].start) - edits.column(key.start)
            elif value.is_block and value.kind == "sequence":
                indented.append(edits.column(value.start) > edits.column(key.start))
    return Style(step if step > 0 else 2, indented_lists=sum(indented) > len(indented) / 2)


def _reads_as(text: str, document: Document, value: Json) -> bool:
    try:
        read = read_documents(text, document.name)
    except DocumentError:
        return False
    return len(read) == 1 and same_json(read[0].value, value)


def _write_json(text: str, value: Json) -> str:
    """Write JSON with the indentation of the text; on one line if it has none."""
    indent = re.match(r"\s*\{\r?\n([ \t]+)", text)
    if indent is None:
        return flow(value, as_json=True) + "\n"
    return "\n".join(json_lines(value, indent[1])) + "\n"


def _write_anew(text: str, root: YamlNode, value: JsonObject, warning: str) -> str:
    """Write a document from its value; the comments before and after it stay."""
    head, tail = text[: root.start].rstrip(" "), text[root.content_end(text) :]
    above = "" if not head or head.endswith("\n") else "\n"
    lines = "\n".join([f"# {warning}", *mapping_lines(value, 0, Style())])
    _, _, below = tail.partition("\n")
    return f"{head}{above}{lines}\n{below}"


# Explain why a document could not be edited in place: the syntax where the patch edits.

_MAX_NAME_LENGTH = 60
_UNKNOWN_CAUSE = "it is written in a way that cannot be edited in place"
#: The likeliest cause first: a change that other places share, or a repetition in the text.
_CAUSES = {
    "anchor": "the patch edits below the anchor {}, and its aliases would change too",
    "merge": "the patch edits a mapping with a merge key (<<)",
    "repeated": "the patch edits the key {}, which occurs twice",
    "alias": "the patch edits below the alias {}, and its anchor would change too",
}


def fallback_cause(root: YamlNode, old: Json, new: Json, lines: LineIndex) -> str:
    """Return the cause in a sentence, with its line; `old` and `new` are the root's values."""
    causes: dict[str, str] = {}
    for kind, node, name in _possible_causes(root, old, new):
        cause = _CAUSES[kind].format(name[:_MAX_NAME_LENGTH])
        causes.setdefault(kind, f"on line {lines.line(node.start)} {cause}")
    return next((causes[kind] for kind in _CAUSES if kind in causes), _UNKNOWN_CAUSE)


def _possible_causes(root: YamlNode, old: Json, new: Json) -> Iterator[tuple[str, YamlNode, str]]:
    """Yield the possible causes on the paths to the values that differ."""
    stack = [(root, old, new)]
    while stack:
        node, old_value, new_value = stack.pop()
        if same_json(old_value, new_value):
            continue
        if node.kind == "alias":
            yield "alias", node, f"*{node.anchor}"
        elif node.anchor is not None:
            yield "anchor", node, f"&{node.anchor}"
        if node.kind == "mapping" and isinstance(old_value, dict) and isinstance(new_value, dict):
            yield from _odd_keys(node, old_value, new_value)
            stack.extend(
                (value, old_value[name], new_value[name])
                for name, value in _named_values(node)
                if name in old_value and name in new_value
            )
        elif (
            node.kind == "sequence" and isinstance(old_value, list) and isinstance(new_value, list)
        ):
            index_pairs = kept_index_pairs(old_value, new_value)
            stack.extend(
                (node.children[index], old_value[index], new_value[new_index])
                for index, new_index in index_pairs
            )


def _odd_keys(
    node: YamlNode, old: JsonObject, new: JsonObject
) -> Iterator[tuple[str, YamlNode, str]]:
    seen: set[str] = set()
    for key, _ in node.pairs:
        if key.merges:
            yield "merge", key, "<<"
            continue
        name = mapping_key(key)
        if name in seen and not same_json(old.get(name), new.get(name)):
            yield "repeated", key, name
        seen.add(name)


def _named_values(node: YamlNode) -> Iterator[tuple[str, YamlNode]]:
    for key, value in node.pairs:
        if not key.merges:
            yield mapping_key(key), value
