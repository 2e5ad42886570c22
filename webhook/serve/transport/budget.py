"""A budget for the memory of a listener's connections, which closes connections to make room.

A simple cap would itself cause an outage: a client that fills it would lock out all others. So new
connections are not rejected. Instead, when memory exceeds the limit, the connection that has
gone longest without a complete request is closed. If one address exceeds its own limit, that
address's connections are closed first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from typing import Literal

#: The reason for the end of a connection: regular, by either side; an incomplete handshake; to make
#: room; a request that took too long; a rejected request; an unread answer.
EndReason = Literal["ended", "handshake", "crowded", "slow", "refused", "unread"]


#: The extension of a request's scope with the ConnectionUsage, by the same name.
USAGE = "rdma.lab/usage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits in bytes."""

    #: The cost of a silent connection.
    connection: int
    #: For all connections together.
    in_all: int
    #: For the connections of one address.
    per_address: int

    def for_connections(self, connections: int) -> Limits:
        """Return limits that allow at most `connections` connections."""
        return replace(self, connection=max(self.connection, self.in_all // max(connections, 1)))


class ConnectionUsage(ABC):
    """The memory use of a connection."""

    __slots__ = (
        "_address",
        "_budget",
        "handshake_done",
        "octets",
        "reason",
        "released",
        "tls_records",
    )

    def __init__(self, budget: Budget, address: str) -> None:
        """Count a new connection from `address`, in the form returned by the socket."""
        self._budget = budget
        self._address = budget.address(address)
        self.octets = 0
        #: TLS records of the handshake or of the arriving request, without those full of content.
        self.tls_records = 0
        self.handshake_done = False
        self.released = False
        self.reason: EndReason = "ended"
        self.mark_closable()
        self.grow(budget.limits.connection)

    @property
    def client_address(self) -> str:
        """The client's address, of IPv6 its /64."""
        return self._address.key

    @abstractmethod
    def end(self) -> None:
        """Close the connection at once."""

    def grow(self, octets: int) -> None:
        """Use more memory; this may close other connections, or this one."""
        if not self.released:
            self._budget.count(self, self._address, octets)
            self._budget.make_room(self._address)

    def shrink(self, octets: int) -> None:
        """Use less memory."""
        if not self.released:
            self._budget.count(self, self._address, -octets)

    def mark_protected(self) -> None:
        """Record a complete request: until its answer, this connection does not make room."""
        self._budget.closable.pop(self, None)
        self._address.closable.pop(self, None)

    def mark_closable(self) -> None:
        """Record that no complete request awaits its answer: this connection may be closed."""
        self.mark_protected()
        if not self.released:
            self._budget.closable[self] = self._address.closable[self] = None

    def close_because(self, reason: EndReason) -> None:
        """Close the connection, and record the reason."""
        self.reason = reason
        self.end()
        self.release()

    def release(self) -> None:
        """Release all memory; a second call does nothing."""
        if not self.released:
            self.released = True
            self.mark_protected()
            self._budget.count(self, self._address, -self.octets)
            self._budget.forget(self._address)


class _AddressUsage:
    """The connections from an address."""

    __slots__ = ("closable", "key", "octets")

    def __init__(self, key: str) -> None:
        self.key = key
        self.octets = 0
        self.closable: dict[ConnectionUsage, None] = {}


class Budget:
    """The memory budget of a listener."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.octets = 0
        #: The connections without a complete request, the longest first; these may be closed.
        self.closable: dict[ConnectionUsage, None] = {}
        self._addresses: dict[str, _AddressUsage] = {}

    def address(self, raw_address: str) -> _AddressUsage:
        """Return the connections from an address."""
        key = address_key(raw_address)
        return self._addresses.setdefault(key, _AddressUsage(key))

    def count(self, usage: ConnectionUsage, address: _AddressUsage, octets: int) -> None:
        """Add to the memory of a connection, or subtract from it."""
        usage.octets += octets
        address.octets += octets
        self.octets += octets

    def make_room(self, address: _AddressUsage) -> None:
        """End the longest closable connections, until the limits are met or none is closable."""
        while address.closable and address.octets > self.limits.per_address:
            next(iter(address.closable)).close_because("crowded")
        while self.closable and self.octets > self.limits.in_all:
            self.end_longest()

    def end_longest(self) -> None:
        """End the connection that has gone longest without a complete request."""
        for longest in self.closable:
            longest.close_because("crowded")
            return

    def forget(self, address: _AddressUsage) -> None:
        """Remove an address without connections."""
        if not address.octets:
            self._addresses.pop(address.key, None)


def address_key(address: str) -> str:
    """Return the key of an address: for IPv6 its /64, which may belong to a single host.

    IPv4 addresses come unmapped, or mapped into IPv6 if the socket accepts both.
    """
    if ":" not in address:
        return address
    version6 = IPv6Address(address)
    mapped = version6.ipv4_mapped
    return str(mapped) if mapped else version6.packed[:8].hex()
