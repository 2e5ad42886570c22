"""What the connections of a listener may hold in memory, and which of them makes room.

A bare cap would itself be the outage: whoever fills it keeps everybody else out. So nobody is
turned away for coming late. Where there is too much, the connection goes that has been longest
without a complete request: first of the same address, where that holds more than one may.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from typing import Literal

#: Why a connection ended: of itself or by our peer, before its handshake was done, to make room,
#: by a request that took too long or was too much, by an answer that was not read.
Reason = Literal["ended", "handshake", "crowded", "slow", "refused", "unread"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """In bytes."""

    #: What a connection costs that says nothing.
    connection: int
    #: All connections together.
    in_all: int
    #: Those of one address.
    per_address: int

    def within(self, descriptors: int) -> Limits:
        """Return limits under which there are at most so many connections."""
        return replace(self, connection=max(self.connection, self.in_all // max(descriptors, 1)))


class Share(ABC):
    """What one connection holds."""

    __slots__ = ("_budget", "_of", "begun", "left", "octets", "reason")

    def __init__(self, budget: Budget, address: str) -> None:
        """Let a connection in, from `address`, as a socket tells it."""
        self._budget = budget
        self._of = budget.address(address)
        self.octets = 0
        #: Whether the handshake is done.
        self.begun = False
        self.left = False
        self.reason: Reason = "ended"
        self.wait()
        self.grow(budget.limits.connection)

    @abstractmethod
    def end(self) -> None:
        """Close the connection at once."""

    def grow(self, octets: int) -> None:
        """Hold more; others, or this one itself, may have to go for it."""
        if not self.left:
            self._budget.count(self, self._of, octets)
            self._budget.make_room(self._of)

    def shrink(self, octets: int) -> None:
        """Hold less."""
        if not self.left:
            self._budget.count(self, self._of, -octets)

    def serve(self) -> None:
        """Have a complete request: until it is answered this one makes no room."""
        self._budget.waiting.pop(self, None)
        self._of.waiting.pop(self, None)

    def wait(self) -> None:
        """Have none, from now on."""
        self.serve()
        if not self.left:
            self._budget.waiting[self] = self._of.waiting[self] = None

    def make_go(self, reason: Reason) -> None:
        """Close the connection, and say why."""
        self.reason = reason
        self.end()
        self.leave()

    def leave(self) -> None:
        """Hold nothing any more; a second time does nothing."""
        if not self.left:
            self.left = True
            self.serve()
            self._budget.count(self, self._of, -self.octets)
            self._budget.forget(self._of)


class _Address:
    """The connections of one address."""

    __slots__ = ("key", "octets", "waiting")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.octets = 0
        self.waiting: dict[Share, None] = {}


class Budget:
    """The shares of one listener."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.octets = 0
        #: Those without a complete request, the longest first.
        self.waiting: dict[Share, None] = {}
        self._addresses: dict[bytes, _Address] = {}

    def address(self, told: str) -> _Address:
        """Return the connections of an address."""
        key = address_key(told)
        return self._addresses.setdefault(key, _Address(key))

    def count(self, share: Share, of: _Address, octets: int) -> None:
        """Count more or less for a share."""
        share.octets += octets
        of.octets += octets
        self.octets += octets

    def make_room(self, of: _Address) -> None:
        """End who waits longest, until all is within the limits or nobody waits."""
        while of.waiting and of.octets > self.limits.per_address:
            next(iter(of.waiting)).make_go("crowded")
        while self.waiting and self.octets > self.limits.in_all:
            self.end_longest()

    def end_longest(self) -> None:
        """End the connection that has been longest without a complete request."""
        for longest in self.waiting:
            longest.make_go("crowded")
            return

    def forget(self, of: _Address) -> None:
        """Keep nothing of an address without connections."""
        if not of.octets:
            self._addresses.pop(of.key, None)


def address_key(address: str) -> bytes:
    """Return what counts as one address: of IPv6 the /64, which one host may have for itself.

    IPv4 comes as it is, or mapped into IPv6 where a socket takes both.
    """
    if ":" not in address:
        return address.encode()
    version6 = IPv6Address(address)
    mapped = version6.ipv4_mapped
    return str(mapped).encode() if mapped else version6.packed[:8]
