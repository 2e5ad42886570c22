"""The pip settings that the build of an image needs to fetch packages as this machine does."""

from __future__ import annotations

import ast
import sys
from configparser import RawConfigParser
from pathlib import Path

from tests.cluster.buildah import run

#: The settings for the sources of packages, and for the transport.
_NAMES = frozenset(
    {
        "cert",
        "default-timeout",
        "extra-index-url",
        "find-links",
        "index-url",
        "no-index",
        "proxy",
        "retries",
        "timeout",
        "trusted-host",
    }
)
#: Debian's bundle, to which a site adds its authorities; pip would use only its own bundle.
_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


def volumes(folder: Path) -> list[str]:
    """Return the volumes of a build; write a file of settings into the folder."""
    listed = run([sys.executable, "-m", "pip", "config", "list"])
    settings = {**_bundle(), **parsed(listed)}
    written = RawConfigParser()
    written["global"] = {name: value.replace("\n", "\n\t") for name, value in settings.items()}
    file = folder / "pip.conf"
    with file.open("w") as stream:
        written.write(stream)
    words = " ".join(settings.values()).split()
    paths = dict.fromkeys(word for word in words if word.startswith("/") and Path(word).exists())
    return [f"{file}:/etc/pip.conf:ro", *(f"{path}:{path}:ro" for path in paths)]


def parsed(listed: str) -> dict[str, str]:
    """Read the output of `pip config list`; as for pip, the environment's settings win."""
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        section, _, assignment = line.partition(".")
        name, _, value = assignment.partition("=")
        if section in sections and name in _NAMES:
            sections[section][name] = str(ast.literal_eval(value))
    return {**sections["global"], **sections["install"], **sections[":env:"]}


def _bundle() -> dict[str, str]:
    return {"cert": _AUTHORITIES} if Path(_AUTHORITIES).exists() else {}
