"""Laws of reading and editing text, for generated documents in several styles."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from webhook.errors import DocumentError
from webhook.model.decision import PatchOp
from webhook.model.pod import Path, pointer
from webhook.preview.workloads.notes import notes_of
from webhook.preview.workloads.patch import apply_patches
from webhook.preview.workloads.templates import not_kubernetes_reason, templates_of
from webhook.text.yaml.documents import Document, join_documents, read_documents
from webhook.text.yaml.emit import inline
from webhook.text.yaml.splice import splice

_WORDS = [
    "",
    "y",
    "on",
    "null",
    "~",
    "1",
    "1e3",
    "0777",
    "1:30",
    "2024-01-01",
    "a: b",
    "# c",
    "- a",
]
_WORDS += [
    "=mlx5_0,mlx5_1",
    "mlx5_0:1",
    '{"a": "b"}',
    "it's",
    "a\nb\n",
    "a\nb",
    "  a\nb",
    "\n",
    "<<",
]
_WORDS += [
    "a\n\n",
    "a\\b",
    "{{ x }}",
    "tab\there",
    "\u2028",
    "\x7f",
    "é\U0001f600",
    "&a",
    "*a",
    "!x",
]
texts = st.sampled_from(_WORDS) | st.text(
    st.characters(exclude_categories=["Cs"], max_codepoint=0x1FFFF), max_size=8
)
keys = st.sampled_from(["name", "env", "args", "limits", "nvidia.com/gpu", "a~b", "true", "1", ""])
# kubectl turns 1.0 into 1.
fractions = st.floats(-1e6, 1e6).filter(lambda number: not number.is_integer())
scalars = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | fractions | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=10,
)
mappings = st.dictionaries(keys, values, min_size=1, max_size=4)
layouts = st.sampled_from(["block", "indented", "flow", "mixed", "json", "json-lines", "crlf"])


class _Indented(yaml.SafeDumper):
    """Indents lists below their key, as people do."""

    def increase_indent(self, flow: bool = False, *_: Any, **__: Any) -> None:
        super().increase_indent(flow, indentless=False)


def written(value: dict[str, Any], layout: str) -> str:
    """Write a value in one of the libraries' styles."""
    if layout in ("json", "json-lines"):
        return json.dumps(value, indent=4 if layout == "json-lines" else None)
    dumper: Any = _Indented if layout == "indented" else yaml.SafeDumper
    flow = {"flow": True, "mixed": None}.get(layout, False)
    text = str(yaml.dump(value, Dumper=dumper, default_flow_style=flow, sort_keys=False))
    text = text.replace("\n", "\n# a comment\n", 1) if layout == "block" else text
    return text.replace("\n", "\r\n") if layout == "crlf" else text


def read_back(value: dict[str, Any], layout: str) -> Document:
    """Read a written value back; discard values that this reader reads differently."""
    try:
        documents = read_documents(written(value, layout))
    except DocumentError:
        documents = []
    assume(len(documents) == 1)
    return documents[0]


def places(value: Any, path: Path = ()) -> list[Path]:
    """List every place in a value."""
    paths = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for step, child in inner:
        below = places(child, (*path, step)) if isinstance(child, dict | list) else [(*path, step)]
        paths.extend(below)
    return paths


@st.composite
def operations(draw: st.DrawFn, value: dict[str, Any]) -> list[PatchOp]:
    """Draw operations that can be applied in sequence."""
    ops: list[PatchOp] = []
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(places(value)))
        node = value
        for step in path:
            node = node[step]  # type: ignore[index]
        op = draw(operation(path, node))
        if op is not None:
            ops.append(op)
            value = apply_patches(deepcopy(value), [((), [op])])
    return ops


@st.composite
def operation(draw: st.DrawFn, path: Path, node: Any) -> PatchOp | None:
    """Draw one operation at or below a node."""
    kind = draw(st.sampled_from(["add", "replace", "remove"]))
    if kind == "add" and isinstance(node, dict):
        return {"op": "add", "path": pointer((*path, draw(keys))), "value": draw(values)}
    if kind == "add" and isinstance(node, list):
        step = draw(st.sampled_from([*range(len(node) + 1), "-"]))
        return {"op": "add", "path": pointer((*path, step)), "value": draw(values)}
    if kind == "replace" and path:
        return {"op": "replace", "path": pointer(path), "value": draw(values)}
    if kind == "remove" and path:
        return {"op": "remove", "path": pointer(path)}
    return None


