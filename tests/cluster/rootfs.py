"""The Debian base of the images, from the same sources as this machine's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cluster import archives, progress
from tests.cluster.buildah import Store, run

SUITE = "bookworm"
#: The packages that the project's Dockerfile requires, and certificates for images built on them.
PACKAGES = ("ca-certificates", "python3", "python3-venv")

_UNREAD = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
_OPTIONS = (
    "--mode=root",
    "--variant=apt",  # essential packages, and apt for images that add some
    "--format=tar",
    f"--include={','.join(PACKAGES)}",
    *(f"--dpkgopt=path-exclude={path}" for path in _UNREAD),
    '--aptopt=Acquire::Retries "3"',
)
_PROXY = re.compile(r'Acquire::https?::Proxy(::\S+)? ".+";')
_BUILD = "FROM scratch\nADD base.tar /\n"


def key() -> str:
    """Return a key that changes with the base's contents."""
    return archives.digest(SUITE, *_OPTIONS, _BUILD)


def archive(lock: int) -> Path:
    """Return the base as a tar, made if missing; the caller must hold `archives.alone`."""
    path = archives.folder() / f"base-{key()}.tar"
    if not archives.used(path):
        new = path.with_name(f".{path.name}.new")
        with progress.step(f"installing Debian {SUITE} with {', '.join(PACKAGES)} in a folder"):
            command = ["mmdebstrap", *_OPTIONS, *(f"--aptopt={line}" for line in proxies())]
            run([*command, SUITE, str(new), *sources()], keep=[lock])
        new.replace(path)
        archives.prune("base")
    return path


def image(store: Store) -> str:
    """Return the base's name in the store; make it if it is missing."""
    name = f"localhost/rdma-webhook/base:{key()}"
    if not store.has(name):
        with TemporaryDirectory(prefix=".base-", dir=archives.folder()) as context:
            os.link(archive(store.lock), Path(context) / "base.tar")
            (Path(context) / "Dockerfile").write_text(_BUILD)
            store.build(name, Path(context))
    return name


def sources() -> list[str]:
    """Return this machine's sources of that Debian; without any, mmdebstrap uses its own."""
    form = "$(ORIGIN) deb $(REPO_URI) $(CODENAME) $(COMPONENT)"
    targets = run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"])
    lines = dict.fromkeys(targets.splitlines())  # one for each architecture
    pattern = re.compile(rf"Debian (deb \S+ {SUITE}(?:-security|-updates)? main)")
    return [match[1] for line in lines if (match := pattern.fullmatch(line))]


def proxies() -> Iterator[str]:
    """Yield apt's settings for this machine's proxies; the environment's are inherited."""
    for line in run(["apt-config", "dump"]).splitlines():
        if _PROXY.fullmatch(line):
            yield line.removesuffix(";")
