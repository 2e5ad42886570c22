"""Reading, deciding and writing grow with the document, so that none keeps a preview busy."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest

from tests.fabrics_file import load_fabrics
from tests.growth import MAX_CPU_RATIO, MAX_LINES_RATIO, cpu_ratio, executed_lines
from tests.unit.text.yaml import hostile
from webhook.config import EXAMPLE
from webhook.errors import DocumentError
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.patches import patches, rewrite
from webhook.preview.report.json import report_json
from webhook.preview.report.record import Report, remarks_of
from webhook.preview.report.text import report_text
from webhook.text.diff import diff
from webhook.text.yaml.documents import join_documents, read_documents

_COUNT = 40
OPTIONS = PreviewOptions(configuration=load_fabrics(EXAMPLE).compiled)


def previewed(written: str, *, with_diff: bool = True) -> None:
    """Read a text, decide, and write the answer in every format."""
    with suppress(DocumentError):
        documents = read_documents(written, "f.yaml")
        report = preview_documents(documents, OPTIONS)
        report_json(report)
        report_text(report)
        remarks_of(report)
        patches(documents, report)
        after = join_documents([document.text for document in rewrite(documents, report)])
        if with_diff:
            diff("f.yaml", join_documents([document.text for document in documents]), after)


@pytest.mark.parametrize("name", hostile.GROWING)
def test_twice_as_many_is_twice_the_work(name: str) -> None:
    """Items are never compared with each other, as the count of executed lines shows."""
    small, large = (hostile.GROWING[name](count) for count in (_COUNT, 2 * _COUNT))
    previewed(small)  # fills the caches
    twice, once = (
        executed_lines(partial(previewed, text, with_diff=False)) for text in (large, small)
    )
    assert twice <= MAX_LINES_RATIO * once


@pytest.mark.parametrize("name", hostile.GROWING)
def test_four_times_as_many_is_about_four_times_the_cpu(name: str) -> None:
    """This includes work in C: the parser, searching texts and the diff."""
    small, large = (hostile.GROWING[name](count) for count in (2 * _COUNT, 8 * _COUNT))
    assert cpu_ratio(partial(previewed, small), partial(previewed, large)) < MAX_CPU_RATIO


@pytest.mark.parametrize("every", [1, 7])
def test_a_diff_of_long_texts_grows_with_them(every: int) -> None:
    """Texts of over a thousand lines are not left to difflib, which is cubic."""

    def changed(count: int) -> int:
        before = "#\n" * count
        after = "".join("#\n" if at % every else f"#\n{at}\n" for at in range(count))
        return executed_lines(lambda: diff("f", before, after))

    assert changed(8000) <= MAX_LINES_RATIO * changed(4000)


@pytest.mark.parametrize("name", hostile.EXPANDING)
def test_aliases_count_as_much_as_they_mean(name: str) -> None:
    """The limit of 8 MiB applies to a text with its aliases expanded."""
    with pytest.raises(
        DocumentError, match="longer than the maximum of 8 MiB, with aliases expanded"
    ):
        read_documents(hostile.EXPANDING[name], "f.yaml")


def test_an_alias_of_a_little_is_read() -> None:
    """The bound is on the aliases' total length, not on their number."""
    (document,) = read_documents(f"kind: A\nx: [&a {'y' * 1000}, {'*a, ' * 1000}]\n")
    assert sum(map(len, document.value["x"])) == 1_001_000


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("%YAML 1.1\n---\na: 1\n", 1),
        ("# a comment\n\n%TAG ! tag:x,2000:\n---\na: 1\n", 3),
        ("a: 1\n...\n%YAML 1.1\n---\nb: 1\n", 3),
    ],
)
def test_directives_are_refused(written: str, line: int) -> None:
    """The parser compares each %TAG with all earlier ones, in one call, so it never gets any."""
    message = f"line {line}: directives .* are not supported; remove the line"
    with pytest.raises(DocumentError, match=message):
        read_documents(written, "f.yaml")


def test_a_percent_sign_inside_a_string_is_no_directive() -> None:
    """A folded line of a quoted string may begin with a percent sign; it is read as usual."""
    (document,) = read_documents('a: "b\n%c"\nd: |\n  x\n  %y\ne: 5%\n')
    assert document.value == {"a": "b %c", "d": "x\n%y\n", "e": "5%"}


def test_many_directives_are_refused_at_once() -> None:
    """Fifty thousand directives took four seconds in one call that could not be interrupted."""
    written = "a: 1\n...\n" + "".join(f"%TAG !a{number}! tag:x,2000:\n" for number in range(20_000))
    assert executed_lines(partial(previewed, written)) < 500


def test_an_answer_is_bounded() -> None:
    """A longer answer is refused before it is complete, and the message contains a remedy."""
    documents = read_documents(hostile.GROWING["pods of a list"](3))
    report = preview_documents(documents, OPTIONS)
    with pytest.raises(DocumentError, match="longer than 0 MiB; send fewer pods"):
        report_json(report, max_characters=1000)
    with pytest.raises(DocumentError, match="longer than 0 MiB; send fewer pods"):
        rewrite(documents, report, max_characters=100)
    assert len(report_json(report, max_characters=None)) > 1000


def test_many_notes_are_counted() -> None:
    """Text shows two hundred of them; the JSON form has all."""
    report = Report(notes=tuple(f"ConfigMap a{at}: says {at}" for at in range(250)))
    assert report_text(report).count("says") == 200
    assert "50 more notes (see the JSON output)" in report_text(report)
    assert "1 more note (see" in report_text(Report(notes=report.notes[:201]))
