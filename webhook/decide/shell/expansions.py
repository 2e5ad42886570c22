"""The parts of words: strings, expansions and substitutions; and here-documents.

Each handler is called at the place where the scanner has stopped, and opens, ends or skips a
context. Bash first searches only for the end of backticks and here-documents, and parses their
content when the command runs; here their content is read only if it has a sought word.
Sources: POSIX.1-2024, XCU 2.2.3, 2.6 and 2.7.4; bash(1), EXPANSION.
"""

from __future__ import annotations

from collections import deque

from webhook.decide.shell import contexts, patterns
from webhook.decide.shell.contexts import HereDocument, Scan, ShellContext, unclear

_QUOTING = frozenset("'\"\\")


def string(scan: Scan) -> None:
    """Open a string that contains substitutions."""
    inner = ShellContext(contexts.STRING, contexts.IN_STRING, scan.pos)
    inner.quoted = contexts.STRING
    scan.enter(inner)
    scan.pos += 1


def close_string(scan: Scan) -> None:
    """End a string. A quote in a here-document is text and is not handled here."""
    scan.leave_word(scan.pos + 1)


def dollar(scan: Scan) -> None:
    """Open `$(`, `$((` or `${`; any other dollar sign that stops the scanner is unclear."""
    start, text = scan.pos, scan.text
    following = text[start + 1 : start + 3]
    if following == "((":
        arithmetic(scan, 3)
    elif following[:1] == "(":
        commands(scan, contexts.SUBSTITUTION, 2)
    elif following[:1] == "{" and scan.at(start + 2) not in " \t\n|":
        quoted = scan.context.quoted
        mode = contexts.IN_QUOTED_PARAMETER if quoted else contexts.IN_PARAMETER
        inner = ShellContext(contexts.PARAMETER, mode, start)
        inner.quoted = quoted
        scan.enter(inner)
        scan.pos += 2
    elif following[:1] == "\\":  # not followed by a line break, see patterns.CUT
        scan.pos += 1
    else:
        unclear(scan)


def commands(scan: Scan, phase: str, length: int) -> None:
    """Open a list of commands within a word; the list has its own here-documents."""
    inner = ShellContext(phase, contexts.START, scan.pos)
    inner.documents, scan.documents = scan.documents, deque()
    scan.enter(inner)
    scan.pos += length


def close_commands(scan: Scan) -> None:
    """End a list of commands; a number sign directly after it is part of the word."""
    if scan.documents:
        unclear(scan)
    scan.documents = scan.context.documents
    scan.leave_word(scan.pos + 1)
    scan.pos = patterns.HASHES.match(scan.text, scan.pos, scan.limit).end()  # type: ignore[union-attr]


def close_parameter(scan: Scan) -> None:
    """End `${`."""
    scan.leave_word(scan.pos + 1)


def quote_in_parameter(scan: Scan) -> None:
    """Skip single quotes in `"${ }"` if they mean the same as quotes and as text."""
    quoted = patterns.HARMLESS_QUOTED.match(scan.text, scan.pos, scan.limit)
    if quoted is None:
        unclear(scan)
    scan.pos = quoted.end()


def string_in_parameter(scan: Scan) -> None:
    """Open a string in `${ }`; within a here-document, shells differ."""
    if scan.context.quoted == contexts.DOCUMENT:
        unclear(scan)
    string(scan)


def arithmetic(scan: Scan, length: int) -> None:
    """Open `$((` or `((`; the end is found by counting parentheses, as in bash."""
    inner = ShellContext(contexts.ARITHMETIC, contexts.IN_ARITHMETIC, scan.pos)
    inner.depth = 2
    scan.enter(inner)
    scan.pos += length


def open_parenthesis(scan: Scan) -> None:
    """Count a parenthesis."""
    scan.context.depth += 1
    scan.pos += 1


def close_arithmetic(scan: Scan) -> None:
    """End arithmetic at `))`; with only one parenthesis it was a subshell in a substitution."""
    context = scan.context
    if context.depth > 2:  # noqa: PLR2004 -- the two parentheses that opened it
        context.depth -= 1
        scan.pos += 1
    elif scan.at(scan.pos + 1) == ")":
        _leave_arithmetic(scan)
    else:
        unclear(scan)


def _leave_arithmetic(scan: Scan) -> None:
    is_command = scan.text[scan.context.start] == "("
    scan.leave_word(scan.pos + 2)
    if is_command:
        after = contexts.LOOP_BODY if scan.context.phase == contexts.LOOP else contexts.AFTER
        scan.context.mode = after
        return
    scan.pos = patterns.HASHES.match(scan.text, scan.pos, scan.limit).end()  # type: ignore[union-attr]


def array(scan: Scan) -> None:
    """Open the elements of an array."""
    scan.enter(ShellContext(contexts.ARRAY, contexts.ELEMENTS, scan.pos))
    scan.pos += 1


def close_array(scan: Scan) -> None:
    """End the elements of an array; nothing may follow the array directly."""
    scan.leave_word(scan.pos + 1)
    if scan.at(scan.pos) not in patterns.BREAKS:
        unclear(scan)


def process(scan: Scan) -> None:
    """Open `<(` or `>(` where a redirection is not allowed."""
    if scan.at(scan.pos + 1) != "(":
        unclear(scan)
    commands(scan, contexts.SUBSTITUTION, 2)


