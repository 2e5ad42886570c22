"""An explanation as values: the answer, and chapters of findings, for every output."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from webhook.model.decision import Rdma
from webhook.model.finding import Finding, Level

#: The level of a verdict.
VERDICT_LEVELS: dict[Rdma, Level] = {"yes": "ok", "none": "ok", "unsure": "unsure", "no": "error"}
#: `_HEADINGS` in output.py describes each.
ChapterName = Literal[
    "requested", "webhookCall", "applied", "podStatus", "processes", "log", "redecision", "unread"
]
#: In the order of the output.
CHAPTERS: tuple[ChapterName, ...] = get_args(ChapterName)


class Chapter(NamedTuple):
    """The findings under one heading."""

    name: ChapterName
    findings: tuple[Finding, ...]


class Explanation(NamedTuple):
    """The reasons why a pod has or lacks RDMA."""

    namespace: str
    pod: str
    #: The pod's controllers, nearest first, such as "Job train".
    owners: tuple[str, ...]
    rdma: Rdma
    #: The libraries that move its data between nodes, as far as known.
    libraries: tuple[str, ...]
    #: The verdict as a finding; its code is the reason.
    answer: Finding
    chapters: tuple[Chapter, ...]

    @property
    def well(self) -> bool:
        """Whether the pod has RDMA, or needs none, and nothing keeps it from running."""
        has_error = any(
            finding.level == "error"
            for chapter in self.chapters
            if chapter.name == "podStatus"
            for finding in chapter.findings
        )
        return self.rdma in ("yes", "none") and not has_error
