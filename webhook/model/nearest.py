"""The candidate that a mistyped word probably means, for messages about unknown words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

#: The time of a comparison is quadratic in the length of the words.
_MAX_WORD_LENGTH = 80
#: The number of candidates that are searched for similar words, 20 microseconds each.
COMPARED = 200
#: Similarity from 0 to 1. The default of difflib, 0.6, finds "field" near "ofed".
_CUTOFF = 0.7
#: The fewest letters of an abbreviation.
_SHORTEST_PREFIX = 3


def nearest(
    word: str, candidates: Iterable[str], limit: int = 1, compared: int = COMPARED
) -> list[str]:
    """Return at most `limit` candidates near a word, ignoring case, the nearest first.

    A candidate that begins with the word is near, although difflib finds "check" far from
    "check-config".
    """
    lower = word.lower()
    if len(lower) > _MAX_WORD_LENGTH:
        return []
    by_lower = {name.lower(): name for name in candidates if len(name) <= _MAX_WORD_LENGTH}
    if lower in by_lower:
        return [by_lower[lower]]
    similar = get_close_matches(lower, list(islice(by_lower, compared)), n=limit, cutoff=_CUTOFF)
    return [by_lower[match] for match in similar or _longer(lower, by_lower)[:limit]]


def _longer(prefix: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that begin with a word, the shortest first."""
    if len(prefix) < _SHORTEST_PREFIX:
        return []
    return sorted((name for name in candidates if name.startswith(prefix)), key=len)


def suggestion(
    word: object, candidates: Iterable[str], prefix: str = "", compared: int = COMPARED
) -> str:
    """Return " (did you mean X?)" for the nearest candidate; "" if none is near."""
    names = nearest(str(word), candidates, compared=compared)
    return "".join(f" (did you mean {prefix}{name}?)" for name in names)
