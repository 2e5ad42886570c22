"""Globs of a configuration, compiled once, and what of a pod matches them.

What is compared comes from users, so nothing is remembered of it: a name is searched for a
literal part of each glob, which costs next to nothing, and the few that have it are matched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache

#: Of a name that Kubernetes takes: a prefix of 253 characters, a slash and 63 more. Values of
#: labels are shorter. What is longer is no such name and matches nothing.
LONGEST = 317


@dataclass(frozen=True, slots=True)
class Globs:
    """Alternatives; case matters, as for Kubernetes, and the whole name counts."""

    written: tuple[str, ...]
    _literals: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_literals", tuple(map(_literal, self.written)))

    def match(self, name: str) -> bool:
        """Whether a name matches one of them."""
        for literal, glob in zip(self._literals, self.written, strict=True):
            if literal in name and len(name) <= LONGEST and _pattern(glob).match(name):
                return True
        return False


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    """Compile a glob of the configuration when a name has its literal part, which few have."""
    return re.compile(translate(glob))


@lru_cache(maxsize=64)
def compiled(globs: tuple[str, ...]) -> Globs:
    """Compile globs of the configuration, never of a pod."""
    return Globs(globs)


def _literal(glob: str) -> str:
    """Return the longest part that stands in whatever the glob matches."""
    return max(re.split(r"[*?]", glob.partition("[")[0]), key=len)
