from __future__ import annotations

from release import notes

LOG = """\
# Changelog

## Unreleased

## 1.10.0 (2026-03-01)

Ten.

### Added

- A thing.

## 1.1.0

One.
"""


def test_notes_are_the_section_of_the_version() -> None:
    """Up to the next version, with its own headings."""
    assert notes.section(LOG, "1.10.0") == "Ten.\n\n### Added\n\n- A thing."
    assert notes.section(LOG, "1.1.0") == "One."
