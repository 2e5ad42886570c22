"""A case depends only on its number, not on the cases made before it."""

from __future__ import annotations

import pytest

from tests.fuzz.check import TARGETS, make
from tests.fuzz.targets.fabric_files import FIELDS
from webhook.config.model import FabricEntry

_SEED, _CASES = 1, 300


@pytest.mark.parametrize("target", TARGETS)
def test_a_case_is_the_same_after_others(target: str) -> None:
    """Cases are mutated in place, which must not change their shared words."""
    first = [make(_SEED, number, target)[1] for number in range(_CASES)]
    second = [make(_SEED, number, target)[1] for number in range(_CASES)]
    assert second == first


def test_every_field_of_a_fabric_is_tried() -> None:
    """The fuzzer's list has every field of the model."""
    assert {field.alias for field in FabricEntry.model_fields.values()} <= {
        key for key, _ in FIELDS
    }
