"""Commands: lists, simple and compound commands, functions, redirections.

Each handler is called at the place where the scanner has stopped; the scanner's mode determines
what is allowed there. A function named like a sought word changes the meaning of that word, so a
script that defines such a function is unclear. Sources: POSIX.1-2024, XCU 2.4 (reserved words),
2.7, 2.9 and 2.10 (the grammar); bash(1), SHELL GRAMMAR.
"""

from __future__ import annotations

from webhook.decide.shell import contexts, expansions, patterns
from webhook.decide.shell.contexts import Mode, Scan, ShellContext, unclear

_CLOSED = ""  # the part after the last word of a compound command
#: For each part of a compound command: the reserved words that end it, and the part that follows.
_NEXT = {
    contexts.GROUP: {"}": _CLOSED},
    contexts.IF: {"then": contexts.THEN},
    contexts.THEN: {"elif": contexts.IF, "else": contexts.ELSE, "fi": _CLOSED},
    contexts.ELSE: {"fi": _CLOSED},
    contexts.WHILE: {"do": contexts.DO},
    contexts.DO: {"done": _CLOSED},
    contexts.BODY: {"esac": _CLOSED},
}
_NONE: dict[str, str] = {}


def start_word(scan: Scan) -> None:
    """Begin a command with the word at this place, or handle a reserved word."""
    start, text = scan.pos, scan.text
    word, end = _word(scan)
    following = text[end] if end < scan.limit else "\n"
    if following in patterns.BREAKS:
        if word in _RESERVED:
            _RESERVED[word](scan, word, end)
            return
        if following == "(" and not patterns.ASSIGNMENT.fullmatch(word):
            function(scan, word, end)
            return
    if not scan.pass_commands():
        scan.begin_command(start)
        scan.pos = end
        if "[" in word:
            _pass_subscript(scan, start)


def _pass_subscript(scan: Scan, start: int) -> None:
    """Skip `name[…]`: bash reads up to the closing bracket, operators included."""
    name = patterns.SUBSCRIPTED.match(scan.text, start, scan.limit)
    if name is not None:
        subscript = patterns.SUBSCRIPT.match(scan.text, name.end(), scan.limit)
        if subscript is None:
            unclear(scan)
        scan.pos = max(scan.pos, subscript.end())


def _word(scan: Scan) -> tuple[str, int]:
    """Read the unquoted beginning of a word; a word that continues on the next line is unclear."""
    text, limit = scan.text, scan.limit
    match = patterns.PLAIN.match(text, scan.pos, limit)
    assert match is not None
    end = match.end()
    if end < limit and text[end] == "\\":
        joined = patterns.JOINED.match(text, end, limit)
        if joined is not None:
            end = joined.end()
            if scan.at(end) not in patterns.BREAKS:
                unclear(scan)
    return match.group(), end


def after_word(scan: Scan) -> None:
    """Handle a word after a compound command.

    Only a reserved word that ends the enclosing command or a descriptor is allowed there.
    """
    if patterns.DESCRIPTOR.match(scan.text, scan.pos, scan.limit):
        descriptor(scan)
        return
    word, end = _word(scan)
    if scan.at(end) not in patterns.BREAKS:
        unclear(scan)
    _close(scan, word, end)


def descriptor(scan: Scan) -> None:
    """Skip the descriptor of a redirection, where nothing else is allowed."""
    match = patterns.DESCRIPTOR.match(scan.text, scan.pos, scan.limit)
    if match is None:
        unclear(scan)
    scan.pos = match.end()
    redirection(scan)


def newline(scan: Scan) -> None:
    """End a command at a line break."""
    scan.end_command()
    scan.context.mode = contexts.START
    expansions.line_end(scan)


def comment(scan: Scan) -> None:
    """Skip a comment."""
    scan.pos = patterns.COMMENT.match(scan.text, scan.pos, scan.limit).end()  # type: ignore[union-attr]


def semicolon(scan: Scan) -> None:
    """End a command, or, at `;;`, `;&` or `;;&`, a clause of a `case`."""
    context, following = scan.context, scan.at(scan.pos + 1)
    if following in ";&":
        _end_case_part(scan)
        return
    if context.mode is contexts.START:
        unclear(scan)
    scan.end_command()
    context.mode = contexts.START
    scan.pos += 1


def _end_case_part(scan: Scan) -> None:
    context = scan.context
    if context.phase != contexts.BODY or context.needs:
        unclear(scan)
    scan.end_command()
    scan.pos += 3 if scan.text.startswith(";;&", scan.pos) else 2
    context.mode = contexts.CASE_NEXT


