"""Hosts that did not answer are errors, by name."""

from __future__ import annotations

import json

import pytest

from tests.unit.diagnose.discover.test_discover_command import IBSTAT, Discover, discover

__all__ = ["discover"]

ANSIBLE = f"""gpu-01 | CHANGED | rc=0 >>
{IBSTAT}gpu-02 | UNREACHABLE! => {{
    "changed": false,
    "msg": "Failed to connect to the host via ssh",
    "unreachable": true
}}
gpu-03 | FAILED | rc=127 >>
/bin/sh: 1: ibstat: not found
gpu-10 | UNREACHABLE! => {{
    "changed": false
}}
"""


def test_hosts_that_failed_are_errors_by_name(discover: Discover) -> None:
    """They are in no fabric, so a smaller fabric must not look whole: the exit code is 1."""
    ran = discover("-", "-o", "json", stdin=ANSIBLE)
    form = json.loads(ran.out)
    assert [node["name"] for node in form["nodes"]] == ["gpu-01", "gpu-03"]
    errors = [finding for finding in form["findings"] if finding["code"] == "HostUnanswered"]
    assert [(finding["level"], finding["text"]) for finding in errors] == [
        ("error", "did not answer (UNREACHABLE): gpu-02, gpu-10"),
    ]
    assert [finding["location"]["nodes"] for finding in errors] == [["gpu-02", "gpu-10"]]
    failed = [finding for finding in form["findings"] if finding["code"] == "ToolFailed"]
    assert [(finding["text"], finding["location"]["nodes"]) for finding in failed] == [
        ("ibstat is not installed", ["gpu-03"])
    ]
    assert ran.code == 1


def test_a_host_that_another_text_shows_has_answered(discover: Discover) -> None:
    """A tool that one command lacks is no failure of the host; its name may have a domain."""
    text = (
        f"gpu-01.lab | FAILED | rc=127 >>\nibstat: not found\ngpu-01 | CHANGED | rc=0 >>\n{IBSTAT}"
    )
    ran = discover("-", stdin=text)
    assert "did not answer" not in ran.out
    assert ran.code == 0


@pytest.mark.parametrize("address", ["10.0.0.3", "10.0.0.33"])
def test_addresses_are_whole_names(discover: Discover, address: str) -> None:
    """The first number of an address is no short name."""
    reason = "ssh: connect to host 10.0.0.3 port 22: No route to host"
    text = f"{reason}\n{address} | CHANGED | rc=0 >>\n{IBSTAT}"
    ran = discover("-", stdin=text)
    sentence = "did not answer (ssh: connect to host HOST port 22: No route to host): 10.0.0.3"
    assert (sentence in " ".join(ran.out.split())) == (address == "10.0.0.33")


def test_a_text_with_failures_alone_is_read(discover: Discover) -> None:
    """Not one host answered: the errors are the answer, and the text is no unknown tool's."""
    ran = discover("-", stdin="pdsh@admin: n1: ssh exited with exit code 255\n")
    assert ran.code == 1
    assert "did not answer (ssh exited with exit code 255): n1" in " ".join(ran.out.split())
    assert ran.err == ""
