"""The prefixes of `kubectl logs --prefix`, which name a pod and its container.

    [pod/rdma-webhook-discover-x7k2p/collect] ### host: gpu-01

A pod's name says nothing of its node: the header of the script does. Source: kubectl,
pkg/cmd/logs/logs.go, addPrefixIfNeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.transcripts.segments import Capture

_POD_PREFIX = re.compile(r"\[(?P<pod>pod/[a-z0-9.-]{1,253}/[a-z0-9.-]{1,253})\](?: (?P<text>.*))?")


def split_by_pod(whole: Capture) -> Iterator[Capture]:
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
