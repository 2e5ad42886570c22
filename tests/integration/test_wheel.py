"""The package that pip installs, in the image too: built as the Dockerfile builds it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from webhook.serve.http import page

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("webhook", "certs")
#: For editors and checks of types only.
_LEFT_OUT = {"webhook/serve/http/page_types.d.ts"}
_BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def _sources() -> set[str]:
    """Return the files of the packages, without settings of tools and what running them writes."""
    files = (file for package in _PACKAGES for file in (_ROOT / package).rglob("*"))
    names = {
        str(file.relative_to(_ROOT)) for file in files if file.is_file() and file.name[0] != "."
    }
    return {name for name in names if "__pycache__" not in name}


def test_every_file_is_installed(tmp_path: Path) -> None:
    """The wheel has each file of the packages: scripts, schemas, style sheets, and the page."""
    copy = tmp_path / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(_ROOT / name, copy)
    for package in _PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(_ROOT / package, copy / package, ignore=ignored)
    built = subprocess.run(
        [sys.executable, "-c", _BUILD, str(tmp_path)],
        cwd=copy, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    with ZipFile(tmp_path / built.stdout.splitlines()[-1]) as wheel:
        installed = {name for name in wheel.namelist() if name.startswith(_PACKAGES)}
    assert installed == _sources() - _LEFT_OUT
    folder = Path(page.__file__).parent.relative_to(_ROOT)
    assert {f"{folder}/{name}" for name in ("index.html", "page.css", "page.js")} <= installed
