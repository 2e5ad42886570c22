"""What Ansible prints of its machines: whose output is whose, and the lines of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.transcripts.segments import HOST, NodeMarker, plain_lines

# The results of Ansible, each with the name of its machine.
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
#: Its own lines: "TASK [x] ***", "ok: [gpu-01]", "gpu-01 : ok=2 changed=0 ...".
_OWN = re.compile(
    r"(?:PLAY|TASK|RUNNING HANDLER|PLAY RECAP)\b.{0,300}\*{3,}\s*"
    rf"|(?:ok|changed|skipping): \[{HOST}\].{{0,300}}|included: /.{{0,300}} for {HOST}.{{0,300}}"
    rf"|{HOST}\s+: ok=\d+\s.{{0,300}}",
    re.ASCII,
)
_PARTS = re.compile(r" ?\(std(?:out|err)\) ")


def find_ansible(lines: Sequence[Line], at: int) -> NodeMarker | None:
    """Find what Ansible prints of a machine, or a line of its own."""
    text = lines[at].text
    result = _RESULT.fullmatch(text)
    if result is not None:
        return _enclosed(result, lines, at)
    raw = _RAW.fullmatch(text)
    if raw is not None:
        shown = tuple(
            line._replace(number=lines[at].number)
            for part in _PARTS.split(raw["stdout"] or "")
            for line in plain_lines(part.replace("\\r", "").replace("\\n", "\n"))
        )
        enclosed = shown if raw["stdout"] else None
        return NodeMarker((raw["node"],), at + 1, exit_status=int(raw["status"]), enclosed=enclosed)
    return NodeMarker((None,), at + 1) if _OWN.fullmatch(text) else None


def _enclosed(result: re.Match[str], lines: Sequence[Line], at: int) -> NodeMarker:
    """Gather the indented lines below a result, and a closing brace."""
    behind = at + 1
    if result["json"] is None or not result["json"].rstrip().endswith("}"):
        while behind < len(lines) and (lines[behind].text[:1] in ("", " ")):
            behind += 1
        behind += behind < len(lines) and lines[behind].text.rstrip() == "}"
    below = lines[at + 1 : behind]
    node = result["play"] or result["adhoc"]
    if result["json"] is None:
        return NodeMarker((node,), behind, enclosed=lines_in_yaml(below))
    first = lines[at]._replace(text=result["json"])
    return NodeMarker((node,), behind, enclosed=lines_in_json((first, *below)))


# The lines that a result of Ansible holds: an output that it registered, as JSON or as YAML.
#
# They are read line by line, not as documents: they keep their numbers, and a text may be cut
# anywhere. The forms are those that `json.dumps` and PyYAML write.

_JSON_LIST = re.compile(r'\s*"(?P<key>[^"\\]{1,200})": \[\s*')
_JSON_TEXT = re.compile(r'\s*"(?P<key>[^"\\]{1,200})": (?P<text>".*"),?\s*')
_JSON_ITEM = re.compile(r'\s*(?P<text>".*"),?\s*')
_YAML_KEY = re.compile(r" +(?P<key>[\w.-]{1,200}):(?: (?P<text>.*))?", re.ASCII)
_YAML_ITEM = re.compile(r" +- (?P<text>.*)")
_YAML_BLOCK = re.compile(r"[|>][-+\d]{0,2}\s*")

#: A value and its key; "x.stdout_lines" is a stdout_lines.
_Value = tuple[str, Line]


def lines_in_json(shown: Sequence[Line]) -> tuple[Line, ...]:
    """Return the lines of an output in JSON."""
    return _output(_json_values(_one_line_object(shown[0]) if len(shown) == 1 else shown))


def lines_in_yaml(shown: Sequence[Line]) -> tuple[Line, ...]:
    """Return the lines of an output in YAML."""
    return _output(_yaml_values(shown))


def _output(values: Iterable[_Value]) -> tuple[Line, ...]:
    """Return what the program wrote; a message, or anything, where that is not in the values."""
    found: dict[str, list[Line]] = {}
    for key, value in values:
        lines = found.setdefault(key.rpartition(".")[2], [])
        lines.extend(value._replace(text=one.text) for one in plain_lines(value.text))
    written = [
        line
        for name in ("stdout", "stderr")
        for line in found.get(f"{name}_lines") or found.get(name) or ()
    ]
    message = found.get("msg")
    return tuple(written or message or (line for lines in found.values() for line in lines))


def _one_line_object(line: Line) -> Iterator[Line]:
    """Write an object of one line as `json.dumps` does on several."""
    try:
        pretty = json.dumps(json.loads(line.text), indent=4)
    except (ValueError, RecursionError):
        return
    yield from (line._replace(text=text) for text in pretty.split("\n"))


def _json_values(shown: Iterable[Line]) -> Iterator[_Value]:
    key = ""
    for line in shown:
        begun = _JSON_LIST.fullmatch(line.text)
        found = _JSON_TEXT.fullmatch(line.text) or _JSON_ITEM.fullmatch(line.text)
        if begun is not None:
            key = begun["key"]
        elif found is not None:
            yield found.groupdict().get("key", key), line._replace(text=_quoted(found["text"]))


def _yaml_values(shown: Iterable[Line]) -> Iterator[_Value]:
    key = ""
    #: The indentation of a text of several lines, and of its key.
    inner, outer = "", None
    for line in shown:
        indent = line.text[: len(line.text) - len(line.text.lstrip(" "))]
        if outer is not None and (len(indent) > len(outer) or not line.text.strip()):
            inner = inner or indent
            yield key, line._replace(text=line.text.removeprefix(inner))
            continue
        inner, outer = "", None
        item, begun = _YAML_ITEM.fullmatch(line.text), _YAML_KEY.fullmatch(line.text)
        if item is not None:
            yield key, line._replace(text=_scalar(item["text"]))
        elif begun is not None:
            key = begun["key"]
            if _YAML_BLOCK.fullmatch(begun["text"] or ""):
                outer = indent
            elif begun["text"] not in (None, "[]", "{}"):
                yield key, line._replace(text=_scalar(begun["text"]))


def _scalar(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        # The escapes that JSON does not have.
        return _quoted(re.sub(r"\\x([0-9A-Fa-f]{2})", r"\\u00\1", text.replace("\\e", "\\u001b")))
    return text


def _quoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text
