"""Commands: lists, simple and compound commands, functions, redirections.

Each handler is called at the place where the scanner has stopped; the scanner's mode determines
what is allowed there. A function named like a keyword changes the meaning of that word, so a
script that defines such a function is unclear. Sources: POSIX.1-2024, XCU 2.4 (reserved words),
2.7, 2.9 and 2.10 (the grammar); bash(1), SHELL GRAMMAR.
"""

from __future__ import annotations

from webhook.decide.shell import contexts, expansions, patterns
from webhook.decide.shell.contexts import Mode, Scanner, ShellContext, raise_unclear

_CLOSED = ""  # the part after the last word of a compound command
#: For each part of a compound command: the reserved words that end it, and the part that follows.
_NEXT = {
    contexts.GROUP: {"}": _CLOSED},
    contexts.IF: {"then": contexts.THEN},
    contexts.THEN: {"elif": contexts.IF, "else": contexts.ELSE, "fi": _CLOSED},
    contexts.ELSE: {"fi": _CLOSED},
    contexts.WHILE: {"do": contexts.DO},
    contexts.DO: {"done": _CLOSED},
    contexts.CASE_BODY: {"esac": _CLOSED},
}
_NONE: dict[str, str] = {}


def start_word(scanner: Scanner) -> None:
    """Begin a command with the word at this place, or handle a reserved word."""
    start, text = scanner.pos, scanner.text
    word, end = _word(scanner)
    following = text[end] if end < scanner.limit else "\n"
    if following in patterns.BREAKS:
        if word in _RESERVED:
            _RESERVED[word](scanner, word, end)
            return
        if following == "(" and not patterns.ASSIGNMENT.fullmatch(word):
            begin_function(scanner, word, end)
            return
    if not scanner.pass_commands():
        scanner.begin_command(start)
        scanner.pos = end
        if "[" in word:
            _pass_subscript(scanner, start)


def _pass_subscript(scanner: Scanner, start: int) -> None:
    """Skip `name[…]`: bash reads up to the closing bracket, operators included."""
    name = patterns.SUBSCRIPTED.match(scanner.text, start, scanner.limit)
    if name is not None:
        subscript = patterns.SUBSCRIPT.match(scanner.text, name.end(), scanner.limit)
        if subscript is None:
            raise_unclear(scanner)
        scanner.pos = max(scanner.pos, subscript.end())


def _word(scanner: Scanner) -> tuple[str, int]:
    """Read the unquoted beginning of a word; a word that continues on the next line is unclear."""
    text, limit = scanner.text, scanner.limit
    match = patterns.PLAIN.match(text, scanner.pos, limit)
    assert match is not None
    end = match.end()
    if end < limit and text[end] == "\\":
        joined = patterns.JOINED.match(text, end, limit)
        if joined is not None:
            end = joined.end()
            if scanner.at(end) not in patterns.BREAKS:
                raise_unclear(scanner)
    return match.group(), end


def after_word(scanner: Scanner) -> None:
    """Handle a word after a compound command.

    Only a reserved word that ends the enclosing command or a descriptor is allowed there.
    """
    if patterns.DESCRIPTOR.match(scanner.text, scanner.pos, scanner.limit):
        descriptor(scanner)
        return
    word, end = _word(scanner)
    if scanner.at(end) not in patterns.BREAKS:
        raise_unclear(scanner)
    _close(scanner, word, end)


def descriptor(scanner: Scanner) -> None:
    """Skip the descriptor of a redirection, where nothing else is allowed."""
    match = patterns.DESCRIPTOR.match(scanner.text, scanner.pos, scanner.limit)
    if match is None:
        raise_unclear(scanner)
    scanner.pos = match.end()
    redirection(scanner)


def newline(scanner: Scanner) -> None:
    """End a command at a line break."""
    scanner.end_command()
    scanner.context.mode = contexts.START
    scanner.context.alternative = False
    expansions.line_end(scanner)


def comment(scanner: Scanner) -> None:
    """Skip a comment."""
    scanner.pos = patterns.COMMENT.match(scanner.text, scanner.pos, scanner.limit).end()  # type: ignore[union-attr]


def semicolon(scanner: Scanner) -> None:
    """End a command, or, at `;;`, `;&` or `;;&`, a clause of a `case`."""
    context, following = scanner.context, scanner.at(scanner.pos + 1)
    if following in ";&":
        _end_case_part(scanner)
        return
    if context.mode is contexts.START:
        raise_unclear(scanner)
    scanner.end_command()
    context.mode = contexts.START
    context.alternative = False
    scanner.pos += 1


def _end_case_part(scanner: Scanner) -> None:
    context = scanner.context
    if context.construct != contexts.CASE_BODY or context.needs:
        raise_unclear(scanner)
    scanner.end_command()
    scanner.pos += 3 if scanner.text.startswith(";;&", scanner.pos) else 2
    context.mode = contexts.CASE_NEXT


