"""The output of Ansible: the nodes of its results, and the lines of their output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.transcripts.segments import HOST, NodeMarker, plain_lines

# The results of Ansible, each with the name of its node.
#
#   ok: [gpu-01] => {                                   `debug: var=x.stdout_lines`, as JSON
#       "x.stdout_lines": [
#           "mlx5_0 port 1 ==> ibs1 (Up)"
#       ]
#   }
#   ok: [gpu-01] =>                                     and with callback_result_format = yaml
#     x.stdout_lines:
#     - mlx5_0 port 1 ==> ibs1 (Up)
#   gpu-01 | CHANGED | rc=0 >>                          `ansible -m shell`
#   mlx5_0 port 1 ==> ibs1 (Up)
#   gpu-01 | CHANGED => {                               `ansible -m script`
#       "stdout": "mlx5_0 port 1 ==> ibs1 (Up)\r\n",
#
# Sources: ansible, lib/ansible/plugins/callback/default.py, minimal.py and oneline.py.

_RESULT = re.compile(
    rf"(?:(?:ok|changed|fatal|failed|unreachable): \[(?P<play>{HOST})(?: -> [^\]]{{1,200}})?\]"
    rf"(?:: (?:FAILED|UNREACHABLE)!)?|(?P<adhoc>{HOST}) \| [A-Z]{{4,12}}!?)"
    r" ?=>(?: \(item=.{0,300}?\) ?=>)? ?(?P<json>\{.*)?\s*",
    re.ASCII,
)
_RAW = re.compile(
    rf"(?P<node>{HOST}) \| [A-Z]{{4,12}}!? \| rc=(?P<status>-?\d{{1,3}})"
    r"(?: >>| \| (?P<stdout>\((?:stdout|stderr)\) .*))\s*",
    re.ASCII,
)
#: Lines about Ansible's progress: "TASK [x] ***", "ok: [gpu-01]", "gpu-01 : ok=2 changed=0 ...".
_STATUS_LINE = re.compile(
    r"(?:PLAY|TASK|RUNNING HANDLER|PLAY RECAP)\b.{0,300}\*{3,}\s*"
    rf"|(?:ok|changed|skipping): \[{HOST}\].{{0,300}}|included: /.{{0,300}} for {HOST}.{{0,300}}"
    rf"|{HOST}\s+: ok=\d+\s.{{0,300}}",
    re.ASCII,
)
_PARTS = re.compile(r" ?\(std(?:out|err)\) ")


def find_ansible(lines: Sequence[Line], index: int) -> NodeMarker | None:
    """Return the marker of a result or a status line of Ansible, or None."""
    text = lines[index].text
    result = _RESULT.fullmatch(text)
    if result is not None:
        return _marker_of(result, lines, index)
    raw = _RAW.fullmatch(text)
    if raw is not None:
        printed = tuple(
            line._replace(number=lines[index].number)
            for part in _PARTS.split(raw["stdout"] or "")
            for line in plain_lines(part.replace("\\r", "").replace("\\n", "\n"))
        )
        enclosed_lines = printed if raw["stdout"] else None
        return NodeMarker(
            (raw["node"],), index + 1, exit_status=int(raw["status"]), enclosed_lines=enclosed_lines
        )
    return NodeMarker((None,), index + 1) if _STATUS_LINE.fullmatch(text) else None


def _marker_of(result: re.Match[str], lines: Sequence[Line], index: int) -> NodeMarker:
    """Return a marker with the indented lines below a result, and a closing brace."""
    end = index + 1
    if result["json"] is None or not result["json"].rstrip().endswith("}"):
        while end < len(lines) and (lines[end].text[:1] in ("", " ")):
            end += 1
        end += end < len(lines) and lines[end].text.rstrip() == "}"
    below = lines[index + 1 : end]
    node = result["play"] or result["adhoc"]
    if result["json"] is None:
        return NodeMarker((node,), end, enclosed_lines=lines_in_yaml(below))
    first = lines[index]._replace(text=result["json"])
    return NodeMarker((node,), end, enclosed_lines=lines_in_json((first, *below)))


# The lines of a registered output in a result of Ansible, as JSON or as YAML.
#
# They are read line by line, not as documents, since they keep their numbers, and a text may be cut
# anywhere. The forms are the output of `json.dumps` and PyYAML.

_JSON_LIST = re.compile(r'\s*"(?P<key>[^"\\]{1,200})": \[\s*')
_JSON_TEXT = re.compile(r'\s*"(?P<key>[^"\\]{1,200})": (?P<text>".*"),?\s*')
_JSON_ITEM = re.compile(r'\s*(?P<text>".*"),?\s*')
_YAML_KEY = re.compile(r" +(?P<key>[\w.-]{1,200}):(?: (?P<text>.*))?", re.ASCII)
_YAML_ITEM = re.compile(r" +- (?P<text>.*)")
_YAML_BLOCK = re.compile(r"[|>][-+\d]{0,2}\s*")

#: A key and its value; the key may be a path such as "x.stdout_lines".
_Value = tuple[str, Line]


def lines_in_json(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return the lines of an output encoded in JSON."""
    return _output(_json_values(_pretty_lines(lines[0]) if len(lines) == 1 else lines))


