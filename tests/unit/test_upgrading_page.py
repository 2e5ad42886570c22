"""docs/upgrading.md quotes the messages of the program."""

from __future__ import annotations

import pytest

from tests.generated_pages import DOCS
from webhook.admission.registration import NO_FABRICS_MESSAGE
from webhook.serve.sources.configuration_object import NO_KIND, NO_OBJECT, NOT_USABLE

PAGE = " ".join((DOCS / "upgrading.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    "reason", [NO_KIND, NO_OBJECT, NOT_USABLE], ids=["no kind", "no object", "not usable"]
)
def test_the_table_has_each_reason(reason: str) -> None:
    """The page quotes its beginning: the remedy has its own column."""
    assert f"`{reason.partition(';')[0].partition(',')[0]}`" in PAGE


def test_a_rejection_is_quoted_as_a_whole() -> None:
    """A user who creates a pod after a rollback in the wrong order reads it."""
    assert f"{NO_FABRICS_MESSAGE}{NOT_USABLE}" in PAGE
