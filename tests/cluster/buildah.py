"""Build container images with buildah: no daemon, no registry, and a separate store."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cluster import archives, progress

#: The largest store, beyond which it is deleted: each build of changed code adds some 100 MB.
_STORE_KIB = 4 * 1024 * 1024


class ImageError(Exception):
    """An image could not be built; the message has the program's output."""


@dataclass(frozen=True)
class Store:
    """Images and their layers, held by one process at a time."""

    root: Path
    runroot: Path
    lock: int

    def has(self, name: str) -> bool:
        """Return whether there is an image with that name."""
        # Listing images by a filter adds up the size of each first: 15 s of CPU in a store of 4 GB.
        try:
            self._buildah("inspect", "--type=image", "--format={{.FromImageID}}", name)
        except ImageError:
            return False
        return True

    def hold(self, name: str, archive: Path) -> None:
        """Take an image from its archive, unless the store has it."""
        if not self.has(name):
            self._buildah("pull", f"docker-archive:{archive}")

    def build(
        self,
        name: str,
        context: Path,
        arguments: Mapping[str, str] | None = None,
        volumes: Sequence[str] = (),
    ) -> None:
        """Build the context's Dockerfile; steps that were built before are reused."""
        self._buildah(
            "bud",
            "--isolation=chroot",
            "--layers",
            "--pull-never",
            *(f"--build-arg={key}={value}" for key, value in (arguments or {}).items()),
            *(f"--volume={volume}" for volume in volumes),
            f"--tag={name}",
            str(context),
        )

    def save(self, name: str, archive: Path) -> None:
        """Write an image as an archive for `ctr images import`; it appears only when complete."""
        new = archive.with_name(f".{archive.name}.new")
        new.unlink(missing_ok=True)
        self._buildah("push", name, f"docker-archive:{new}:{name}")
        new.replace(archive)

    def _buildah(self, command: str, *arguments: str) -> str:
        # A separate mount namespace, so that its mounts end with it, however it ends.
        return run(
            [
                *("unshare", "--mount", "--propagation=private", "buildah"),
                *(f"--root={self.root}", f"--runroot={self.runroot}"),
                *(command, *arguments),
            ],
            keep=[self.lock],
        )

    def tidy(self) -> None:
        """Remove what a killed build left, or everything if the store has become too large."""
        if not self.root.exists():
            return
        self._buildah("rm", "--all")
        if (
            int(run(["du", "--summarize", "--block-size=1K", str(self.root)]).split()[0])
            > _STORE_KIB
        ):
            progress.say(f"{self.root} has grown large: starting afresh")
            shutil.rmtree(self.root)


@contextmanager
def opened(lock: int) -> Iterator[Store]:
    """Yield the store; the caller must hold `archives.alone`."""
    # The runroot describes mounts of a mount namespace that is gone afterwards: do not keep it.
    with TemporaryDirectory(prefix="buildah-") as runroot:
        store = Store(archives.folder() / "store", Path(runroot), lock)
        store.tidy()
        yield store


def run(argv: Sequence[str], keep: Sequence[int] = (), env: Mapping[str, str] | None = None) -> str:
    """Run a program and return its output; raise ImageError with the output if it fails.

    It inherits the file descriptors in `keep`, so a lock is held for as long as it runs.
    """
    try:
        ran = subprocess.run(
            argv,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            pass_fds=keep,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        raise ImageError(f"there is no {argv[0]} on the PATH: make cluster-deps") from None
    if ran.returncode:
        output = "\n".join([*ran.stdout.splitlines()[-10:], *ran.stderr.splitlines()[-20:]])
        raise ImageError(f"{' '.join(argv)}\nfailed with {ran.returncode}:\n{output}")
    return ran.stdout
