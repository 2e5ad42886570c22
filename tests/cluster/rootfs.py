"""The bases of the images: Debian, from the same sources as this machine's."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cluster import archives, progress
from tests.cluster.buildah import Store, run

SUITE = "bookworm"
#: What the project's Dockerfile requires to build, and certificates for images built on them.
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
#: Writes the other base.
_SCRIPT = Path(__file__).parents[2] / "images" / "base" / "make.sh"
#: This machine's, by Debian's name for it.
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_PROXY = re.compile(r'Acquire::https?::Proxy(::\S+)? ".+";')
_BUILD = "FROM scratch\nADD base.tar /\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A root file system that images are built on."""

    name: str
    key: str
    """It changes with the contents."""
    step: str
    """What making it does, for people who wait."""
    make: Callable[[Path, int], None]
    """Writes it to a tar, as long as it holds the lock with that file descriptor."""


def _install(new: Path, lock: int) -> None:
    command = ["mmdebstrap", *_OPTIONS, *(f"--aptopt={line}" for line in proxies())]
    run([*command, SUITE, str(new), *sources()], keep=[lock])


def _extract(new: Path, lock: int) -> None:
    with TemporaryDirectory(prefix="sources-") as folder:
        listed = Path(folder) / "sources.list"
        listed.write_text("".join(f"{line}\n" for line in sources()))
        environment = {"SOURCES": str(listed)}
        run([str(_SCRIPT), ARCHITECTURE, str(new)], keep=[lock], env=environment)


#: Debian, with a shell and apt.
DEBIAN = Base(
    name="base",
    key=archives.digest(SUITE, *_OPTIONS, _BUILD),
    step=f"installing Debian {SUITE} with {', '.join(PACKAGES)} in a folder",
    make=_install,
)
#: Its Python, alone.
PYTHON = Base(
    name="python",
    key=archives.digest(SUITE, ARCHITECTURE, _SCRIPT.read_text(), _BUILD),
    step=f"extracting Debian {SUITE}'s Python, without a shell and apt, to a folder",
    make=_extract,
)


def archive(base: Base, lock: int) -> Path:
    """Return a base as a tar, made if missing; the caller must hold `archives.alone`."""
    path = archives.folder() / f"{base.name}-{base.key}.tar"
    if not archives.used(path):
        new = path.with_name(f".{path.name}.new")
        with progress.step(base.step):
            base.make(new, lock)
        new.replace(path)
        archives.prune(base.name)
    return path


def image(base: Base, store: Store) -> str:
    """Return a base's name in the store; make it if it is missing."""
    name = f"localhost/rdma-webhook/{base.name}:{base.key}"
    if not store.has(name):
        with TemporaryDirectory(prefix=".base-", dir=archives.folder()) as context:
            os.link(archive(base, store.lock), Path(context) / "base.tar")
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
