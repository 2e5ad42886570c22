from __future__ import annotations

import pytest

from webhook.serve.transport.budget import Budget, ConnectionUsage, Limits, address_key

#: Ten connections in total, six per address.
LIMITS = Limits(connection=10, in_all=100, per_address=60)


class RecordedUsage(ConnectionUsage):
    """A usage that records whether it was ended."""

    __slots__ = ("ended",)

    def __init__(self, budget: Budget, address: str = "192.0.2.1") -> None:
        self.ended = False
        super().__init__(budget, address)

    def end(self) -> None:
        """Record the end."""
        self.ended = True


def _ended(usages: list[RecordedUsage]) -> list[int]:
    return [number for number, usage in enumerate(usages) if usage.ended]


def test_the_longest_of_a_full_address_goes_first() -> None:
    """A new connection is accepted; the connection without a request for longest is ended."""
    budget = Budget(LIMITS)
    stranger = RecordedUsage(budget, "192.0.2.2")
    usages = [RecordedUsage(budget) for _ in range(8)]

    assert _ended(usages) == [0, 1]
    assert (stranger.ended, budget.octets) == (False, 70)
    assert (usages[0].released, usages[0].reason, usages[0].octets) == (True, "crowded", 0)


def test_a_full_listener_ends_the_longest_of_all() -> None:
    """The address does not matter."""
    budget = Budget(LIMITS)
    usages = [RecordedUsage(budget, f"192.0.2.{number % 4}") for number in range(11)]

    assert _ended(usages) == [0]
    assert budget.octets == 100


def test_the_last_request_stays() -> None:
    """An answer moves a connection after all others that wait for a request."""
    budget = Budget(LIMITS)
    usages = [RecordedUsage(budget) for _ in range(6)]
    usages[0].mark_protected()
    usages[0].mark_closable()
    RecordedUsage(budget)

    assert _ended(usages) == [1]


def test_a_complete_request_is_never_broken_off() -> None:
    """If all others have a complete request, the new connection is ended."""
    budget = Budget(LIMITS)
    usages = [RecordedUsage(budget) for _ in range(6)]
    for usage in usages:
        usage.mark_protected()
    late = RecordedUsage(budget)

    assert _ended(usages) == []
    assert (late.ended, late.released, budget.octets) == (True, True, 60)


def test_what_a_request_holds_counts() -> None:
    """An arriving body ends other connections, and finally its own; freed memory does not count."""
    budget = Budget(LIMITS)
    usages = [RecordedUsage(budget) for _ in range(3)]
    usages[1].grow(30)
    assert _ended(usages) == []
    usages[1].grow(10)
    assert _ended(usages) == [0]
    usages[1].shrink(40)
    usages[1].grow(100)

    assert _ended(usages) == [0, 1]
    assert (budget.octets, usages[2].octets) == (10, 10)


def test_a_closed_connection_holds_nothing() -> None:
    """Later calls have no effect, and addresses without connections are not remembered."""
    budget = Budget(LIMITS)
    usage = RecordedUsage(budget)
    usage.release()
    usage.release()
    usage.grow(5)
    usage.shrink(5)
    usage.mark_closable()

    assert (budget.octets, budget.closable, budget._addresses) == (0, {}, {})
    budget.end_longest()
    assert not usage.ended


def test_descriptors_bound_connections_too() -> None:
    """A connection costs enough that every listener keeps its part of the descriptors."""
    assert LIMITS.for_connections(5) == Limits(connection=20, in_all=100, per_address=60)
    assert LIMITS.for_connections(1000) == LIMITS
    assert LIMITS.for_connections(-3).connection == 100


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2", True),
    ],
)
def test_which_addresses_are_equal(first: str, second: str, equal: bool) -> None:
    """One host can use a whole IPv6 /64; IPv4 on a dual-stack socket is the same address."""
    assert (address_key(first) == address_key(second)) is equal
