r"""What Ansible prints of its machines.

    ok: [gpu-01] => {                                   `debug: var=x.stdout_lines`, as JSON
        "x.stdout_lines": [
            "mlx5_0 port 1 ==> ibs1 (Up)"
        ]
    }
    ok: [gpu-01] =>                                     and with callback_result_format = yaml
      x.stdout_lines:
      - mlx5_0 port 1 ==> ibs1 (Up)
    gpu-01 | CHANGED | rc=0 >>                          `ansible -m shell`
    mlx5_0 port 1 ==> ibs1 (Up)
    gpu-01 | CHANGED => {                               `ansible -m script`
        "stdout": "mlx5_0 port 1 ==> ibs1 (Up)\r\n",

Sources: ansible, lib/ansible/plugins/callback/default.py, minimal.py and oneline.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.transcripts.ansible_values import lines_in_json, lines_in_yaml
from webhook.diagnose.tools.transcripts.segments import HOST, Sign, plain_lines

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


def find_ansible(lines: Sequence[Line], at: int) -> Sign | None:
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
        return Sign((raw["node"],), at + 1, exit_status=int(raw["status"]), enclosed=enclosed)
    return Sign((None,), at + 1) if _OWN.fullmatch(text) else None


def _enclosed(result: re.Match[str], lines: Sequence[Line], at: int) -> Sign:
    """Gather the indented lines below a result, and a closing brace."""
    behind = at + 1
    if result["json"] is None or not result["json"].rstrip().endswith("}"):
        while behind < len(lines) and (lines[behind].text[:1] in ("", " ")):
            behind += 1
        behind += behind < len(lines) and lines[behind].text.rstrip() == "}"
    below = lines[at + 1 : behind]
    node = result["play"] or result["adhoc"]
    if result["json"] is None:
        return Sign((node,), behind, enclosed=lines_in_yaml(below))
    first = lines[at]._replace(text=result["json"])
    return Sign((node,), behind, enclosed=lines_in_json((first, *below)))
