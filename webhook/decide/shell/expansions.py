"""The parts of words: strings, expansions and substitutions; and here-documents.

Each handler is called at the place where the scanner has stopped, and opens, ends or skips a
context. Bash first searches only for the end of backticks and here-documents, and parses their
content when the command runs; here their content is read only if it has a search term: a text
that the commands to find contain, such as the name of a launcher or a variable.
Sources: POSIX.1-2024, XCU 2.2.3, 2.6 and 2.7.4; bash(1), EXPANSION.
"""

from __future__ import annotations

from collections import deque

from webhook.decide.shell import contexts, patterns
from webhook.decide.shell.contexts import HereDocument, Scanner, ShellContext, raise_unclear

_QUOTING = frozenset("'\"\\")


def open_string(scanner: Scanner) -> None:
    """Open a string that contains substitutions."""
    inner = ShellContext(contexts.STRING, contexts.IN_STRING, scanner.pos)
    inner.quoted = contexts.STRING
    scanner.enter(inner)
    scanner.pos += 1


def close_string(scanner: Scanner) -> None:
    """End a string. A quote in a here-document is text and is not handled here."""
    scanner.leave_part_of_word(scanner.pos + 1)


def dollar(scanner: Scanner) -> None:
    """Open `$(`, `$((` or `${`; any other dollar sign that stops the scanner is unclear."""
    start, text = scanner.pos, scanner.text
    following = text[start + 1 : start + 3]
    if following == "((":
        arithmetic(scanner, 3)
    elif following[:1] == "(":
        open_commands(scanner, contexts.SUBSTITUTION, 2)
    elif following[:1] == "{" and scanner.at(start + 2) not in " \t\n|":
        quoted = scanner.context.quoted
        mode = contexts.IN_QUOTED_PARAMETER if quoted else contexts.IN_PARAMETER
        inner = ShellContext(contexts.PARAMETER, mode, start)
        inner.quoted = quoted
        scanner.enter(inner)
        scanner.pos += 2
    elif following[:1] == "\\":  # not followed by a line break, see patterns.CUT
        scanner.pos += 1
    else:
        raise_unclear(scanner)


def open_commands(scanner: Scanner, construct: str, length: int) -> None:
    """Open a list of commands within a word; the list has its own here-documents."""
    inner = ShellContext(construct, contexts.START, scanner.pos)
    inner.here_documents, scanner.here_documents = scanner.here_documents, deque()
    scanner.enter(inner)
    scanner.pos += length


def close_commands(scanner: Scanner) -> None:
    """End a list of commands; a number sign directly after it is part of the word."""
    if scanner.here_documents:
        raise_unclear(scanner)
    scanner.here_documents = scanner.context.here_documents
    scanner.leave_part_of_word(scanner.pos + 1)
    scanner.pos = patterns.HASHES.match(scanner.text, scanner.pos, scanner.limit).end()  # type: ignore[union-attr]


def close_parameter(scanner: Scanner) -> None:
    """End `${`."""
    scanner.leave_part_of_word(scanner.pos + 1)


def quote_in_parameter(scanner: Scanner) -> None:
    """Skip single quotes in `"${ }"` if it makes no difference if they quote or are literal."""
    quoted = patterns.HARMLESS_QUOTED.match(scanner.text, scanner.pos, scanner.limit)
    if quoted is None:
        raise_unclear(scanner)
    scanner.pos = quoted.end()


def string_in_parameter(scanner: Scanner) -> None:
    """Open a string in `${ }`; within a here-document, shells differ."""
    if scanner.context.quoted == contexts.DOCUMENT:
        raise_unclear(scanner)
    open_string(scanner)


def arithmetic(scanner: Scanner, length: int) -> None:
    """Open `$((` or `((`; the end is found by counting parentheses, as in bash."""
    inner = ShellContext(contexts.ARITHMETIC, contexts.IN_ARITHMETIC, scanner.pos)
    inner.depth = 2
    scanner.enter(inner)
    scanner.pos += length


def open_parenthesis(scanner: Scanner) -> None:
    """Count a parenthesis."""
    scanner.context.depth += 1
    scanner.pos += 1


def close_arithmetic(scanner: Scanner) -> None:
    """End arithmetic at `))`; with only one parenthesis it was a subshell in a substitution."""
    context = scanner.context
    if context.depth > 2:  # noqa: PLR2004 -- the two parentheses that opened it
        context.depth -= 1
        scanner.pos += 1
    elif scanner.at(scanner.pos + 1) == ")":
        _leave_arithmetic(scanner)
    else:
        raise_unclear(scanner)


def _leave_arithmetic(scanner: Scanner) -> None:
    is_command = scanner.text[scanner.context.start] == "("
    scanner.leave_part_of_word(scanner.pos + 2)
    if is_command:
        is_loop = scanner.context.construct == contexts.LOOP
        scanner.context.mode = contexts.BEFORE_LOOP_BODY if is_loop else contexts.AFTER_COMPOUND
        return
    scanner.pos = patterns.HASHES.match(scanner.text, scanner.pos, scanner.limit).end()  # type: ignore[union-attr]


def open_array(scanner: Scanner) -> None:
    """Open the elements of an array."""
    scanner.enter(ShellContext(contexts.ARRAY, contexts.ELEMENTS, scanner.pos))
    scanner.pos += 1


def close_array(scanner: Scanner) -> None:
    """End the elements of an array; nothing may follow the array directly."""
    scanner.leave_part_of_word(scanner.pos + 1)
    if scanner.at(scanner.pos) not in patterns.BREAKS:
        raise_unclear(scanner)


def open_process_substitution(scanner: Scanner) -> None:
    """Open `<(` or `>(` where a redirection is not allowed."""
    if scanner.at(scanner.pos + 1) != "(":
        raise_unclear(scanner)
    open_commands(scanner, contexts.SUBSTITUTION, 2)


