"""The work and the findings are bounded by the file's size, so that none keeps a server busy."""

from __future__ import annotations

from functools import partial

import pytest

from tests.growth import MAX_CPU_RATIO, MAX_LINES_RATIO, cpu_ratio, executed_lines
from tests.unit.config import hostile
from tests.unit.config.files import fabric, findings, text
from webhook.config.findings import MAX_FINDINGS, InvalidConfiguration, Truncation
from webhook.config.load import LIMITS, parse_fabrics
from webhook.config.schema import json_schema

_COUNT = 60
_LETTERS = 30_000


def judged(written: str) -> tuple[int, Truncation, str]:
    """Load a file; return the number of shown and of other findings, and the error."""
    try:
        loaded = parse_fabrics(written, "f.yaml")
    except InvalidConfiguration as error:
        return len(error.findings), error.truncation, str(error)
    return len(loaded.findings), loaded.truncation, ""


def test_the_schema_is_made_once() -> None:
    """It is the same for every file, and takes longer than reading a small one."""
    small = text(fabric("ib"))
    judged(small)
    assert executed_lines(partial(judged, small)) < executed_lines(json_schema)


@pytest.mark.parametrize("name", hostile.GROWING)
def test_twice_as_many_is_twice_the_work(name: str) -> None:
    """No rule compares items of a file with each other, as the count of executed lines shows."""
    small, large = (hostile.GROWING[name](count) for count in (_COUNT, 2 * _COUNT))
    judged(small)  # fills the caches
    assert executed_lines(partial(judged, large)) <= MAX_LINES_RATIO * executed_lines(
        partial(judged, small)
    )


@pytest.mark.parametrize("name", hostile.GROWING)
def test_four_times_as_many_is_about_four_times_the_cpu(name: str) -> None:
    """This includes C functions that rules call, the parser, and growing sets."""
    small, large = (hostile.GROWING[name](count) for count in (2 * _COUNT, 8 * _COUNT))
    assert cpu_ratio(partial(judged, small), partial(judged, large)) < MAX_CPU_RATIO


@pytest.mark.parametrize("name", hostile.LONG)
def test_a_longer_word_is_that_much_more_work(name: str) -> None:
    """No word of any length is compared with similar ones or matched with backtracking."""
    small, large = (hostile.LONG[name](count) for count in (_LETTERS, 4 * _LETTERS))
    assert cpu_ratio(partial(judged, small), partial(judged, large)) < MAX_CPU_RATIO


@pytest.mark.parametrize("name", [*hostile.GROWING, *hostile.LONG])
def test_findings_are_few_and_short(name: str) -> None:
    """There are at most a hundred findings, each with at most a few hundred characters."""
    written = (
        hostile.GROWING[name](5 * _COUNT)
        if name in hostile.GROWING
        else hostile.LONG[name](_LETTERS)
    )
    count, _, message = judged(written)
    assert count <= MAX_FINDINGS
    assert len(message) <= MAX_FINDINGS * 1000


def test_the_fabrics_of_each_file_are_read() -> None:
    """Outside `spec` they would be an error, and no rule would have any work."""
    messages = {name: judged(make(_COUNT))[2] for name, make in hostile.GROWING.items()}
    assert [name for name, error in messages.items() if "is a field of spec" in error] == []


@pytest.mark.parametrize("name", hostile.EXPANDING)
def test_aliases_count_as_much_as_they_mean(name: str) -> None:
    """The limits apply to a file with its aliases expanded."""
    _, _, message = judged(hostile.EXPANDING[name])
    assert message.startswith("f.yaml:")
    assert "contains more than" in message


def test_what_is_not_shown_is_counted() -> None:
    """Errors are shown before warnings, whatever their lines; the rest of both is counted."""
    warned = [fabric(f"f{number}", resources=...) for number in range(150)]
    broken = [fabric("A", match={"gpuProducts": [f"p{number}"]}) for number in range(3)]
    count, truncation, message = judged(text(*warned, *broken))

    assert (count, truncation) == (MAX_FINDINGS, Truncation(errors=0, warnings=207))
    assert message.count("\n") == 4  # three names, two of which other fabrics have too
    assert truncation.text() == "and 207 more warnings"


def test_an_error_tells_how_many_more_there_are() -> None:
    """The error's text is also in the log, in `/readyz` and in the Event."""
    _, truncation, message = judged(text(*(fabric("A") for _ in range(200))))
    assert truncation.errors == 299
    assert message.splitlines()[-1] == "f.yaml: and 299 more errors"
    assert len(message.splitlines()) == MAX_FINDINGS + 1


def test_a_usable_file_may_have_more_warnings_than_are_shown() -> None:
    """A file with many warnings can still be used."""
    loaded = parse_fabrics(text(*(fabric(f"f{number}") for number in range(120))), "f.yaml")
    assert (len(loaded.findings), loaded.truncation) == (MAX_FINDINGS, Truncation(warnings=19))


def test_several_rivals_are_reported_once() -> None:
    """A fabric that shares its GPU resource with many has one finding, which names the first."""
    remedy = (
        "in the two fabrics, set gpuProducts or the same key of nodeLabels to different values; "
        "or, if their nodes have the same labels, set defaults.fabric to one of the two fabrics"
    )
    shared = "nvidia.com/gpu also belongs to fabric 'a'"
    messages = [message for _, _, message in findings(text(*(fabric(name) for name in "abc")))]
    assert messages == [
        f"{shared}; {remedy}",
        f"{shared} and to 1 more fabric; {remedy}",
    ]


