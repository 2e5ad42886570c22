"""The path of a value inside a document: a tuple of keys and indexes, with two written forms."""

from __future__ import annotations

import re
from functools import lru_cache

Path = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def dotted(path: Path) -> str:
    """Format a path for people: `spec.containers[0].resources.limits["nvidia.com/gpu"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


@lru_cache(maxsize=4096)  # the same few paths occur in every pod
def pointer(path: Path) -> str:
    """Format a path as an RFC 6901 pointer: `/spec/containers/0/limits/nvidia.com~1gpu`."""
    text = ""
    for step in path:
        if isinstance(step, str) and ("~" in step or "/" in step):
            text += "/" + step.replace("~", "~0").replace("/", "~1")
        else:
            text += f"/{step}"
    return text
