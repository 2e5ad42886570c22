"""What a Kubernetes `Status` says of a request that failed, on one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Characters of a message; an API server may quote what it was sent.
_LONGEST = 300


def message_of(status: Mapping[str, Any]) -> str:
    """Return the message of a Status, without line breaks and shortened."""
    return one_line(status.get("message") or "no reason given")


def one_line(words: object) -> str:
    """Write something without line breaks, shortened."""
    return " ".join(str(words).split())[:_LONGEST]
