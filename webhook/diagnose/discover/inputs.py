"""The input of discover: texts of tools, where to collect them, and what this machine shows."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterable, Sequence
from importlib.resources import files
from textwrap import indent
from typing import NamedTuple

from webhook.diagnose.discover.site import SourcedObservation
from webhook.diagnose.tools.observations import Observation, SettingObservation
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.transcripts import NodeOutput, split_by_node
from webhook.diagnose.tools.transcripts.commands import short_answers

# Read texts of tools, and say of which node each part is.
#
# The name of a node comes from the text itself: a prefix of pdsh, a prompt, what `hostname`
# printed; else it is the name of the file or folder.

_SHOWN = 60
#: Characters of a text that say what it is, if it is no output of tools.
_BEGINNING = 4000
#: Other texts that people have at hand: a sign of them, and what to do with them.
_OTHERS = (
    (re.compile(r"[\0\ufffd]"), "is not text"),
    (
        re.compile(r"^kind: FabricConfiguration\b|^fabrics:", re.MULTILINE),
        "is a fabrics file, which discover writes (rdma-webhook check-config checks it)",
    ),
    (
        re.compile(r'^\s{0,8}(?:- )?"?kind"?: "?(?:Node|NodeList|List)\b', re.MULTILINE),
        "is what kubectl prints (give it behind --nodes)",
    ),
)
_TOOLS = (
    "ibstat, ibstatus, ibv_devinfo, ibdev2netdev, rdma link, lspci -nn, mst status -v, nvidia-smi "
    "-L, nvidia-smi topo -m, show_gids, ip -br a, and what rdma-webhook discover script collects"
)


class NodeText(NamedTuple):
    """A text with the output of tools."""

    #: The file, for messages.
    name: str
    #: The node that it is of, if the text itself does not say.
    node: str
    text: str


class ReadInputs(NamedTuple):
    """What all texts show."""

    #: By node.
    nodes: dict[str, list[SourcedObservation]]
    #: A sentence for each text in which nothing was recognised.
    problems: tuple[str, ...]


def read_texts(texts: Iterable[NodeText]) -> ReadInputs:
    """Read texts; a text of which nothing is recognised becomes a problem."""
    nodes: dict[str, list[SourcedObservation]] = {}
    problems: list[str] = []
    for text in texts:
        found = _of_text(text)
        if not found:
            problems.append(_problem(text))
        for node, seen in found.items():
            nodes.setdefault(node, []).extend(SourcedObservation(text.name, one) for one in seen)
    return ReadInputs(nodes, tuple(problems))


def _of_text(text: NodeText) -> dict[str, list[Observation]]:
    parts = [
        (part, seen)
        for at, part in enumerate(split_by_node(text.text))
        if (seen := _read(part, begins=at == 0)) is not None
    ]
    told = {name for _, seen in parts for name in _told(seen)}
    named = {part.node for part, _ in parts if part.node} or told
    alone = named.pop() if len(named) == 1 else None
    found: dict[str, list[Observation]] = {}
    for part, seen in parts:
        found.setdefault(_name(part, seen, alone) or text.node, []).extend(seen)
    return found


def _read(part: NodeOutput, *, begins: bool) -> tuple[Observation, ...] | None:
    """Return what a part shows, which may be nothing; None where nothing is recognised."""
    reading = read(part.lines)
    answers = tuple(short_answers(part, reading.taken, begins=begins))
    return (*reading.sightings, *answers) if reading.taken or answers else None


def _told(seen: Iterable[Observation]) -> set[str]:
    """Return the names that hostname and its like printed."""
    settings = (one for one in seen if isinstance(one, SettingObservation))
    return {one.value for one in settings if one.setting == "hostname"}


def _name(part: NodeOutput, seen: Sequence[Observation], alone: str | None) -> str | None:
    """Return the node of a part: what its prefix or prompt says, then what hostname printed.

    A part without either, such as the lines before the first prompt, is of the only node there is.
    """
    told = _told(seen)
    return part.node or (told.pop() if len(told) == 1 else None) or alone


def _problem(text: NodeText) -> str:
    for sign, what in _OTHERS:
        if sign.search(text.text[:_BEGINNING]):
            return f"{text.name}: {what}: expected the output of {_TOOLS}"
    lines = [line.strip() for line in text.text.splitlines()]
    number = next((at for at, line in enumerate(lines, 1) if line), 0)
    if not number:
        return f"{text.name}: is empty: expected the output of {_TOOLS}"
    shown = lines[number - 1]
    shown = f"{shown[:_SHOWN]}..." if len(shown) > _SHOWN else shown
    return f"{text.name}:{number}: {shown!r} is not the output of a known tool: expected {_TOOLS}"


# What collects the output of tools on nodes: a script, and a DaemonSet that runs it on each node.
#
# The script is POSIX sh, tested in dash, bash and busybox. Its output has the headers that
# `webhook.diagnose.tools.transcripts` knows: the format, the machine, and each command with its
# exit status.

_PACKAGE = files(__package__)


def collect_script() -> str:
    """Return the script, which is run on a machine by sh and prints to standard output."""
    return _PACKAGE.joinpath("collect.sh").read_text(encoding="utf-8")


def daemonset(image: str, namespace: str) -> str:
    """Return the manifest that runs the script once on each node, and prints to its pods' logs.

    The image needs sh, grep and cat; with ibstat, rdma and other tools in it, the pods show more.
    """
    template = _PACKAGE.joinpath("daemonset.yaml").read_text(encoding="utf-8")
    return (
        template.replace("@SCRIPT@", indent(collect_script().rstrip(), "    "))
        .replace("@NAMESPACE@", namespace)
        .replace("@IMAGE@", json.dumps(image))
    )


# What this machine shows: `discover --run`.

#: For the whole script, in seconds; each of its commands has 20 of its own.
_LONGEST = 300


def run_here(seconds: float = _LONGEST) -> str:
    """Run the script on this machine, and return what it prints; never raises.

    What is wrong is a note in the text, after what could be collected.
    """
    try:
        with subprocess.Popen(  # noqa: S603
            ["sh", "-c", collect_script()],  # noqa: S607
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            return _printed(process, seconds)
    except OSError as error:
        return f"### note: cannot run sh: {error.strerror}\n"


def _printed(process: subprocess.Popen[bytes], seconds: float) -> str:
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        return f"{_text(out)}\n### note: stopped after {seconds:.0f} s\n"
    return _text(out)


def _text(out: bytes) -> str:
    return out.decode("utf-8", "replace")
