"""An explanation as values: the answer, and chapters of sentences, for every output."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["good", "fact", "unsure", "problem"]
#: The chapters in their order, with their headings.
HEADINGS = {
    "asked": "What the pod asked for",
    "called": "Whether the webhook was called",
    "done": "What the webhook did",
    "now": "What the cluster says now",
    "processes": "What its processes hold",
    "log": "What its log says",
    "today": "What would be decided today",
    "lacking": "What could not be read",
}


class Sentence(NamedTuple):
    """A statement, and its remedy."""

    #: A stable word for programs: a reason code, a cause, or another code of `why.schema.json`.
    code: str
    level: Level
    text: str
    #: "" if no action is needed.
    remedy: str = ""


class Chapter(NamedTuple):
    """The sentences under one heading."""

    name: str
    sentences: tuple[Sentence, ...]


class Explanation(NamedTuple):
    """The reasons why a pod has RDMA, or has not."""

    namespace: str
    pod: str
    #: The pod's controllers, nearest first, such as "Job train".
    owners: tuple[str, ...]
    #: yes, no, unsure or none.
    rdma: str
    #: The verdict as a sentence; its code is the reason.
    answer: Sentence
    chapters: tuple[Chapter, ...]

    @property
    def well(self) -> bool:
        """Whether the pod has RDMA, or needs none, and nothing keeps it from running."""
        stuck = any(
            sentence.level == "problem"
            for chapter in self.chapters
            if chapter.name == "now"
            for sentence in chapter.sentences
        )
        return self.rdma in ("yes", "none") and not stuck
