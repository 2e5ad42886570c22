"""Types of options: each function parses a word, or raises argparse's error with a hint."""

from __future__ import annotations

import argparse
import re
from datetime import timedelta

from webhook.config.names import LABEL_FORM, is_dns_label

#: An RFC 1123 subdomain, which the name of a Kubernetes object must be.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME = 253
_LONGEST_DRAIN = 3600  # seconds; longer than any terminationGracePeriodSeconds
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_TIMEOUT_DIGITS = 6
_DURATION = re.compile(r"(\d{1,6})([smhd])", re.ASCII)


def duration(given: str) -> timedelta:
    """Parse a duration; raises argparse's error if it is malformed."""
    found = _DURATION.fullmatch(given)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not a duration: write, for example, 90s, 2m, 24h or 365d"
        )
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def label_pair(given: str) -> tuple[str, str]:
    """Parse KEY=VALUE."""
    key, equals, value = given.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{given!r} is not KEY=VALUE")
    return key, value


def object_name(given: str) -> str:
    """Parse the name of a Kubernetes object."""
    if len(given) > _LONGEST_NAME or not _NAME.fullmatch(given):
        raise argparse.ArgumentTypeError(f"{given!r:.80} is not the name of an object")
    return given


def namespace_name(given: str) -> str:
    """Parse the name of a namespace."""
    if not is_dns_label(given):
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not the name of a namespace: {LABEL_FORM}"
        )
    return given


def port_number(given: str) -> int:
    """Parse a TCP port; 0 stands for any free port."""
    number = int(given) if given.isascii() and given.isdigit() else -1
    if not 0 <= number < 1 << 16:
        raise argparse.ArgumentTypeError(
            f"{given!r} is not a port: write 0 to 65535 (0: any free port)"
        )
    return number


def positive_seconds(given: str) -> float:
    """Parse a number of seconds, at most an hour."""
    try:
        number = float(given)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _LONGEST_DRAIN:
        raise argparse.ArgumentTypeError(f"{given!r} is not a number from 0 to {_LONGEST_DRAIN}")
    return number


def request_timeout(given: str) -> float:
    """Parse a timeout as kubectl has it: 30, 30s, 2m, 1h; 0 stands for the usual one."""
    if given.isascii() and given.isdigit() and len(given) <= _TIMEOUT_DIGITS:
        return float(given)
    return duration(given).total_seconds()


def duration_text(span: timedelta) -> str:
    """Format a duration so that `duration` can parse it, in the largest unit that divides it."""
    seconds_in = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    whole = int(span.total_seconds())
    unit = next(unit for unit, seconds in seconds_in.items() if whole % seconds == 0)
    return f"{whole // seconds_in[unit]}{unit}"