@pytest.mark.parametrize(
    ("first", "second", "distinct"),
    [
        ({"k": "a"}, {"k": "b"}, True),
        ({"k": "a"}, {"k": "a"}, False),
        ({"k": "a"}, {"l": "b"}, False),
        ({"k": ["a", "b"]}, {"k": ["c", "b"]}, False),
        ({"k": "a*"}, {"k": "a1"}, False),
        ({"k": "a1"}, {"k": "a*"}, False),
        ({"k": "a*"}, {"k": "a1*"}, False),
        ({"k": "a?"}, {"k": "b?"}, True),
        ({"k": "[ab]"}, {"k": "a"}, False),
        ({"k": "[ab]"}, {"k": "c"}, True),
        ({"k": "*A*"}, {"k": "*B*"}, True),
        ({"k": "a", "l": "x"}, {"k": "a", "l": "y"}, True),
        ({"k": "a", "l": "x"}, {"k": "a", "l": "x"}, False),
    ],
)
def test_which_labels_tell_fabrics_apart(
    first: dict[str, object], second: dict[str, object], *, distinct: bool
) -> None:
    """One label whose values the other fabric lacks is enough; globs match values."""
    file = text(
        fabric("a", match={"nodeLabels": first}),
        fabric("z", match={"gpuResources": ["x.io/gpu"]}),
        fabric("b", match={"nodeLabels": second}),
    )
    assert [path for _, path, _ in findings(file)] == (
        [] if distinct else ["spec.fabrics[2].match"]
    )


def test_globs_beyond_those_that_are_compared_tell_nothing() -> None:
    """Fifty different globs are compared with values; a warning reports more, which match all."""
    globs = [f"v{number}-*" for number in range(52)]
    file = text(
        fabric(pin="always", nodeSelector={"k": "x"}, match={"nodeLabels": {"k": globs}}),
    )
    assert [(severity, path) for severity, path, _ in findings(file)] == [
        ("warning", "spec.fabrics")
    ]
    assert findings(file)[0][2].startswith("only 50 of 52 wildcard globs ")


def test_a_label_that_no_value_can_have_is_not_searched() -> None:
    """A value of more than 63 characters, or a glob of hundreds, matches nothing."""
    file = text(
        fabric(pin="always", nodeSelector={"k": "a" * 64}, match={"nodeLabels": {"k": "*a" * 150}})
    )
    assert {path for _, path, _ in findings(file)} == {
        "spec.fabrics[0].match.nodeLabels.k[0]",
        "spec.fabrics[0].nodeSelector.k",
    }


def test_a_prefix_is_reported_for_a_single_device_of_another_fabric() -> None:
    """A fabric's own devices do not count, even if they come first."""
    file = text(
        fabric("a", match={"gpuProducts": ["A"]}, hcas=[], excludeHcas=["ibp1"]),
        fabric("b", match={"gpuProducts": ["B"]}, hcas=[], hcaPrefixes=["ibp", "ibp"]),
        fabric("c", match={"gpuProducts": ["C"]}, hcas=["ibp2", "ibp3"]),
    )
    expected = (
        "'ibp' also matches 'ibp1' of excludeHcas in fabric 'a'; write a longer prefix, or "
        "list exact names in hcas"
    )
    messages = [message for _, path, message in findings(file) if "hcaPrefixes[" in path]
    assert messages == [expected, expected]


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("%YAML 1.1\n---\na: 1\n", 1),
        ("# a comment\n\n%TAG ! tag:x,2000:\n---\na: 1\n", 3),
        ("a: 1\n...\n%YAML 1.1\n---\nb: 1\n", 3),
    ],
)
def test_directives_are_refused(written: str, line: int) -> None:
    """The parser compares each %TAG with all earlier ones, so it never gets any."""
    message = (
        f"f.yaml:{line}: directives (%YAML, %TAG and others) are not supported; remove the line"
    )
    assert judged(written)[2] == message


@pytest.mark.parametrize("inside", ["--- |\n%x\n", '--- "\n%x"\n', "--- a\n%b\n"])
def test_a_percent_sign_inside_a_string_is_no_directive(inside: str) -> None:
    """There the percent sign belongs to a string, and the error is about something else."""
    assert "directives" not in judged(inside)[2]


def test_many_directives_are_refused_at_once() -> None:
    """Fifty thousand directives took libyaml four seconds in one call."""
    written = "".join(f"%TAG !a{number}! tag:x,2000:\n" for number in range(20_000))
    assert "directives" in judged(written)[2]
    assert executed_lines(partial(judged, written)) < 500


def test_a_file_is_bounded() -> None:
    """The limits are 1 MiB, and as many values and fabrics as all rules check within a second."""
    values = f"{hostile.SINGLE}x: [{'a,' * 35_000}]"
    fabrics = hostile.GROWING["no fabrics"](4001)
    assert LIMITS.size == 1 << 20
    assert judged(values)[2] == "f.yaml:6: contains more than the maximum of 35,000 values"
    assert judged(fabrics)[2] == "f.yaml:4: there are 4,001 fabrics; the maximum is 4,000"


def test_thousands_of_fabrics_on_one_resource_are_valid() -> None:
    """They are ambiguous and name no device: two warnings each, a hundred of them shown."""
    loaded = parse_fabrics(hostile.GROWING["fabrics on one GPU resource"](3000), "f.yaml")
    assert (len(loaded.compiled.fabrics), len(loaded.findings)) == (3000, MAX_FINDINGS)
    assert loaded.truncation == Truncation(warnings=2 * 3000 - 1 - MAX_FINDINGS)
