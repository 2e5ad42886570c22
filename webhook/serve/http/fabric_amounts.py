"""`GET /fabrics`: what the nodes of each fabric offer together, for people without rights.

Callers are anonymous, so an answer has amounts of each fabric and names no node. It is computed in
a thread, once for each inventory and format, however many ask.
"""

from __future__ import annotations

import asyncio

from webhook.model.inventory import take_inventory
from webhook.model.nodes import NodeInventory
from webhook.preview.fabrics.record import FABRICS_FORMATS, FabricsReader, fabrics_output
from webhook.refusal import RequestError
from webhook.serve.former import PreparedConfiguration
from webhook.serve.state import State

_ANYBODY = FabricsReader(anonymous=True)


class FabricAmounts:
    """Answers with the amounts of the state's nodes."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._lock = asyncio.Lock()
        self._of: NodeInventory | None = None
        self._written: dict[str, bytes] = {}

    async def written(self, name: str) -> bytes:
        """Return the amounts in a format; raise RequestError if fabrics or nodes are not known."""
        current = self._state.snapshot.current
        if current is None:
            raise RequestError(503, "the webhook has no fabrics: its /readyz says why")
        if not current.nodes:
            raise RequestError(503, "the webhook knows no nodes: its /readyz says why")
        async with self._lock:
            if current.inventory is not self._of:
                self._written = await asyncio.to_thread(_written, current)
                self._of = current.inventory
            return self._written[name]


def _written(current: PreparedConfiguration) -> dict[str, bytes]:
    """Write the amounts in each format, which takes little beside adding them up."""
    found = take_inventory(current.nodes, current.fabrics)
    return {one.name: fabrics_output(found, one.name, _ANYBODY).encode() for one in FABRICS_FORMATS}
