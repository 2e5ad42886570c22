"""What the pip of an image's build must know to fetch as this machine's does."""

from __future__ import annotations

import ast
import sys
from configparser import RawConfigParser
from pathlib import Path

from tests.cluster.buildah import run

#: Settings that say where from and by which way.
_KEPT = frozenset(
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
#: Debian's bundle, where a site adds its own authorities; pip would look at its own alone.
_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


def volumes(folder: Path) -> list[str]:
    """Return what a build mounts; a file of settings is written into the folder."""
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
    """Return the settings in what `pip config list` prints: the environment's win, as for pip."""
    found: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        section, _, rest = line.partition(".")
        name, _, value = rest.partition("=")
        if section in found and name in _KEPT:
            found[section][name] = str(ast.literal_eval(value))
    return {**found["global"], **found["install"], **found[":env:"]}


def _bundle() -> dict[str, str]:
    return {"cert": _AUTHORITIES} if Path(_AUTHORITIES).exists() else {}
