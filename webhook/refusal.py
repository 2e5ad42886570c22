"""The exception with which a handler rejects a request."""

from __future__ import annotations


class RequestError(Exception):
    """A request that is rejected, with a status and one line of text."""

    def __init__(self, status: int, message: str, *, close: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.close = close
