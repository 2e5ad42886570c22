"""Globs of a configuration, compiled once, and how a pod's names match them.

The names come from users, so no result is cached for them. Instead, a name is first searched
for a literal part of each glob, which costs next to nothing; only the few names that contain it
are matched against the glob.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache

#: The longest name that Kubernetes accepts: a prefix of 253 characters, a slash and 63 more.
#: Values of labels are shorter. A longer string is not a valid name and matches nothing.
LONGEST = 317


@dataclass(frozen=True, slots=True)
class Globs:
    """Alternative globs, matched against the whole name; case matters, as in Kubernetes."""

    written: tuple[str, ...] = ()
    #: Each glob, and the literal part that is searched for first.
    _pairs: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pairs = tuple((_literal(glob), glob) for glob in self.written)
        object.__setattr__(self, "_pairs", pairs)

    def match(self, name: str) -> bool:
        """Return whether a name matches at least one of the globs."""
        for literal, glob in self._pairs:
            if literal in name and len(name) <= LONGEST and _pattern(glob).match(name):
                return True
        return False


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    """Compile a glob of the configuration, once a name contains its literal part; few names do."""
    return re.compile(translate(glob))


def _literal(glob: str) -> str:
    """Return the longest literal part before any `[`, which every match of the glob contains."""
    return max(re.split(r"[*?]", glob.partition("[")[0]), key=len)
