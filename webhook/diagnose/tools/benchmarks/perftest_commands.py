"""Commands of perftest that a terminal or a script shows before their output, and its addresses.

Options: linux-rdma/perftest, src/perftest_parameters.c (`usage`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_PROGRAM = re.compile(r"(?:^|[\s/;&|(])(ib_(?:write|read|send|atomic)_(?:bw|lat))(?=\s|$|&)")
#: A line of a shell when a job ends, or of the kernel when it kills a process.
_NOTICE = re.compile(r"\[\d{1,6}\][+-]? |.{0,200} invoked oom-killer")
#: Option with a value → the field of the command.
_VALUES = {
    "-d": "device", "--ib-dev": "device", "-i": "port", "--ib-port": "port",
    "-D": "duration", "--duration": "duration",
}  # fmt: skip
#: Options with a value that is ignored; the word after them is not a server.
_IGNORED_OPTIONS = frozenset(
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
    """A command line of perftest, with the options that matter."""

    test: str
    device: str | None = None
    port: int | None = None
    has_duration: bool = False
    bidirectional: bool = False
    #: The server address of a client.
    server: str | None = None


def perftest_command(line: str) -> PerftestCommand | None:
    """Return the perftest command in a line; None for other lines."""
    match = _PROGRAM.search(line) if "ib_" in line else None
    if match is None or _NOTICE.match(line):
        return None
    command = PerftestCommand(match[1])
    words = iter(line[match.end() :].split()[:_WORDS])
    for word in words:
        if word in _ENDS:
            break
        command = _with_word(command, word, words)
    return command


def _with_word(command: PerftestCommand, word: str, words: Iterator[str]) -> PerftestCommand:
    option, joined, value = word.partition("=")
    field = _VALUES.get(option)
    if field or option in _IGNORED_OPTIONS:
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
        return command._replace(has_duration=True)
    return command


# The addresses of perftest's two ends, and whether they are one port.
#
# Each queue pair has a line, first the local ones and then the remote ones; on RoCE a line with the
# GID follows, since all LIDs are 0 there.

_ADDRESS = re.compile(r"(local|remote) address: {1,4}LID (0x[0-9a-fA-F]{1,8})?")
_GID = re.compile(r"GID: ((?:\d{1,3}:){15}\d{1,3})$")


class PerftestEnds:
    """The addresses of both ends that are being read."""

    def __init__(self) -> None:
        self._side = ""
        self._lids: dict[str, set[str]] = {"local": set(), "remote": set()}
        self._gids: dict[str, set[str]] = {"local": set(), "remote": set()}

    def read(self, text: str) -> bool:
        """Add the address in a line; return whether there is one."""
        if address := _ADDRESS.search(text):
            self._side, lid = address[1], address[2]
            if lid and int(lid, 16):
                self._lids[self._side].add(lid)
            return True
        gid = _GID.search(text)
        if gid and self._side and gid[1].strip("0:"):
            self._gids[self._side].add(gid[1])
        return bool(gid)

    @property
    def shared_address(self) -> bool | None:
        """Whether both ends have the same address; None if either is unknown."""
        for addresses in (self._gids, self._lids):
            if addresses["local"] and addresses["remote"]:
                return len(addresses["local"] | addresses["remote"]) == 1
        return None