def backticks(scanner: Scanner) -> None:
    """Skip the text between backticks, or open it if it has a search term.

    The next backtick without a backslash ends it. A shell removes backslashes before it reads
    the text, so offsets after a backslash are unknown.
    """
    start = scanner.pos
    end = patterns.BACKTICKED.match(scanner.text, start + 1, scanner.limit).end()  # type: ignore[union-attr]
    if scanner.at(end) != "`":
        raise_unclear(scanner)
    if not scanner.has_term(start, end):
        scanner.context_ends[start] = scanner.pos = end + 1
        return
    if patterns.BACKTICK_ESCAPE.search(scanner.text, start, end):
        raise_unclear(scanner)
    open_commands(scanner, contexts.BACKTICKS, 1)
    scanner.context.limit, scanner.limit = scanner.limit, end


def close_backticks(scanner: Scanner) -> None:
    """End the commands between backticks, at their limit."""
    scanner.limit = scanner.context.limit
    close_commands(scanner)


def here_document(scanner: Scanner, operator: str) -> None:
    """Note a here-document; `scanner.pos` is after the operator and blanks."""
    word = patterns.DELIMITER.match(scanner.text, scanner.pos, scanner.limit)
    if word is None or scanner.at(word.end()) not in patterns.BREAKS:
        raise_unclear(scanner)
    raw = word.group()
    literal = not _QUOTING.isdisjoint(raw)
    delimiter = remove_quotes(raw) if literal else raw
    if not delimiter or len(delimiter) > _MAX_DELIMITER_LENGTH or delimiter[0] == "\t":
        raise_unclear(scanner)
    scanner.here_documents.append(HereDocument(delimiter, operator == "<<-", literal))
    scanner.pos = word.end()


_MAX_DELIMITER_LENGTH = 64  # the most characters that a delimiter may have


def remove_quotes(raw: str) -> str:
    """Remove the quotes from a word that contains no expansion."""
    parts, offset = [], 0
    while offset < len(raw):
        quote = raw[offset]
        if quote in "'\"":
            end = raw.index(quote, offset + 1)
            parts.append(raw[offset + 1 : end])
            offset = end + 1
        else:
            offset += quote == "\\"
            parts.append(raw[offset])
            offset += 1
    return "".join(parts)


def line_end(scanner: Scanner) -> None:
    """Go past a line break, and past either its here-documents or the empty lines after it."""
    if scanner.here_documents:
        scanner.pos += 1
        here_documents(scanner)
    else:
        scanner.pos = patterns.BEFORE_COMMAND.match(scanner.text, scanner.pos, scanner.limit).end()  # type: ignore[union-attr]


def here_documents(scanner: Scanner) -> None:
    """Skip the here-documents that begin here.

    Stop at one that may contain a command with a search term, and open it.
    """
    while scanner.here_documents:
        document = scanner.here_documents.popleft()
        start = scanner.pos
        end = _end_of(document, scanner)
        scanner.pos = min(
            scanner.text.find("\n", end, scanner.limit) + 1 or scanner.limit, scanner.limit
        )
        if (
            not document.literal
            and scanner.has_term(start, end)
            and _expands(scanner.text, start, end)
        ):
            inner = ShellContext(contexts.DOCUMENT, contexts.IN_DOCUMENT, start)
            inner.quoted = contexts.DOCUMENT
            inner.outer_pos, scanner.pos = scanner.pos, start
            inner.limit, scanner.limit = scanner.limit, end
            scanner.enter(inner)
            return


def _expands(text: str, start: int, end: int) -> bool:
    return text.find("$(", start, end) >= 0 or text.find("`", start, end) >= 0


def close_document(scanner: Scanner) -> None:
    """End a here-document, at its limit."""
    ended = scanner.leave()
    scanner.limit, scanner.pos = ended.limit, ended.outer_pos
    here_documents(scanner)


def _end_of(document: HereDocument, scanner: Scanner) -> int:
    """Return the offset of the line that ends a here-document."""
    text, start, limit = scanner.text, scanner.pos, scanner.limit
    if document.ignores_tabs:
        end = _end_after_tabs(text, start, limit, document.delimiter)
    else:
        end = _end_at_margin(text, start, limit, document.delimiter)
    if end < 0 or (scanner.outer_contexts and _ends_in_parenthesis(text, start, end, document)):
        raise_unclear(scanner)
    if not document.literal and text.find("\\\n", start, end) >= 0:
        _check_joined(scanner, start, end, document.delimiter)
    return end


def _end_at_margin(text: str, start: int, limit: int, delimiter: str) -> int:
    line = f"\n{delimiter}"
    start -= 1  # the line break before the document
    offset = text.find(line + "\n", start, limit)
    if offset >= 0:
        return offset + 1
    offset = limit - len(line)
    return offset + 1 if offset >= start and text.startswith(line, offset) else -1


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
    margin = ("\n", "\t") if document.ignores_tabs else ("\n",)
    return any(
        text.find(f"{prefix}{document.delimiter})", start - 1, end) >= 0 for prefix in margin
    )


def _check_joined(scanner: Scanner, start: int, end: int, delimiter: str) -> None:
    """Raise UnreadableError if joined lines of a here-document may form its delimiter."""
    for length in range(len(delimiter)):
        cut = delimiter[:length] + "\\\n"
        if any(scanner.text.find(prefix + cut, start - 1, end) >= 0 for prefix in "\n\t"):
            raise_unclear(scanner)
    body = scanner.text[start:end].removesuffix("\n")
    if (len(body) - len(body.rstrip("\\"))) % 2:
        raise_unclear(scanner)