def ampersand(scanner: Scanner) -> None:
    """Handle `&`, `&&`, `&>` and `&>>`."""
    following = scanner.at(scanner.pos + 1)
    if following == ">":
        redirection(scanner)
    elif following == "&":
        _operator(scanner, 2, "&&")
    else:
        _operator(scanner, 1, "")


def bar(scanner: Scanner) -> None:
    """Handle `|`, `|&` and `||`."""
    following = scanner.at(scanner.pos + 1)
    _operator(scanner, 2 if following in "|&" else 1, "||" if following == "|" else "|")


def _operator(scanner: Scanner, length: int, needs: str) -> None:
    context = scanner.context
    if context.mode is contexts.START:
        raise_unclear(scanner)
    conditional = needs == "||" or (needs == "&&" and _is_test(scanner))
    scanner.end_command()
    context.mode = contexts.START
    context.needs = needs
    context.alternative = bool(needs) and (context.alternative or conditional)
    scanner.pos += length


def _is_test(scanner: Scanner) -> bool:
    """Return whether the current command tests something, or is a compound command."""
    start = scanner.context.command
    return start < 0 or patterns.TEST.match(scanner.text, start, scanner.limit) is not None


def close_parenthesis(scanner: Scanner) -> None:
    """End `( )`, `$( )` or `<( )`; `( )` must not be empty."""
    context = scanner.context
    if context.needs or context.construct not in (contexts.SUBSHELL, contexts.SUBSTITUTION):
        raise_unclear(scanner)
    scanner.end_command()
    if context.construct == contexts.SUBSTITUTION:
        expansions.close_commands(scanner)
        return
    if not context.filled:
        raise_unclear(scanner)
    _leave(scanner, scanner.pos + 1)


def _leave(scanner: Scanner, end: int) -> None:
    """End a compound command."""
    scanner.leave()
    scanner.context.mode = contexts.AFTER
    scanner.pos = end


def angle(scanner: Scanner) -> None:
    """Open a process substitution, or skip a redirection."""
    if scanner.at(scanner.pos + 1) != "(":
        redirection(scanner)
        return
    if scanner.context.mode is contexts.START:
        scanner.begin_command(scanner.pos)
    expansions.open_process_substitution(scanner)


def redirection(scanner: Scanner) -> None:
    """Skip the operator of a redirection; the target follows."""
    start = scanner.pos
    operator = patterns.REDIRECTION.match(scanner.text, start, scanner.limit)
    assert operator is not None
    scanner.pos = patterns.BLANKS.match(scanner.text, operator.end(), scanner.limit).end()  # type: ignore[union-attr]
    following = scanner.at(scanner.pos)
    process = following in "<>" and scanner.at(scanner.pos + 1) == "("
    if following in "\n|&;()<>#" and not process:
        raise_unclear(scanner)
    if patterns.DESCRIPTOR.match(scanner.text, scanner.pos, scanner.limit):
        raise_unclear(scanner)
    _redirect(scanner, start)
    if operator.group() in ("<<", "<<-"):
        expansions.here_document(scanner, operator.group())


def _redirect(scanner: Scanner, start: int) -> None:
    mode = scanner.context.mode
    if mode is contexts.START:
        scanner.begin_command(start)
    elif mode is not contexts.ARGUMENTS:
        scanner.context.mode = contexts.SINGLE_WORD
        scanner.context.then = contexts.REDIRECTED


def argument_parenthesis(scanner: Scanner) -> None:
    """Open an array, or define a function."""
    context, text = scanner.context, scanner.text
    if text[scanner.pos - 1] == "=" and _takes_arrays(scanner):
        expansions.open_array(scanner)
        return
    name = patterns.PLAIN.match(text, context.command, scanner.limit)
    assert name is not None
    blanks = patterns.BLANKS.match(text, name.end(), scanner.limit)
    if not name.group() or blanks is None or blanks.end() != scanner.pos:
        raise_unclear(scanner)
    context.command = -1
    begin_function(scanner, name.group(), scanner.pos)


def _takes_arrays(scanner: Scanner) -> bool:
    """Return whether the simple command begins with an assignment or declares variables."""
    start, end = scanner.context.command, scanner.pos
    if scanner.text[start] in "<>&0123456789":
        return True
    word = patterns.DECLARING.match(scanner.text, start, end)
    return word is not None or patterns.ASSIGNMENT.match(scanner.text, start, end) is not None


def begin_function(scanner: Scanner, name: str, end: int) -> None:
    """Begin the definition of a function, at the parentheses after its name."""
    parentheses = patterns.EMPTY_PARENTHESES.match(scanner.text, end, scanner.limit)
    if parentheses is None:
        raise_unclear(scanner)
    _define(scanner, name, parentheses.end())


