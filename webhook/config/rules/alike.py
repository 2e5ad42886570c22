"""Find fabrics that no node label tells apart, without comparing every pair of them.

A set of fabrics is an integer with one bit for each fabric, so a single `&` compares a fabric with
all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate

from webhook.config.names import is_label_glob

Labels = Mapping[str, tuple[str, ...]]
#: The most different globs with wildcards that are compared with values: compiling one takes as
#: long as a thousand comparisons, and there are fewer kinds of GPUs.
MOST_WILD = 50
_WILD = re.compile(r"[*?\[]")


class Wildcards:
    """The first of the globs with wildcards, compiled; `left_out` counts the others."""

    def __init__(self, globs: Iterable[str]) -> None:
        wild = list(dict.fromkeys(glob for glob in globs if is_wild(glob)))
        self.compiled = {glob: re.compile(translate(glob)) for glob in wild[:MOST_WILD]}
        self.left_out = len(wild) - len(self.compiled)

    def match(self, globs: Sequence[str], value: str) -> bool:
        """Return whether a glob matches the value, or may match it since it was left out."""
        return value in globs or any(self._matches(glob, value) for glob in filter(is_wild, globs))

    def _matches(self, glob: str, value: str) -> bool:
        compiled = self.compiled.get(glob)
        return compiled is None or bool(compiled.match(value))


class Alike:
    """Finds the fabrics that no label tells apart from a given one."""

    def __init__(self, fabrics: Sequence[Labels], wildcards: Wildcards) -> None:
        self._all = (1 << len(fabrics)) - 1
        self._values: dict[str, _Values] = {}
        for place, labels in enumerate(fabrics):
            for key, globs in labels.items():
                values = self._values.setdefault(key, _Values(wildcards))
                values.add(globs, 1 << place)

    def to(self, labels: Labels) -> int:
        """Return the fabrics that no label tells apart from a fabric with these labels."""
        alike = self._all
        for key, globs in labels.items():
            values = self._values[key]
            alike &= (self._all ^ values.fabrics) | values.overlapping(globs)
        return alike


class _Values:
    """The globs of all fabrics for one label.

    Two globs count as overlapping if one matches the other without its wildcards. By that measure
    `*A100*` and `*H100*` do not overlap, although some value contains both.
    """

    def __init__(self, wildcards: Wildcards) -> None:
        self.fabrics = 0  #: the fabrics that have the label
        self._wildcards = wildcards
        self._with: dict[str, int] = {}
        self._spelling: dict[str, int] = {}
        self._found: dict[str, int] = {}

    def add(self, globs: Iterable[str], fabric: int) -> None:
        self.fabrics |= fabric
        for glob in filter(is_label_glob, globs):
            self._with[glob] = self._with.get(glob, 0) | fabric
            spelt = _spelt(glob)
            self._spelling[spelt] = self._spelling.get(spelt, 0) | fabric

    def overlapping(self, globs: Iterable[str]) -> int:
        """Return the fabrics with a glob that overlaps one of `globs`, which were added before."""
        found = 0
        for glob in filter(is_label_glob, globs):
            if glob not in self._found:
                self._found[glob] = self._matching(_spelt(glob)) | self._matched(glob)
            found |= self._found[glob]
        return found

    def _matching(self, value: str) -> int:
        """Return the fabrics with a glob that matches the value."""
        found = 0 if is_wild(value) else self._with.get(value, 0)
        for glob, compiled in self._wildcards.compiled.items():
            if glob in self._with and compiled.match(value):
                found |= self._with[glob]
        return found

    def _matched(self, glob: str) -> int:
        """Return the fabrics with a glob that, without its wildcards, is matched by this one."""
        if not is_wild(glob):
            return self._spelling.get(glob, 0)
        compiled = self._wildcards.compiled.get(glob)
        if compiled is None:
            return self._with[glob]
        found = 0
        for value, fabrics in self._spelling.items():
            if compiled.match(value):
                found |= fabrics
        return found


def is_wild(glob: str) -> bool:
    """Return whether a glob may match a value other than itself."""
    return _WILD.search(glob) is not None


def _spelt(glob: str) -> str:
    return glob.replace("*", "")
