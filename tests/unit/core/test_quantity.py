from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from webhook.core.quantity import equal, is_zero, parse, whole


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("0", 0),
        (0, 0),
        (None, 0),
        ("1", 1),
        ("1e0", 1),
        (1.0, 1),
        ("1000m", 1),
        ("+1", 1),
        ("1.", 1),
        (".5", "0.5"),
        ("-2", -2),
        (-2, -2),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1.5Gi", 1610612736),
        ("64G", 64_000_000_000),
        ("2E", 2 * 10**18),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e-3", "0.001"),
        ("5n", "5e-9"),
        ("5u", "5e-6"),
        (1e22, 10**22),
        ("1e999", "1e999"),
    ],
    ids=repr,
)
def test_a_quantity_is_the_number_that_it_stands_for(written: Any, number: Any) -> None:
    """The forms of apimachinery's resource.Quantity, and JSON numbers; null is 0 there."""
    assert parse(written) == Decimal(number)


@pytest.mark.parametrize(
    "written",
    [
        "",
        " 1",
        "1 ",
        "abc",
        "1KB",
        "1ki",
        "1mi",
        "1K",
        "e3",
        ".",
        "1e",
        "1e1000",
        "1e3Gi",
        "0x10",
        "1,000",
        "1\n",
        "²",
        "\u0661",
        "1" + "0" * 64,
        True,
        False,
        [],
        {},
        [1],
        float("inf"),
        float("nan"),
    ],
    ids=repr,
)
def test_what_is_no_quantity_is_refused(written: Any) -> None:
    """The message shows the value and what would be right."""
    for reader in (parse, whole):
        with pytest.raises(ValueError, match="is not a Kubernetes quantity") as raised:
            reader(written)
        shown = repr(written) if isinstance(written, float) else written
        assert str(raised.value) == (
            f'{shown!r:.80} is not a Kubernetes quantity (such as "1", 500m or 64Gi)'
        )


@pytest.mark.parametrize(
    "written", ["0", "000", 0, 0.0, -0.0, "0m", "0Gi", "0e5", "-0", None], ids=repr
)
def test_nothing_is_zero_however_it_is_written(written: Any) -> None:
    """Digits take a short cut, all else is parsed."""
    assert is_zero(written)


@pytest.mark.parametrize("written", ["1", 1, "1m", "-1", "1e-9", "001"], ids=repr)
def test_something_is_not_zero(written: Any) -> None:
    """Also what is far below one."""
    assert not is_zero(written)


@pytest.mark.parametrize(
    ("written", "number"),
    [("8", 8), ("008", 8), (8, 8), ("1500m", 2), ("0.1", 1), ("-1.5", -1), ("1k", 1000)],
    ids=repr,
)
def test_a_whole_number_is_rounded_up(written: Any, number: int) -> None:
    """As Quantity.Value() does it."""
    assert whole(written) == number


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("1", "1", True),
        ("1Gi", "1024Mi", True),
        ("2", 2, True),
        ("0", None, True),
        ("1G", "1Gi", False),
    ],
)
def test_quantities_are_compared_as_numbers(left: Any, right: Any, same: bool) -> None:
    """However they are written."""
    assert equal(left, right) is same
