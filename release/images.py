"""The image of a release, for one platform."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from release.artifacts import Source


@dataclass(frozen=True, slots=True)
class Image:
    """An OCI archive, and the digest of its manifest, which any registry shows as well."""

    archive: Path
    digest: str


def build(source: Source, platform: str, root: Path, folder: Path) -> Image:
    """Build the image of the checkout's commit by images/build.sh, and move it into the folder.

    The script reads BASE, BUILDER and others from the environment.
    """
    environ = {**source.environ, "PLATFORM": platform, "VERSION": source.version}
    printed = subprocess.run(
        ["images/build.sh"], cwd=root, env=environ, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    file, digest = printed.splitlines()[-1].split()
    return Image((root / file).rename(folder / Path(file).name), digest)
