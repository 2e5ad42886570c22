"""The notes of a release: its section of the CHANGELOG, and the digests of its images."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path

from release.artifacts import Source


def write(source: Source, archives: Sequence[Path], folder: Path) -> None:
    """Write NOTES.md."""
    lines = [section((source.root / "CHANGELOG.md").read_text(), source.version), "", "Images:", ""]
    lines += [f"- `{archive.name}`: `{digest(archive)}`" for archive in archives]
    (folder / "NOTES.md").write_text("\n".join(lines) + "\n")


def section(log: str, version: str) -> str:
    """Return what a CHANGELOG says about a version; `checkout.problems` ensures that it does."""
    _, _, rest = re.split(rf"^(## {re.escape(version)}(?![\w.]).*\n)", log, flags=re.MULTILINE)
    return re.split(r"^## ", rest, flags=re.MULTILINE)[0].strip()


def digest(archive: Path) -> str:
    """Return the digest of the manifest in an OCI archive; any registry shows the same."""
    with tarfile.open(archive) as files:
        index = files.extractfile("index.json")
        assert index is not None
        (manifest,) = json.load(index)["manifests"]
    return str(manifest["digest"])
