"""Messages of Kubernetes and of container runtimes, as parts of sentences."""

from __future__ import annotations

_MAX_MESSAGE = 400


def cut(message: str) -> str:
    """Return a message on one line; a long one keeps its start, and its end with the cause."""
    line = " ".join(message.split())
    if len(line) <= _MAX_MESSAGE:
        return line
    half = (_MAX_MESSAGE - 3) // 2
    return f"{line[:half].rstrip()} … {line[-half:].lstrip()}"


def pronoun(title: str, subject: str) -> str:
    """Return "it" for the object that is the subject of the sentence, and another's title."""
    return "it" if title == subject else title