def _define(scanner: Scanner, name: str, end: int) -> None:
    if any(word in name for word in scanner.search_terms):
        raise_unclear(scanner)
    scanner.context.mode = contexts.FUNCTION
    scanner.pos = end


def function_body(scanner: Scanner) -> None:
    """Begin the compound command that is the body of a function."""
    word, end = _word(scanner)
    if scanner.at(end) not in patterns.BREAKS or word not in _COMPOUND:
        raise_unclear(scanner)
    _RESERVED[word](scanner, word, end)


def subshell(scanner: Scanner) -> None:
    """Open `(` or `((`."""
    if scanner.at(scanner.pos + 1) == "(":
        _begin(scanner)
        expansions.arithmetic(scanner, 2)
        return
    _open(scanner, contexts.SUBSHELL, scanner.pos + 1)


def _begin(scanner: Scanner) -> None:
    """Note that a compound command begins here."""
    scanner.context.filled = True
    scanner.context.needs = ""


def _open(scanner: Scanner, construct: str, end: int, mode: Mode = contexts.START) -> ShellContext:
    _begin(scanner)
    inner = ShellContext(construct, mode, scanner.pos)
    scanner.enter(inner)
    scanner.pos = end
    return inner


def _open_list(scanner: Scanner, word: str, end: int) -> None:
    """Open `{`, `if`, `while` or `until`; a list of commands follows."""
    _open(scanner, contexts.WHILE if word == "until" else word, end)


def _close(scanner: Scanner, word: str, end: int) -> None:
    """Go on to the next part of a compound command, or end it."""
    context = scanner.context
    part = _NEXT.get(context.construct, _NONE).get(word)
    empty = not context.filled and context.construct != contexts.CASE_BODY
    if part is None or context.needs or empty:
        raise_unclear(scanner)
    elif part == _CLOSED:
        _leave(scanner, end)
    else:
        context.construct = part
        context.mode = contexts.START
        context.filled = False
        scanner.pos = end


def _open_condition(scanner: Scanner, _: str, end: int) -> None:
    _open(scanner, contexts.CONDITION, end, contexts.IN_CONDITION)


def close_condition(scanner: Scanner) -> None:
    """End `[[` if `]]` is a whole word; any other bracket is part of a word."""
    text, start = scanner.text, scanner.pos
    if (
        text.startswith("]]", start)
        and text[start - 1] in patterns.BREAKS
        and scanner.at(start + 2) in patterns.BREAKS
    ):
        if scanner.here_documents and text.find("\n", scanner.context.start, start) >= 0:
            raise_unclear(scanner)
        _leave(scanner, start + 2)
        return
    scanner.pos += 1


def condition_and(scanner: Scanner) -> None:
    """Skip `&&` within a condition."""
    if scanner.at(scanner.pos + 1) != "&":
        raise_unclear(scanner)
    scanner.pos += 2


def _open_loop(scanner: Scanner, word: str, end: int) -> None:
    """Open `for` or `select`, up to the list of words or the body."""
    usual = (
        None if scanner.here_documents else patterns.LOOP.match(scanner.text, end, scanner.limit)
    )
    if usual is not None:
        _open(scanner, contexts.DO, usual.end())
        return
    name = patterns.NAME.match(scanner.text, end, scanner.limit)
    if name is None:
        _open_arithmetic_loop(scanner, word, end)
        return
    inner = _open(scanner, contexts.LOOP, name.end(), contexts.LOOP_BODY)
    if scanner.here_documents:
        raise_unclear(scanner)
    scanner.pos = patterns.EMPTY.match(scanner.text, scanner.pos, scanner.limit).end()  # type: ignore[union-attr]
    following, word_end = _word(scanner)
    if following == "in" and scanner.at(word_end) in patterns.BREAKS:
        inner.mode = contexts.LISTED
        scanner.pos = word_end
    elif scanner.at(scanner.pos) == ";":
        end_of_list(scanner)


def _open_arithmetic_loop(scanner: Scanner, word: str, end: int) -> None:
    end = patterns.BLANKS.match(scanner.text, end, scanner.limit).end()  # type: ignore[union-attr]
    if word != "for" or not scanner.text.startswith("((", end):
        raise_unclear(scanner)
    _open(scanner, contexts.LOOP, end)
    expansions.arithmetic(scanner, 2)


def end_of_list(scanner: Scanner) -> None:
    """End the words of a `for` at a semicolon."""
    scanner.context.mode = contexts.LOOP_BODY
    scanner.context.filled = True
    scanner.pos += 1


def end_of_listed_line(scanner: Scanner) -> None:
    """End the words of a `for` at a line break."""
    scanner.context.mode = contexts.LOOP_BODY
    scanner.context.filled = True
    expansions.line_end(scanner)


