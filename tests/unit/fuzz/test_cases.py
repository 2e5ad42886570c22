"""A case is known by its number: what was made before it makes no difference."""

from __future__ import annotations

import pytest

from tests.fuzz.check import TARGETS, make
from tests.fuzz.targets.fabric_files import FIELDS
from webhook.config.model import FabricEntry

_SEED, _CASES = 1, 300


@pytest.mark.parametrize("target", TARGETS)
def test_a_case_is_the_same_after_others(target: str) -> None:
    """Cases are spoilt in place, and what they were made of must not be: words are shared."""
    first = [make(_SEED, number, target)[1] for number in range(_CASES)]
    again = [make(_SEED, number, target)[1] for number in range(_CASES)]
    assert again == first


def test_every_field_of_a_fabric_is_tried() -> None:
    """With values that are right, odd or wrong."""
    assert {field.alias for field in FabricEntry.model_fields.values()} <= {
        key for key, _ in FIELDS
    }
