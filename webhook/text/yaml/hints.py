"""Explain why a text is not YAML, and how to correct it.

A parser reports where it could not continue, which is often a line below the mistake, in words
about its own grammar. Here the lines around that position are searched for common mistakes, the
most certain ones first. Without a match, the parser's words remain.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from webhook.text.escape import visible
from webhook.text.yaml.error_position import ErrorPosition
from webhook.text.yaml.tree import AliasError, NotYamlError, UnreadableTextError

_MAX_SHOWN = 60
_NO_BREAK = "\u00a0\u2007\u202f"
_NO_WIDTH = "\u200b\ufeff"
#: Characters that look like a space, or are invisible, but are ordinary characters to YAML.
_ODD_SPACE = re.compile("[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000\ufeff]")
_TEMPLATE = re.compile(r"\{\{|\{%")
#: A shell variable in braces, perhaps with a default: `${X}`, `${X:-y}`.
_UNEXPANDED = re.compile(r"\$\{[A-Za-z_][^{}\n]{0,60}\}")
_LEADING = re.compile(r"\s*")
#: `image:nginx`, but not `http://x`, `a::b` or `10:30`.
_TIGHT_COLON = re.compile(r"(?:- ++)*+([A-Za-z][\w./-]*+):((?!/|:)\S.*)")
_TIGHT_DASH = re.compile(r"-([A-Za-z_\"'][\w./-]*+)")
_DASHES = re.compile(r"(?:- ++)*+")
_BARE_KEY = re.compile(r"(?:- ++)*+([\w./-]++)\s*+(?:#.*)?")
_ASSIGNED = re.compile(r"(?:- ++)*+([\w./-]++) *+= *+\S.*")
_ENTRY = re.compile(r"((?:- ++)*+)([^\s:#'\"\[{][^:#]*+|\"[^\"]*+\"|'[^']*+'):(?: ++(.*))?")
_ITEM = re.compile(r"-(?: |$)")
_CLOSING = {"[": "]", "{": "}"}


class Mistake(NamedTuple):
    """The offset of a mistake, in characters, and a sentence about it."""

    offset: int
    message: str


def mistake_of(text: str, error: NotYamlError) -> Mistake:
    """Explain a parser's error; in the parser's own words if the mistake is not a common one."""
    position = ErrorPosition(text, error)
    unexplained = Mistake(position.offset, error.problem + _describe_context(position))
    mistake = next(filter(None, (explain(position) for explain in _EXPLANATIONS)), unexplained)
    return mistake._replace(message=visible(mistake.message))


def hint_on(text: str, error: UnreadableTextError) -> str:
    """Explain a mistake that the error does not name: an unrendered template, an unquoted `*`."""
    offset = error.offset or 0
    line_end = text.find("\n", offset)
    start = text.rfind("\n", 0, max(text.rfind("\n", 0, offset), 0)) + 1  # of the line before it
    if _TEMPLATE.search(text, start, line_end if line_end >= 0 else len(text)):
        return " (this is a template; render it first, for example with `helm template`)"
    if isinstance(error, AliasError) and not error.inside_itself:
        return " (quote a value that begins with *)"
    return ""


def explain_misread_key(key: str) -> str:
    """Explain a key that YAML reads differently than intended; "" if it looks correct.

    `-name: x` and a key after a no-break space are keys to YAML, with those characters.
    """
    if odd := _ODD_SPACE.search(key):
        return _describe_odd_space(odd[0])
    if dash := _TIGHT_DASH.fullmatch(key):
        return f"a dash needs a space after it; write `- {dash[1]}`"
    return ""


def explain_misread_text(text: str) -> str:
    """Explain the mistake in a document that YAML reads as one string; "" if it is not known."""
    first = text.split("\n", 1)[0].strip()
    if tight := _TIGHT_COLON.fullmatch(first):
        return _describe_tight_colon(tight)
    return _describe_assignment(match) if (match := _ASSIGNED.fullmatch(first)) else ""


def _template(position: ErrorPosition) -> Mistake | None:
    for line in position.lines():
        if match := _TEMPLATE.search(line.text):
            close = "}}" if match[0] == "{{" else "%}"
            message = (
                f"`{match[0]} ... {close}` is a template; render it first, for example with "
                "`helm template`"
            )
            return Mistake(line.start + match.start(), message)
    return None


def _unexpanded(position: ErrorPosition) -> Mistake | None:
    """Find `{a: ${X}}`, where the brace of the variable ends the value before it."""
    start = position.offset - 1
    variable = _UNEXPANDED.match(position.text, start) if start >= 0 else None
    if variable is None:
        return None
    return Mistake(start, f"`{variable[0]}` is an unexpanded variable; run envsubst first")


def _tab(position: ErrorPosition) -> Mistake | None:
    for line in position.lines():
        lead = _LEADING.match(line.text)[0]  # type: ignore[index]  # it matches ""
        if line.content and "\t" in lead:
            return Mistake(line.start + lead.index("\t"), "a tab indents this line; use spaces")
    if position.char == "\t":
        return Mistake(position.offset, "a tab is where YAML allows only a space; use a space")
    return None


def _odd_space(position: ErrorPosition) -> Mistake | None:
    for line in position.lines():
        if match := _ODD_SPACE.search(line.text):
            return Mistake(line.start + match.start(), _describe_odd_space(match[0]))
    return None


def _describe_odd_space(char: str) -> str:
    kind = "a no-break space" if char in _NO_BREAK else "a character"
    looks = "is invisible" if char in _NO_WIDTH else "looks like a space"
    remedy = "delete it" if char in _NO_WIDTH else "write a space"
    return f"{kind} (U+{ord(char):04X}) {looks}, but is read as a letter; {remedy}"


def _open_quote(position: ErrorPosition) -> Mistake | None:
    if "end of stream" not in position.problem or "quoted" not in position.context:
        return None
    assert position.context_start is not None
    mark = position.text[position.context_start]
    return Mistake(position.context_start, f"the quote {mark} that opens here is not closed")


def _open_bracket(position: ErrorPosition) -> Mistake | None:
    if "expected ','" not in position.problem or position.context_start is None:
        return None
    opened = position.text[position.context_start]
    close = _CLOSING.get(opened, "")
    if position.char in ("]", "}"):
        return Mistake(
            position.offset,
            f"{position.char} does not close the {opened} that opens before it; write {close}",
        )
    following = position.text[position.offset :].lstrip()
    if position.context_line == position.line and following:
        message = f"a comma is missing here, between two entries of the {opened}...{close}"
        return Mistake(position.offset, message)
    message = f"the {opened} that opens here is not closed; write {close}"
    if following:
        line = position.number(position.offset)
        message = f"{message} before line {line}, or a comma between its entries"
    return Mistake(position.context_start, message)


def _extra_bracket(position: ErrorPosition) -> Mistake | None:
    if position.char in ("]", "}") and "expected key" in position.problem:
        return Mistake(
            position.offset, f"this {position.char} closes nothing; remove the {position.char}"
        )
    return None


def _after_quote(position: ErrorPosition) -> Mistake | None:
    before = position.text[position.line.start : position.offset].rstrip()
    if "expected key" in position.problem and before[-1:] in ('"', "'"):
        message = (
            f"the value ends at the quote {before[-1]} before this; quote the whole value, or "
            "none of it"
        )
        return Mistake(position.offset, message)
    return None


def _missing_space_or_colon(position: ErrorPosition) -> Mistake | None:
    """Find `-name`, `image:nginx`, `a = b` and a key without a colon."""
    if "expected key" in position.problem or "token" in position.problem:
        return None
    above = next(position.above(), position.line)
    for line in (position.line, position.context_line, above):
        offset = line.start + line.indent
        if (dash := _TIGHT_DASH.match(line.content)) and line != position.context_line:
            return Mistake(offset, explain_misread_key(dash[0]))
        if tight := _TIGHT_COLON.fullmatch(line.content):
            return Mistake(offset, _describe_tight_colon(tight))
        if equals := _ASSIGNED.fullmatch(line.content):
            return Mistake(offset, _describe_assignment(equals))
        if line != position.line and (key := _BARE_KEY.fullmatch(line.content)):
            return Mistake(offset, f"a key needs a colon after it; write `{key[1][:_MAX_SHOWN]}:`")
    return None


def _describe_tight_colon(tight: re.Match[str]) -> str:
    key, value = tight[1][:_MAX_SHOWN], tight[2][:_MAX_SHOWN]
    return f"a colon needs a space after it; write `{key}: {value}`"


def _describe_assignment(match: re.Match[str]) -> str:
    key, _, value = match[0].partition("=")
    written = f"{key.strip()[:_MAX_SHOWN]}: {value.strip()[:_MAX_SHOWN]}"
    return f"YAML separates key and value with a colon, not `=`; write `{written}`"


def _second_colon(position: ErrorPosition) -> Mistake | None:
    if "mapping values" not in position.problem:
        return None
    before = position.text[position.line.start : position.offset]
    entry = _ENTRY.match(position.line.content)
    if entry is None or ": " not in before:
        return None
    value = (entry[3] or "").replace('"', '\\"')
    message = f'a value with ": " in it must be quoted; write `{entry[2]}: "{value[:_MAX_SHOWN]}"`'
    return Mistake(position.offset, message)


def _below_value(position: ErrorPosition) -> Mistake | None:
    """Find a key that is indented below a key that has a value already."""
    above = next(position.above(), None)
    if "mapping values" not in position.problem or above is None:
        return None
    entry = _ENTRY.fullmatch(above.content)
    column = above.indent + len(entry[1]) if entry else 0
    if entry is None or not entry[3] or position.line.indent <= column:
        return None
    message = (
        f"this line is indented below `{entry[2][:_MAX_SHOWN]}`, which already has the "
        f"value {entry[3][:_MAX_SHOWN]!r}; indent both lines by the same width"
    )
    return Mistake(position.line.start + position.line.indent, message)


def _item_among_keys(position: ErrorPosition) -> Mistake | None:
    if not _ITEM.match(position.text[position.offset : position.offset + 2]):
        return None
    if "block sequence" in position.problem:
        message = "a list cannot begin on the line of its key; begin it on the next line"
        return Mistake(position.offset, message)
    if "block mapping" not in position.context:
        return None
    line = position.number(position.context_start or 0)
    message = (
        f"this list item is among the keys from line {line}; indent it below its key, or remove "
        "the dash"
    )
    return Mistake(position.offset, message)


def _key_among_items(position: ErrorPosition) -> Mistake | None:
    if "expected '-'" not in position.problem or position.context_start is None:
        return None
    first = position.context_line
    inside = position.context_start - first.start + 2
    line = position.number(position.context_start)
    message = (
        f"this is not an item of the list from line {line}; indent it by {_spaces(inside)} if it "
        "belongs to the item above, or begin it with `- `"
    )
    return Mistake(position.offset, message)


def _indentation(position: ErrorPosition) -> Mistake | None:
    """Find a line whose column matches no line around it."""
    offset = position.line.start + position.line.indent
    if "expected key" not in position.problem or offset != position.offset:
        return None
    columns = _columns(position)
    if position.line.indent in columns:
        return None
    fitting = " or ".join(map(str, columns[:2][::-1]))
    message = f"this line is indented by {_spaces(position.line.indent)}, where {fitting} would fit"
    return Mistake(offset, message)


def _columns(position: ErrorPosition) -> list[int]:
    """List the columns of the keys and dashes above, beginning with the nearest line."""
    columns: list[int] = []
    for line in position.above():
        inside = line.indent + len(_DASHES.match(line.content)[0])  # type: ignore[index]  # see above
        columns += [
            column
            for column in dict.fromkeys((inside, line.indent))
            if not columns or column < columns[-1]
        ]
        if not columns[-1]:
            break
    return columns


def _first_character(position: ErrorPosition) -> Mistake | None:
    """Find a value that begins with a character that is special in YAML."""
    context_start = position.offset if position.context_start is None else position.context_start
    starts = "cannot start" in position.problem or "node content" in position.problem
    if "alias" in position.context or "anchor" in position.context or starts:
        word = re.match(r"[^\s,\]}]*", position.text[context_start:][:_MAX_SHOWN])[0]  # type: ignore[index]
        char = position.text[context_start : context_start + 1]
        quoted = f'; write `"{word}"`' if len(word) > 1 and '"' not in word else ""
        if char.strip():
            return Mistake(context_start, f"a value that begins with {char} must be quoted{quoted}")
    return None


def _block_header(position: ErrorPosition) -> Mistake | None:
    if "comment or line break" not in position.problem or position.context_start is None:
        return None
    indicator = position.text[position.context_start]
    message = f"after {indicator}, the text begins on the next line"
    return Mistake(position.offset, f"{message}; begin it there, or quote the value")


def _escape(position: ErrorPosition) -> Mistake | None:
    if "escape" not in position.problem:
        return None
    message = "a backslash in double quotes begins an escape, and YAML does not have this one"
    return Mistake(position.offset, f"{message}; use single quotes, or two backslashes")


def _spaces(count: int) -> str:
    return "1 space" if count == 1 else f"{count} spaces"


def _describe_context(position: ErrorPosition) -> str:
    """Describe the construct that the parser was reading, if it began on another line."""
    if position.context_start is None or position.context_line == position.line:
        return ""
    return f", {position.context} that begins on line {position.number(position.context_start)}"


_EXPLANATIONS: tuple[Callable[[ErrorPosition], Mistake | None], ...] = (
    _template,
    _unexpanded,
    _tab,
    _odd_space,
    _open_quote,
    _open_bracket,
    _extra_bracket,
    _after_quote,
    _second_colon,
    _missing_space_or_colon,
    _below_value,
    _item_among_keys,
    _key_among_items,
    _indentation,
    _first_character,
    _block_header,
    _escape,
)