def ampersand(scan: Scan) -> None:
    """Handle `&`, `&&`, `&>` and `&>>`."""
    following = scan.at(scan.pos + 1)
    if following == ">":
        redirection(scan)
    elif following == "&":
        _operator(scan, 2, "&&")
    else:
        _operator(scan, 1, "")


def bar(scan: Scan) -> None:
    """Handle `|`, `|&` and `||`."""
    following = scan.at(scan.pos + 1)
    _operator(scan, 2 if following in "|&" else 1, "||" if following == "|" else "|")


def _operator(scan: Scan, length: int, needs: str) -> None:
    context = scan.context
    if context.mode is contexts.START:
        unclear(scan)
    scan.end_command()
    context.mode = contexts.START
    context.needs = needs
    scan.pos += length


def close_parenthesis(scan: Scan) -> None:
    """End `( )`, `$( )` or `<( )`; `( )` must not be empty."""
    context = scan.context
    if context.needs or context.phase not in (contexts.SUBSHELL, contexts.SUBSTITUTION):
        unclear(scan)
    scan.end_command()
    if context.phase == contexts.SUBSTITUTION:
        expansions.close_commands(scan)
        return
    if not context.filled:
        unclear(scan)
    _leave(scan, scan.pos + 1)


def _leave(scan: Scan, end: int) -> None:
    """End a compound command."""
    scan.leave()
    scan.context.mode = contexts.AFTER
    scan.pos = end


def angle(scan: Scan) -> None:
    """Open a process substitution, or skip a redirection."""
    if scan.at(scan.pos + 1) != "(":
        redirection(scan)
        return
    if scan.context.mode is contexts.START:
        scan.begin_command(scan.pos)
    expansions.process(scan)


def redirection(scan: Scan) -> None:
    """Skip the operator of a redirection; the target follows."""
    start = scan.pos
    operator = patterns.REDIRECTION.match(scan.text, start, scan.limit)
    assert operator is not None
    scan.pos = patterns.BLANKS.match(scan.text, operator.end(), scan.limit).end()  # type: ignore[union-attr]
    following = scan.at(scan.pos)
    process = following in "<>" and scan.at(scan.pos + 1) == "("
    if following in "\n|&;()<>#" and not process:
        unclear(scan)
    if patterns.DESCRIPTOR.match(scan.text, scan.pos, scan.limit):
        unclear(scan)
    _redirect(scan, start)
    if operator.group() in ("<<", "<<-"):
        expansions.here_document(scan, operator.group())


def _redirect(scan: Scan, start: int) -> None:
    mode = scan.context.mode
    if mode is contexts.START:
        scan.begin_command(start)
    elif mode is not contexts.ARGUMENTS:
        scan.context.mode = contexts.SINGLE_WORD
        scan.context.then = contexts.REDIRECTED


def argument_parenthesis(scan: Scan) -> None:
    """Open an array, or define a function."""
    context, text = scan.context, scan.text
    if text[scan.pos - 1] == "=" and _takes_arrays(scan):
        expansions.array(scan)
        return
    name = patterns.PLAIN.match(text, context.command, scan.limit)
    assert name is not None
    blanks = patterns.BLANKS.match(text, name.end(), scan.limit)
    if not name.group() or blanks is None or blanks.end() != scan.pos:
        unclear(scan)
    context.command = -1
    function(scan, name.group(), scan.pos)


def _takes_arrays(scan: Scan) -> bool:
    """Return whether the simple command begins with an assignment or declares variables."""
    start, end = scan.context.command, scan.pos
    if scan.text[start] in "<>&0123456789":
        return True
    word = patterns.DECLARING.match(scan.text, start, end)
    return word is not None or patterns.ASSIGNMENT.match(scan.text, start, end) is not None


def function(scan: Scan, name: str, end: int) -> None:
    """Begin the definition of a function, at the parentheses after its name."""
    parentheses = patterns.EMPTY_PARENTHESES.match(scan.text, end, scan.limit)
    if parentheses is None:
        unclear(scan)
    _define(scan, name, parentheses.end())


def _define(scan: Scan, name: str, end: int) -> None:
    if any(word in name for word in scan.sought):
        unclear(scan)
    scan.context.mode = contexts.FUNCTION
    scan.pos = end


def function_body(scan: Scan) -> None:
    """Begin the compound command that is the body of a function."""
    word, end = _word(scan)
    if scan.at(end) not in patterns.BREAKS or word not in _COMPOUND:
        unclear(scan)
    _RESERVED[word](scan, word, end)


