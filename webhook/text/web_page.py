"""Self-contained HTML documents, with the style sheet and the header of the page.

People send these documents by mail, so each has its style inside, no script, and no address of
another file. The page itself loads the same style sheet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Literal, NamedTuple

from webhook import __version__
from webhook.model.finding import Finding, Level
from webhook.model.names import shortened_list
from webhook.text.escape import visible, visible_lines

STYLE_SHEET = Path(__file__).with_name("web_page.css")
_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"""
_QUOTED = re.compile("`([^`]+)`")
#: A word with a hyphen, such as a node, a pair of nodes or an option, where browsers would break
#: the line.
_HYPHENED = re.compile("[^`\\s]*-[^`\\s]*(?: → [^`\\s]+)?")
_COLOR = re.compile(r"--([\w-]+): (#\w+);")


class Heading(NamedTuple):
    """What is at the top of a document."""

    #: The command that wrote it.
    command: str
    #: The title of the window.
    title: str
    #: The main heading, as HTML.
    h1: str
    written_at: datetime
    #: A sentence on what the document shows; "" for none.
    lead: str = ""
    #: Where it was measured, such as the namespace, by name.
    origin: tuple[tuple[str, str], ...] = ()

    @property
    def brand(self) -> str:
        """The command with its version, the time in UTC, and the origin."""
        time = f"{self.written_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        parts = (f"{self.command} {__version__}", time, *map(" ".join, self.origin))
        return " · ".join(parts)


def document(heading: Heading, style: Path, main: Iterable[str]) -> Iterator[str]:
    """Yield a document: its style, its header and its main part, which is HTML."""
    yield f"{_HEAD}<title>{html_text(heading.title)}</title>\n"
    yield f"<style>\n{_sheet(STYLE_SHEET)}{_sheet(style)}</style>\n"
    yield f'<header>\n<p class="brand">{html_words(heading.brand)}</p>\n<h1>{heading.h1}</h1>\n'
    if heading.lead:
        yield f'<p class="lead">{html_text(heading.lead)}</p>\n'
    yield '</header>\n<main class="document">\n'
    yield from main
    yield "</main>\n"


def _sheet(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def colors(scheme: Literal["light", "dark"]) -> dict[str, str]:
    """Return the colors of the style sheet by name, such as "ink": "#1f2328"."""
    light, dark, *_ = _sheet(STYLE_SHEET).split("@media")
    return dict(_COLOR.findall(light if scheme == "light" else dark))


def html_text(text: str) -> str:
    """Return text as HTML, with escapes in place of invisible characters."""
    return escape(visible(text))


def html_words(text: str) -> str:
    """Return text as HTML whose lines do not break at hyphens, as in gpu-01 and --all-pairs."""
    return _HYPHENED.sub(r'<span class="whole">\g<0></span>', html_text(text))


def html_sentence(text: str) -> str:
    """Return a sentence as HTML, with what is between backquotes as code."""
    return _QUOTED.sub(r"<code>\1</code>", html_words(text))


def html_sign(level: Level) -> str:
    """Return the sign of a level, and the level itself for screen readers."""
    from webhook.text.terminal import SIGNS  # noqa: PLC0415 -- rich is for the command line

    return f'<span class="sign" aria-hidden="true">{SIGNS[level].text}</span><i>{level}</i>'


def finding_list(findings: Iterable[Finding], kind: str = "") -> Iterator[str]:
    """Yield a list of findings, each with its code and its remedy; `kind` is a further class."""
    yield f'<ul class="{f"findings {kind}".rstrip()}">\n'
    for finding in findings:
        yield f'<li class="{finding.level}">{html_sign(finding.level)}<div>{_subject(finding)}'
        yield f"{html_sentence(finding.text)} {html_code(finding.code)}"
        yield remedy(finding)
        yield "</div></li>\n"
    yield "</ul>\n"


def _subject(finding: Finding) -> str:
    """Name the nodes, unless the sentence does."""
    names = shortened_list(finding.location.nodes)
    named = any(node in finding.text for node in finding.location.nodes)
    return f"<b>{html_words(names)}:</b> " if names and not named else ""


def html_code(code: str) -> str:
    """Return a code, which `rdma-webhook why CODE` explains."""
    return f'<code class="soft">{html_text(code)}</code>'


def remedy(finding: Finding) -> str:
    """Return the remedy as a paragraph, or "" if the finding has no remedy."""
    return f'<p class="remedy">{html_sentence(finding.remedy)}</p>' if finding.remedy else ""


def scrolling(name: str, content: str, kind: str = "") -> str:
    """Return a part that scrolls to the side, also by keyboard; `name` is for screen readers."""
    label = f'tabindex="0" role="region" aria-label="{html_text(name)}"'
    return f'<div class="{f"scroll {kind}".rstrip()}" {label}>\n{content}</div>\n'


def text_block(name: str, lines: str) -> str:
    """Return lines of a file, as they are."""
    label = f'tabindex="0" role="region" aria-label="{html_text(name)}"'
    return f'<pre class="text" {label}>{escape(visible_lines(lines))}</pre>\n'
