"""The notes of a release: its section of the CHANGELOG, and the digests of its images."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from release.artifacts import Source
from release.images import Image

_INDEX = (
    "These are the digests of the archives. The published and signed image is an index of them, "
    "with a digest of its own, which `crane digest` prints."
)


def write(source: Source, images: Sequence[Image], folder: Path) -> None:
    """Write NOTES.md."""
    lines = [section((source.root / "CHANGELOG.md").read_text(), source.version), "", "Images:", ""]
    lines += [f"- `{image.archive.name}`: `{image.digest}`" for image in images]
    lines += ["", _INDEX]
    (folder / "NOTES.md").write_text("\n".join(lines) + "\n")


def section(log: str, version: str) -> str:
    """Return what a CHANGELOG says about a version; `checkout.problems` ensures that it does."""
    _, _, rest = re.split(rf"^(## {re.escape(version)}(?![\w.]).*\n)", log, flags=re.MULTILINE)
    return re.split(r"^## ", rest, flags=re.MULTILINE)[0].strip()
