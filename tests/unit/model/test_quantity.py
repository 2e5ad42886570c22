from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.case_names import case_name
from webhook.model.quantity import (
    BILLIONTHS,
    MAX_QUANTITY,
    equal,
    format_quantity,
    is_unexpanded,
    is_zero,
    parse,
    resource_billionths,
    to_integer,
)

#: Texts, and the numbers that apimachinery v0.36.3 reads from them (Quantity.UnmarshalJSON, then
#: AsDec), as printed by a small Go program. null: it refuses the text.
TABLE: list[tuple[str, str | None]] = json.loads(
    (Path(__file__).parent / "quantities.json").read_text(encoding="utf-8")
)
MAX_LENGTH = 64


def refused(value: Any) -> str:
    """Return the sentence that refuses a value."""
    with pytest.raises(ValueError, match=r"\S") as raised:
        parse(value)
    for reader in (resource_billionths, to_integer, is_zero):
        with pytest.raises(ValueError, match=r"\S") as other:
            reader(value)
        assert str(other.value) == str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(("text", "number"), TABLE, ids=case_name)
def test_a_quantity_is_what_the_api_server_reads(text: str, number: str | None) -> None:
    """Numbers up to 2^63-1 are read alike; a larger or absurdly long one is refused here."""
    if number is None:
        assert refused(text) == (
            f'{text!r:.80} is not a Kubernetes quantity (such as "1", 500m or 64Gi)'
        )
    elif len(text) > MAX_LENGTH:
        assert refused(text) == f"{text!r:.80} is longer than any quantity (64 characters)"
    elif number == "too large" or abs(Fraction(number)) > MAX_QUANTITY:
        assert refused(text) == (f"{text!r:.80} is more than 2^63-1, the largest quantity")
    else:
        assert parse(text) == Fraction(number) * BILLIONTHS


_TENS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_TWOS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DIGITS = st.text("0123456789", max_size=22)
_EXPONENTS = st.tuples(st.sampled_from("eE"), st.integers(-200, 200)).map(lambda e: f"{e[0]}{e[1]}")


@given(
    sign=st.sampled_from(("", "+", "-")),
    digits=_DIGITS.filter(bool),
    fraction=st.none() | _DIGITS,
    suffix=st.sampled_from((*_TENS, *_TWOS)) | _EXPONENTS,
)
def test_a_quantity_is_rounded_up_to_a_billionth(
    sign: str, digits: str, fraction: str | None, suffix: str
) -> None:
    """As with an exact fraction: away from zero, and a binary suffix is capped at 2^63-1."""
    text = sign + digits + ("" if fraction is None else f".{fraction}") + suffix
    places = len(fraction or "")
    exact = Fraction(int(digits + (fraction or "")), 10**places)
    exact *= _factor(suffix)
    number = math.ceil(exact * BILLIONTHS)
    if suffix in _TWOS:
        number = min(number, MAX_QUANTITY * BILLIONTHS)
    if number > MAX_QUANTITY * BILLIONTHS:
        assert "2^63-1" in refused(text)
    else:
        assert parse(text) == (-number if sign == "-" else number)


def _factor(suffix: str) -> Fraction:
    if suffix in _TWOS:
        return Fraction(2 ** _TWOS[suffix])
    power = _TENS[suffix] if suffix in _TENS else int(suffix[1:])
    return Fraction(10) ** power


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (None, 0),
        (0, 0),
        (1, 1),
        (-2, -2),
        (1.0, 1),
        (1e18, 10**18),
        (-0.0, 0),
        (MAX_QUANTITY, MAX_QUANTITY),
    ],
    ids=repr,
)
def test_numbers_of_json_are_quantities(value: Any, number: int) -> None:
    """As UnmarshalJSON reads them; null is 0."""
    assert parse(value) == number * BILLIONTHS


@pytest.mark.parametrize(
    "value", [True, False, [], {}, [1], float("inf"), float("nan"), b"1"], ids=repr
)
def test_other_values_are_none(value: Any) -> None:
    """The message shows the value and valid examples."""
    quoted = repr(value)
    if isinstance(value, float):
        quoted = repr(quoted)
    assert refused(value) == (
        f'{quoted:.80} is not a Kubernetes quantity (such as "1", 500m or 64Gi)'
    )


@pytest.mark.parametrize(
    "value",
    [MAX_QUANTITY + 1, -MAX_QUANTITY - 1, 10**10_000, -(10**10_000), 1e19, 1e308],
    ids=case_name,
)
def test_too_large_a_number_is_refused(value: Any) -> None:
    """Even a number that Python refuses to convert to text."""
    assert refused(value).endswith(" is more than 2^63-1, the largest quantity")


