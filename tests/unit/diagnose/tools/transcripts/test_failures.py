"""Hosts that failed according to a text."""

from __future__ import annotations

import pytest

from webhook.diagnose.tools.transcripts.failures import failed_hosts


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ("gpu-03 | UNREACHABLE! => {", {"gpu-03": "UNREACHABLE"}),
        ('gpu-03 | FAILED! => {"changed": false}', {"gpu-03": "FAILED"}),
        ('fatal: [gpu-03]: UNREACHABLE! => {"msg": "x"}', {"gpu-03": "UNREACHABLE"}),
        ("fatal: [gpu-03 -> admin]: FAILED! => {", {"gpu-03": "FAILED"}),
        ("gpu-03 | FAILED | rc=127 >>", {"gpu-03": "FAILED | rc=127"}),
        ("gpu-03 | FAILED | rc=-13 | (stdout) x", {"gpu-03": "FAILED | rc=-13"}),
        (
            "pdsh@admin: gpu-03: ssh exited with exit code 255",
            {"gpu-03": "ssh exited with exit code 255"},
        ),
        ("pdsh@admin: gpu-03: command timeout", {"gpu-03": "command timeout"}),
        (
            "clush: gpu-[03-04] (2): exited with exit code 255",
            dict.fromkeys(("gpu-03", "gpu-04"), "exited with exit code 255"),
        ),
        (
            "gpu-03: ssh: connect to host gpu-03 port 22: No route to host",
            {"gpu-03": "ssh: connect to host gpu-03 port 22: No route to host"},
        ),
        (
            "ssh: connect to host 10.0.0.3 port 22: Connection timed out\r",
            {"10.0.0.3": "ssh: connect to host 10.0.0.3 port 22: Connection timed out"},
        ),
        (
            "ssh: Could not resolve hostname gpu-03: Name or service not known",
            {"gpu-03": "ssh: Could not resolve hostname gpu-03: Name or service not known"},
        ),
        ("gpu-03 | CHANGED | rc=0 >>", {}),
        ("gpu-03 | SUCCESS => {", {}),
        ("the play FAILED with exit code 255", {}),
        ("FAILED" * 2000, {}),
    ],
)
def test_a_line_names_the_hosts_that_failed(line: str, hosts: dict[str, str]) -> None:
    """Each form of Ansible, pdsh, clush and ssh has the host and the reason."""
    assert failed_hosts(f"gpu-01: State: Active\n{line}\n") == hosts


def test_the_first_reason_stays() -> None:
    """What ssh printed explains more than the exit code after it."""
    reason = "ssh: connect to host n3 port 22: No route to host"
    text = f"n3: {reason}\npdsh@admin: n3: ssh exited with exit code 255\n"
    assert failed_hosts(text) == {"n3": reason}
