"""Kubernetes quantities, compared as numbers: "0", 0, "1", 1e0 and "1000m" alike.

The grammar is that of apimachinery's `resource.Quantity`, which reads null as 0.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}
_FORM = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]{1,3})|([numkMGTPE]i?|Ki)?)"
)
_LONGEST = 64


def parse(value: Any) -> Decimal:
    """Return the number that a quantity stands for.

    Raises ValueError, with a sentence, for what is none.
    """
    if value is None:
        return Decimal(0)
    if value.__class__ is int:
        return Decimal(value)
    written = repr(value) if value.__class__ is float else value
    if written.__class__ is str and len(written) <= _LONGEST:
        return _read(written)
    raise _none(value)


@lru_cache(maxsize=1024)  # a cluster's pods use the same few
def _read(written: str) -> Decimal:
    if written.isascii():
        match = _FORM.fullmatch(written)
        if match and (match[3] or "") in _SUFFIXES:
            return Decimal(match[1] + (match[2] or "")) * _SUFFIXES[match[3] or ""]
    raise _none(written)


def _none(value: Any) -> ValueError:
    return ValueError(f'{value!r:.80} is not a Kubernetes quantity (such as "1", 500m or 64Gi)')


def is_zero(value: Any) -> bool:
    """Whether a quantity is nothing; ValueError for what is no quantity."""
    if value.__class__ is str and value.isdigit() and value.isascii():
        return not value.strip("0")
    return parse(value) == 0


def whole(value: Any) -> int:
    """Return a quantity as a whole number, rounded up as Kubernetes does."""
    if value.__class__ is str and value.isdigit() and value.isascii() and len(value) <= _LONGEST:
        return int(value)
    return int(parse(value).to_integral_value(rounding="ROUND_CEILING"))


def equal(left: Any, right: Any) -> bool:
    """Whether two quantities are the same number, however they are written."""
    return left == right or parse(left) == parse(right)


def written(number: Decimal) -> str:
    """Write a number as a quantity, in the largest binary unit that divides it."""
    for unit in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        if number and number % _SUFFIXES[unit] == 0:
            return f"{number / _SUFFIXES[unit]:f}{unit}"
    return f"{number.normalize():f}"
