"""Commands of perftest that a terminal or a script shows before their output.

Options: linux-rdma/perftest, src/perftest_parameters.c (`usage`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_PROGRAM = re.compile(r"(?:^|[\s/;&|(])(ib_(?:write|read|send|atomic)_(?:bw|lat))(?=\s|$|&)")
#: A shell says this when a job ends, and the kernel when it kills one.
_NOTICE = re.compile(r"\[\d{1,6}\][+-]? |.{0,200} invoked oom-killer")
#: Options with a value, in the words of the fields below.
_VALUES = {
    "-d": "device", "--ib-dev": "device",
    "-i": "port", "--ib-port": "port",
    "-D": "duration", "--duration": "duration",
}  # fmt: skip
#: Options with a value that is of no use here; what follows them is no server.
_TAKEN = frozenset(
    {
        *("-c", "-e", "-I", "-l", "-m", "-n", "-p", "-q", "-Q", "-s", "-S", "-t", "-T", "-u", "-x"),
        *("--connection", "--inline_size", "--post_list", "--mtu", "--iters", "--port", "--qp"),
        *("--cq-mod", "--size", "--sl", "--tx-depth", "--tos", "--qp-timeout", "--gid-index"),
        *("--use_cuda", "--bind_source_ip"),
    }
)
_WORDS = 60
_ENDS = frozenset({"&", "|", ";", "&&", "||", ">", "2>&1", "#"})
_NAME = re.compile(r"[\w.:-]{1,255}")


class PerftestCommand(NamedTuple):
    """A command line of perftest, as far as it is of use."""

    test: str
    device: str | None = None
    port: int | None = None
    duration: bool = False
    bidirectional: bool = False
    #: The address that a client is given.
    server: str | None = None


def perftest_command(line: str) -> PerftestCommand | None:
    """Read a line that runs a program of perftest; None for other lines."""
    found = _PROGRAM.search(line) if "ib_" in line else None
    if found is None or _NOTICE.match(line):
        return None
    command = PerftestCommand(found[1])
    words = iter(line[found.end() :].split()[:_WORDS])
    for word in words:
        if word in _ENDS:
            break
        command = _with_word(command, word, words)
    return command


def _with_word(command: PerftestCommand, word: str, words: Iterator[str]) -> PerftestCommand:
    option, joined, value = word.partition("=")
    field = _VALUES.get(option)
    if field or option in _TAKEN:
        value = value if joined else next(words, "")
        return _with_value(command, field, value)
    if option in ("-b", "--bidirectional"):
        return command._replace(bidirectional=True)
    if not word.startswith("-") and _NAME.fullmatch(word):
        return command._replace(server=word)
    return command


def _with_value(command: PerftestCommand, field: str | None, value: str) -> PerftestCommand:
    if field == "device" and _NAME.fullmatch(value):
        return command._replace(device=value)
    if field == "port" and value.isascii() and value.isdigit():
        return command._replace(port=int(value[:4]))
    if field == "duration":
        return command._replace(duration=True)
    return command
