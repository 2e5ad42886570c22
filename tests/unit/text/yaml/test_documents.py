"""Tests of reading documents: values, division of a stream, and one line for each refusal."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.errors import DocumentError
from webhook.text.yaml.documents import DOCUMENT_LIMITS, join_documents, read_documents


def refusal(data: bytes | str) -> str:
    """Return the message for an input that cannot be read."""
    with pytest.raises(DocumentError) as caught:
        read_documents(data, "pod.yaml")
    return str(caught.value)


def value_of(text: str) -> Any:
    """Return the value of the only document in a text."""
    (document,) = read_documents(text)
    return document.value


def test_a_stream_is_divided_without_loss() -> None:
    """Comments, markers and empty documents stay in one of the parts; indexes count them all."""
    text = "# first\n---\na: 1\n# end\n---\n---\n# third\nb: 2\n...\n---\n"
    first, three = read_documents(text, "x.yaml")
    assert (first.index, first.line, first.value) == (0, 3, {"a": 1})
    assert (three.index, three.line, three.value) == (2, 8, {"b": 2})
    assert first.text == "# first\n---\na: 1\n# end\n---\n"
    assert three.text == "---\n# third\nb: 2\n...\n---\n"
    assert (first.name, first.syntax, first.problems) == ("x.yaml", "yaml", ())


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n", "~\n", b"\xef\xbb\xbf\n"])
def test_an_input_without_documents_gives_none(text: str | bytes) -> None:
    """Empty documents are skipped; the caller decides whether having none is a mistake."""
    assert read_documents(text) == []


def test_json_is_read_as_json() -> None:
    """JSON has escapes that YAML lacks."""
    (document,) = read_documents(b'\xef\xbb\xbf\n{"a": "\\ud83d\\ude00", "b": 1.0}')
    assert document.value == {"a": "\U0001f600", "b": 1.0}
    assert (document.line, document.syntax) == (2, "json")


def test_what_begins_like_json_may_be_yaml() -> None:
    """A flow mapping is YAML, and so are two JSON documents with a marker between them."""
    assert value_of("{a: b}") == {"a": "b"}
    assert [d.value for d in read_documents('{"a": 1}\n---\n{"b": 2}')] == [{"a": 1}, {"b": 2}]


def test_scalars_mean_what_they_mean_to_kubectl() -> None:
    """An unquoted `yes` is a boolean, dates and keys are strings, and tags are respected."""
    text = (
        "a: yes\nb: 2024-01-01\nc: 1:30\nd: !!binary aGk=\ne: 'no'\nf: !!str 1\n"
        "1: x\ntrue: x\ng: !mine v\nh: !!float 2\ni: ! 3\n1.5: x\n"
    )
    assert value_of(text) == {
        "a": True, "b": "2024-01-01", "c": "1:30", "d": "aGk=", "e": "no", "f": "1",
        "1": "x", "true": "x", "g": "v", "h": 2, "i": "3", "1.5": "x",
    }  # fmt: skip


def test_aliases_are_shared_and_merges_are_merged() -> None:
    """A mapping's own key wins over merged ones, and an earlier merged mapping over a later one."""
    value = value_of(
        "a: &a {w: 1, x: 1}\nb: &b {x: 2, z: 2}\nc: *a\n"
        "d: {<<: [*a, *b], w: 0}\ne: {<<: *b}\n'<<': {k: 1}\n"
    )
    assert value["c"] is value["a"]
    assert value["d"] == {"w": 0, "x": 1, "z": 2}
    assert value["e"] == {"x": 2, "z": 2}
    assert value["<<"] == {"k": 1}


def test_an_alias_can_be_a_key() -> None:
    """An alias may be a key like any other node."""
    assert value_of("a: &k name\n*k : 1\n") == {"a": "name", "name": 1}
    assert value_of("&k name: *k\n") == {"name": "name"}


