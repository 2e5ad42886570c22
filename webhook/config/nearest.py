"""Find the known word that a word is one letter away from, in time linear in the word's length.

Two words that differ by one letter (changed, missing, added, or swapped with its neighbor) are
equal once at most one letter is removed from each. So all known words are indexed by themselves and
by what is left of them without one letter. difflib, in comparison, looks at every known word, and a
file may hold tens of thousands of misspelled ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

#: Longer words are not compared.
_LONGEST = 80


class Nearest:
    """Known words, to look misspelled ones up."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = frozenset(known)
        self._index: dict[str, str] = {}
        for word in sorted(self._known):
            for rest in _shortened(word):
                self._index.setdefault(rest, word)
        self._index |= {word: word for word in self._known}

    def to(self, word: str) -> str:
        """Return the known word that is one letter away; "" if there is none, or it is known."""
        if word in self._known or len(word) > _LONGEST:
            return ""
        return next((self._index[one] for one in _shortened(word) if one in self._index), "")


def _shortened(word: str) -> Iterator[str]:
    """Yield the word, and each word with one letter less."""
    yield word
    for place in range(len(word)):
        yield word[:place] + word[place + 1 :]
