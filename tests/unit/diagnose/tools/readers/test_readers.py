"""Each format of each tool: a saved output, and all observations from it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from webhook.diagnose.tools import readers
from webhook.diagnose.tools.observations import Line, Observation
from webhook.diagnose.tools.readers import READERS, read
from webhook.diagnose.tools.readers.layouts import Reader
from webhook.diagnose.tools.transcripts import split_by_node

FIXTURES = sorted(Path(__file__).parents[1].glob("fixtures/*.txt"))

#: Fields that people read as PCI ids.
HEXADECIMAL = {"pci_class", "vendor_id", "device_id"}


def written(observation: Observation) -> str:
    """Write an observation on one line, without the fields that the tool did not show."""
    fields = observation._asdict()
    tool, line = fields.pop("origin")
    values = " ".join(
        f"{key}={value:#06x}" if key in HEXADECIMAL else f"{key}={value!r}"
        for key, value in fields.items()
        if value is not None
    )
    return f"{line}: {tool}: {type(observation).__name__} {values}"


def expected(lines: list[Line]) -> str:
    """Write the observations, then the lines that no reader understands."""
    reading = read(lines)
    unread = [
        line for line in lines if line.number not in reading.recognized_lines and line.text.strip()
    ]
    return "".join(
        f"{text}\n"
        for text in (
            *map(written, reading.observations),
            *(f"{line.number}: not understood: {line.text.strip()}" for line in unread),
        )
    )


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: str(path.stem))
def test_the_output_is_read(fixture: Path) -> None:
    """The file next to a saved output has all its observations, and the other lines."""
    (output,) = split_by_node(fixture.read_text(encoding="utf-8"))
    actual, golden = expected(list(output.lines)), fixture.with_suffix(".expected")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(actual, encoding="utf-8")
    assert golden.exists(), f"{golden} is missing: run make golden, and read what it wrote"
    assert actual == golden.read_text(encoding="utf-8")


def test_every_tool_has_a_saved_output() -> None:
    """A reader without a saved output would be untested."""
    tools = {name.lower() for name, value in vars(readers).items() if isinstance(value, Reader)}
    assert tools == {fixture.name.partition(".")[0] for fixture in FIXTURES}


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: str(path.stem))
def test_a_line_has_a_single_reader(fixture: Path) -> None:
    """Two readers never take the same line: one of them would be wrong."""
    (output,) = split_by_node(fixture.read_text(encoding="utf-8"))
    recognized = [
        number for reader in READERS for number in reader.read(output.lines).recognized_lines
    ]
    assert len(recognized) == len(set(recognized))


def test_a_very_long_line_is_nobodys() -> None:
    """No tool writes lines of thousands of characters, so none is searched."""
    header, long = Line(1, "CA 'mlx5_0'"), Line(2, f"Firmware version: 1{' ' * 3000}")
    assert read([header, long]).recognized_lines == {1}
