"""How whatever serves a request says that it will not."""

from __future__ import annotations


class RequestError(Exception):
    """A request that is answered without being looked into: a status and one line."""

    def __init__(self, status: int, message: str, *, close: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.close = close
