r"""The regular expressions of the shell scanner: runs of text that the scanner can skip.

Each run is a possessive repetition of alternatives that differ in their first character, so no
text is matched twice and no input makes a run slow. The terms are from bash(1): a
metacharacter ends a word; blanks are only space and tab (a carriage return is an ordinary
character).

Sources: POSIX.1-2024, XCU 2.2 (quoting), 2.3 (tokens), 2.6 (expansions), 2.7 (redirections);
bash(1), QUOTING, Compound Commands, REDIRECTION.
"""

from __future__ import annotations

import re

BREAKS = frozenset(" \t\n|&;()<>")  #: the characters that end a word
BREAK = r" \t\n|&;()<>"  #: the same characters, for use within `[ ]` of a pattern
_QUOTED = r"'[^']*+'"
_ESCAPED = r"\\[^\n]"
#: `$x`, `$1`, `$$`; `${x}` and `${x:-y}`; a dollar sign that expands nothing. Not `$(`, `$[`, `$\`.
_DOLLAR_IN_QUOTES = r"\$(?:[A-Za-z0-9_@*#?$!-]|\{[^}$`\"'\\{ \t\n|][^}$`\"'\\{]*+\}|(?![({\[\\]))"
_DOLLAR = _DOLLAR_IN_QUOTES.replace(r"(?![({\[\\]", r"(?![({\[\\']") + (
    r"|\$'(?:[^'\\]++|\\[\s\S])*+'"  # `$'a\n'`
)
#: A string without substitutions.
SIMPLE = rf'"(?:[^"$`\\]++|\\[\s\S]|{_DOLLAR_IN_QUOTES})*+"'
_PIECES = rf"{_QUOTED}|{SIMPLE}|{_ESCAPED}|{_DOLLAR}"
_CONTINUED = r"\\\n"  # joins two lines, also within a word
#: Within a word `#` is an ordinary character. A continuation line that begins with `#` is not
#: matched; the scanner stops there, since the `#` may or may not begin a comment.
_HASH = rf"(?<![{BREAK}])#"
_CONTINUED_WORDS = r"\\\n(?!#)|(?<=[ \t])\\\n"

BLANKS = re.compile(rf"(?:[ \t]++|{_CONTINUED})*+")
#: What may precede a command: blanks, empty lines and comments.
BEFORE_COMMAND = re.compile(rf"(?:[ \t\n]++|{_CONTINUED}|#[^\n]*+)*+")
COMMENT = re.compile(r"#[^\n]*+")
HASHES = re.compile(r"#*+")
#: A word, or the beginning of a word, without quotes and expansions.
PLAIN = re.compile(rf"[^{BREAK}$`\"'\\]*+")
JOINED = re.compile(rf"(?:{_CONTINUED})++")

#: A redirection without its target, but not `<<` or `<( )`, and not before a joined line, whose
#: target may be missing.
_REDIRECT = rf"(?:&>>?|<&?|>[>|&]?)[ \t]*+(?=[^{BREAK}#])(?!{_CONTINUED}|[0-9]++[<>])"
_WORDS = rf"[^\n|&;()<>$`\"'\\#]++|{_HASH}|{_PIECES}|{_CONTINUED_WORDS}"
#: The words of a command, with blanks and redirections.
WORDS = re.compile(rf"(?:{_WORDS}|{_REDIRECT})*+")
#: Words that are not part of a command.
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
#: `$( )` around a pipeline of simple commands.
_PIPELINE = rf"\$\({_SIMPLE_COMMAND}(?:\|{_SIMPLE_COMMAND})*+\)#*+"
#: Simple commands, each with the operator after it. Not before `&&`, `||` and `|`: these determine
#: whether and where the next command runs.
COMMANDS = re.compile(
    rf"(?:{_FIRST}(?:{_WORDS}|{_REDIRECT}|{_PIPELINE})++"
    r"(?:;(?![;&])|\n)(?:[ \t\n]++|#[^\n]*+\n)*+)*+"
)
#: The name of a command whose status is a condition, as in `[ -n "$X" ] && export Y=1`.
TEST = re.compile(rf"(?:\[|test|e?grep|command|which|type|id|cmp|diff)(?=[{BREAK}])")
#: The rest of one word.
WORD = re.compile(rf"(?:[^{BREAK}$`\"'\\]++|{_PIECES})*+")
#: The patterns of a `case`, with the blanks and bars between them.
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
#: In `"${a:-'b'}"` the quotes are text to POSIX; with this content it makes no difference.
HARMLESS_QUOTED = re.compile(r"'[^'}\"$`\\{]*+'")
ARITHMETIC = re.compile(rf"(?:[^()$`\"'\\]++|\\[\s\S]|{_QUOTED}|{SIMPLE}|{_DOLLAR})*+")
BACKTICKED = re.compile(r"(?:[^`\\]++|\\[\s\S])*+")
#: Backslashes that a shell removes before it reads the text between backticks.
BACKTICK_ESCAPE = re.compile(r"\\[\\`$\"]")