def test_a_repeated_key_is_reported_with_its_line() -> None:
    """The last one counts, as for kubectl, which does not report it."""
    (document,) = read_documents("a: 1\nspec:\n  x: 1\n  x: 2\n", "pod.yaml")
    assert document.value == {"a": 1, "spec": {"x": 2}}
    (problem,) = document.problems
    assert problem == (
        "pod.yaml: document 1, line 4: the mapping has the key x twice; only the last one is used"
    )


def test_a_repeated_key_of_json_is_reported_with_its_line() -> None:
    """The same key in other objects, and strings that are not keys, do not count."""
    text = '{"a": {"b": 1,\n "b": ["a", {"a": 2}]},\n "c": "b", "\\u0001a": 1, "\\u0001a": 1}'
    (document,) = read_documents(text, "pod.json")
    assert [problem.partition(" twice")[0] for problem in document.problems] == [
        "pod.json: document 1, line 2: the mapping has the key b",
        "pod.json: document 1, line 3: the mapping has the key '\\x01a'",
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            "a: 1\n---\nb: c: d\n",
            (
                'document 2, line 3, column 5: not YAML: a value with ": " in it must be quoted; '
                'write `b: "c: d"`'
            ),
        ),
        (
            "a: 'b",
            "document 1, line 1, column 4: not YAML: the quote ' that opens here is not closed",
        ),
        (
            "a: *b",
            (
                "document 1, line 1: not YAML: the alias *b has no anchor before it (quote a "
                "value that begins with *)"
            ),
        ),
        ("a: &a [*a]", "document 1, line 1: the alias *a is inside its own anchor"),
        ("a: 1\nb: .inf", "document 1, line 2: .inf is not a number in JSON"),
        ("a: !!int x", "document 1, line 1: 'x' is not a !!int"),
        ("? [a]\n: b", "document 1, line 1: a key must be a string, but is a list"),
        ("~: b", "document 1, line 1: a key must be a string, but is null"),
        ("a: 1\n<<: 2", "document 1, line 2: `<<` merges mappings, but this is not one"),
        ("a:\n  b: \x07", "line 2: the control character U+0007 is not allowed in YAML"),
        ("a: \x00", "line 1: the control character U+0000 is not allowed in YAML"),
        (b"a: \xff", "not UTF-8: byte 0xff at offset 3; save the file as UTF-8"),
        (
            "a: b".encode("utf-16"),
            "not UTF-8, but UTF-16: byte 0xff at offset 0; save the file as UTF-8",
        ),
        ("a: \ud800", "unpaired surrogate at character 3"),
        ('{"a":\n NaN}', "document 1, line 1: NaN is not a number in JSON"),
        ('{"a": -1e999}', "document 1, line 1: -1e999 is too large"),
        ('{"a":\n"\\udc00"}', "document 1, line 2: unpaired surrogate in a string"),
        ('{"a": 1,\n "b" 2}', "document 1, line 2: not JSON: Expecting ':' delimiter"),
        ('{"a": 1}\n{"b": 2}', "document 1, line 2: not JSON: Extra data"),
        (
            "{a: b",
            (
                "document 1, line 1, column 1: not YAML: the { that opens here is not closed; "
                "write }"
            ),
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(data: bytes | str, message: str) -> None:
    """The line names the input, the document, the line and the mistake."""
    assert refusal(data) == f"pod.yaml: {message}"


@pytest.mark.parametrize(
    ("text", "kind"),
    [("- a\n", "a list (['a'])"), ("hello", "a string ('hello')"), ("3", "a number (3)")],
)
def test_a_document_must_be_a_mapping(text: str, kind: str) -> None:
    """A list of objects is not a Kubernetes object either."""
    assert refusal(f"a: 1\n---\n\n{text}") == (
        "pod.yaml: document 2, line 4: expected a Kubernetes object, which is a mapping, but "
        f"this is {kind}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "image: {{ .Values.image }}\n",
        "{{- if .Values.enabled }}\na: 1\n{{- end }}\n",
        "spec:\n  {{- toYaml . | nindent 2 }}\n",
    ],
)
def test_a_template_must_be_rendered_first(text: str) -> None:
    """An error at `{{` most likely means that the text is a Helm template."""
    ending = "is a template; render it first, for example with `helm template`"
    assert refusal(text).removesuffix(")").endswith(ending)


