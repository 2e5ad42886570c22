"""The image of the replicas: all that the product imports is in it, and little else."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.images import webhook_image
from tests.cluster.install import DEPLOYMENT, Webhook
from webhook.cli.parser import COMMANDS

#: The goal for all files of the image, on a base that has only Python.
MAX_MB = 120
_PROGRAM = """
import contextlib, importlib, importlib.util, io, json, os, pkgutil, sys
import certs, webhook
from webhook.cli import main
for package in (webhook, certs):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
exits = {}
for command in sys.argv[1].split():
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            main([command, "--help"])
    except SystemExit as end:
        exits[command] = end.code
cached = {name: getattr(module, "__cached__", None) for name, module in sys.modules.items()}
files = [os.path.join(folder, name) for folder in os.environ["PATH"].split(":")
         for name in sys.argv[2].split()]
print(json.dumps({
    "exits": exits,
    "uncompiled": [name for name, file in cached.items() if file and not os.path.exists(file)],
    "page": sorted(sys.modules["webhook.serve.http.page"].page_files()),
    "pip": importlib.util.find_spec("pip") is not None,
    "programs": [file for file in files if os.path.exists(file)],
}))
"""
_PROGRAMS = "sh bash dash busybox perl apt apt-get dpkg pip pip3"


@pytest.fixture(scope="module")
def contents(webhook: Webhook) -> dict[str, Any]:
    """Import every module of the product in a replica, start its commands, and look around."""
    command = ("/app/bin/python", "-c", _PROGRAM, " ".join(COMMANDS), _PROGRAMS)
    printed = webhook.kubectl("exec", DEPLOYMENT, "--", *command)
    return dict(json.loads(printed.splitlines()[-1]))


def test_commands_start(contents: dict[str, Any]) -> None:
    """Each command has in the image what it imports."""
    assert contents["exits"] == dict.fromkeys(COMMANDS, 0)


def test_the_page_is_there(contents: dict[str, Any]) -> None:
    """The files that browsers get are in the image, too."""
    assert contents["page"] == [
        "/",
        "/fabrics.js",
        "/input.js",
        "/outcomes.js",
        "/page.css",
        "/page.js",
        "/rows.js",
        "/web_page.css",
    ]


def test_modules_are_compiled(contents: dict[str, Any]) -> None:
    """All modules that are imported there have bytecode, so that no start compiles them."""
    assert contents["uncompiled"] == []


def test_neither_shell_nor_installer(webhook: Webhook, contents: dict[str, Any]) -> None:
    """An intruder finds no shell, and nothing that installs programs."""
    webhook.cluster.skip_if_existing("an image on the base that is made here")
    assert (contents["pip"], contents["programs"]) == (False, [])


def test_size(webhook: Webhook) -> None:
    """All files of the image together are small."""
    webhook.cluster.skip_if_existing("an image on the base that is made here")
    size = _size(webhook_image().archive)
    assert size <= MAX_MB * 1_000_000, f"{size / 1_000_000:.1f} MB"


def _size(archive: Path) -> int:
    """Return the bytes of all files in the layers of an archive in Docker's format."""
    size = 0
    with tarfile.open(archive) as image:
        manifest = image.extractfile("manifest.json")
        assert manifest
        for layer in json.load(manifest)[0]["Layers"]:
            with tarfile.open(fileobj=image.extractfile(layer)) as files:
                size += sum(file.size for file in files)
    return size
