"""Tests of explanations of common mistakes in YAML: the place and the correction."""

from __future__ import annotations

from functools import partial

import pytest

from tests.growth import MAX_CPU_RATIO, cpu_ratio
from webhook.text.yaml.hints import explain_misread_key, explain_misread_text, hint_on, mistake_of
from webhook.text.yaml.tree import (
    AliasError,
    LineIndex,
    NotYamlError,
    TextLimits,
    UnreadableTextError,
    roots_of,
)

LIMITS = TextLimits(size=1 << 20, values=1000, depth=100)
NBSP = "a no-break space (U+00A0) looks like a space, but is read as a letter; write a space"


def explained(text: str) -> str:
    """Return `LINE:COLUMN sentence` for a text that is not YAML."""
    with pytest.raises(NotYamlError) as caught:
        list(roots_of(text, LIMITS))
    offset, message = mistake_of(text, caught.value)
    lines = LineIndex(text)
    return f"{lines.line(offset)}:{lines.column(offset)} {message}"


TEMPLATE = "`{{ ... }}` is a template; render it first, for example with `helm template`"
MISTAKES = {
    "a tab": ("a:\n\tb: 1\n", "2:1 a tab indents this line; use spaces"),
    "a tab behind spaces": ("a:\n  b: 1\n  \tc: 2\n", "3:3 a tab indents this line; use spaces"),
    "a tab, Windows": ("a:\r\n\tb: 1\r\n", "2:1 a tab indents this line; use spaces"),
    "a tab in a block": ("a: |\n  x\n\ty\n", "3:1 a tab indents this line; use spaces"),
    "a tab before a value": (
        "a: 1\nb: \t[x\n",
        "2:5 the [ that opens here is not closed; write ]",
    ),
    "a tab before a dash": (
        "a:\n-\t- b\n",
        "2:2 a tab is where YAML allows only a space; use a space",
    ),
    "a no-break space before a key": ("a:\n  b: 1\n  \u00a0c: 1\n d: 1\n", f"3:3 {NBSP}"),
    "a no-break space behind a colon": ("x: 1\na:\u00a0[b]\nc: 1\n", f"2:3 {NBSP}"),
    "an ideographic space": (
        "a:\u3000b\nc: 1\n",
        "1:3 a character (U+3000) looks like a space, but is read as a letter; write a space",
    ),
    "a zero-width space": (
        "a\n\u200bb: 1\n",
        "2:1 a character (U+200B) is invisible, but is read as a letter; delete it",
    ),
    "no space behind a dash": (
        "containers:\n  -name: x\n   image: y\n",
        "2:3 a dash needs a space after it; write `- name`",
    ),
    "no space behind the second dash": (
        "c:\n  - name: x\n  -name: y\n",
        "3:3 a dash needs a space after it; write `- name`",
    ),
    "no space behind a colon": (
        "a: 1\nimage:nginx\nb: 2\n",
        "2:1 a colon needs a space after it; write `image: nginx`",
    ),
    "no space behind the first colon": (
        "image:nginx\nb: 2\n",
        "1:1 a colon needs a space after it; write `image: nginx`",
    ),
    "no space behind a colon in an item": (
        "a:\n- name: x\n  image:nginx\n  b: 1\n",
        "3:3 a colon needs a space after it; write `image: nginx`",
    ),
    "no colon": ("a: 1\nspec\nb: 2\n", "2:1 a key needs a colon after it; write `spec:`"),
    "no colon above deeper lines": (
        "metadata # of it\n  name: x\n",
        "1:1 a key needs a colon after it; write `metadata:`",
    ),
    "an equals sign": (
        "a = 1\nb: 2\n",
        "1:1 YAML separates key and value with a colon, not `=`; write `a: 1`",
    ),
    "an item among keys": (
        "a:\n  b: 1\n  - c\n",
        (
            "3:3 this list item is among the keys from line 2; indent it below its key, or "
            "remove the dash"
        ),
    ),
    "a list on its key's line": (
        "a: - b\n",
        "1:4 a list cannot begin on the line of its key; begin it on the next line",
    ),
    "a key among items": (
        "a:\n  - b: 1\n\n  # c\n  c: 2\n",
        (
            "5:3 this is not an item of the list from line 2; indent it by 4 spaces if it belongs "
            "to "
            "the item above, or begin it with `- `"
        ),
    ),
    "too deep": (
        "metadata:\n  name: x\n    labels: {}\n",
        (
            "3:5 this line is indented below `name`, which already has the value 'x'; indent "
            "both lines by the same width"
        ),
    ),
    "too deep below an item": (
        "- name: x\n    image: y\n",
        (
            "2:5 this line is indented below `name`, which already has the value 'x'; indent "
            "both lines by the same width"
        ),
    ),
    "a column between two": (
        "spec:\n  containers:\n  - name: x\n   image: y\n",
        "4:4 this line is indented by 3 spaces, where 2 or 4 would fit",
    ),
    "a column of nothing": (
        "a:\n    b: 1\n c: 2\n",
        "3:2 this line is indented by 1 space, where 0 or 4 would fit",
    ),
    "an open brace": (
        "a: {b: 1\nc: 2\n",
        (
            "1:4 the { that opens here is not closed; write } before line 2, or a comma between "
            "its "
            "entries"
        ),
    ),
    "an open brace at the end": ("a: {b: 1", "1:4 the { that opens here is not closed; write }"),
    "an open bracket": (
        "x:\n  hcas: [mlx5_0,\n    mlx5_1\n  mode: x\n",
        (
            "2:9 the [ that opens here is not closed; write ] before line 4, or a comma between "
            "its "
            "entries"
        ),
    ),
    "another bracket": (
        "hcas: [a, b}\n",
        "1:12 } does not close the [ that opens before it; write ]",
    ),
    "a bracket too much": ("hcas: [a, b]]\n", "1:13 this ] closes nothing; remove the ]"),
    "no comma": (
        'a: ["x" "y"]\n',
        "1:9 a comma is missing here, between two entries of the [...]",
    ),
    "an open quote": ('a: "b\nc: 1\n', '1:4 the quote " that opens here is not closed'),
    "text behind a quote": (
        "a: 'it's'\n",
        "1:8 the value ends at the quote ' before this; quote the whole value, or none of it",
    ),
    "a second colon": (
        "a: Note: this\n",
        '1:8 a value with ": " in it must be quoted; write `a: "Note: this"`',
    ),
    "a template": ("a: {{ .Values.x }}-foo\n", f"1:4 {TEMPLATE}"),
    "a line of a template": ("a:\n{{- range .x }}\n- b\n{{- end }}\n", f"2:1 {TEMPLATE}"),
    "a template of Jinja": (
        "{% if x %}\na: 1\n",
        "1:1 `{% ... %}` is a template; render it first, for example with `helm template`",
    ),
    "a variable": (
        "a: {name: ${NAME}, b: c}\n",
        "1:11 `${NAME}` is an unexpanded variable; run envsubst first",
    ),
    "a variable in a list": (
        "a: [x, ${A}-${B}]\n",
        "1:8 `${A}` is an unexpanded variable; run envsubst first",
    ),
    "a variable as a key": (
        "{${RESOURCE:-nvidia.com/gpu}: 8}\n",
        "1:2 `${RESOURCE:-nvidia.com/gpu}` is an unexpanded variable; run envsubst first",
    ),
    "a dollar": (
        "a: [x ${ y]\n",
        "1:8 a comma is missing here, between two entries of the [...]",
    ),
    "a star": ("p: [*V100*]\n", '1:5 a value that begins with * must be quoted; write `"*V100*"`'),
    "an ampersand": ("a: & b\n", "1:4 a value that begins with & must be quoted"),
    "an at sign": ("a: @foo\n", '1:4 a value that begins with @ must be quoted; write `"@foo"`'),
    "a comma": ("a: ,b\n", "1:4 a value that begins with , must be quoted"),
    "text behind a pipe": (
        "a: |foo\n",
        "1:5 after |, the text begins on the next line; begin it there, or quote the value",
    ),
    "an escape": (
        'a: "\\d"\n',
        (
            "1:5 a backslash in double quotes begins an escape, and YAML does not have this one; "
            "use single quotes, or two backslashes"
        ),
    ),
    "anything else": ("a: ?\n ? b\n", "1:4 mapping keys are not allowed in this context"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported_with_its_place_and_remedy(name: str) -> None:
    """The place is that of the mistake, which may be above the parser's."""
    text, message = MISTAKES[name]
    assert explained(text) == message


def test_a_hint_tells_what_yaml_takes_for_something_else() -> None:
    """A template may be a mapping, and a glob an alias, to YAML; the line above counts too."""
    template = " (this is a template; render it first, for example with `helm template`)"

    def hint(text: str, offset: int) -> str:
        return hint_on(text, UnreadableTextError(offset, ""))

    assert hint("a: {{ .x }}: 1", 4) == template
    assert hint("x: {{ .x }}\n{a: b}: 1\n", 12) == template
    assert hint("x: {{ .x }}\n\n{a: b}: 1\n", 13) == ""
    assert hint("a: b\n", 3) == ""
    quote = " (quote a value that begins with *)"
    assert hint_on("a: *V100\n", AliasError(3, "", "V100")) == quote
    assert hint_on("a: &a [*a]\n", AliasError(6, "", "a", inside_itself=True)) == ""


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("-name", "a dash needs a space after it; write `- name`"),
        ("\u00a0name", NBSP),
        ("name", ""),
        ("-1", ""),
        ("--flag", ""),
        ("größe", ""),
    ],
)
def test_a_key_may_be_read_otherwise_than_meant(key: str, message: str) -> None:
    """To YAML, a dash or an odd space at a key is a valid part of it."""
    assert explain_misread_key(key) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image:nginx", "a colon needs a space after it; write `image: nginx`"),
        ("A=b\nC=d", "YAML separates key and value with a colon, not `=`; write `A: b`"),
        ("https://example.com/x.yaml", ""),
        ("plain words", ""),
    ],
)
def test_a_text_may_be_meant_as_a_mapping(text: str, message: str) -> None:
    """Without a space after its colon, a document is a string."""
    assert explain_misread_text(text) == message


LONG = {
    "dashes with spaces": "- ",
    "dashes": "-",
    "letters": "a",
    "words": "a ",
    "spaces": " ",
    "equals signs": "= ",
    "colons": "a:",
    "quotes": '"',
    "deep lines": " a\n  b\n",
}
PROBLEMS = (
    "mapping values are not allowed in this context",
    "did not find expected key",
    "did not find expected ',' or ']'",
    "could not find expected ':'",
    "found character that cannot start any token",
)


def explain_long(unit: str, count: int) -> None:
    """Explain each kind of error at the end of a long text."""
    text = f"x: [\n  {unit * (count // len(unit))}x\n  y"
    for problem in PROBLEMS:
        error = NotYamlError(ValueError(problem))
        error.offset, error.context, error.context_offset = len(text), "", 3
        mistake_of(text, error)
        error.context_offset = None
        mistake_of(text, error)


@pytest.mark.parametrize("name", LONG)
def test_a_longer_text_is_that_much_more_work(name: str) -> None:
    """No pattern tries the same characters repeatedly."""
    small, large = (partial(explain_long, LONG[name], count) for count in (30_000, 120_000))
    assert cpu_ratio(small, large) < MAX_CPU_RATIO
