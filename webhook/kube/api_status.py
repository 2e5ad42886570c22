"""The message of a Kubernetes `Status`, the answer to a request that failed, as one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Characters of a message; an API server may quote the request in it.
_LONGEST = 300


def message_of(status: Mapping[str, Any]) -> str:
    """Return the message of a Status on one line, shortened."""
    return one_line(status.get("message") or "no reason given")


def one_line(words: object) -> str:
    """Return text on one line, shortened."""
    return " ".join(str(words).split())[:_LONGEST]
