"""perftest as text: ib_write_bw, ib_read_bw, ib_send_bw, ib_atomic_bw and their `_lat`.

Its JSON is read in `perftest_json`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from webhook.diagnose.tools.benchmarks.measurements import (
    Kind,
    Latency,
    MeasuredRow,
    Measurement,
    proven_throughput,
)
from webhook.diagnose.tools.observations import Line, LinkLayer

# The output of a run.
#
# Formats: linux-rdma/perftest, src/perftest_parameters.c and .h (RESULT_FMT*, REPORT_FMT*). What
# makes them hard to read:
#
# - Server and client may share a terminal, so that their lines are mixed and each row comes twice.
# - The header's unit may be that of the other process; `proven_throughput` proves the unit.
# - `-a` prints a row for each size at the client, and only the last at the server.
# - `-D` prints a peak of 0.00, and of latencies the average alone.
# - Lines such as "Conflicting CPU frequency values detected" stand between the rows.
# - The program prints nothing but an error where it fails early; the device is then known only from
#   the shell's echo of the command.

_TITLE = re.compile(
    r"(RDMA_Write|RDMA_Read|Send|Atomic) ([\w ()-]{0,60}?)(BW|Latency)\b.{0,30}Test$"
)
_VERBS = {"RDMA_Write": "write", "RDMA_Read": "read", "Send": "send", "Atomic": "atomic"}
_KINDS: dict[str, tuple[str, Kind]] = {"BW": ("bw", "bandwidth"), "Latency": ("lat", "latency")}
_LINKS: dict[str, LinkLayer] = {"IB": "InfiniBand", "Ethernet": "Ethernet"}

#: What the lines before a table tell, each with the values that were seen.
_FACTS = {
    "device": re.compile(r"Dual-port.{0,40}?\sDevice {0,20}: {0,20}([\w.-]{1,64})"),
    "qps": re.compile(r"Number of qps\s{0,20}:\s{0,20}(\d{1,6})\b"),
    "mtu": re.compile(r"Mtu\s{0,20}:\s{0,20}(\d{1,5})\[B\]"),
    "link": re.compile(r"Link type\s{0,20}:\s{0,20}(IB|Ethernet)\b"),
}  # fmt: skip
#: Before the title; what perftest prints of the buffer at the end is not the next run's.
_CUDA = re.compile(
    r"initializing CUDA|creating CUDA Ctx|Picking device No|allocated GPU buffer"
    r"|cuMemAlloc\(\) of a|Use CUDA memory\s{0,20}: ON"
)
_HERE = re.compile(r"127\.|localhost$|::1$")

_COLUMN = re.compile(
    r"#bytes|#sl|#iterations|BW peak\[|BW average\[|MsgRate\[|BW Port\d\[|MsgRate Port\d\["
    r"|CPU_Util\[|t_min\[|t_max\[|t_typical\[|t_avg\[|t_stdev\[|99% perc|99\.9% perc|tps average"
)
_ROW = re.compile(r"\d{1,20}(?:\s{1,60}\d{1,20}(?:\.\d{1,12})?){2,14}")
_T = TypeVar("_T")


class _Run:
    """A run as far as it was read."""

    def __init__(self, number: int) -> None:
        self.first = self.last = number
        self.titles: list[tuple[str, Kind, bool]] = []
        self.commands: list[PerftestCommand] = []
        self.facts: dict[str, list[str]] = {name: [] for name in _FACTS}
        self.ends = PerftestEnds()
        self.columns: list[str] = []
        #: By their words: two processes that share a terminal print each row twice.
        self.rows: dict[tuple[str, ...], MeasuredRow] = {}
        self.cuda = self.failed = False

    @property
    def over(self) -> bool:
        """Whether a title or a command that follows belongs to another run."""
        return bool(self.rows) or self.failed

    @property
    def told(self) -> bool:
        """Whether it is more than a command."""
        return bool(self.titles or self.columns or self.failed)


def read_perftest(lines: Iterable[Line], failures: Collection[int]) -> list[Measurement]:
    """Read all runs of perftest; `failures` are the numbers of lines that tell why one failed."""
    runs: list[_Run] = []
    cuda = False
    for line in lines:
        run = _run_of(line, runs)
        cuda = cuda or bool(_CUDA.search(line.text))
        if run is None:
            continue
        if _read(run, line):
            run.last = line.number
            run.cuda, cuda = run.cuda or (cuda and bool(run.titles)), cuda and not run.titles
        if line.number in failures and not run.rows:
            run.failed, run.last = True, line.number
    return [_measurement(run) for run in runs if run.told]


def _run_of(line: Line, runs: list[_Run]) -> _Run | None:
    """Return the run that a line belongs to, and begin one where it is a new one's first line."""
    begins = "#bytes" in line.text and "#iterations" in line.text
    title, command = _TITLE.search(line.text), perftest_command(line.text)
    if not runs or (runs[-1].over and (title or command)):
        if not (begins or title or command):
            return runs[-1] if runs else None
        runs.append(_Run(line.number))
    return runs[-1]