def backticks(scan: Scan) -> None:
    """Skip the text between backticks, or open it if it has a sought word.

    The next backtick without a backslash ends it. A shell removes backslashes before it reads
    the text, so offsets after a backslash are unknown.
    """
    start = scan.pos
    end = patterns.BACKTICKED.match(scan.text, start + 1, scan.limit).end()  # type: ignore[union-attr]
    if scan.at(end) != "`":
        unclear(scan)
    if not scan.is_sought(start, end):
        scan.closes[start] = scan.pos = end + 1
        return
    if patterns.BACKTICK_ESCAPE.search(scan.text, start, end):
        unclear(scan)
    commands(scan, contexts.BACKTICKS, 1)
    scan.context.limit, scan.limit = scan.limit, end


def close_backticks(scan: Scan) -> None:
    """End the commands between backticks, at their limit."""
    scan.limit = scan.context.limit
    close_commands(scan)


def here_document(scan: Scan, operator: str) -> None:
    """Note a here-document; `scan.pos` is after the operator and blanks."""
    word = patterns.DELIMITER.match(scan.text, scan.pos, scan.limit)
    if word is None or scan.at(word.end()) not in patterns.BREAKS:
        unclear(scan)
    raw = word.group()
    literal = not _QUOTING.isdisjoint(raw)
    delimiter = unquoted(raw) if literal else raw
    if not delimiter or len(delimiter) > _LONGEST or delimiter[0] == "\t":
        unclear(scan)
    scan.documents.append(HereDocument(delimiter, operator == "<<-", literal))
    scan.pos = word.end()


_LONGEST = 64  # the most characters that a delimiter may have


def unquoted(raw: str) -> str:
    """Remove the quotes from a word that contains no expansion."""
    parts, at = [], 0
    while at < len(raw):
        quote = raw[at]
        if quote in "'\"":
            end = raw.index(quote, at + 1)
            parts.append(raw[at + 1 : end])
            at = end + 1
        else:
            at += quote == "\\"
            parts.append(raw[at])
            at += 1
    return "".join(parts)


def line_end(scan: Scan) -> None:
    """Go past a line break, and past either its here-documents or the empty lines after it."""
    if scan.documents:
        scan.pos += 1
        here_documents(scan)
    else:
        scan.pos = patterns.EMPTY.match(scan.text, scan.pos, scan.limit).end()  # type: ignore[union-attr]


def here_documents(scan: Scan) -> None:
    """Skip the here-documents that begin here, up to the first that may have a sought command.

    Open the latter.
    """
    while scan.documents:
        document = scan.documents.popleft()
        start = scan.pos
        end = _end_of(document, scan)
        scan.pos = min(scan.text.find("\n", end, scan.limit) + 1 or scan.limit, scan.limit)
        if not document.literal and scan.is_sought(start, end) and _expands(scan.text, start, end):
            inner = ShellContext(contexts.DOCUMENT, contexts.IN_DOCUMENT, start)
            inner.quoted = contexts.DOCUMENT
            inner.resume, scan.pos = scan.pos, start
            inner.limit, scan.limit = scan.limit, end
            scan.enter(inner)
            return


def _expands(text: str, start: int, end: int) -> bool:
    return text.find("$(", start, end) >= 0 or text.find("`", start, end) >= 0


def close_document(scan: Scan) -> None:
    """End a here-document, at its limit."""
    ended = scan.leave()
    scan.limit, scan.pos = ended.limit, ended.resume
    here_documents(scan)


def _end_of(document: HereDocument, scan: Scan) -> int:
    """Return the offset of the line that ends a here-document."""
    text, start, limit = scan.text, scan.pos, scan.limit
    if document.tabs:
        end = _end_after_tabs(text, start, limit, document.delimiter)
    else:
        end = _end_at_margin(text, start, limit, document.delimiter)
    if end < 0 or (scan.outer and _ends_in_parenthesis(text, start, end, document)):
        unclear(scan)
    if not document.literal and text.find("\\\n", start, end) >= 0:
        _check_joined(scan, start, end, document.delimiter)
    return end


def _end_at_margin(text: str, start: int, limit: int, delimiter: str) -> int:
    line = f"\n{delimiter}"
    start -= 1  # the line break before the document
    at = text.find(line + "\n", start, limit)
    if at >= 0:
        return at + 1
    at = limit - len(line)
    return at + 1 if at >= start and text.startswith(line, at) else -1


def _end_after_tabs(text: str, start: int, limit: int, delimiter: str) -> int:
    while start < limit:
        end = text.find("\n", start, limit)
        end = limit if end < 0 else end
        if text[start:end].lstrip("\t") == delimiter:
            return start
        start = end + 1
    return -1


def _ends_in_parenthesis(text: str, start: int, end: int, document: HereDocument) -> bool:
    """Return whether bash may take `E)` for the end of a here-document in a substitution."""
    margin = ("\n", "\t") if document.tabs else ("\n",)
    return any(text.find(f"{at}{document.delimiter})", start - 1, end) >= 0 for at in margin)


def _check_joined(scan: Scan, start: int, end: int, delimiter: str) -> None:
    """Raise UnreadableError if joined lines of a here-document may form its delimiter."""
    for length in range(len(delimiter)):
        cut = delimiter[:length] + "\\\n"
        if any(scan.text.find(at + cut, start - 1, end) >= 0 for at in "\n\t"):
            unclear(scan)
    body = scan.text[start:end].removesuffix("\n")
    if (len(body) - len(body.rstrip("\\"))) % 2:
        unclear(scan)
