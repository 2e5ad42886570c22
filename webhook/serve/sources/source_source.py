"""What a server keeps in step with the world outside, and how."""

from __future__ import annotations

from typing import Protocol

from webhook.serve.log import Log
from webhook.serve.metrics import Metrics


class Source(Protocol):
    """Some of the state, or of what is told about it."""

    def start(self) -> None:
        """Start the work that runs beside the event loop."""

    def stop(self) -> None:
        """Stop that work."""

    def poll(self) -> bool:
        """Return whether there is something to apply; may block, so not in the event loop."""

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Use or report it, in the event loop."""
