"""Reader for what tools and shells print in place of an output."""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import FailureKind, Line, Origin, ToolFailure
from webhook.diagnose.tools.readers.layouts import LineByLineReader, Reader, RowReading

# Messages of tools that show nothing, or stop before the end.
#
#   bash: line 1: ibstat: command not found              a shell: the node lacks the tool
#   /bin/sh: 1: ibstat: not found
#   No IB devices found                                  ibv_devinfo: the node has no device
#   Failed to get IB devices list: Function not implemented
#   Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)      ibstatus
#   ibpanic: [711] main: stat of IB device 'mlx5_1' failed: No such file or directory  ibstat
#   NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. [...]
#
# Ansible writes "non-zero return code" behind the last line. A shell's message begins with the
# shell's name, without which it would be that of a node with the shell's name. Sources: bash,
# execute_cmd.c; dash, exec.c; zsh, Src/exec.c; rdma-core, libibverbs/examples/devinfo.c, and
# infiniband-diags, ibstat.c and scripts/ibstatus.in; NVIDIA, nvidia-smi.

_FAILURES = "failures"

_ANSIBLE = r"(?:non-zero return code)?\s*"
_TOOL = (
    r"(?P<tool>ib(?:stat|status|v_devinfo|v_devices|dev2netdev|linkinfo)|rdma|show_gids|mst|lspci"
    r"|perfquery|nvidia-smi|amd-smi|rocm-smi)"
)
_NOT_FOUND = re.compile(
    r"\s{0,8}(?:"
    r"(?:-?(?:ba|da|a|k|z)?sh|/\S{1,60}|sudo|\S{1,60}: line \d{1,4}): (?:(?:line )?\d{1,4}: )?"
    rf"{_TOOL}: (?:command )?not found|zsh: command not found: {_TOOL.replace('tool', 'typed')})"
    + _ANSIBLE,
    re.ASCII,
)
#: A message, whose end may have been cut, the tool that writes it, and what it shows.
_MESSAGES: tuple[tuple[re.Pattern[str], str, FailureKind], ...] = (
    (re.compile(rf"(No IB devices found){_ANSIBLE}"), "ibv_devinfo", "no device"),
    (
        re.compile(rf"(Failed to get IB devices list): [A-Z][A-Za-z ]{{2,60}}?{_ANSIBLE}"),
        "ibv_devinfo",
        "no device",
    ),
    (
        re.compile(
            r"(Fatal error:\s{1,4}device '\*': sys files not found) "
            rf"\(/sys/class/infiniband/\*/ports\){_ANSIBLE}"
        ),
        "ibstatus",
        "no device",
    ),
    (
        re.compile(
            r"ibpanic: \[\d{1,9}\] main: "
            rf"(stat of IB device '[^']{{1,63}}' failed): [A-Z][A-Za-z ]{{2,60}}?{_ANSIBLE}"
        ),
        "ibstat",
        "stopped",
    ),
    (
        re.compile(
            r"(NVIDIA-SMI has failed because it could(?:n't| not) communicate with the NVIDIA "
            rf"driver)\..{{0,200}}?{_ANSIBLE}"
        ),
        "nvidia-smi",
        "no driver",
    ),
)


def _failure_row(line: Line) -> RowReading | None:
    """Read a message."""
    missing = _NOT_FOUND.fullmatch(line.text)
    if missing:
        tool = missing["tool"] or missing["typed"]
        return RowReading((ToolFailure(Origin(tool, line.number), "not installed"),))
    text = line.text.strip()
    for pattern, tool, kind in _MESSAGES:
        message = pattern.fullmatch(text)
        if message:
            return RowReading((ToolFailure(Origin(tool, line.number), kind, message[1]),))
    return None


read_failures = LineByLineReader(_failure_row)
FAILURES = Reader(_FAILURES, read_failures)
