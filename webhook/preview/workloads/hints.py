"""Find mistakes in opting in. Only a preview can: the API server does not call us for such pods.

The annotation counts only on the pod, and so in the metadata of its template: a controller copies
neither its own metadata to the pods, nor that of a template around theirs.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from webhook.model.annotations import ENABLE, REQUESTED, WRITTEN
from webhook.model.path import Path, dotted
from webhook.model.pod import at
from webhook.preview.workloads.templates import Template

_FIELDS = ("annotations", "labels")
_METADATA = ("metadata",)
#: `rdma.lab/enable` and keys meant to be it: two words with a separator between them.
_WORDS = re.compile(r"(.+)[/._-]([^/._-]+)")
_PREFIX, _NAME = ENABLE.split("/")
#: How similar the words must be: `rdma` and `rdma.lab` are .67, `enabled` and `enable` .92.
_ALIKE_PREFIX, _ALIKE_NAME = 0.65, 0.8
_LONGEST = 80
#: The most keys of one metadata that are compared; each takes about ten microseconds.
_MOST_KEYS = 500


class OptInHints:
    """Hints for the pods of one document; each metadata is searched once for all of them."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self._keys: dict[int, str | None] = {}  # by the id of annotations or labels

    def of(self, template: Template) -> str:
        """Say why a template that seems to opt in does not; return "" if nothing suggests that.

        The pod's own metadata comes first, then that of the objects around it, nearest first.
        """
        own = (*template.path, *_METADATA)
        if at(template.pod, (*_METADATA, "annotations", ENABLE)) == "false":
            return f'{dotted((*own, "annotations"))} says {ENABLE}: "false"'
        around = self._around(template.path)
        for size in range(len(around) - 1, -1, -1):
            for field in _FIELDS:
                key = self._key(at(around[size], (*_METADATA, field)))
                if key is None:
                    continue
                place = (*template.path[:size], *_METADATA, field)
                if size < len(template.path):
                    there = None if template.bare else own
                    return _elsewhere(self._value, place, key, there)
                return _misnamed(place, key)
        return ""

    def _around(self, path: Path) -> list[Any]:
        """List the nodes on the way to a template, including the template."""
        way = [self._value]
        for step in path:
            way.append(way[-1][step])
        return way

    def _key(self, words: Any) -> str | None:
        """Return the annotation's key if it is there, else the first similar key."""
        if not isinstance(words, dict):
            return None
        if id(words) not in self._keys:
            likely = (key for key in islice(words, _MOST_KEYS) if _meant(key))
            self._keys[id(words)] = ENABLE if ENABLE in words else next(likely, None)
        return self._keys[id(words)]


def _meant(key: str) -> bool:
    if key == ENABLE:
        return True
    words = _WORDS.fullmatch(key.strip().lower()) if len(key) <= _LONGEST else None
    if words is None or key in REQUESTED or key in WRITTEN:
        return False
    return _alike(words[1], _PREFIX) > _ALIKE_PREFIX and _alike(words[2], _NAME) > _ALIKE_NAME


def _alike(found: str, wanted: str) -> float:
    return SequenceMatcher(None, found, wanted, autojunk=False).ratio()


def _misnamed(place: Path, key: str) -> str:
    if place[-1] == "labels":
        return f"{key} is in {dotted(place)}: on a pod it must be an annotation{_instead(key)}"
    return f"{key!r} in {dotted(place)} has no effect{_instead(key)}"


def _elsewhere(value: Any, place: Path, key: str, own: Path | None) -> str:
    around = at(value, place[:-2])
    kind, name = at(around, ("kind",)), at(around, (*_METADATA, "name"))
    owner = " ".join(str(word) for word in (kind, name) if word)
    whose = f" of {owner}" if owner else ""
    stands = f"{key} is in {dotted(place)}{whose}"
    if own is None:  # the pods' metadata is not in the document
        return f"{stands}: it has an effect if the controller copies it to the pods{_instead(key)}"
    where = dotted((*own, "annotations"))
    return f"{stands}, which no pod gets: write it in {where}{_instead(key)}"


def _instead(key: str) -> str:
    return "" if key == ENABLE else f" (did you mean {ENABLE}?)"
