from __future__ import annotations

import argparse
from datetime import timedelta

import pytest

from webhook.cli.options import duration, duration_text


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("90s", timedelta(seconds=90)),
        ("2m", timedelta(minutes=2)),
        ("24h", timedelta(hours=24)),
        ("365d", timedelta(days=365)),
        ("0s", timedelta(0)),
    ],
)
def test_a_number_and_a_unit(given: str, read: timedelta) -> None:
    """Durations are written as in Go, and may be in days."""
    assert duration(given) == read
    assert duration(duration_text(read)) == read


@pytest.mark.parametrize("given", ["", "90", "s", "1.5h", "-1s", "1m30s", "1y", "٣s", "9999999d"])
def test_a_malformed_duration(given: str) -> None:
    """The error message shows what a valid value looks like."""
    with pytest.raises(argparse.ArgumentTypeError, match="is not a duration such as 90s"):
        duration(given)
