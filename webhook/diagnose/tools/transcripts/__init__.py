"""Take saved text apart: which lines are from which machine.

A text may have been saved from a terminal with its prompts, from pdsh or clush, from Ansible, from
`kubectl logs`, or by the script of `rdma-webhook discover script`; each of them has a file here. A
machine that nothing names is None, and so is that of an output that may be anybody's.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.diagnose.tools.transcripts.ansible import find_ansible
from webhook.diagnose.tools.transcripts.prefixes import (
    Prompts,
    find_folded_header,
    split_by_pod,
    split_by_prefix,
)
from webhook.diagnose.tools.transcripts.segments import (
    NodeOutput,
    plain_lines,
    split,
    split_at_headers,
)

__all__ = ["NodeOutput", "split_by_node"]


def split_by_node(text: str) -> tuple[NodeOutput, ...]:
    """Take a text apart, in a time that grows with its length; any text will do.

    A machine has a capture for each command where the text shows commands, without their prompts.
    Machines whose output clush or dshbak folded into one share the same tuple of lines.
    """
    whole = NodeOutput(None, tuple(plain_lines(text)))
    return tuple(capture for log in split_by_pod(whole) for capture in _of_one_log(log))


def _of_one_log(whole: NodeOutput) -> Iterator[NodeOutput]:
    finders = (find_ansible, find_folded_header, Prompts().find)
    for outer in split(whole, finders):
        for prefixed in split_by_prefix(outer):
            yield from split_at_headers(prefixed)
