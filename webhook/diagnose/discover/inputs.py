"""The input of discover: the output of tools, how to collect it, and the output of this node."""

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

from webhook.diagnose.discover.cut_outputs import CutOutput, cut_texts
from webhook.diagnose.discover.site import SourcedObservation
from webhook.diagnose.discover.unanswered import unanswered_hosts
from webhook.diagnose.discover.unread_lines import UnreadLine
from webhook.diagnose.tools.observations import Line, Observation, PropertyObservation
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.transcripts import NodeOutput, split_by_node
from webhook.diagnose.tools.transcripts.commands import lone_value_observations
from webhook.diagnose.tools.transcripts.failures import failed_hosts

# Read the output of tools, and name the node of each part.
#
# The name of a node comes from the text itself: a prefix of pdsh, a prompt, the output of
# `hostname`; else it is the name of the file or folder.

_EXCERPT_LENGTH = 60
#: Characters of a text that are searched for its type, if it is not the output of tools.
_BEGINNING = 4000
#: Texts that people pass by mistake: a pattern, and a description.
_OTHER_TEXTS = (
    (re.compile(r"[\0\ufffd]"), "is not text"),
    (
        re.compile(r"^kind: FabricConfiguration\b|^fabrics:", re.MULTILINE),
        "is a fabrics file, such as discover writes (rdma-webhook check-config checks it)",
    ),
    (
        re.compile(r'^\s{0,8}(?:- )?"?kind"?: "?(?:Node|NodeList|List)\b', re.MULTILINE),
        "is output of kubectl (pass it with --nodes)",
    ),
)
_TOOLS = (
    "ibstat, ibstatus, ibv_devinfo, ibdev2netdev, rdma link, lspci -nn, mst status -v, nvidia-smi "
    "-L, nvidia-smi topo -m, amd-smi list, rocm-smi, show_gids, ip -br a, or of the script that "
    "rdma-webhook discover script prints"
)


class NodeText(NamedTuple):
    """The output of tools as one text."""

    #: The file, for messages.
    name: str
    #: The node, unless the text itself names one.
    node: str
    text: str


class ReadInputs(NamedTuple):
    """The observations of all texts."""

    #: By node.
    nodes: dict[str, list[SourcedObservation]]
    #: A sentence for each text without a recognized line.
    problems: tuple[str, ...]
    #: Host that failed, and whose output no text has → the reason.
    unanswered: dict[str, str]
    #: Outputs that end too early.
    cuts: tuple[CutOutput, ...] = ()
    unread: tuple[UnreadLine, ...] = ()


def read_texts(texts: Iterable[NodeText]) -> ReadInputs:
    """Read texts; a text without a recognized line becomes a problem."""
    nodes: dict[str, list[SourcedObservation]] = {}
    problems: list[str] = []
    failed: dict[str, str] = {}
    cuts: list[CutOutput] = []
    unread: list[UnreadLine] = []
    for text in texts:
        parts_by_node = _by_node(text)
        by_node = {
            node: [observation for part in parts for observation in part.observations]
            for node, parts in parts_by_node.items()
            if any(part.is_recognized for part in parts)
        }
        for node, parts in parts_by_node.items():
            cuts += (CutOutput(node, text.name, cut) for part in parts for cut in part.cuts)
            unread += (
                UnreadLine(node, text.name, *line, part.output.exit_status not in (0, None))
                for part in parts
                for line in part.unread
            )
        failed_here = failed_hosts(text.text)
        failed |= failed_here
        if not by_node and not failed_here:
            problems.append(_problem(text))
        for node, observations in by_node.items():
            nodes.setdefault(node, []).extend(
                SourcedObservation(text.name, observation) for observation in observations
            )
    return ReadInputs(
        nodes, tuple(problems), unanswered_hosts(failed, nodes), tuple(cuts), tuple(unread)
    )


class _ReadPart(NamedTuple):
    """A part of a text, and what it shows."""

    output: NodeOutput
    observations: tuple[Observation, ...]
    #: What ends too early, as sentences.
    cuts: tuple[str, ...]
    #: Whether a line of it is a known tool's.
    is_recognized: bool
    #: The lines that show nothing.
    unread: tuple[Line, ...]


def _by_node(text: NodeText) -> dict[str, list[_ReadPart]]:
    outputs = split_by_node(text.text)
    last = {output.node: index for index, output in enumerate(outputs)}
    parts = [
        _read_part(output, index == 0, index == last[output.node])
        for index, output in enumerate(outputs)
    ]
    recognized = [part for part in parts if part.is_recognized]
    hostnames = {name for part in recognized for name in _hostnames(part.observations)}
    named = {part.output.node for part in recognized if part.output.node} or hostnames
    only_node = named.pop() if len(named) == 1 else None
    by_node: dict[str, list[_ReadPart]] = {}
    for part in parts:
        name = _name(part.output, part.observations, only_node) or text.node
        by_node.setdefault(name, []).append(part)
    return by_node