@pytest.mark.parametrize("exponent", ["9" * 60, "-" + "9" * 60])
def test_an_exponent_of_any_size_costs_nothing(exponent: str) -> None:
    """A power that makes no difference is not computed."""
    text = f"1e{exponent}"
    if exponent.startswith("-"):
        assert parse(text) == 1
    else:
        assert "2^63-1" in refused(text)
    assert parse(f"0e{exponent}") == 0


@pytest.mark.parametrize("text", ["-1", -1, "-1n", "-9223372036854775807", -0.5], ids=repr)
def test_a_resource_is_never_below_zero(text: Any) -> None:
    """The API server can read such a quantity, but refuses it."""
    assert parse(text) < 0
    for reader in (resource_billionths, to_integer, is_zero):
        with pytest.raises(ValueError, match="is negative, and a resource's quantity cannot"):
            reader(text)


@pytest.mark.parametrize(
    "text", ["0", "000", 0, 0.0, -0.0, "0m", "0Gi", "0e5", "-0", None, "0" * 64], ids=repr
)
def test_nothing_is_zero_however_it_is_written(text: Any) -> None:
    """Digits take a short cut; anything else is parsed."""
    assert is_zero(text)


@pytest.mark.parametrize("text", ["1", 1, "1m", "1e-9", "001", "9" * 18, "9" * 19], ids=repr)
def test_something_is_not_zero(text: Any) -> None:
    """Even far below 1; the last two are on either side of the short cut."""
    if text == "9" * 19:
        assert "2^63-1" in refused(text)
    else:
        assert not is_zero(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("8", 8), ("008", 8), (8, 8), ("1500m", 2), ("0.1", 1), ("1k", 1000), ("1n", 1)),
        *(("9" * 18, 10**18 - 1), (str(MAX_QUANTITY), MAX_QUANTITY), ("0", 0)),
    ],
    ids=repr,
)
def test_a_whole_number_is_rounded_up(text: Any, number: int) -> None:
    """As Quantity.Value() does it."""
    assert to_integer(text) == number


@pytest.mark.parametrize(
    ("left", "right", "are_equal"),
    [
        ("1", "1", True),
        ("1Gi", "1024Mi", True),
        ("2", 2, True),
        ("0", None, True),
        ("1G", "1Gi", False),
    ],
)
def test_quantities_are_compared_as_numbers(left: Any, right: Any, are_equal: bool) -> None:
    """In any notation."""
    assert equal(left, right) is are_equal


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *((0, "0"), (1, "1n"), (1500, "1500n"), (2000, "2u"), (3 * 10**6, "3m")),
        *(
            (BILLIONTHS // 2, "500m"),
            (3 * BILLIONTHS, "3"),
            (1000 * BILLIONTHS, "1000"),
            (1024 * BILLIONTHS, "1Ki"),
        ),
        *((1025 * BILLIONTHS, "1025"), ((2**20 + 2**10) * BILLIONTHS, "1025Ki")),
        *(
            (3 * 2**30 * BILLIONTHS, "3Gi"),
            (2**60 * BILLIONTHS, "1Ei"),
            (7 * 2**60 * BILLIONTHS, "7Ei"),
        ),
        (MAX_QUANTITY * BILLIONTHS, str(MAX_QUANTITY)),
        (2**63 * BILLIONTHS, str(2**63)),
        (3 * 2**64 * BILLIONTHS, str(3 * 2**64)),
    ],
)
def test_a_sum_is_written_as_a_quantity(number: int, text: str) -> None:
    """In the largest binary unit; in digits if Kubernetes would cap that unit."""
    assert format_quantity(number) == text


@given(number=st.integers(0, MAX_QUANTITY * BILLIONTHS))
def test_what_is_written_is_read_back(number: int) -> None:
    """No digit is lost."""
    assert parse(format_quantity(number)) == number


@pytest.mark.parametrize(
    ("value", "unexpanded"),
    [
        *((value, True) for value in ("${GPUS}", "$GPUS", "${gpus}Gi", "$_")),
        *((value, False) for value in ("$", "$1", "$(GPUS)", "8", None, 9)),
    ],
)
def test_a_variable_may_be_unexpanded(value: Any, *, unexpanded: bool) -> None:
    """A shell's variable in place of a quantity has one remedy: envsubst."""
    assert is_unexpanded(value) is unexpanded
    if unexpanded:
        with pytest.raises(ValueError, match=r"is an unexpanded variable \(run envsubst"):
            parse(value)
