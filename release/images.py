"""The image of a release, for one platform."""

from __future__ import annotations

import subprocess
from pathlib import Path

from release.artifacts import Source


def build(source: Source, platform: str, root: Path, folder: Path) -> Path:
    """Build the image of the checkout's commit by images/build.sh; return its OCI archive.

    The script reads BASE, BUILDER and others from the environment.
    """
    environ = {**source.environ, "PLATFORM": platform, "VERSION": source.version}
    printed = subprocess.run(
        ["images/build.sh"], cwd=root, env=environ, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    archive = root / printed.splitlines()[-1].split()[0]
    return archive.rename(folder / archive.name)
