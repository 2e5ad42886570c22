"""Hosts whose command failed or that could not be reached, as Ansible, pdsh, clush and ssh say.

A result with a status other than 0 may have output as well, so it is for the caller to see whether
the host answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.diagnose.tools.transcripts.prefixes import unfold
from webhook.diagnose.tools.transcripts.segments import HOST, plain_lines

# The lines about such hosts.
#
#   gpu-03 | UNREACHABLE! => {                                      ansible
#   fatal: [gpu-03]: UNREACHABLE! => {"changed": false, [...]       ansible-playbook
#   gpu-03 | FAILED | rc=127 >>                                     ansible -m shell
#   pdsh@admin: gpu-03: ssh exited with exit code 255               pdsh
#   clush: gpu-[03-04] (2): exited with exit code 255               clush
#   gpu-03: ssh: connect to host gpu-03 port 22: No route to host   pdsh, clush and ssh
#
# Sources: ansible, lib/ansible/plugins/callback/default.py and minimal.py; pdsh, src/pdsh/dsh.c;
# ClusterShell, lib/ClusterShell/CLI/Clush.py; OpenSSH, sshconnect.c and ssh.c.

_HOSTS = r"(?P<hosts>\S{1,4000}?)"
_FAILURES = (
    re.compile(
        rf"(?:fatal|failed|unreachable): \[(?P<hosts>{HOST})(?: -> [^\]]{{1,200}})?\]"
        r": (?P<reason>UNREACHABLE|FAILED)! ?=>.*",
        re.ASCII,
    ),
    re.compile(rf"(?P<hosts>{HOST}) \| (?P<reason>UNREACHABLE|FAILED)! ?=>.*", re.ASCII),
    re.compile(
        rf"(?P<hosts>{HOST}) \| (?P<reason>(?:FAILED|UNREACHABLE)!? \| rc=-?\d{{1,3}})(?: .*)?",
        re.ASCII,
    ),
    re.compile(
        rf"pdsh@{HOST}: (?P<hosts>{HOST}): "
        r"(?P<reason>[a-z]{1,10} exited with exit code \d{1,3}|command timeout)\s*",
        re.ASCII,
    ),
    re.compile(
        rf"clush: {_HOSTS}(?: \(\d{{1,6}}\))?: "
        r"(?P<reason>exited with exit code \d{1,3}|command timeout)\s*",
        re.ASCII,
    ),
    re.compile(
        rf"(?:{HOST}: )?(?P<reason>ssh: connect to host (?P<hosts>{HOST}) port \d{{1,5}}: "
        r"[A-Z][A-Za-z ]{2,60})\s*",
        re.ASCII,
    ),
    re.compile(
        rf"(?:{HOST}: )?(?P<reason>ssh: Could not resolve hostname (?P<hosts>{HOST}): "
        r"[A-Z][A-Za-z ]{2,60})\s*",
        re.ASCII,
    ),
)
#: A word of each line; most lines of a text have none.
_WORD = re.compile(r"UNREACHABLE|FAILED|exit code|command timeout|ssh: ")
#: The maximum characters of a line that is searched: Ansible writes the output in the same line.
_MAX_LINE = 5000


def failed_hosts(text: str) -> dict[str, str]:
    """Return the hosts that failed according to a text, each with the first reason."""
    hosts: dict[str, str] = {}
    for host, reason in _failures(text):
        hosts.setdefault(host, reason)
    return hosts


def _failures(text: str) -> Iterator[tuple[str, str]]:
    for line in plain_lines(text):
        start = line.text[:_MAX_LINE]
        if not _WORD.search(start):
            continue
        match = next(filter(None, (form.fullmatch(start) for form in _FAILURES)), None)
        if match:
            yield from ((host, match["reason"]) for host in unfold(match["hosts"]))
