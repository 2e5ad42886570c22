"""Nodes named by prefixes, headers and prompts: pdsh, clush, dshbak, kubectl, shells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.readers.sysfs import DEVICE_LIST
from webhook.diagnose.tools.transcripts.commands import is_command, nodes_of_command
from webhook.diagnose.tools.transcripts.segments import (
    HOST,
    NodeMarker,
    NodeOutput,
    is_script_header,
)

# The prefixes of pdsh and clush: each line begins with the name of its node.
#
#   gpu-01: mlx5_0 port 1 ==> ibs1 (Up)
#
# Tools write "state: Active", too. So a word is the name of a node only if a reader recognizes a
# line after it, or if it differs from such a name only in digits (gpu-03, which has no such
# command).

_NODE_PREFIX = re.compile(rf"(?P<node>{HOST}):(?: (?P<text>.*))?", re.ASCII | re.DOTALL)
#: A remark of pdsh or clush about a node.
_REMARK = re.compile(rf"(?:pdsh@{HOST}|clush): (?P<node>{HOST}): (?P<text>.*)", re.ASCII)


def split_by_prefix(output: NodeOutput) -> Iterator[NodeOutput]:
    """Split into the lines without a prefix, if any, and an output for each node."""
    split = [_split_prefix(line) for line in output.lines]
    nodes = _nodes(prefixed for prefixed in split if prefixed is not None)
    if not nodes:
        yield output
        return
    unprefixed: list[Line] = []
    by_node: dict[str, list[Line]] = {}
    for line, prefixed in zip(output.lines, split, strict=True):
        if prefixed is None or prefixed[0] not in nodes:
            unprefixed.append(line)
        else:
            by_node.setdefault(prefixed[0], []).append(prefixed[1])
    if any(line.text.strip() for line in unprefixed):
        yield output._replace(lines=tuple(unprefixed))
    for node, lines in by_node.items():
        yield NodeOutput(node, tuple(lines))


def _split_prefix(line: Line) -> tuple[str, Line] | None:
    match = _REMARK.fullmatch(line.text) or _NODE_PREFIX.fullmatch(line.text)
    return (match["node"], line._replace(text=match["text"] or "")) if match else None


def _nodes(prefixed: Iterable[tuple[str, Line]]) -> set[str]:
    by_name: dict[str, list[Line]] = {}
    for name, line in prefixed:
        by_name.setdefault(name, []).append(line)
    # One call for all lines: a call for each of many names would be slow.
    evidence = _evidence([line for lines in by_name.values() for line in lines])
    certain = {
        name
        for name, lines in by_name.items()
        if any(line.number in evidence or is_script_header(line.text) for line in lines)
    }
    shapes = {_shape(name) for name in certain}
    return {name for name in by_name if _shape(name) in shapes}


def _evidence(lines: list[Line]) -> set[int]:
    """Return the numbers of the lines that are certainly from a tool."""
    observations = read(lines).observations
    # "hca_id: mlx5_0" is not a node that lists its devices.
    return {
        observation.origin.line
        for observation in observations
        if observation.origin.tool != DEVICE_LIST.tool
    }


def _shape(name: str) -> str:
    return re.sub(r"\d+", "0", name)


# The headers of `clush -b` and of dshbak, above an output of one or several nodes.
#
#   ----------------
#   gpu-[01-02]
#   ----------------
#   mlx5_0 port 1 ==> ibs1 (Up)
#
# clush writes 15 dashes, and the number of nodes after their names: "gpu-[01-02] (2)"; dshbak
# writes 16. Sources: ClusterShell, lib/ClusterShell/CLI/Display.py; pdsh, scripts/dshbak.in.

_RULE = re.compile(r"-{15,16}\s*")
_NAMES = re.compile(r"(\S{1,4000})(?: \(\d{1,6}\))?\s*", re.ASCII)
#: Nodes times lines: a short text must not expand to a huge one.
_MAX_COPIES = 10_000_000


def find_folded_header(lines: Sequence[Line], index: int) -> NodeMarker | None:
    """Return the marker of a header of three lines, or None."""
    if not lines[index].text.startswith("---") or len(lines) < index + 3:
        return None
    rule, named, end = (line.text for line in lines[index : index + 3])
    names = _NAMES.fullmatch(named)
    if names is None or not _RULE.fullmatch(rule) or rule.strip() != end.strip():
        return None
    nodes = unfold(names[1])
    return NodeMarker(nodes, index + 3) if 0 < len(nodes) * len(lines) <= _MAX_COPIES else None


# Unfold the names of nodes: "n[01-03,7],m1" is n01, n02, n03, n7 and m1.

#: The maximum number of names; a text that unfolds to more is not a list of nodes.
MAX_NAMES = 16_384

_NAME = re.compile(r"(?:[\w.-]|\[[\d,-]{1,200}\]){1,300}", re.ASCII)
_PART = re.compile(r"\[([\d,-]{1,200})\]|([\w.-]{1,255})", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def unfold(folded: str) -> tuple[str, ...]:
    """Return the names; () if the text is not a list of at most `MAX_NAMES` names."""
    names: list[str] = []
    # A comma inside brackets separates numbers.
    for name in re.split(r",(?![\d,-]{0,200}\])", folded):
        unfolded = _unfold_name(name) if _NAME.fullmatch(name) else ()
        if not unfolded or len(names) + len(unfolded) > MAX_NAMES:
            return ()
        names.extend(unfolded)
    return tuple(names)


def _unfold_name(folded: str) -> tuple[str, ...]:
    names: tuple[str, ...] = ("",)
    for numbers, text in _PART.findall(folded):
        ends = _numbers(numbers) if numbers else (text,)
        if len(names) * len(ends) > MAX_NAMES:
            return ()
        names = tuple(name + end for name in names for end in ends)
    return names


def _numbers(listed: str) -> tuple[str, ...]:
    numbers: list[str] = []
    for span in listed.split(","):
        ends = _RANGE.fullmatch(span)
        if ends is None:
            return ()
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if last - first >= MAX_NAMES:
            return ()
        numbers.extend(f"{number:0{len(ends[1])}}" for number in range(first, last + 1))
    return tuple(numbers)


# The prefixes of `kubectl logs --prefix`: a pod and its container.
#
#   [pod/rdma-webhook-discover-x7k2p/collect] ### host: gpu-01
#
# A pod's name does not name its node, but the header of the script does. Source: kubectl,
# pkg/cmd/logs/logs.go, addPrefixIfNeeded.

_POD_PREFIX = re.compile(r"\[(?P<pod>pod/[a-z0-9.-]{1,253}/[a-z0-9.-]{1,253})\](?: (?P<text>.*))?")


def split_by_pod(output: NodeOutput) -> Iterator[NodeOutput]:
    """Split into the lines without such a prefix, and an output for each container."""
    unprefixed: list[Line] = []
    by_pod: dict[str, list[Line]] = {}
    for line in output.lines:
        prefixed = _POD_PREFIX.fullmatch(line.text)
        if prefixed is None:
            unprefixed.append(line)
        else:
            plain = line._replace(text=prefixed["text"] or "")
            by_pod.setdefault(prefixed["pod"], []).append(plain)
    yield output._replace(lines=tuple(unprefixed))
    for lines in by_pod.values():
        yield output._replace(lines=tuple(lines))


# The prompts of a terminal, each followed by a typed command.
#
#   root@gpu-01:~# ibstat                       [user@gpu-01 ~]$ ibstat
#   gpu-01:~ # ibstat                           gpu-01$ ibstat
#   $ ibstat                                    sh-5.1# ibstat

#: Characters of the longest line with a prompt; a command in it is shorter.
_MAX_LINE = 4000
_COMMAND = r"(?:\s+(?P<command>.*))?"
_PATH = r"(?:~|/(?!/))[^#$%>]{0,200}?"
_NAMED = tuple(
    re.compile(rf"\s{{0,8}}(?:\([\w.-]{{1,60}}\) )?{prompt}{_COMMAND}", re.ASCII)
    for prompt in (
        rf"[\w.+-]{{1,64}}@(?P<node>{HOST})(?:[: ]{_PATH}|:)?\s?[#$%>]",
        rf"\[(?:[\w.+-]{{1,64}}@)?(?P<node>(?!\d+\]){HOST})(?: [^\]]{{1,200}})?\] ?[#$%]",
        rf"(?P<node>{HOST}):{_PATH}\s?[#$]",
        rf"(?P<node>{HOST})\$",
        # Not "Port#", a column heading.
        rf"(?P<node>(?=\w{{0,80}}[\d.-]){HOST})#",
    )
)
#: Prompts without a name.
_UNNAMED = re.compile(
    rf"\s{{0,8}}(?:(?:ba|da|z|k)?sh-\d{{1,3}}\.\d{{1,3}}\w{{0,20}}[#$]|{_PATH} [#$]|\$){_COMMAND}",
    re.ASCII,
)
#: The prompt of root, or a comment.
_ROOT = re.compile(r"# (?P<command>.+)")


class Prompts:
    """A finder for prompts, which tracks the open shell."""

    def __init__(self) -> None:
        #: The node of the open shell, for prompts without a name.
        self._shell: str | None = None

    def find(self, lines: Sequence[Line], index: int) -> NodeMarker | None:
        """Return the marker of a prompt, or None; a command may continue on the next lines."""
        text = lines[index].text
        prompt = _prompt(text) if len(text) <= _MAX_LINE else None
        if prompt is None:
            return None
        named = prompt.groupdict().get("node")
        command, end = (prompt["command"] or "").strip(), index + 1
        while command.endswith("\\") and end < len(lines) and len(command) <= _MAX_LINE:
            command = f"{command[:-1].strip()} {lines[end].text.strip().removeprefix('> ')}"
            end += 1
        # A prompt with a name ends the shell that an earlier command opened.
        shell = None if named else self._shell
        output_node, self._shell = nodes_of_command(command, named or shell, shell)
        return NodeMarker((output_node,), end, command or None)


def _prompt(text: str) -> re.Match[str] | None:
    if not any(sign in text for sign in "#$%>"):
        return None
    root = _ROOT.fullmatch(text)
    if root is not None:
        return root if is_command(root["command"]) else None
    return next(filter(None, (pattern.fullmatch(text) for pattern in (_UNNAMED, *_NAMED))), None)
