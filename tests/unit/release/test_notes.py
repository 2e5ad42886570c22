from __future__ import annotations

from pathlib import Path

from release import notes
from release.artifacts import Source
from release.images import Image

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


def test_the_digests(tmp_path: Path) -> None:
    """The notes have those of the archives. The published image has another one."""
    (tmp_path / "CHANGELOG.md").write_text(LOG)
    source = Source(root=tmp_path, version="1.1.0", commit="0", time=0)
    notes.write(source, [Image(tmp_path / "image-amd64.oci.tar", "sha256:0")], tmp_path)
    assert (tmp_path / "NOTES.md").read_text() == (
        "One.\n\nImages:\n\n- `image-amd64.oci.tar`: `sha256:0`\n\n"
        "These are the digests of the archives. The published and signed image is an index of "
        "them, with a digest of its own, which `crane digest` prints.\n"
    )
