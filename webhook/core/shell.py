"""Commands of a shell script that hold a word we look for, and text put behind such a word.

tree-sitter-bash parses; positions are byte offsets. Only occurrences of the words are
looked up in the tree, each command once, so a script without them costs one search.
A script that the grammar does not accept as a whole is left alone.

The grammar is fast on scripts and very slow on what is none: unclosed brackets make it
scan to the end again and again (16,000 times `a|` took 15 s, a KiB of `[[~` 60 ms), while
the interpreter stands still. So a script has a size, and a large one is handed over byte by
byte, which allows to count what is read and to stop. Only one-byte strings are handed
over: tree-sitter 0.26 keeps a reference to every string that it is given, and CPython has
just 256 of those.
"""

from __future__ import annotations

from functools import lru_cache
from threading import local
from typing import NamedTuple

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Tree

from webhook.core.argv import Word

TOO_LARGE = "too large"
UNCLEAR = "unclear"

_SOUGHT = (b"mpirun", b"mpiexec", b"rterun", b"sshd")  # what commands are looked up by
_LARGEST = 32 * 1024
_HEREDOCS = 32  # the grammar's time grows with the square of their number
_OCCURRENCES = 64  # a lookup walks all children on the way
_AT_ONCE = 1024  # bytes parsed without counting: at worst about 0.1 s
# What 164 shell scripts of a Debian needed: at most 2.8 reads of each byte, and a call of
# the progress callback for 111 bytes or more. With these a script takes 0.3 s at worst.
_READS = 3
_BYTES_PER_STEP = 40

_LANGUAGE = Language(tree_sitter_bash.language())


class Command(NamedTuple):
    """A simple command: its words, assignments in front included."""

    words: tuple[Word, ...]
    ends: tuple[int, ...]  #: byte offset behind each word; shorter where redirections come between


class Script(NamedTuple):
    """The commands that hold a sought word anywhere, or why there are none."""

    commands: tuple[Command, ...] = ()
    problem: str = ""  #: TOO_LARGE, UNCLEAR or ""


class _Thread(local):
    """A parser for each thread: tree-sitter's are not to be shared."""

    def __init__(self) -> None:
        self.parser = Parser(_LANGUAGE)


_thread = _Thread()


@lru_cache(maxsize=64)  # all pods of a job run the same script; one decision reads it up to 3 times
def read(script: str) -> Script:
    """Find the commands of a script that hold a sought word; never raises."""
    try:
        return _read(script.encode())
    except UnicodeEncodeError:  # a lone surrogate, which JSON may hold
        return Script(problem=UNCLEAR)


def insert_after(script: str, ends: list[int], text: str) -> str:
    """Insert `text` at the byte offsets `ends`; every other byte stays.

    A blank follows where a redirection does: in `mpirun -np 2>log` the 2 is a descriptor.
    """
    source = script.encode()
    added = text.encode()
    for end in sorted(ends, reverse=True):
        blank = b" " if source[end : end + 1] in (b"<", b">") else b""
        source = source[:end] + added + blank + source[end:]
    return source.decode()


def _read(source: bytes) -> Script:
    places = _places(source)
    if len(source) > _LARGEST or source.count(b"<<") > _HEREDOCS or len(places) > _OCCURRENCES:
        return Script(problem=TOO_LARGE)
    if b"\0" in source or b"\r" in source:  # blanks to the grammar, but not to a shell
        return Script(problem=UNCLEAR)
    tree = _parse(source)
    if tree is None:
        return Script(problem=TOO_LARGE)
    if tree.root_node.has_error:
        return Script(problem=UNCLEAR)
    return _commands(tree, source, places)


def _places(source: bytes) -> list[tuple[int, int]]:
    places = []
    for word in _SOUGHT:
        at = source.find(word)
        while at >= 0:
            places.append((at, at + len(word)))
            at = source.find(word, at + 1)
    return sorted(places)