@settings(max_examples=400)
@given(mappings, layouts, st.data())
def test_spliced_text_reads_as_the_patched_value(
    value: dict[str, Any], layout: str, data: st.DataObject
) -> None:
    """In any style and after any operations, the text reads as the patched value."""
    document = read_back(value, layout)
    ops = data.draw(operations(document.value))
    expected = apply_patches(document.value, [((), ops)])
    spliced = splice(document, expected)
    assert as_json(read_documents(spliced.text)[0].value) == as_json(expected)
    assert bool(spliced.warning) <= spliced.written_anew


@given(mappings, layouts)
def test_no_operation_leaves_the_text_to_the_byte(value: dict[str, Any], layout: str) -> None:
    """A patch without operations changes nothing."""
    document = read_back(value, layout)
    assert splice(document, document.value).text == document.text


@given(scalars)
def test_written_scalars_read_as_themselves(value: Any) -> None:
    """A scalar on one line reads as the same value, in block and in flow style."""
    block = read_documents(f"a: {inline(value)}")[0].value["a"]
    flow = read_documents(f"a: [{inline(value, flow=True)}]")[0].value["a"][0]
    assert as_json(block) == as_json(flow) == as_json(value)


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_reading_raises_nothing_but_document_errors(data: bytes | str) -> None:
    """Any input is read, or rejected in one line."""
    check_read(data)


_SOUP = [
    "a",
    ":",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&a ",
    "*a",
    "<<",
    "|",
    ">",
    "!!int ",
    "'",
]
_SOUP += [
    '"',
    "? ",
    "---\n",
    "...\n",
    "#",
    "%YAML 1.1\n",
    "\t",
    "\r\n",
    "1",
    "null",
    "\\",
    "{{",
    "\ufeff",
    "@",
]


@settings(max_examples=400)
@given(st.lists(st.sampled_from(_SOUP), max_size=30).map("".join))
def test_reading_nearly_yaml(data: str) -> None:
    """Any mixture of YAML's special characters is read, or rejected in one line."""
    check_read(data)


def attempt(data: bytes | str) -> list[Document] | DocumentError:
    """Read the data, or return the error."""
    try:
        return read_documents(data, "x.yaml")
    except DocumentError as error:
        return error


def check_read(data: bytes | str) -> None:
    """Read the data, and check the promises of reading."""
    documents = attempt(data)
    if isinstance(documents, DocumentError):
        assert str(documents).startswith("x.yaml: ")
        assert "\n" not in str(documents)
        return
    for document in documents:
        json.dumps(document.value, ensure_ascii=False).encode()
        templates_of(document.value)
        notes_of(document.value)
        not_kubernetes_reason(document)
    text = data if isinstance(data, str) else data.decode()
    if documents:
        assert "".join(document.text for document in documents) == text.removeprefix("\ufeff")


@given(st.lists(st.tuples(mappings, layouts), min_size=1, max_size=3))
def test_joined_texts_read_as_all_documents(
    written_values: list[tuple[dict[str, Any], str]],
) -> None:
    """The joined texts of several inputs are one stream with the same documents."""
    documents = [read_back(value, layout) for value, layout in written_values]
    stream = join_documents([document.text for document in documents])
    assume("\\ud" not in stream)  # half a surrogate pair, which JSON may have but YAML may not
    assert as_json([document.value for document in read_documents(stream)]) == as_json(
        [document.value for document in documents]
    )


@given(values)
def test_templates_and_notes_of_any_value(value: Any) -> None:
    """Searching raises for no JSON value, and returns mappings of the value itself."""
    for template in templates_of(value):
        node = value
        for step in template.path:
            node = node[step]
        assert node is template.pod
    assert all(isinstance(note, str) for note in notes_of(value))


def as_json(value: Any) -> str:
    """Return a form where `true`, `1` and `1.0` differ, but the order of keys is ignored."""
    return json.dumps(value, sort_keys=True)
