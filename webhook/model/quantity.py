"""Kubernetes quantities, compared as numbers: "0" equals 0, and "1" equals 1e0 and "1000m".

The grammar, the rounding up to a billionth and the cap on binary suffixes follow apimachinery's
`resource.Quantity` (pkg/api/resource/quantity.go, ParseQuantity and UnmarshalJSON), which reads
null, and a sign or a suffix alone, as 0. Its documentation limits all quantities to 2^63-1, but its
code limits only some; this module rejects any larger quantity.
"""

from __future__ import annotations

import re
from functools import lru_cache

from webhook.model.quoting import quoted

#: The number of billionths in 1: `parse` returns billionths, so that sums are exact.
BILLIONTHS = 10**9
#: The largest magnitude, as a whole number; Kubernetes does not count beyond it.
MAX_QUANTITY = 2**63 - 1

_POWERS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SHIFTS = {f"{letter}i": 10 * power for power, letter in enumerate("KMGTPE", start=1)}
_SMALL = ((10**6, "m"), (10**3, "u"), (1, "n"))
_FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE]?))")
#: In characters; 2^63-1 with nine decimal places has 30.
_MAX_LENGTH = 64
_SPACES = " \x85\xa0"  # UnmarshalJSON trims these; JSON escapes other spaces, which stay
_SHORT = 18  # any number with this many digits is below MAX_QUANTITY


def parse(value: object) -> int:
    """Return the value of a quantity in billionths.

    Raise ValueError, with a sentence for the user, if `value` is not a quantity or its
    magnitude is above `MAX_QUANTITY`.
    """
    if value is None:
        return 0
    if type(value) is int:  # not a bool, which `isinstance` accepts
        if abs(value) > MAX_QUANTITY:
            raise _too_large(value)
        return int(value) * BILLIONTHS
    written = repr(value) if isinstance(value, float) else value
    if not isinstance(written, str):
        raise _malformed(value)
    if len(written) > _MAX_LENGTH:
        raise ValueError(
            f"{quoted(written)} is longer than any quantity ({_MAX_LENGTH} characters)"
        )
    return _read(written)


@lru_cache(maxsize=1024)  # the pods of a cluster use the same few quantities
def _read(written: str) -> int:
    trimmed = written.strip(_SPACES)
    form = _FORM.fullmatch(trimmed)
    if form is None or not trimmed:
        raise _malformed(written)
    sign, whole_part, fraction, exponent, suffix = form.groups(default="")
    digits = int(whole_part + fraction or "0")
    if suffix in _SHIFTS:
        number = min(_scale(digits << _SHIFTS[suffix], -len(fraction)), MAX_QUANTITY * BILLIONTHS)
    else:
        number = _scale(digits, (int(exponent) if exponent else _POWERS[suffix]) - len(fraction))
    if number > MAX_QUANTITY * BILLIONTHS:
        raise _too_large(written)
    return -number if sign == "-" else number


def _scale(digits: int, power: int) -> int:
    """Return `digits` times ten to the `power` in billionths, rounded up.

    Powers are clamped, since a user may write one of any size; the clamp changes no result.
    """
    power = max(-2 * _MAX_LENGTH, min(power, _MAX_LENGTH)) + 9
    factor: int = 10 ** abs(power)
    return digits * factor if power >= 0 else -(-digits // factor)


def is_unexpanded(value: object) -> bool:
    """Return whether a value is an unexpanded shell variable, `$GPUS` or `${GPUS}`."""
    return isinstance(value, str) and _VARIABLE.search(value[:_MAX_LENGTH]) is not None


_VARIABLE = re.compile(r"\$\{?[A-Za-z_]")


def _malformed(value: object) -> ValueError:
    if is_unexpanded(value):
        return ValueError(f"{quoted(value)} is an unexpanded variable (run envsubst first)")
    return ValueError(f'{quoted(value)} is not a Kubernetes quantity (such as "1", 500m or 64Gi)')


def _too_large(value: str | int) -> ValueError:
    amount = quoted(value) if isinstance(value, str) else f"a number of {value.bit_length()} bits"
    return ValueError(f"{amount} is more than 2^63-1, the largest quantity")


def resource_billionths(value: object) -> int:
    """Return the quantity of a resource, in billionths; raise ValueError also for a negative one.

    Source: kubernetes pkg/apis/core/validation, ValidateResourceQuantityValue.
    """
    number = parse(value)
    if number < 0:
        raise ValueError(f"{quoted(value)} is negative, and a resource's quantity cannot be")
    return number


def is_zero(value: object) -> bool:
    """Return whether a resource's quantity is zero; raise ValueError like `resource_billionths`."""
    if isinstance(value, str) and value.isdigit() and value.isascii() and len(value) <= _SHORT:
        return not value.strip("0")
    return not resource_billionths(value)


def to_integer(value: object) -> int:
    """Return the quantity of a resource as a whole number, rounded up as Kubernetes does."""
    if isinstance(value, str) and value.isdigit() and value.isascii() and len(value) <= _SHORT:
        return int(value)
    return -(-resource_billionths(value) // BILLIONTHS)


def equal(left: object, right: object) -> bool:
    """Return whether two quantities are the same number in any notation."""
    return left == right or parse(left) == parse(right)


def format_quantity(number: int) -> str:
    """Format a number of billionths, zero or more, as a quantity.

    Use the largest binary unit that divides the number; use decimal digits if none does, or if the
    number is above MAX_QUANTITY, where binary units are capped.
    """
    units, remainder = divmod(number, BILLIONTHS)
    if remainder:
        power, suffix = next(unit for unit in _SMALL if number % unit[0] == 0)
        return f"{number // power}{suffix}"
    for suffix in reversed(_SHIFTS) if units <= MAX_QUANTITY else ():
        if units and not units & ((1 << _SHIFTS[suffix]) - 1):
            return f"{units >> _SHIFTS[suffix]}{suffix}"
    return str(units)
