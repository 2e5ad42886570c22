"""Tests of the configurations that are no longer in use."""

from __future__ import annotations

from tests.builders import V100
from tests.server_state import prepared
from webhook.model.fabric import build_configuration
from webhook.serve.state import PreparedConfiguration, RetiredConfigurations


def numbered(number: int) -> PreparedConfiguration:
    """Prepare a configuration whose hash is a number of twelve digits."""
    return prepared(build_configuration((V100,), config_hash=f"{number:012}"))


def numbers(retired: RetiredConfigurations, now: float) -> list[int]:
    """Return the numbers of the configurations that are retired at a time."""
    return [number for number in range(100) if retired.get(f"{number:012}", now)]


def test_a_configuration_is_retired_for_a_minute() -> None:
    """The minute counts from its replacement; then it is dropped."""
    configuration = numbered(1)
    retired = RetiredConfigurations().retire(configuration, 100.0)
    assert retired.get("000000000001", 160.0) is configuration
    assert retired.get("000000000001", 160.1) is None
    assert retired.get("", 100.0) is None


def test_the_youngest_are_retained() -> None:
    """Beyond 32 in a minute, the oldest is dropped; a repeated retirement counts anew."""
    retired = RetiredConfigurations()
    for number in range(32):
        retired = retired.retire(numbered(number), 100.0)
    assert numbers(retired, 100.0) == [*range(32)]
    retired = retired.retire(numbered(0), 101.0).retire(numbered(32), 101.0)
    assert numbers(retired, 101.0) == [0, *range(2, 33)]


def test_a_second_retirement_replaces_the_first() -> None:
    """Its last calls were decided with the newer index, and the minute begins anew."""
    first, second = numbered(1), numbered(1)
    retired = RetiredConfigurations().retire(first, 100.0).retire(second, 130.0)
    assert retired.get("000000000001", 190.0) is second


def test_expired_configurations_do_not_stay_in_memory() -> None:
    """Configurations that can no longer be requested are dropped at the next retirement."""
    retired = RetiredConfigurations().retire(numbered(1), 100.0).retire(numbered(2), 101.0)
    assert [*retired.retire(numbered(3), 161.0)._by_hash] == ["000000000002", "000000000003"]
    assert len(retired.retire(numbered(3), 160.0)._by_hash) == 3


def test_an_older_snapshot_does_not_change() -> None:
    """Requests may still be decided with it."""
    retired = RetiredConfigurations().retire(numbered(1), 100.0)
    retired.retire(numbered(2), 161.0)
    assert retired == RetiredConfigurations().retire(numbered(1), 100.0)
