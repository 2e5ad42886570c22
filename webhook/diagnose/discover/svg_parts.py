"""The parts of a picture as SVG: rectangles, lines and texts, and their style.

The style has its colors inside, for viewers without CSS variables; they are those of the page, and
follow the viewer's light or dark mode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.sax.saxutils import escape

from webhook.text.escape import visible, visible_lines
from webhook.text.web_page import colors

#: Pixels of a bold letter in a box.
LETTER = 8

_RULES = """
.site text{font:12px system-ui,sans-serif;fill:var(--ink)}
.site .title{font-size:16px;font-weight:600}.site .soft{fill:var(--soft)}
.site .mid{text-anchor:middle}.site .name{font-weight:600}
.site .paper{fill:var(--back)}.site .node{fill:var(--box);stroke:var(--edge)}
.site .net{fill:var(--accent-back);stroke:var(--accent)}
.site .gpu{fill:var(--back);stroke:var(--line)}
.site .fine{fill:var(--ok-back);stroke:var(--ok)}
.site .unknown{fill:var(--warning-back);stroke:var(--warning)}
.site .down,.site .slow{fill:var(--error-back);stroke:var(--error)}
.site .missing{fill:none;stroke:var(--error);stroke-width:2;stroke-dasharray:3 3}
.site .unused{fill:var(--box);stroke:var(--line);stroke-dasharray:4 3}
.site .error{fill:var(--error);font-weight:600}.site .warning{fill:var(--warning);font-weight:600}
.site .unsure{fill:var(--unsure);font-weight:600}
.site path{fill:none!important;stroke:var(--wire);stroke-width:1}
.site path.pix{stroke-width:1.75}.site path.pxb{stroke-width:1.5;stroke-dasharray:2 3}
.site path.fine{stroke:var(--ok);stroke-width:2}
.site path.trunk{stroke:var(--accent);stroke-width:2}
.site path.slow{stroke:var(--error);stroke-width:2}
.site path.down{stroke:var(--error);stroke-dasharray:5 4}
.site path.unknown{stroke:var(--warning);stroke-dasharray:5 4}
"""
_VARIABLE = re.compile(r"var\(--([\w-]+)\)")


def style() -> str:
    """Return the rules, for light and for dark."""
    light, dark = _rules(colors("light")), _rules(colors("dark"))
    return f"<style>{light}@media screen and (prefers-color-scheme:dark){{{dark}}}</style>"


def _rules(palette: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: palette[match[1]], _RULES)


def rect(x: int, y: int, width: int, height: int, kind: str) -> str:
    """Draw a rectangle."""
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'


def path(commands: str, kind: str) -> str:
    """Draw a line."""
    return f'<path class="{kind}" d="{commands}"/>'


def tip(lines: str) -> str:
    """Return what is shown while the pointer is on the element around it."""
    return f"<title>{escape(visible_lines(lines))}</title>"


def text(
    x: int,
    y: int,
    words: str,
    kind: str,
    *,
    max_length: int = 140,
    full: str = "",
    max_width: int = 0,
) -> str:
    """Write words, cut to `max_length` characters; the full words become the tooltip.

    `max_width` is in pixels; letters that need more are set closer.
    """
    words, full = visible(words), visible(full or words)
    cut = words if len(words) <= max_length else f"{words[: max_length - 1]}…"
    title = f"<title>{escape(full)}</title>" if cut != full else ""
    close = f' textLength="{max_width}"' if max_width and len(cut) * LETTER > max_width else ""
    closer = f'{close} lengthAdjust="spacingAndGlyphs"' if close else ""
    return f'<text class="{kind}" x="{x}" y="{y}"{closer}>{title}{escape(cut)}</text>'
