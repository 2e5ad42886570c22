"""Machines named by prefixes, headers and prompts: pdsh, clush, dshbak, kubectl, shells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.readers.sysfs import DEVICE_LIST
from webhook.diagnose.tools.transcripts.commands import is_command, where
from webhook.diagnose.tools.transcripts.segments import (
    HOST,
    NodeMarker,
    NodeOutput,
    is_script_header,
)

# The prefixes of pdsh and clush: each line begins with the name of its machine.
#
#   gpu-01: mlx5_0 port 1 ==> ibs1 (Up)
#
# Tools write "state: Active", too. So a word is the name of a machine only if a reader takes a line
# behind it, or if it differs from such a name in digits alone (gpu-03, which found no such
# command).

_NODE_PREFIX = re.compile(rf"(?P<node>{HOST}):(?: (?P<text>.*))?", re.ASCII | re.DOTALL)
#: What pdsh and clush say of a machine.
_REMARK = re.compile(rf"(?:pdsh@{HOST}|clush): (?P<node>{HOST}): (?P<text>.*)", re.ASCII)


def split_by_prefix(whole: NodeOutput) -> Iterator[NodeOutput]:
    """Split into what has no prefix, if there is any, and a capture for each machine."""
    split = [_prefixed(line) for line in whole.lines]
    nodes = _nodes(one for one in split if one is not None)
    if not nodes:
        yield whole
        return
    rest: list[Line] = []
    by_node: dict[str, list[Line]] = {}
    for line, prefixed in zip(whole.lines, split, strict=True):
        if prefixed is None or prefixed[0] not in nodes:
            rest.append(line)
        else:
            by_node.setdefault(prefixed[0], []).append(prefixed[1])
    if any(line.text.strip() for line in rest):
        yield whole._replace(lines=tuple(rest))
    for node, lines in by_node.items():
        yield NodeOutput(node, tuple(lines))


def _prefixed(line: Line) -> tuple[str, Line] | None:
    found = _REMARK.fullmatch(line.text) or _NODE_PREFIX.fullmatch(line.text)
    return (found["node"], line._replace(text=found["text"] or "")) if found else None


def _nodes(prefixed: Iterable[tuple[str, Line]]) -> set[str]:
    by_name: dict[str, list[Line]] = {}
    for name, line in prefixed:
        by_name.setdefault(name, []).append(line)
    # One call for all: a call for each of many names would take long.
    evidence = _evidence([line for lines in by_name.values() for line in lines])
    certain = {
        name
        for name, lines in by_name.items()
        if any(line.number in evidence or is_script_header(line.text) for line in lines)
    }
    shapes = {_shape(name) for name in certain}
    return {name for name in by_name if _shape(name) in shapes}


def _evidence(lines: list[Line]) -> set[int]:
    """Return the numbers of the lines that only a tool can have written."""
    sightings = read(lines).sightings
    # "hca_id: mlx5_0" is not a machine that lists its devices.
    return {one.origin.line for one in sightings if one.origin.tool != DEVICE_LIST.tool}


def _shape(name: str) -> str:
    return re.sub(r"\d+", "0", name)


# The headers of `clush -b` and of dshbak, above an output that one or several machines have.
#
#   ----------------
#   gpu-[01-02]
#   ----------------
#   mlx5_0 port 1 ==> ibs1 (Up)
#
# clush writes 15 dashes, and the number of machines behind their names: "gpu-[01-02] (2)"; dshbak
# writes 16. Sources: ClusterShell, lib/ClusterShell/CLI/Display.py; pdsh, scripts/dshbak.in.

_RULE = re.compile(r"-{15,16}\s*")
_NAMES = re.compile(r"(\S{1,4000})(?: \(\d{1,6}\))?\s*", re.ASCII)
#: Machines times lines, so that a short text cannot stand for an endless one.
_MOST = 10_000_000


def find_folded_header(lines: Sequence[Line], at: int) -> NodeMarker | None:
    """Find a header of three lines."""
    if not lines[at].text.startswith("---") or len(lines) < at + 3:
        return None
    rule, named, end = (line.text for line in lines[at : at + 3])
    names = _NAMES.fullmatch(named)
    if names is None or not _RULE.fullmatch(rule) or rule.strip() != end.strip():
        return None
    nodes = unfold(names[1])
    return NodeMarker(nodes, at + 3) if 0 < len(nodes) * len(lines) <= _MOST else None


# Unfold the names of machines: "n[01-03,7],m1" is n01, n02, n03, n7 and m1.

#: Names that a text may unfold to; more are no names of machines.
MOST = 16_384

_NAME = re.compile(r"(?:[\w.-]|\[[\d,-]{1,200}\]){1,300}", re.ASCII)
_PART = re.compile(r"\[([\d,-]{1,200})\]|([\w.-]{1,255})", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def unfold(folded: str) -> tuple[str, ...]:
    """Return the names; () if it is not a list of names, or one of more than `MOST`."""
    names: list[str] = []
    # A comma inside of brackets separates numbers.
    for one in re.split(r",(?![\d,-]{0,200}\])", folded):
        unfolded = _unfold_one(one) if _NAME.fullmatch(one) else ()
        if not unfolded or len(names) + len(unfolded) > MOST:
            return ()
        names.extend(unfolded)
    return tuple(names)


def _unfold_one(folded: str) -> tuple[str, ...]:
    names: tuple[str, ...] = ("",)
    for numbers, text in _PART.findall(folded):
        ends = _numbers(numbers) if numbers else (text,)
        if len(names) * len(ends) > MOST:
            return ()
        names = tuple(name + end for name in names for end in ends)
    return names


def _numbers(listed: str) -> tuple[str, ...]:
    found: list[str] = []
    for one in listed.split(","):
        ends = _RANGE.fullmatch(one)
        if ends is None:
            return ()
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if last - first >= MOST:
            return ()
        found.extend(f"{number:0{len(ends[1])}}" for number in range(first, last + 1))
    return tuple(found)


# The prefixes of `kubectl logs --prefix`, which name a pod and its container.
#
#   [pod/rdma-webhook-discover-x7k2p/collect] ### host: gpu-01
#
# A pod's name says nothing of its node: the header of the script does. Source: kubectl,
# pkg/cmd/logs/logs.go, addPrefixIfNeeded.

_POD_PREFIX = re.compile(r"\[(?P<pod>pod/[a-z0-9.-]{1,253}/[a-z0-9.-]{1,253})\](?: (?P<text>.*))?")


def split_by_pod(whole: NodeOutput) -> Iterator[NodeOutput]:
    """Split into the lines without such a prefix, and a capture for each container."""
    rest: list[Line] = []
    by_pod: dict[str, list[Line]] = {}
    for line in whole.lines:
        prefixed = _POD_PREFIX.fullmatch(line.text)
        if prefixed is None:
            rest.append(line)
        else:
            shown = line._replace(text=prefixed["text"] or "")
            by_pod.setdefault(prefixed["pod"], []).append(shown)
    yield whole._replace(lines=tuple(rest))
    for lines in by_pod.values():
        yield whole._replace(lines=tuple(lines))


# The prompts of a terminal, with the commands that were typed behind them.
#
#   root@gpu-01:~# ibstat                       [user@gpu-01 ~]$ ibstat
#   gpu-01:~ # ibstat                           gpu-01$ ibstat
#   $ ibstat                                    sh-5.1# ibstat

#: Characters of a line that may be a prompt; a command in it is shorter.
_LONGEST = 4000
_REST = r"(?:\s+(?P<command>.*))?"
_PATH = r"(?:~|/(?!/))[^#$%>]{0,200}?"
_NAMED = tuple(
    re.compile(rf"\s{{0,8}}(?:\([\w.-]{{1,60}}\) )?{prompt}{_REST}", re.ASCII)
    for prompt in (
        rf"[\w.+-]{{1,64}}@(?P<node>{HOST})(?:[: ]{_PATH}|:)?\s?[#$%>]",
        rf"\[(?:[\w.+-]{{1,64}}@)?(?P<node>(?!\d+\]){HOST})(?: [^\]]{{1,200}})?\] ?[#$%]",
        rf"(?P<node>{HOST}):{_PATH}\s?[#$]",
        rf"(?P<node>{HOST})\$",
        # Not "Port#", the head of a column.
        rf"(?P<node>(?=\w{{0,80}}[\d.-]){HOST})#",
    )
)
#: These name no machine.
_BARE = re.compile(
    rf"\s{{0,8}}(?:(?:ba|da|z|k)?sh-\d{{1,3}}\.\d{{1,3}}\w{{0,20}}[#$]|{_PATH} [#$]|\$){_REST}",
    re.ASCII,
)
#: The prompt of root, or a comment.
_ROOT = re.compile(r"# (?P<command>.+)")


class Prompts:
    """The prompts of a text, one after another."""

    def __init__(self) -> None:
        #: The machine whose shell was opened, for prompts that name none.
        self._shell: str | None = None

    def find(self, lines: Sequence[Line], at: int) -> NodeMarker | None:
        """Find a prompt; a command may go on in the next lines."""
        text = lines[at].text
        prompt = _prompt(text) if len(text) <= _LONGEST else None
        if prompt is None:
            return None
        named = prompt.groupdict().get("node")
        command, behind = (prompt["command"] or "").strip(), at + 1
        while command.endswith("\\") and behind < len(lines) and len(command) <= _LONGEST:
            command = f"{command[:-1].strip()} {lines[behind].text.strip().removeprefix('> ')}"
            behind += 1
        # A prompt that looks otherwise than the last one, and names no machine, may be any's.
        shell = None if named else self._shell
        output, self._shell = where(command, named or shell, shell)
        return NodeMarker((output,), behind, command or None)


def _prompt(text: str) -> re.Match[str] | None:
    if not any(sign in text for sign in "#$%>"):
        return None
    root = _ROOT.fullmatch(text)
    if root is not None:
        return root if is_command(root["command"]) else None
    return next(filter(None, (one.fullmatch(text) for one in (_BARE, *_NAMED))), None)
