"""Find the command that a list of words runs, after wrappers or in a shell's script.

The same rules apply to a container's `command` and `args` and to the commands of a script. The
search goes past a wrapper only if all its options are listed here: the word after an unknown option
may be the option's value, so the meaning of the following words is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: A word as the program gets it. An expansion that stays a single word (`"$N"`, `--host=$H`) is its
#: source text; a word that may become any number of words is None.
Word = str | None


class _Wrapper(NamedTuple):
    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()  #: options that take the next word as their value
    operands: int = 0  #: the number of its operands in front of the command: `timeout 60`
    allows_assignments: bool = False  #: whether NAME=value may precede the command


def _wrapper(flags: str = "", values: str = "", operands: int = 0) -> _Wrapper:
    return _Wrapper(frozenset(flags.split()), frozenset(values.split()), operands)


#: Programs and builtins that run the rest of their words as a command, as the same user on the
#: same machine. Sources: the --help of coreutils 9, util-linux 2.38, numactl 2.0.16, tini 0.19
#: and dumb-init 1.2, and the POSIX page of `command`, whose -v and -V run nothing.
_WRAPPERS = {
    "builtin": _wrapper(),
    "busybox": _wrapper(),
    "command": _wrapper("-p"),
    "dumb-init": _wrapper("-c --single-child -v --verbose", "-r --rewrite"),
    "env": _wrapper("-i --ignore-environment - -v --debug", "-u --unset -C --chdir")._replace(
        allows_assignments=True
    ),
    "exec": _wrapper("-c -l", "-a"),
    "ionice": _wrapper("-t --ignore", "-c --class -n --classdata"),
    "nice": _wrapper("", "-n --adjustment"),
    "nohup": _wrapper(),
    "numactl": _wrapper(
        "-l --localalloc -a --all -b --balancing",
        "-i --interleave -w --weighted-interleave -p --preferred -P --preferred-many"
        " -c --cpubind -N --cpunodebind -C --physcpubind -m --membind",
    ),
    "setsid": _wrapper("-c --ctty -f --fork -w --wait"),
    "stdbuf": _wrapper("", "-i --input -o --output -e --error"),
    "taskset": _wrapper("-a --all-tasks -c --cpu-list", "", 1),
    "time": _wrapper("-p --portability -v --verbose -a --append", "-f --format -o --output"),
    "timeout": _wrapper(
        "-p --preserve-status -f --foreground -v --verbose", "-k --kill-after -s --signal", 1
    ),
    "tini": _wrapper("-g -s -v -w", "-e -p"),
}

#: The mutation `nvlink` puts five words in front of a command: these two, a script, the script's
#: name and a number of GPUs.
REMAP_SHELL = ("/bin/sh", "-c")
REMAP = "rdma-remap"
_REMAP_LENGTH = 5

_SHELLS = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})
_SHELL_VALUES = frozenset({"--init-file", "--rcfile"})  # bash(1)


def basename(word: str) -> str:
    """Return the part after the last slash."""
    return word.rpartition("/")[2]


def remap_length(command: Sequence[Word]) -> int:
    """Return the number of leading words of the remap of `nvlink`, of this or an older release."""
    is_remap = (
        len(command) > _REMAP_LENGTH
        and command[3] == REMAP
        and (command[0], command[1]) == REMAP_SHELL
        and (command[4] or "").isdigit()
    )
    return _REMAP_LENGTH if is_remap else 0


class FrontPart(NamedTuple):
    """Words in front of a command: assignments, or a program that runs it, such as `env -i A=b`."""

    program: str  #: "env"; "" for assignments
    start: int  #: the index of its first word
    end: int  #: the index after its last word


class WrappedCommand(NamedTuple):
    """A command, and what precedes it."""

    front_parts: tuple[FrontPart, ...]
    command: int | None  #: the index of the command; None without one, or if it is unknown


def split_wrappers(words: Sequence[Word], start: int = 0) -> WrappedCommand:
    """Find the command that the words from `start` run, and what precedes it."""
    index: int | None = _past_assignments(words, start)
    front_parts = [] if index == start else [FrontPart("", start, index or start)]
    while index is not None and index < len(words):
        word = words[index]
        wrapper = None if word is None else _WRAPPERS.get(basename(word))
        if word is None or wrapper is None:
            return WrappedCommand(tuple(front_parts), None if word is None else index)
        begin, index = index, _past_options(words, index + 1, wrapper)
        if index is not None:
            index += wrapper.operands
            if wrapper.allows_assignments:
                index = _past_assignments(words, index)
            front_parts.append(FrontPart(basename(word), begin, index))
    return WrappedCommand(tuple(front_parts), None)


def command_at(words: Sequence[Word], start: int = 0) -> int | None:
    """Return the index of the command that the words from `start` run; None if unknown."""
    return split_wrappers(words, start).command


def script_at(words: Sequence[Word], shell: int) -> int | None:
    """Return the index of the script in `sh -c SCRIPT`, if the word at `shell` is a shell."""
    operand = shell_operand(words, shell)
    return operand.position if operand and operand.is_script else None


class Operand(NamedTuple):
    """The first operand of a shell."""

    position: int  #: its index in the words
    is_script: bool  #: whether it is a script (-c), not the name of a file


def shell_operand(words: Sequence[Word], shell: int) -> Operand | None:
    """Return the first operand of the shell at `shell`; None without one, or if it is unknown.

    Source: bash(1), "Options"; dash and busybox accept the same.
    """
    word = words[shell]
    if word is None or basename(word) not in _SHELLS:
        return None
    index, reads_script = shell + 1, False
    while index < len(words):
        option = words[index]
        if option is None:
            return None
        if option in ("--", "-"):
            index += 1
            break
        if option[:1] not in ("-", "+"):
            break
        if option.startswith("--"):
            index += 2 if option in _SHELL_VALUES else 1
            continue
        reads_script = reads_script or "c" in option
        index += 1 + option.count("o") + option.count("O")  # -o pipefail, -O extglob
    return Operand(index, reads_script) if index < len(words) else None


def _past_assignments(words: Sequence[Word], index: int) -> int:
    while index < len(words):
        word = words[index]
        if word is None or word.find("=") < 1:
            break
        index += 1
    return index


def _past_options(words: Sequence[Word], index: int, wrapper: _Wrapper) -> int | None:
    while index < len(words):
        word = words[index]
        if word is None:
            return None
        if word == "--":
            return index + 1
        if word in wrapper.flags:
            index += 1
        elif word in wrapper.values:
            index += 2
        elif word[:1] != "-":
            break
        elif _holds_its_value(word, wrapper):
            index += 1
        else:
            return None
    return index


def _holds_its_value(option: str, wrapper: _Wrapper) -> bool:
    """Return whether an option is complete in its word: `--signal=KILL`, `-n5`, `-ai`."""
    if option.startswith("--"):
        name, equals, _ = option.partition("=")
        return bool(equals) and name in wrapper.values
    return option[:2] in wrapper.values or all(f"-{flag}" in wrapper.flags for flag in option[1:])


# Insert text after words of a shell script without changing any other character.


def insert_after(script: str, ends: Iterable[int], text: str) -> str:
    """Insert `text` at the offsets `ends`, in time linear in the length of the result.

    If a redirection follows, add a blank: in `mpirun -np 2>log` the 2 would be a descriptor
    (POSIX.1-2024, XCU 2.7).
    """
    parts: list[str] = []
    before = 0
    for end in sorted(ends):
        blank = " " if script[end : end + 1] in ("<", ">") else ""
        parts += (script[before:end], text, blank)
        before = end
    return "".join((*parts, script[before:]))