def loop_semicolon(scanner: Scanner) -> None:
    """Skip the semicolon after `for (( ))`."""
    if scanner.context.filled:
        raise_unclear(scanner)
    scanner.context.filled = True
    scanner.pos += 1


def loop_body(scanner: Scanner) -> None:
    """Begin a loop's body: `do`, or in bash also `{`."""
    word, end = _word(scanner)
    if scanner.at(end) not in patterns.BREAKS or word not in ("do", "{"):
        raise_unclear(scanner)
    scanner.context.construct = word
    scanner.context.mode = contexts.START
    scanner.context.filled = False
    scanner.pos = end


def _open_case(scanner: Scanner, _: str, end: int) -> None:
    inner = _open(scanner, contexts.CASE, end, contexts.SINGLE_WORD)
    inner.then = contexts.CASE_IN
    scanner.pos = patterns.BLANKS.match(scanner.text, end, scanner.limit).end()  # type: ignore[union-attr]
    if scanner.at(scanner.pos) in "\n|&;()<>#":
        raise_unclear(scanner)


def case_in(scanner: Scanner) -> None:
    """Skip the `in` of a `case`."""
    word, end = _word(scanner)
    if scanner.at(end) not in patterns.BREAKS or word != "in":
        raise_unclear(scanner)
    scanner.context.mode = contexts.CASE_NEXT
    scanner.pos = end


def case_next(scanner: Scanner) -> None:
    """Begin the patterns of the next clause of a `case`, or end the `case`."""
    word, end = _word(scanner)
    if word == "esac" and scanner.at(end) in patterns.BREAKS:
        _leave(scanner, end)
        return
    scanner.context.mode = contexts.CASE_PATTERNS


def case_parenthesis(scanner: Scanner) -> None:
    """Skip the optional parenthesis before the patterns of a `case`."""
    scanner.pos = patterns.BLANKS.match(scanner.text, scanner.pos + 1, scanner.limit).end()  # type: ignore[union-attr]
    if scanner.at(scanner.pos) == ")":
        raise_unclear(scanner)
    scanner.context.mode = contexts.CASE_PATTERNS


def end_of_patterns(scanner: Scanner) -> None:
    """Begin the commands after the patterns of a `case`."""
    context = scanner.context
    context.construct = contexts.CASE_BODY
    context.mode = contexts.START
    context.filled = False
    context.needs = ""
    scanner.pos += 1


def end_of_word(scanner: Scanner) -> None:
    """Leave the mode SINGLE_WORD."""
    scanner.context.mode = scanner.context.then


def word_angle(scanner: Scanner) -> None:
    """Open a process substitution, or end the word at a redirection."""
    if scanner.at(scanner.pos + 1) == "(":
        expansions.open_process_substitution(scanner)
    else:
        end_of_word(scanner)


def word_backslash(scanner: Scanner) -> None:
    """Skip a backslash and line break, which join two lines within a word."""
    if not scanner.text.startswith("\\\n", scanner.pos):
        raise_unclear(scanner)
    scanner.pos += 2


def _define_by_word(scanner: Scanner, _: str, end: int) -> None:
    name = patterns.FUNCTION_NAME.match(scanner.text, end, scanner.limit)
    if name is None:
        raise_unclear(scanner)
    _define(scanner, name.group(1), name.end())


def _negate(scanner: Scanner, _: str, end: int) -> None:
    """Handle `!`: a command follows. In a pipeline, `!` is allowed only at the beginning."""
    if scanner.context.needs == "|":
        raise_unclear(scanner)
    _precede(scanner, end)


def _precede(scanner: Scanner, end: int) -> None:
    scanner.context.needs = "!"
    scanner.pos = end


def _time(scanner: Scanner, _: str, end: int) -> None:
    """Handle `time`: a reserved word in bash, a program in other shells."""
    timed = patterns.TIMED.match(scanner.text, end, scanner.limit)
    if timed is None:
        _timed_program(scanner, end)
    else:
        _negate(scanner, "", timed.end())


def _timed_program(scanner: Scanner, end: int) -> None:
    """Begin a command with `time`; bash rejects `time` without a command in some places."""
    scanner.begin_command(scanner.pos)
    scanner.pos = patterns.BLANKS.match(scanner.text, end, scanner.limit).end()  # type: ignore[union-attr]
    if scanner.at(scanner.pos) in patterns.BREAKS:
        raise_unclear(scanner)


def _coproc(scanner: Scanner, _: str, end: int) -> None:
    """Handle `coproc`: a command follows; a compound command may have a name in front."""
    named = patterns.COPROCESS.match(scanner.text, end, scanner.limit)
    _precede(scanner, named.end() if named else end)


def _reject_misplaced(scanner: Scanner, _word: str, _end: int) -> None:
    raise_unclear(scanner)


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
    "in": _reject_misplaced,
    "]]": _reject_misplaced,
}
