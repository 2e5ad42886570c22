"""docs/annotations.md lists exactly the annotations of the code, with their values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from webhook.decide.mutations import MUTATIONS
from webhook.model.annotations import (
    ENABLE_ANNOTATION,
    MAX_STATUS_LENGTH,
    PREFIX,
    STATUS_ANNOTATION,
    USER_ANNOTATIONS,
    WEBHOOK_ANNOTATIONS,
    opted_in,
    parse_annotations,
)
from webhook.model.decision import Denial

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "annotations.md").read_text(encoding="utf-8")
#: Without certificates.md, which describes annotations of the CA's Secret.
PAGES = sorted(
    {*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")} - {ROOT / "docs/certificates.md"}
)
#: Each annotation, and its row's description of its values or content.
ROWS: list[tuple[str, str]] = re.findall(r"^\| `(\S+/\S+)` \| (.*?) \|", PAGE, re.MULTILINE)
VALUES = {
    key: re.findall(r"`\"?([\w-]+)\"?`", description)
    for key, description in ROWS
    if key in USER_ANNOTATIONS
}


def _statuses() -> list[dict[str, Any]]:
    """Return the statuses that the golden cases expect."""
    files = (ROOT / "tests" / "golden").rglob("expected.yaml")
    matches = [
        re.findall(rf"{STATUS_ANNOTATION}: (.*)", file.read_text(encoding="utf-8"))
        for file in files
    ]
    return [orjson.loads(yaml.safe_load(status)) for written in matches for status in written]


def _denial(key: str, value: str) -> str | None:
    """Return the denial of a pod with this annotation; None if it is accepted."""
    try:
        opted_in({key: value})
    except Denial as denial:
        return str(denial)
    names = frozenset(mutation.name for mutation in MUTATIONS)
    return "".join(parse_annotations({key: value}, names).problems) or None


def test_every_annotation_has_its_row_and_no_other() -> None:
    """Annotations that users set come first, then written ones, each in the order of the code."""
    assert tuple(key for key, _ in ROWS) == (*USER_ANNOTATIONS, *WEBHOOK_ANNOTATIONS)


@pytest.mark.parametrize("key", USER_ANNOTATIONS)
def test_values_on_the_page_are_accepted(key: str) -> None:
    """Every value that the page shows is accepted in a pod."""
    for value in VALUES[key]:
        assert _denial(key, value) is None, value


@pytest.mark.parametrize("key", USER_ANNOTATIONS)
def test_values_of_the_code_are_on_the_page(key: str) -> None:
    """Where an annotation accepts only certain words, the denial and the page list the same."""
    denial = _denial(key, "")
    assert denial is not None
    words = re.findall(r'"([^"]*)"', denial.partition("must be")[2])
    assert not words or words == VALUES[key]


def test_closed_sets_are_three() -> None:
    """Three annotations accept only certain words; the test above depends on finding them."""
    closed = [
        key for key in USER_ANNOTATIONS if '"' in str(_denial(key, "")).partition("must be")[2]
    ]
    assert closed == [ENABLE_ANNOTATION, "rdma.lab/memory-limit", "rdma.lab/nvlink"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_annotations_on_other_pages_exist(page: Path) -> None:
    """No page names an annotation that does not exist."""
    named = set(re.findall(rf"(?<![\w.]){PREFIX}[\w-]+", page.read_text(encoding="utf-8")))
    others = {"rdma.lab/v1alpha1", "rdma.lab/allow-removal"}  # the group; not for pods
    assert named <= {*USER_ANNOTATIONS, *WEBHOOK_ANNOTATIONS, *others}


def test_the_fields_of_a_status_are_on_the_page() -> None:
    """The row of the status names each field that occurs, and the longest status."""
    description = dict(ROWS)[STATUS_ANNOTATION]
    named = re.findall(r"`(\w+)`", description)
    occurring = {field for status in _statuses() for field in status}
    assert sorted(named) == sorted(occurring)
    assert f"{MAX_STATUS_LENGTH >> 10} KiB" in description
