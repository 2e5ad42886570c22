"""`GET /fabrics`: what the nodes of each fabric offer together, for people without rights.

Callers are anonymous, so an answer has amounts of each fabric and names no node. It is computed in
a thread, once for each inventory, however many ask.
"""

from __future__ import annotations

import asyncio
import json

from webhook.app.refusal import RequestError
from webhook.app.state import Snapshot, State
from webhook.decision.nodes import NodeInventory
from webhook.inventory.fabric_inventory import take_inventory
from webhook.render.fabrics_json import anonymous_form


class FabricAmounts:
    """Answers with the amounts of the state's nodes."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._lock = asyncio.Lock()
        self._of: NodeInventory | None = None
        self._written = b""

    async def written(self) -> bytes:
        """Return the amounts as JSON; raise RequestError if fabrics or nodes are not known."""
        snapshot = self._state.snapshot
        if snapshot is None:
            raise RequestError(503, "the webhook has no fabrics: its /readyz says why")
        if not snapshot.facts.nodes:
            raise RequestError(503, "the webhook knows no nodes: its /readyz says why")
        async with self._lock:
            if snapshot.inventory is not self._of:
                self._written = await asyncio.to_thread(_written, snapshot)
                self._of = snapshot.inventory
        return self._written


def _written(snapshot: Snapshot) -> bytes:
    form = anonymous_form(take_inventory(snapshot.facts.nodes, snapshot.fabrics))
    return json.dumps(form, indent=2).encode() + b"\n"
