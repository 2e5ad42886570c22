"""Bundled examples are recognized by what they mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fabrics_file import single_fabric
from webhook.config import EXAMPLE
from webhook.config.bundled_examples import is_example
from webhook.config.load import parse_fabrics
from webhook.model.fabric import CompiledConfiguration

EXAMPLES = sorted(EXAMPLE.parent.glob("*.yaml"))


def _compiled(text: str) -> CompiledConfiguration:
    return parse_fabrics(text, "f.yaml").compiled


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_is_recognized_without_its_comments(file: Path) -> None:
    """A copy under another name, with other comments, has the same meaning."""
    text = file.read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert is_example(_compiled("\n".join(lines)))


@pytest.mark.parametrize(
    "text",
    [
        EXAMPLE.read_text("utf-8").replace("rateGbps: 100", "rateGbps: 50"),
        EXAMPLE.read_text("utf-8").replace("v100-ib", "volta-ib"),
        single_fabric("ib", "nvidia.com/gpu", "rdma/hca"),
    ],
    ids=["rate", "name", "own"],
)
def test_what_differs_is_somebodys_own(text: str) -> None:
    """If a value or a name was changed, somebody has looked at it."""
    assert not is_example(_compiled(text))


def test_no_fabric_is_no_example() -> None:
    """A file without fabrics has none that could be taken for somebody's own."""
    assert not is_example(CompiledConfiguration())
