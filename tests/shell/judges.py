"""The judges of a script's commands: bash, which rejects or runs it; tree-sitter; and our code."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from webhook.decide.launchers.commands import SEARCH_TERMS
from webhook.decide.shell import patterns
from webhook.decide.shell.contexts import Scanner, UnreadableError
from webhook.decide.shell.scripts import ScriptReading, Scripts, scan
from webhook.decide.shell.words import command

BASH = shutil.which("bash") or ""
FLAG = " -mca coll_hcoll_enable 0"
_LIMIT = 20.0  # seconds; a script that takes longer hangs
#: The only programs that a script can find, besides the launchers.
_HARMLESS = "basename cat dirname env grep mkdir nice sed sleep sort tee test timeout tr true xargs"
#: Writes in a single `write`, so that launchers of a pipeline do not mix their words.
_RECORDER = "#!/bin/sh\nIFS='\x01'\nprintf '%%s\\000' \"${0##*/}\x01$*\" >>'%s'\n"


def rejects(script: str) -> bool:
    """Whether bash finds a syntax error."""
    ran = subprocess.run([BASH, "-n", "-c", "--", script], env={}, capture_output=True, check=False)
    return ran.returncode != 0


class Ran(NamedTuple):
    """The effect of a script in bash: the words that launchers got, and the trace."""

    launched: tuple[str, ...]
    trace: tuple[str, ...]


class Sandbox:
    """A folder with only harmless programs; every script runs in an empty folder next to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs = folder / "programs"
        self._programs.mkdir()
        self._log = folder / "log"
        for name in SEARCH_TERMS:
            path = self._programs / name
            path.write_text(_RECORDER % self._log)
            path.chmod(0o755)
        for name in (*_HARMLESS.split(), "bash"):
            (self._programs / name).symlink_to(shutil.which(name) or name)
        self._number = 0

    def run(self, script: str) -> Ran:
        """Run a script in a new folder, without a terminal or an environment."""
        self._number += 1
        place = self._folder / str(self._number)
        place.mkdir()
        self._log.write_text("")
        process = subprocess.run(
            [BASH, "-x", "-c", "--", script],
            env={"PATH": str(self._programs)},
            cwd=place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )
        records = self._log.read_text().split("\0")[:-1]
        launched = [_line(record) for record in records]
        return Ran(tuple(sorted(launched)), tuple(_trace(process.stdout + process.stderr)))


def _line(record: str) -> str:
    words = record.removesuffix("\x01").split("\x01")
    return shlex.join(words).replace("\n", "\\n")


#: The varying parts of output: line numbers in bash's messages, file descriptors, measured times.
_VARYING = re.compile(r"line \d+|/dev/fd/\d+|\d+[.,]\d+s?")


def _trace(output: str) -> list[str]:
    return sorted(_VARYING.sub("#", output.replace(FLAG, "")).splitlines())


def begins_command(script: str, offset: int) -> bool:
    """Ask bash whether a command begins with the word at an offset: there `{` is reserved.

    Directly after a `$` it is not, since the brace would begin an expansion.
    """
    return not script[:offset].endswith("$") and rejects(f"{script[:offset]}{{ {script[offset:]}")


def our_reading(script: str) -> ScriptReading:
    """Return how our code reads a script."""
    return Scripts(SEARCH_TERMS).read(script)


class Name(NamedTuple):
    """The name of a simple command, and where the command begins."""

    end: int
    start: int
    word: str | None


def our_command_names(script: str) -> list[Name] | None:
    """List the names of all simple commands, whatever their words; None if our code cannot."""
    if patterns.CUT.search(script):
        return None
    scanned = Scanner(script, list(range(len(script))), 10**9, SEARCH_TERMS)
    try:
        scan(scanned)
        commands = [command(scanned, span.start, span.end) for span in scanned.commands]
    except UnreadableError:
        return None
    starts = (span.start for span in scanned.commands)
    return [
        name
        for start, read in zip(starts, commands, strict=True)
        if not read.assigns
        for name in _first(start, read.words, read.ends)
    ]


def _first(start: int, words: tuple[str | None, ...], ends: tuple[int, ...]) -> list[Name]:
    for word, end in zip(words, ends, strict=True):
        if word is None or not patterns.ASSIGNMENT.match(word):
            return [Name(end, start, word)]
    return []


_PARSER = Parser(Language(tree_sitter_bash.language()))


def tree_sitters_names(script: str) -> dict[int, int] | None:
    """Return where names of simple commands end and begin for tree-sitter, as end → start.

    Return None if tree-sitter sees an error.
    """
    source = script.encode()
    tree = _PARSER.parse(source)
    if tree.root_node.has_error:
        return None
    names, todo = {}, [tree.root_node]
    while todo:
        node = todo.pop()
        name = _name(node)
        if name is not None:
            start, end = source[: name.start_byte], source[: name.end_byte]
            names[len(end.decode())] = len(start.decode())
        todo += node.children
    return names


def _name(node: Node) -> Node | None:
    match node.type:
        case "command":
            return node.child_by_field_name("name")
        case "declaration_command" | "unset_command":
            return node.children[0]
        case "test_command" if node.children[0].type == "[":
            return node.children[0]
        case _:
            return None


def disagreements(script: str) -> list[str] | None:
    """List where tree-sitter and our code differ, and bash does not agree with our code.

    Return None if one of the two cannot decide. bash reads text between backticks and in
    here-documents only when it runs it, so it does not decide there.
    """
    our, their = our_command_names(script), tree_sitters_names(script)
    if our is None or their is None:
        return None
    our_reading = {name.end: name.start for name in our}
    only_ours = [
        f"only we see a command: {script[start:end]!r}"
        for end, start in our_reading.items()
        if end not in their and not begins_command(script, start) and _is_read(script, start)
    ]
    return only_ours + [
        f"only tree-sitter sees a command: {script[start:end]!r}"
        for end, start in their.items()
        if end not in our_reading
        and script[start:end].strip("! ") not in _RESERVED
        and begins_command(script, start)
    ]


#: Words that are not commands in these places, although tree-sitter takes them for commands.
_RESERVED = frozenset(
    [
        "",
        "{",
        "}",
        "case",
        "coproc",
        "do",
        "done",
        "elif",
        "else",
        "esac",
        "fi",
        "for",
        "function",
        "if",
        "in",
        "select",
        "then",
        "time",
        "until",
        "while",
        "[[",
        "]]",
    ]
)


def _is_read(script: str, offset: int) -> bool:
    return rejects(f"{script[:offset]}) ( {script[offset:]}")


_SHEBANG = re.compile(rb"#!\s*(?:/usr)?/bin/(?:env\s+)?(?:ba|da)?sh\b")
_FOLDERS = ("/usr/bin", "/usr/sbin", "/etc/init.d", "/usr/share", "/var/lib/dpkg/info")


def scripts_of_this_machine(largest: int) -> list[Path]:
    """List the shell scripts installed on this machine; none of them is ever run."""
    paths = []
    for top in _FOLDERS:
        for folder, _, names in os.walk(top):
            for name in names:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink() and _is_script(path, largest):
                    paths.append(path)
    return sorted(paths)


def _is_script(path: Path, largest: int) -> bool:
    try:
        if not 0 < path.stat().st_size <= largest:
            return False
        with path.open("rb") as file:
            return _SHEBANG.match(file.read(64)) is not None
    except OSError:
        return False
