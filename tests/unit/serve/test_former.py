from __future__ import annotations

from tests.builders import V100
from tests.server_state import prepared
from webhook.model.fabric import index
from webhook.serve.state import PreparedConfiguration, RetiredConfigurations


def numbered(number: int) -> PreparedConfiguration:
    """Prepare a configuration whose hash is a number of twelve digits."""
    return prepared(index((V100,), config_hash=f"{number:012}"))


def numbers(retired: RetiredConfigurations, now: float) -> list[int]:
    """Return the numbers of the configurations that are retired at a time."""
    return [number for number in range(100) if retired.get(f"{number:012}", now)]


def test_a_configuration_is_retired_for_a_minute() -> None:
    """Counted from its replacement; then it is gone."""
    configuration = numbered(1)
    retired = RetiredConfigurations().adding(configuration, 100.0)
    assert retired.get("000000000001", 160.0) is configuration
    assert retired.get("000000000001", 160.1) is None
    assert retired.get("", 100.0) is None


def test_the_youngest_are_retained() -> None:
    """Of more than 32 in a minute, the oldest is forgotten; one that retires again counts anew."""
    retired = RetiredConfigurations()
    for number in range(32):
        retired = retired.adding(numbered(number), 100.0)
    assert numbers(retired, 100.0) == [*range(32)]
    retired = retired.adding(numbered(0), 101.0).adding(numbered(32), 101.0)
    assert numbers(retired, 101.0) == [0, *range(2, 33)]


def test_one_that_retires_again_is_as_it_was_last() -> None:
    """Its first calls were decided with that inventory, and the minute begins anew."""
    first, second = numbered(1), numbered(1)
    retired = RetiredConfigurations().adding(first, 100.0).adding(second, 130.0)
    assert retired.get("000000000001", 190.0) is second


def test_old_ones_do_not_stay_in_memory() -> None:
    """What cannot be asked for any more is dropped when the next one comes, and nothing else."""
    retired = RetiredConfigurations().adding(numbered(1), 100.0).adding(numbered(2), 101.0)
    assert [*retired.adding(numbered(3), 161.0)._by_hash] == ["000000000002", "000000000003"]
    assert len(retired.adding(numbered(3), 160.0)._by_hash) == 3


def test_those_of_an_older_snapshot_do_not_change() -> None:
    """Requests may still be decided with it."""
    retired = RetiredConfigurations().adding(numbered(1), 100.0)
    retired.adding(numbered(2), 161.0)
    assert retired == RetiredConfigurations().adding(numbered(1), 100.0)
