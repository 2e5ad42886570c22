"""Self-contained documents: their head, their colors, and text that stays text."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from webhook import __version__
from webhook.model.finding import LEVELS, Finding, Location
from webhook.text.terminal import SIGNS
from webhook.text.web_page import (
    STYLE_SHEET,
    Heading,
    colors,
    document,
    finding_list,
    html_sentence,
    html_sign,
    html_text,
    html_words,
    scrolling,
    text_block,
)

ATTACK = '<b onclick="x">&\u202e\n'
ESCAPED = "&lt;b onclick=&quot;x&quot;&gt;&amp;\\u202e\\n"


def test_a_document_is_whole(tmp_path: Path) -> None:
    """It has its policy, both style sheets, its header and its main part."""
    style = tmp_path / "own.css"
    style.write_text("td { color: red }\n")
    time = datetime(2026, 11, 29, 13, 5, tzinfo=timezone(timedelta(hours=1)))
    heading = Heading(
        *("command", f"title {ATTACK}", "<i>heading</i>", time, f"lead {ATTACK}"),
        origin=(("namespace", ATTACK),),
    )
    page = "".join(document(heading, style, ["<p>one</p>\n", "<p>two</p>\n"]))
    assert page.startswith('<!doctype html>\n<html lang="en">\n')
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page
    assert f"<title>title {ESCAPED}</title>" in page
    assert f"<style>\n{STYLE_SHEET.read_text()}td {{ color: red }}\n</style>" in page
    header = (
        f'<p class="brand">command {__version__} · <span class="whole">2026-11-29</span> 12:05 UTC'
        f" · namespace {ESCAPED}</p>\n<h1><i>heading</i></h1>\n"
        f'<p class="lead">lead {ESCAPED}</p>'
    )
    assert f"<header>\n{header}\n</header>\n" in page
    assert page.endswith('<main class="document">\n<p>one</p>\n<p>two</p>\n</main>\n')
    short = "".join(document(Heading("c", "t", "h", time), style, []))
    assert "lead" not in short.partition("</style>")[2]


def test_colors_are_those_of_the_style_sheet() -> None:
    """Both schemes have the same names; print and widths do not count."""
    light, dark = colors("light"), colors("dark")
    assert (
        set(light) == set(dark) >= {"ink", "back", "box", "line", "accent-back", "ok-back", *LEVELS}
    )
    assert light["back"] == "#ffffff"
    assert light["ink"] == "#1f2328"
    assert dark["back"] == "#0d1117"
    assert dark["ink"] == "#e6edf3"


def test_text_stays_text() -> None:
    """Whatever text contains, it is no markup, and all of it can be seen."""
    assert html_text(ATTACK) == ESCAPED
    assert (
        html_sentence(f"run `x {ATTACK}` or `y`")
        == f"run <code>x {ESCAPED}</code> or <code>y</code>"
    )
    assert html_sentence("a ` b \n") == "a ` b \\n"
    label = f'tabindex="0" role="region" aria-label="{ESCAPED}"'
    assert scrolling(ATTACK, "<p>") == f'<div class="scroll" {label}>\n<p></div>\n'
    assert scrolling(ATTACK, "", "wide") == f'<div class="scroll wide" {label}>\n</div>\n'
    lines = text_block(ATTACK, "a\n<b>\u202e")
    assert lines == f'<pre class="text" {label}>a\n&lt;b&gt;\\u202e</pre>\n'


@pytest.mark.parametrize("level", LEVELS)
def test_a_sign_is_a_word_for_those_who_do_not_see_it(level: str) -> None:
    """A screen reader reads the level instead of the sign."""
    sign = SIGNS[level].text  # type: ignore[index]
    expected = f'<span class="sign" aria-hidden="true">{sign}</span><i>{level}</i>'
    assert html_sign(level) == expected  # type: ignore[arg-type]


def listed(finding: Finding) -> str:
    """Return the list of a single finding, without its sign."""
    text = "".join(finding_list([finding]))
    start, end = f'<ul class="findings">\n<li class="{finding.level}">', "</li>\n</ul>\n"
    assert text.startswith(start + html_sign(finding.level))
    assert text.endswith(end)
    return text[len(start + html_sign(finding.level)) : -len(end)]


def test_a_finding_has_its_nodes_code_and_remedy() -> None:
    """Nodes are named unless the sentence does so."""
    code = '<code class="soft">C&lt;</code>'
    finding = Finding("error", "C<", "is `off` <", "Use `on` <", Location(nodes=("a<", "b")))
    remedy = '<p class="remedy">Use <code>on</code> &lt;</p>'
    assert listed(finding) == f"<div><b>a&lt;, b:</b> is <code>off</code> &lt; {code}{remedy}</div>"
    assert listed(finding._replace(text="b is off", remedy="")) == f"<div>b is off {code}</div>"
    assert listed(Finding("info", "C<", "x")) == f"<div>x {code}</div>"


def test_lines_do_not_break_at_hyphens() -> None:
    """Names, options and pairs of nodes are whole; other words are as they are."""
    assert html_words("use --all-pairs on a-1 → b-2, or b_1") == (
        'use <span class="whole">--all-pairs</span> on <span class="whole">a-1 → b-2,</span> or b_1'
    )
    assert html_sentence("`a -n b`.") == '<code>a <span class="whole">-n</span> b</code>.'


def test_a_list_may_have_a_further_class() -> None:
    """Such as the banner of a run that was interrupted."""
    banner = "".join(finding_list([], "banner"))
    assert banner == '<ul class="findings banner">\n</ul>\n'