def subshell(scan: Scan) -> None:
    """Open `(` or `((`."""
    if scan.at(scan.pos + 1) == "(":
        _begin(scan)
        expansions.arithmetic(scan, 2)
        return
    _open(scan, contexts.SUBSHELL, scan.pos + 1)


def _begin(scan: Scan) -> None:
    """Note that a compound command begins here."""
    scan.context.filled = True
    scan.context.needs = ""


def _open(scan: Scan, phase: str, end: int, mode: Mode = contexts.START) -> ShellContext:
    _begin(scan)
    inner = ShellContext(phase, mode, scan.pos)
    scan.enter(inner)
    scan.pos = end
    return inner


def _open_list(scan: Scan, word: str, end: int) -> None:
    """Open `{`, `if`, `while` or `until`; a list of commands follows."""
    _open(scan, contexts.WHILE if word == "until" else word, end)


def _close(scan: Scan, word: str, end: int) -> None:
    """Go on to the next part of a compound command, or end it."""
    context = scan.context
    part = _NEXT.get(context.phase, _NONE).get(word)
    empty = not context.filled and context.phase != contexts.BODY
    if part is None or context.needs or empty:
        unclear(scan)
    elif part == _CLOSED:
        _leave(scan, end)
    else:
        context.phase = part
        context.mode = contexts.START
        context.filled = False
        scan.pos = end


def _open_condition(scan: Scan, _: str, end: int) -> None:
    _open(scan, contexts.CONDITION, end, contexts.IN_CONDITION)


def close_condition(scan: Scan) -> None:
    """End `[[` if `]]` is a whole word; any other bracket is part of a word."""
    text, start = scan.text, scan.pos
    if (
        text.startswith("]]", start)
        and text[start - 1] in patterns.BREAKS
        and scan.at(start + 2) in patterns.BREAKS
    ):
        if scan.documents and text.find("\n", scan.context.start, start) >= 0:
            unclear(scan)
        _leave(scan, start + 2)
        return
    scan.pos += 1


def condition_and(scan: Scan) -> None:
    """Skip `&&` within a condition."""
    if scan.at(scan.pos + 1) != "&":
        unclear(scan)
    scan.pos += 2


def _open_loop(scan: Scan, word: str, end: int) -> None:
    """Open `for` or `select`, up to the list of words or the body."""
    usual = None if scan.documents else patterns.LOOP.match(scan.text, end, scan.limit)
    if usual is not None:
        _open(scan, contexts.DO, usual.end())
        return
    name = patterns.NAME.match(scan.text, end, scan.limit)
    if name is None:
        _open_arithmetic_loop(scan, word, end)
        return
    inner = _open(scan, contexts.LOOP, name.end(), contexts.LOOP_BODY)
    if scan.documents:
        unclear(scan)
    scan.pos = patterns.EMPTY.match(scan.text, scan.pos, scan.limit).end()  # type: ignore[union-attr]
    following, word_end = _word(scan)
    if following == "in" and scan.at(word_end) in patterns.BREAKS:
        inner.mode = contexts.LISTED
        scan.pos = word_end
    elif scan.at(scan.pos) == ";":
        end_of_list(scan)


def _open_arithmetic_loop(scan: Scan, word: str, end: int) -> None:
    end = patterns.BLANKS.match(scan.text, end, scan.limit).end()  # type: ignore[union-attr]
    if word != "for" or not scan.text.startswith("((", end):
        unclear(scan)
    _open(scan, contexts.LOOP, end)
    expansions.arithmetic(scan, 2)


def end_of_list(scan: Scan) -> None:
    """End the words of a `for` at a semicolon."""
    scan.context.mode = contexts.LOOP_BODY
    scan.context.filled = True
    scan.pos += 1


def end_of_listed_line(scan: Scan) -> None:
    """End the words of a `for` at a line break."""
    scan.context.mode = contexts.LOOP_BODY
    scan.context.filled = True
    expansions.line_end(scan)


def loop_semicolon(scan: Scan) -> None:
    """Skip the semicolon after `for (( ))`."""
    if scan.context.filled:
        unclear(scan)
    scan.context.filled = True
    scan.pos += 1


def loop_body(scan: Scan) -> None:
    """Begin a loop's body: `do`, or in bash also `{`."""
    word, end = _word(scan)
    if scan.at(end) not in patterns.BREAKS or word not in ("do", "{"):
        unclear(scan)
    scan.context.phase = word
    scan.context.mode = contexts.START
    scan.context.filled = False
    scan.pos = end