def _read_part(output: NodeOutput, is_first: bool, is_last: bool) -> _ReadPart:
    """Return what a part shows, possibly nothing.

    `is_first` in its text, `is_last` among the parts of its node.
    """
    reading = read(output.lines)
    lone_values = tuple(
        lone_value_observations(output, reading.recognized_lines, is_first=is_first)
    )
    observations = (*reading.observations, *lone_values)
    cuts = tuple(cut_texts(output, reading, is_last=is_last))
    is_recognized = bool(observations or reading.recognized_lines or cuts)
    numbers = {*reading.recognized_lines, *(value.origin.line for value in lone_values)}
    unread = (line for line in output.lines if line.text.strip() and line.number not in numbers)
    return _ReadPart(output, observations, cuts, is_recognized, tuple(unread))


def _hostnames(observations: Iterable[Observation]) -> set[str]:
    """Return the names that hostname and similar commands printed."""
    return {
        observation.value
        for observation in observations
        if isinstance(observation, PropertyObservation) and observation.name == "hostname"
    }


def _name(
    part: NodeOutput, observations: Sequence[Observation], only_node: str | None
) -> str | None:
    """Return the node of a part: by its prefix or prompt, else by the output of hostname.

    A part without either, such as the lines before the first prompt, belongs to the only node.
    """
    hostnames = _hostnames(observations)
    return part.node or (hostnames.pop() if len(hostnames) == 1 else None) or only_node


def _problem(text: NodeText) -> str:
    for pattern, description in _OTHER_TEXTS:
        if pattern.search(text.text[:_BEGINNING]):
            return f"{text.name}: {description}; expected the output of {_TOOLS}"
    lines = [line.strip() for line in text.text.splitlines()]
    number = next((number for number, line in enumerate(lines, 1) if line), 0)
    if not number:
        return f"{text.name}: is empty; expected the output of {_TOOLS}"
    excerpt = lines[number - 1]
    excerpt = f"{excerpt[:_EXCERPT_LENGTH]}..." if len(excerpt) > _EXCERPT_LENGTH else excerpt
    return (
        f"{text.name}:{number}: {excerpt!r} is not the output of a known tool; expected the output "
        f"of {_TOOLS}"
    )


# Collect the output of tools on nodes: a script, and a DaemonSet that runs it on each node.
#
# The script is POSIX sh, tested in dash, bash and busybox. Its output has the headers that
# `webhook.diagnose.tools.transcripts` reads: the format, the node, and each command with its
# exit status.

_PACKAGE = files(__package__)


def collect_script() -> str:
    """Return the script, which sh runs on a node and which prints to standard output."""
    return _PACKAGE.joinpath("collect.sh").read_text(encoding="utf-8")


def daemonset(image: str, namespace: str, run: str) -> str:
    """Return the manifest that runs the script once on each node; its output is in the pods' logs.

    The image needs sh, grep and cat; with ibstat, rdma and other tools in it, the pods show more.
    `run` is part of all names and labels: nobody can label a pod for a run before it begins.
    """
    template = _PACKAGE.joinpath("daemonset.yaml").read_text(encoding="utf-8")
    return (
        template.replace("@SCRIPT@", indent(collect_script().rstrip(), "    "))
        .replace("@NAMESPACE@", namespace)
        .replace("@NAME@", f"rdma-webhook-discover-{run}")
        .replace("@IMAGE@", json.dumps(image))
    )


# The output of tools on this node: `discover --run`.

#: Seconds for the whole script; each of its commands has 20.
_MAX_SECONDS = 300


def run_here(seconds: float = _MAX_SECONDS) -> str:
    """Run the script on this node, and return its output; never raise.

    An error becomes a note in the text, after the output that could be collected.
    """
    try:
        with subprocess.Popen(  # noqa: S603
            ["sh", "-c", collect_script()],  # noqa: S607
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            return _output_of(process, seconds)
    except OSError as error:
        return f"### note: cannot run sh: {error.strerror}\n"


def _output_of(process: subprocess.Popen[bytes], seconds: float) -> str:
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        return f"{_decode(out)}\n### note: stopped after {seconds:.0f} s\n"
    return _decode(out)


def _decode(out: bytes) -> str:
    return out.decode("utf-8", "replace")
