r"""The regular expressions of the shell scanner: runs of text in which nothing happens.

Each run is a possessive repetition of pieces that are told apart by their first character, so
none is matched twice and no input makes one slow. The words of bash(1) for what they hold: a
metacharacter ends a word; blanks are space and tab, nothing else (a carriage return is a letter).

Sources: POSIX.1-2024, XCU 2.2 (quoting), 2.3 (tokens), 2.6 (expansions), 2.7 (redirections);
bash(1), QUOTING, Compound Commands, REDIRECTION.
"""

from __future__ import annotations

import re

BREAKS = frozenset(" \t\n|&;()<>")  #: what ends a word
BREAK = r" \t\n|&;()<>"  #: the same, for a set of characters
_QUOTED = r"'[^']*+'"
_ESCAPED = r"\\[^\n]"
#: `$x`, `$1`, `$$`; `${x}` and `${x:-y}`; a dollar that expands nothing. Not `$(`, `$[` and `$\`.
_DOLLAR_IN_QUOTES = r"\$(?:[A-Za-z0-9_@*#?$!-]|\{[^}$`\"'\\{ \t\n|][^}$`\"'\\{]*+\}|(?![({\[\\]))"
_DOLLAR = _DOLLAR_IN_QUOTES.replace(r"(?![({\[\\]", r"(?![({\[\\']") + (
    r"|\$'(?:[^'\\]++|\\[\s\S])*+'"  # `$'a\n'`
)
#: A string without substitutions.
SIMPLE = rf'"(?:[^"$`\\]++|\\[\s\S]|{_DOLLAR_IN_QUOTES})*+"'
_PIECES = rf"{_QUOTED}|{SIMPLE}|{_ESCAPED}|{_DOLLAR}"
_CONTINUED = r"\\\n"  # joins two lines, also within a word
#: Within a word `#` is a letter. A line that begins with it and continues another is left to
#: the scanner, which cannot tell.
_HASH = rf"(?<![{BREAK}])#"
_CONTINUED_WORDS = r"\\\n(?!#)|(?<=[ \t])\\\n"

BLANKS = re.compile(rf"(?:[ \t]++|{_CONTINUED})*+")
#: What may stand before a command: empty lines and comments too.
EMPTY = re.compile(rf"(?:[ \t\n]++|{_CONTINUED}|#[^\n]*+)*+")
COMMENT = re.compile(r"#[^\n]*+")
HASHES = re.compile(r"#*+")
#: A word, or its beginning, without quotes and expansions.
PLAIN = re.compile(rf"[^{BREAK}$`\"'\\]*+")
JOINED = re.compile(rf"(?:{_CONTINUED})++")

#: A redirection without its word, but not `<<`, nor `<( )`.
_REDIRECT = rf"(?:&>>?|<&?|>[>|&]?)[ \t]*+(?=[^{BREAK}#])(?![0-9]++[<>])"
_WORDS = rf"[^\n|&;()<>$`\"'\\#]++|{_HASH}|{_PIECES}|{_CONTINUED_WORDS}"
#: Words and the blanks between them, also of redirections.
WORDS = re.compile(rf"(?:{_WORDS}|{_REDIRECT})*+")
#: Words that are no command's.
LISTED = re.compile(rf"(?:{_WORDS})*+")
_RESERVED = (
    "if|then|elif|else|fi|do|done|case|esac|while|until|for|select|function|time|coproc|in"
    r"|[{}!]|\[\[|\]\]"
)
_FIRST = (
    rf"(?:[ \t]++|{_CONTINUED})*+(?!(?:{_RESERVED})[{BREAK}\\]|[A-Za-z_][A-Za-z0-9_]*+\[)"
    rf"(?=[^{BREAK}#`])"
)
_SIMPLE_COMMAND = rf"{_FIRST}(?:{_WORDS}|{_REDIRECT})++"
#: `$( )` around a pipeline of such.
_PIPELINE = rf"\$\({_SIMPLE_COMMAND}(?:\|{_SIMPLE_COMMAND})*+\)#*+"
#: Simple commands, each with the operator behind it.
COMMANDS = re.compile(
    rf"(?:{_FIRST}(?:{_WORDS}|{_REDIRECT}|{_PIPELINE})++"
    r"(?:(?:;(?![;&])|\n)(?:[ \t\n]++|#[^\n]*+\n)*+|&&|\|[|&]?))*+"
)
#: The rest of one word.
WORD = re.compile(rf"(?:[^{BREAK}$`\"'\\]++|{_PIECES})*+")
#: The patterns of a `case`, and what is between them.
PATTERNS = re.compile(rf"(?:[^\n&;()<>$`\"'\\#]++|{_HASH}|{_PIECES}|{_CONTINUED_WORDS})*+")
#: The elements of an array.
ELEMENTS = re.compile(rf"(?:[^|&;()<>$`\"'\\#]++|{_HASH}|{_PIECES}|{_CONTINUED_WORDS})*+")
#: Between `[[` and `]]`.
CONDITION = re.compile(rf"(?:[^\]&;$`\"'\\#]++|{_HASH}|{_PIECES}|{_CONTINUED_WORDS})*+")

