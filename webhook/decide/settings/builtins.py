"""The builtins of a shell that change its own environment or limits.

Sources: POSIX.1-2024, XCU 2.14 (export, set, unset); bash(1), SHELL BUILTIN COMMANDS (declare,
typeset, ulimit).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from webhook.decide.settings.process import Process
from webhook.decide.settings.setting import UNKNOWN_VALUE, Memlock, Setting
from webhook.decide.shell.argv import Word

_DECLARING = frozenset({"declare", "typeset", "local"})
#: The builtins that this module reads.
BUILTINS = frozenset({"export", "unset", "set", "ulimit", *_DECLARING})
ULIMIT = "ulimit -l in its command"


class Shell:
    """A shell that reads a script: its process, and its variables that are not exported."""

    __slots__ = ("_exported", "_exports_all", "process", "variables")

    def __init__(self, process: Process) -> None:
        self.process = process
        self.variables: dict[str, str] = {}
        self._exports_all = False
        self._exported: set[str] = set()  #: names that `export` got without a value

    def assign(self, words: Iterable[Word], exported: Iterable[str]) -> None:
        """Assign variables; a variable of the environment gets its new value there.

        `exported` are the names in the container's env.
        """
        for name, value in assignments(words):
            current = self.process.current(name)
            is_exported = name in exported if current is None else not current.removed
            if is_exported or self._exports_all or name in self._exported:
                self.process.assign(name, value, "assignment in its command")
            else:
                self.variables[name] = value

    def run(self, words: Sequence[Word]) -> None:
        """Run one of BUILTINS, the first word."""
        builtin, arguments = words[0], words[1:]
        if builtin == "export":
            self._export(arguments)
        elif builtin in _DECLARING:
            self._declare(arguments)
        elif builtin == "unset":
            self._unset(arguments)
        elif builtin == "set":
            self._exports_all = self._exports_all or any(map(_exports_all, arguments))
        else:
            self._limit(arguments)

    def _export(self, arguments: Sequence[Word]) -> None:
        if arguments[:1] == ("-n",):
            self._unset(arguments[1:])
            return
        for word in filter(None, arguments):
            name, equals, value = word.partition("=")
            if equals:
                self.process.assign(name, value, "export in its command")
            elif name in self.variables:
                self.process.assign(name, self.variables[name], "export in its command")
            else:
                self._exported.add(name)

    def _declare(self, arguments: Sequence[Word]) -> None:
        options = "".join(word for word in arguments if word and word[0] == "-")
        if "x" in options:
            self._export([word for word in arguments if word and word[0] not in "-+"])
        else:
            self.variables.update(assignments(arguments))

    def _unset(self, arguments: Sequence[Word]) -> None:
        for word in filter(None, arguments):
            self.variables.pop(word, None)
            self._exported.discard(word)
            self.process.remove(word, "unset in its command")

    def _limit(self, arguments: Sequence[Word]) -> None:
        limit = memlock_limit(arguments)
        if limit:
            self.process.memlock = Memlock(limit, ULIMIT)


def possible_settings(words: Sequence[Word]) -> Iterator[Setting]:
    """Yield what assignments or a builtin set if they run."""
    process = Process()
    shell = Shell(process)
    if words[0] in BUILTINS:
        shell.run(words)
    else:
        for name, value in assignments(words):
            process.assign(name, value, "assignment in its command")
    yield from process.settings.values()


def assignments(words: Iterable[Word]) -> Iterator[tuple[str, str]]:
    """Yield the names and values of words such as `A=b`; of `A+=b`, UNKNOWN_VALUE."""
    for word in words:
        name, equals, value = (word or "").partition("=")
        if equals and name.endswith("+"):
            name, value = name[:-1], UNKNOWN_VALUE
        if equals and name.isidentifier():
            yield name, value


def memlock_limit(arguments: Sequence[Word]) -> str:
    """Return the limit that `ulimit -l LIMIT` sets; "" if it sets none, as without a value."""
    for option, value in pairwise(arguments):
        if option and option[0] == "-" and option.endswith("l") and value:
            return value
    return ""


def _exports_all(word: Word) -> bool:
    """Return whether an option of `set` exports all variables that are assigned later."""
    return word == "allexport" or (word is not None and word[:1] == "-" and "a" in word[1:])
