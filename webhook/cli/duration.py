"""Durations as people write them: 90s, 2m, 24h, 365d."""

from __future__ import annotations

import argparse
import re
from datetime import timedelta

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(\d{1,6})([smhd])", re.ASCII)


def duration(given: str) -> timedelta:
    """Read a duration; argparse's error for what is none."""
    found = _DURATION.fullmatch(given)
    if found is None:
        raise argparse.ArgumentTypeError(f"{given!r:.80} is no duration such as 90s, 2m, 24h, 365d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