def lines_in_yaml(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return the lines of an output encoded in YAML."""
    return _output(_yaml_values(lines))


def _output(values: Iterable[_Value]) -> tuple[Line, ...]:
    """Return the program's stdout and stderr; else the message; else all values."""
    by_name: dict[str, list[Line]] = {}
    for key, value in values:
        lines = by_name.setdefault(key.rpartition(".")[2], [])
        lines.extend(value._replace(text=line.text) for line in plain_lines(value.text))
    output = [
        line
        for name in ("stdout", "stderr")
        for line in by_name.get(f"{name}_lines") or by_name.get(name) or ()
    ]
    message = by_name.get("msg")
    return tuple(output or message or (line for lines in by_name.values() for line in lines))


def _pretty_lines(line: Line) -> Iterator[Line]:
    """Yield the lines of a one-line object with the indentation of `json.dumps`."""
    try:
        pretty = json.dumps(json.loads(line.text), indent=4)
    except (ValueError, RecursionError):
        return
    yield from (line._replace(text=text) for text in pretty.split("\n"))


def _json_values(lines: Iterable[Line]) -> Iterator[_Value]:
    key = ""
    for line in lines:
        list_start = _JSON_LIST.fullmatch(line.text)
        match = _JSON_TEXT.fullmatch(line.text) or _JSON_ITEM.fullmatch(line.text)
        if list_start is not None:
            key = list_start["key"]
        elif match is not None:
            yield match.groupdict().get("key", key), line._replace(text=_decode_json(match["text"]))


def _yaml_values(lines: Iterable[Line]) -> Iterator[_Value]:
    key = ""
    #: The indentation of a block of several lines, and of its key.
    inner, outer = "", None
    for line in lines:
        indent = line.text[: len(line.text) - len(line.text.lstrip(" "))]
        if outer is not None and (len(indent) > len(outer) or not line.text.strip()):
            inner = inner or indent
            yield key, line._replace(text=line.text.removeprefix(inner))
            continue
        inner, outer = "", None
        item, key_line = _YAML_ITEM.fullmatch(line.text), _YAML_KEY.fullmatch(line.text)
        if item is not None:
            yield key, line._replace(text=_scalar(item["text"]))
        elif key_line is not None:
            key = key_line["key"]
            if _YAML_BLOCK.fullmatch(key_line["text"] or ""):
                outer = indent
            elif key_line["text"] not in (None, "[]", "{}"):
                yield key, line._replace(text=_scalar(key_line["text"]))


def _scalar(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        # Escapes that JSON lacks.
        return _decode_json(
            re.sub(r"\\x([0-9A-Fa-f]{2})", r"\\u00\1", text.replace("\\e", "\\u001b"))
        )
    return text


def _decode_json(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text