def test_a_template_in_a_string_is_text() -> None:
    """Argo expands templates in strings itself."""
    assert value_of('a: "{{workflow.name}}"\n') == {"a": "{{workflow.name}}"}


def test_a_tab_is_explained() -> None:
    """The parser's own message does not mention the tab."""
    assert refusal("a:\n\t- b\n") == (
        "pod.yaml: document 1, line 2, column 1: not YAML: a tab indents this line; use spaces"
    )


def test_a_key_that_was_meant_otherwise_is_a_problem() -> None:
    """YAML takes the dash of `-name` for a part of the key; the document can still be read."""
    (document,) = read_documents("spec:\n  containers:\n    -name: x\n", "pod.yaml")
    assert document.problems == (
        (
            "pod.yaml: document 1, line 3: in the key -name, a dash needs a space after it; write "
            "`- name`"
        ),
    )


def test_a_mapping_without_space_is_a_string() -> None:
    """The remedy is in the message."""
    assert refusal("image:nginx") == (
        "pod.yaml: document 1, line 1: expected a Kubernetes object, which is a mapping, but "
        "this is a string ('image:nginx') (a colon needs a space after it; write `image: nginx`)"
    )


@pytest.mark.parametrize(
    "text", ["a: " + "[" * 60_000, "[" * 60_000, '{"a":' * 60_000, '{"a":' * 250 + "1" + "}" * 250]
)
def test_deep_nesting_is_refused_before_it_hurts(text: str) -> None:
    """PyYAML's C composer crashes the process on the first of these."""
    assert refusal(text) == "pod.yaml: document 1, line 1: nested deeper than 200 levels"


def test_aliases_count_for_the_depth() -> None:
    """Otherwise each anchor could add 200 levels to the alias in it."""
    deep = "a: &a " + "[" * 150 + "]" * 150 + "\nb: " + "[" * 60 + "*a" + "]" * 60
    assert refusal(deep) == "pod.yaml: document 1, line 2: nested deeper than 200 levels"


def test_an_alias_bomb_is_refused() -> None:
    """Nine lines would expand to a billion values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert refusal("\n".join(lines)) == (
        "pod.yaml: document 1, line 6: more than the maximum of 200,000 values, with aliases "
        "expanded"
    )


def test_many_values_are_refused() -> None:
    """They would take seconds, and gigabytes of memory."""
    assert "more than the maximum of 200,000 values" in refusal("a: [" + "1," * 200_000 + "]")
    assert "more than the maximum of 200,000 values" in refusal('{"a": [' + "1," * 200_000 + "1]}")


def test_a_long_input_is_refused() -> None:
    """8 MiB are read, and one more byte is too many."""
    assert (
        refusal(b"#" * (DOCUMENT_LIMITS.size + 1)) == "pod.yaml: longer than the maximum of 8 MiB"
    )
    assert read_documents(b"#" * DOCUMENT_LIMITS.size) == []


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    """Python cannot convert such a number."""
    assert "a number cannot be read" in refusal('{"a": ' + "1" * 5000 + "}")


@pytest.mark.parametrize(
    ("texts", "stream"),
    [
        ([], ""),
        (["a: 1\n", "---\nb: 2\n"], "a: 1\n---\nb: 2\n"),
        (["a: 1\n", "b: 2\n"], "a: 1\n---\nb: 2\n"),
        (["a: 1", "# c\n---\nb: 2\n"], "a: 1\n# c\n---\nb: 2\n"),
        (['{"a": 1}', '{"b": 1}'], '{"a": 1}\n---\n{"b": 1}'),
    ],
)
def test_texts_are_joined_by_one_marker(texts: list[str], stream: str) -> None:
    """A marker is added only where it is missing; the joined parts of a stream are that stream."""
    assert join_documents(texts) == stream