def _open_case(scan: Scan, _: str, end: int) -> None:
    inner = _open(scan, contexts.CASE, end, contexts.SINGLE_WORD)
    inner.then = contexts.CASE_IN
    scan.pos = patterns.BLANKS.match(scan.text, end, scan.limit).end()  # type: ignore[union-attr]
    if scan.at(scan.pos) in "\n|&;()<>#":
        unclear(scan)


def case_in(scan: Scan) -> None:
    """Skip the `in` of a `case`."""
    word, end = _word(scan)
    if scan.at(end) not in patterns.BREAKS or word != "in":
        unclear(scan)
    scan.context.mode = contexts.CASE_NEXT
    scan.pos = end


def case_next(scan: Scan) -> None:
    """Begin the patterns of the next clause of a `case`, or end the `case`."""
    word, end = _word(scan)
    if word == "esac" and scan.at(end) in patterns.BREAKS:
        _leave(scan, end)
        return
    scan.context.mode = contexts.CASE_PATTERNS


def case_parenthesis(scan: Scan) -> None:
    """Skip the optional parenthesis before the patterns of a `case`."""
    scan.pos = patterns.BLANKS.match(scan.text, scan.pos + 1, scan.limit).end()  # type: ignore[union-attr]
    if scan.at(scan.pos) == ")":
        unclear(scan)
    scan.context.mode = contexts.CASE_PATTERNS


def end_of_patterns(scan: Scan) -> None:
    """Begin the commands after the patterns of a `case`."""
    context = scan.context
    context.phase = contexts.BODY
    context.mode = contexts.START
    context.filled = False
    context.needs = ""
    scan.pos += 1


def end_of_word(scan: Scan) -> None:
    """Leave the mode SINGLE_WORD."""
    scan.context.mode = scan.context.then


def word_angle(scan: Scan) -> None:
    """Open a process substitution, or end the word at a redirection."""
    if scan.at(scan.pos + 1) == "(":
        expansions.process(scan)
    else:
        end_of_word(scan)


def word_backslash(scan: Scan) -> None:
    """Skip a backslash and line break, which join two lines within a word."""
    if not scan.text.startswith("\\\n", scan.pos):
        unclear(scan)
    scan.pos += 2


def _define_by_word(scan: Scan, _: str, end: int) -> None:
    name = patterns.FUNCTION_NAME.match(scan.text, end, scan.limit)
    if name is None:
        unclear(scan)
    _define(scan, name.group(1), name.end())


def _negate(scan: Scan, _: str, end: int) -> None:
    """Handle `!`: a command follows. In a pipeline, `!` is allowed only at the beginning."""
    if scan.context.needs == "|":
        unclear(scan)
    _precede(scan, end)


def _precede(scan: Scan, end: int) -> None:
    scan.context.needs = "!"
    scan.pos = end


def _time(scan: Scan, _: str, end: int) -> None:
    """Handle `time`: a reserved word in bash, a program in other shells."""
    timed = patterns.TIMED.match(scan.text, end, scan.limit)
    if timed is None:
        _timed_program(scan, end)
    else:
        _negate(scan, "", timed.end())


def _timed_program(scan: Scan, end: int) -> None:
    """Begin a command with `time`; bash rejects `time` without a command in some places."""
    scan.begin_command(scan.pos)
    scan.pos = patterns.BLANKS.match(scan.text, end, scan.limit).end()  # type: ignore[union-attr]
    if scan.at(scan.pos) in patterns.BREAKS:
        unclear(scan)


def _coproc(scan: Scan, _: str, end: int) -> None:
    """Handle `coproc`: a command follows; a compound command may have a name in front."""
    named = patterns.COPROCESS.match(scan.text, end, scan.limit)
    _precede(scan, named.end() if named else end)


def _misplaced(scan: Scan, _word: str, _end: int) -> None:
    unclear(scan)


_COMPOUND = {
    **dict.fromkeys(("{", "if", "while", "until"), _open_list),
    **dict.fromkeys(("for", "select"), _open_loop),
    "case": _open_case,
    "[[": _open_condition,
}
_RESERVED = {
    **_COMPOUND,
    **dict.fromkeys(("}", "then", "elif", "else", "fi", "do", "done", "esac"), _close),
    "function": _define_by_word,
    "!": _negate,
    "time": _time,
    "coproc": _coproc,
    "in": _misplaced,
    "]]": _misplaced,
}