def _read(run: _Run, line: Line) -> bool:
    """Take what a line says; return whether it says anything."""
    if row := _row(run, line):
        run.rows.setdefault(*row)
    elif "#bytes" in line.text and "#iterations" in line.text:
        run.columns = _COLUMN.findall(line.text)
    elif title := _TITLE.search(line.text):
        name, kind = _KINDS[title[3]]
        run.titles.append((f"ib_{_VERBS[title[1]]}_{name}", kind, "Bidirectional" in title[2]))
    elif command := perftest_command(line.text):
        run.commands.append(command)
    else:
        return not run.over and _read_facts(run, line.text)
    return True


def _read_facts(run: _Run, text: str) -> bool:
    found = {name: fact[1] for name, pattern in _FACTS.items() if (fact := pattern.search(text))}
    for name, value in found.items():
        run.facts[name].append(value)
    return run.ends.read(text) or bool(found)


def _row(run: _Run, line: Line) -> tuple[tuple[str, ...], MeasuredRow] | None:
    """Return the words of a row and the row; None for other lines."""
    if not run.columns or not _ROW.fullmatch(line.text):
        return None
    words = line.text.split()
    found = dict(zip(run.columns, words, strict=False))
    whole = all(found.get(one, "0").isdecimal() for one in ("#bytes", "#iterations"))
    if len(words) > len(run.columns) or not whole:
        return None
    size = int(found["#bytes"])
    row = MeasuredRow(line.number, size, _number(found.get("#iterations"), int))
    return tuple(words), _with_bandwidth(row, size, found)._replace(latency=_latency(found))


def _number(word: str | None, sort: type[_N]) -> _N | None:
    return None if word is None else sort(word)


def _with_bandwidth(row: MeasuredRow, size: int, found: dict[str, str]) -> MeasuredRow:
    average, rate = found.get("BW average["), found.get("MsgRate[")
    shown = (
        proven_throughput(size, average, found.get("BW peak["), rate) if average and rate else None
    )
    return row._replace(gbps=shown.average, peak_gbps=shown.peak) if shown else row


def _latency(found: dict[str, str]) -> Latency | None:
    names = ("t_min[", "t_typical[", "t_avg[", "t_max[", "99% perc")
    values = [_number(found.get(name), float) for name in names]
    return Latency(*values) if any(one is not None for one in values) else None


def _measurement(run: _Run) -> Measurement:
    test, kind, bidirectional = run.titles[0] if run.titles else _untitled(run)
    facts, commands = run.facts, run.commands
    link = _only(facts["link"])
    return Measurement(
        program="perftest",
        test=test,
        kind=kind,
        lines=(run.first, run.last),
        rows=tuple(run.rows.values()),
        device=_only(facts["device"] or [one.device for one in commands]),
        port=_only([one.port for one in commands]),
        link_layer=_LINKS[link] if link else None,
        mtu=min(map(int, facts["mtu"]), default=None),
        qps=_number(_only(facts["qps"]), int),
        bidirectional=bidirectional,
        cuda=run.cuda or None,
        duration=_duration(run),
        loopback=_loopback(run),
    )


def _untitled(run: _Run) -> tuple[str | None, Kind | None, bool | None]:
    """Tell the test by the command, or its kind by the columns of the table."""
    for command in run.commands:
        _, kind = _KINDS["BW" if command.test.endswith("_bw") else "Latency"]
        return command.test, kind, command.bidirectional
    if "BW average[" in run.columns:
        return None, "bandwidth", None
    return None, "latency" if "t_min[" in run.columns or "t_avg[" in run.columns else None, None


def _duration(run: _Run) -> bool | None:
    if "tps average" in run.columns or any(one.duration for one in run.commands):
        return True
    return False if run.commands else None


def _loopback(run: _Run) -> str | None:
    """Say why both ends seem to be on one machine: by the command, or by their addresses."""
    servers = [one.server for one in run.commands if one.server and _HERE.match(one.server)]
    if servers:
        return f"the client connected to {servers[0]}"
    if run.ends.same is not None:
        return "both ends have the same address" if run.ends.same else ""
    if len(run.titles) > 1:
        return "server and client wrote into one terminal, and no address tells them apart"
    return None


def _only(found: Sequence[_T | None]) -> _T | None:
    """Return the value that all agree on."""
    values = {one for one in found if one is not None}
    return values.pop() if len(values) == 1 else None


_N = TypeVar("_N", int, float)


# Commands of perftest that a terminal or a script shows before their output.
#
# Options: linux-rdma/perftest, src/perftest_parameters.c (`usage`).

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


# The addresses that perftest prints of its two ends, and whether they are one port.
#
# A line for each queue pair, first the local ones and then the remote ones; on RoCE each is
# followed by a line with the GID, since all LIDs are 0 there.

_ADDRESS = re.compile(r"(local|remote) address: {1,4}LID (0x[0-9a-fA-F]{1,8})?")
_GID = re.compile(r"GID: ((?:\d{1,3}:){15}\d{1,3})$")


class PerftestEnds:
    """The addresses of both ends, as far as they were read."""

    def __init__(self) -> None:
        self._side = ""
        self._lids: dict[str, set[str]] = {"local": set(), "remote": set()}
        self._gids: dict[str, set[str]] = {"local": set(), "remote": set()}

    def read(self, text: str) -> bool:
        """Take what a line says; return whether it says anything."""
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
    def same(self) -> bool | None:
        """Whether both ends have one address; None if the address of one is not known."""
        for seen in (self._gids, self._lids):
            if seen["local"] and seen["remote"]:
                return len(seen["local"] | seen["remote"]) == 1
        return None