REDIRECTION = re.compile(r"<<<|<<-|<<|<>|<&|<|>>|>&|>\||>|&>>|&>")
DESCRIPTOR = re.compile(r"(?:[0-9]++|\{[A-Za-z_][A-Za-z0-9_]*+\})(?=[<>])")
#: The word after `<<`, without expansions.
DELIMITER = re.compile(rf"(?:[^{BREAK}$`\"'\\]++|'[^'\n]*+'|\"[^\"$`\\\n]*+\"|\\[^\n])++")

ASSIGNMENT = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]{0,255}+(?:\[(?:[^\]\"']|\"[^\"]{0,255}+\"|'[^']{0,255}+'){0,255}+\])?\+?="
)
#: `name[`, which begins a subscript; in bash a subscript may contain operators.
SUBSCRIPTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+\[")
#: The rest of a subscript without operators, up to its closing bracket.
SUBSCRIPT = re.compile(rf"(?:[^\[\]{BREAK}$`\"'\\]++|{_PIECES})*+\]")
#: Builtins whose arguments may be arrays.
DECLARING = re.compile(r"(?:declare|export|local|readonly|typeset)(?=[ \t])")
EMPTY_PARENTHESES = re.compile(rf"\({BLANKS.pattern}\)")
NAME = re.compile(rf"{BLANKS.pattern}([A-Za-z_][A-Za-z0-9_]*+)(?=[{BREAK}]|\Z)")
#: The words of a common `for NAME in …; do`, up to its body.
LOOP = re.compile(
    rf"[ \t]++[A-Za-z_][A-Za-z0-9_]*+[ \t]++in[ \t](?:{_WORDS})*+[;\n][ \t\n]*+do(?=[{BREAK}])"
)
FUNCTION_NAME = re.compile(
    rf"{BLANKS.pattern}([^{BREAK}$`\"'\\]++){BLANKS.pattern}(?:\({BLANKS.pattern}\))?"
)
_COMPOUND = rf"(?=\(|(?:\{{|!|\[\[|if|while|until|for|case|select|time)(?:[{BREAK}]|\Z))"
#: After `time`, if a compound command follows; otherwise `time` may be treated as a program.
TIMED = re.compile(rf"{BLANKS.pattern}(?:-p[ \t]++)?(?:--[ \t]++)?{_COMPOUND}")
#: After `coproc`: the name of a compound command.
COPROCESS = re.compile(rf"[ \t]++[A-Za-z_][A-Za-z0-9_]*+[ \t]++{_COMPOUND}")

#: Words without quotes and expansions that are not descriptors, each after blanks.
PLAIN_WORDS = re.compile(
    rf"(?:[ \t]++(?:\\\n[ \t]++)*+[^{BREAK}$`\"'\\#][^{BREAK}$`\"'\\]*+(?![<>$`\"'\\]))++"
)

#: Two joined lines, where the line break may split an operator.
CUT = re.compile(r"[&|;<>]\\\n[&|;<>\\]|[$<>(]\\\n[({\\]|\$\\\n")
#: Characters that no script can contain, but JSON can.
IMPOSSIBLE = re.compile(r"[\0\ud800-\udfff]")