def _parse(source: bytes) -> Tree | None:
    """Parse; None if that would take too long."""
    parser = _thread.parser
    if len(source) <= _AT_ONCE:
        return parser.parse(source)
    reads, steps = _READS * len(source), len(source) // _BYTES_PER_STEP
    hopeless = -2 * reads  # within one step; an early end leaves it much to tidy up

    def next_byte(at: int, _: object) -> bytes:
        nonlocal reads
        reads -= 1
        return source[at : at + 1] if reads > hopeless else b""

    def is_over(_at: int, _error: object) -> bool:
        nonlocal steps
        steps -= 1
        return steps < 0 or reads <= 0

    try:
        tree = parser.parse(next_byte, progress_callback=is_over)
    except ValueError:  # "Parsing failed": cancelled
        parser.reset()
        return None
    return tree if reads > 0 else None


def _commands(tree: Tree, source: bytes, places: list[tuple[int, int]]) -> Script:
    found: dict[int, Command] = {}
    for start, end in places:
        node = tree.root_node.descendant_for_byte_range(start, end)
        if node is not None and _is_function_name(node):
            return Script(problem=UNCLEAR)
        while node is not None and node.type != "command":
            node = node.parent
        if node is None or node.start_byte in found:
            continue
        command = _command(node, source)
        if command is None or "alias" in command.words[:1]:
            return Script(problem=UNCLEAR)
        found[node.start_byte] = command
    return Script(tuple(found.values()))


def _is_function_name(node: Node) -> bool:
    """Whether the node names a function: from then on the word means something else."""
    return node.parent is not None and node.parent.type == "function_definition"


_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})


def _command(node: Node, source: bytes) -> Command | None:
    """Read a command; None where the grammar and a shell disagree about its words."""
    words: list[Word] = []
    ends: list[int] = []
    before = None
    for child in node.children:
        if before is not None:
            gap = source[before : child.start_byte]
            if gap != b" " and not _blank(gap):
                return None
        before = child.end_byte
        if child.type not in _REDIRECTS:
            words.append(_word(child, source))
            ends.append(before)
    parent = node.parent
    if parent is not None and parent.type == "redirected_statement":
        behind = _behind_redirects(parent, source)
        if behind is None:
            return None
        words += behind
    return Command(tuple(words), tuple(ends))


def _blank(gap: bytes) -> bool:
    r"""Whether a gap separates words: `a\` and, on the next line, `b` are one word to a shell."""
    blanks = gap.replace(b"\\\n", b"")
    return bool(blanks) and not blanks.strip(b" \t")


def _behind_redirects(statement: Node, source: bytes) -> list[Word] | None:
    """Read the words behind redirections (`mpirun >log -np 2`), which the grammar keeps there."""
    words: list[Word] = []
    todo = [child for child in reversed(statement.children) if child.type in _REDIRECTS]
    while todo:
        redirect = todo.pop()
        if b"\\\n" in source[redirect.start_byte : redirect.end_byte]:
            return None
        if redirect.type == "heredoc_redirect":
            todo += [child for child in reversed(redirect.children) if child.type in _REDIRECTS]
            targets = redirect.children_by_field_name("argument")
        else:
            targets = redirect.children_by_field_name("destination")[1:]
        words += [_word(target, source) for target in targets]
    return words


_MANY = frozenset({"simple_expansion", "expansion", "command_substitution"})


def _word(node: Node, source: bytes) -> Word:
    """Return a word as the program gets it, see `Word`."""
    kind = node.type
    if kind == "command_name":
        node = node.children[0]
        kind = node.type
    if kind in _MANY:
        return None
    if kind != "concatenation":
        return _part(node, kind, source)
    parts = [_part(child, child.type, source) for child in node.children]
    return None if None in parts else "".join(part for part in parts if part is not None)


def _part(node: Node, kind: str, source: bytes) -> Word:
    text = source[node.start_byte : node.end_byte].decode()
    if kind == "raw_string":
        return text[1:-1]
    if kind == "string":
        if "$@" in text or "[@]" in text:
            return None
        return _without_backslashes(text[1:-1])
    if kind != "word":
        return text
    if " " in text and "\\" not in text:
        return None  # `[ ]` is one word to the grammar only
    return _without_backslashes(text)


def _without_backslashes(text: str) -> str:
    if "\\" not in text:
        return text
    parts = text.replace("\\\n", "").split("\\\\")
    return "\\".join(part.replace("\\", "") for part in parts)