STRING = re.compile(rf'(?:[^"$`\\]++|\\[\s\S]|{_DOLLAR_IN_QUOTES})*+')
DOCUMENT = re.compile(rf"(?:[^$`\\]++|\\[\s\S]|{_DOLLAR_IN_QUOTES})*+")
PARAMETER = re.compile(rf"(?:[^}}$`\"'\\]++|\\[\s\S]|{_QUOTED}|{SIMPLE}|{_DOLLAR})*+")
PARAMETER_IN_QUOTES = re.compile(
    r"(?:[^}$`\"'\\]++|\\[\s\S]|\$(?:[A-Za-z0-9_@*#?$!-]|(?![({\[\\'])))*+"
)
#: In `"${a:-'b'}"` the quotes are text to POSIX; with such a content it does not matter.
HARMLESS_QUOTED = re.compile(r"'[^'}\"$`\\{]*+'")
ARITHMETIC = re.compile(rf"(?:[^()$`\"'\\]++|\\[\s\S]|{_QUOTED}|{SIMPLE}|{_DOLLAR})*+")
BACKTICKED = re.compile(r"(?:[^`\\]++|\\[\s\S])*+")
#: Backslashes that a shell takes away before it reads what is between backticks.
BACKTICK_ESCAPE = re.compile(r"\\[\\`$\"]")

REDIRECTION = re.compile(r"<<<|<<-|<<|<>|<&|<|>>|>&|>\||>|&>>|&>")
DESCRIPTOR = re.compile(r"(?:[0-9]++|\{[A-Za-z_][A-Za-z0-9_]*+\})(?=[<>])")
#: The word behind `<<`, without expansions.
DELIMITER = re.compile(rf"(?:[^{BREAK}$`\"'\\]++|'[^'\n]*+'|\"[^\"$`\\\n]*+\"|\\[^\n])++")

ASSIGNMENT = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]{0,255}+(?:\[(?:[^\]\"']|\"[^\"]{0,255}+\"|'[^']{0,255}+'){0,255}+\])?\+?="
)
#: `name[` in front of a subscript, which to bash may hold operators; and a usual one to its end.
SUBSCRIPTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+\[")
SUBSCRIPT = re.compile(rf"(?:[^\[\]{BREAK}$`\"'\\]++|{_PIECES})*+\]")
#: Builtins whose arguments may be arrays.
DECLARING = re.compile(r"(?:declare|export|local|readonly|typeset)(?=[ \t])")
EMPTY_PARENTHESES = re.compile(rf"\({BLANKS.pattern}\)")
NAME = re.compile(rf"{BLANKS.pattern}([A-Za-z_][A-Za-z0-9_]*+)(?=[{BREAK}]|\Z)")
#: All of a usual `for` up to its body.
LOOP = re.compile(
    rf"[ \t]++[A-Za-z_][A-Za-z0-9_]*+[ \t]++in[ \t](?:{_WORDS})*+[;\n][ \t\n]*+do(?=[{BREAK}])"
)
FUNCTION_NAME = re.compile(
    rf"{BLANKS.pattern}([^{BREAK}$`\"'\\]++){BLANKS.pattern}(?:\({BLANKS.pattern}\))?"
)
_COMPOUND = rf"(?=\(|(?:\{{|!|\[\[|if|while|until|for|case|select|time)(?:[{BREAK}]|\Z))"
#: Behind `time`, where a compound command follows; before any other it is as good as a program.
TIMED = re.compile(rf"{BLANKS.pattern}(?:-p[ \t]++)?(?:--[ \t]++)?{_COMPOUND}")
#: Behind `coproc`, the name of a compound command.
COPROCESS = re.compile(rf"[ \t]++[A-Za-z_][A-Za-z0-9_]*+[ \t]++{_COMPOUND}")

#: Words without quotes and expansions that are no descriptors, each behind blanks.
PLAIN_WORDS = re.compile(
    rf"(?:[ \t]++(?:\\\n[ \t]++)*+[^{BREAK}$`\"'\\#][^{BREAK}$`\"'\\]*+(?![<>$`\"'\\]))++"
)

#: Two lines joined where an operator may be cut in two.
CUT = re.compile(r"[&|;<>]\\\n[&|;<>\\]|[$<>(]\\\n[({\\]|\$\\\n")
#: What no script holds; JSON may.
FOREIGN = re.compile(r"[\0\ud800-\udfff]")
