from __future__ import annotations

from tests.builders import V100
from tests.server_state import prepared
from webhook.model.fabric import index
from webhook.serve.state import (
    MOST_RETIRED,
    RETENTION,
    PreparedConfiguration,
    RetiredConfigurations,
)


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
    assert retired.get("000000000001", 100.0 + RETENTION) is configuration
    assert retired.get("000000000001", 100.1 + RETENTION) is None
    assert retired.get("", 100.0) is None


def test_the_youngest_are_retained() -> None:
    """Of more than 32 in a minute, the oldest is forgotten; one that retires again counts anew."""
    retired = RetiredConfigurations()
    for number in range(MOST_RETIRED):
        retired = retired.adding(numbered(number), 100.0)
    assert numbers(retired, 100.0) == [*range(MOST_RETIRED)]
    retired = retired.adding(numbered(0), 101.0).adding(numbered(MOST_RETIRED), 101.0)
    assert numbers(retired, 101.0) == [0, *range(2, MOST_RETIRED + 1)]


def test_one_that_retires_again_is_as_it_was_last() -> None:
    """Its first calls were decided with that inventory, and the minute begins anew."""
    first, second = numbered(1), numbered(1)
    retired = RetiredConfigurations().adding(first, 100.0).adding(second, 130.0)
    assert retired.get("000000000001", 130.0 + RETENTION) is second


def test_old_ones_do_not_stay_in_memory() -> None:
    """What cannot be asked for any more is dropped when the next one comes, and nothing else."""
    one, two, three = numbered(1), numbered(2), numbered(3)
    retired = RetiredConfigurations().adding(one, 100.0).adding(two, 100.1)
    assert retired.adding(three, 100.1 + RETENTION) == (
        RetiredConfigurations().adding(two, 100.1).adding(three, 100.1 + RETENTION)
    )


def test_those_of_an_older_snapshot_do_not_change() -> None:
    """Requests may still be decided with it."""
    retired = RetiredConfigurations().adding(numbered(1), 100.0)
    retired.adding(numbered(2), 101.0 + RETENTION)
    assert retired == RetiredConfigurations().adding(numbered(1), 100.0)
