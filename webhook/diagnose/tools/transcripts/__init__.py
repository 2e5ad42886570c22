"""Split saved text into the output of each node.

A text may have been saved from a terminal with its prompts, from pdsh or clush, from Ansible, from
`kubectl logs`, or by the script of `rdma-webhook discover script`. If the text does not name the
node, or if the output may come from any node, `node` has the value None.
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
    """Split any text by node, in time linear in its length.

    Return one NodeOutput for each node and command; prompts are removed. Nodes whose output clush
    or dshbak folded into one share the same tuple of lines.
    """
    whole = NodeOutput(None, tuple(plain_lines(text)))
    return tuple(output for log in split_by_pod(whole) for output in _split_log(log))


def _split_log(output: NodeOutput) -> Iterator[NodeOutput]:
    finders = (find_ansible, find_folded_header, Prompts().find)
    for outer in split(output, finders):
        for prefixed in split_by_prefix(outer):
            yield from split_at_headers(prefixed)
