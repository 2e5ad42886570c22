"""The disk of the emulated machine: Debian, its kernel, and the programs of RDMA."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.cluster import archives, progress
from tests.cluster.buildah import run
from tests.cluster.rootfs import SUITE, proxies, sources

#: The kernel has rdma_rxe; perftest measures; infiniband-diags has ibstat, ibverbs-utils has
#: ibv_devinfo, iproute2 has rdma; containerd and its plugins are what a kubelet needs.
PACKAGES = (
    "containerd",
    "containernetworking-plugins",
    "ibverbs-providers",
    "ibverbs-utils",
    "infiniband-diags",
    "iproute2",
    "kmod",
    "linux-image-amd64",
    "mount",
    "pci.ids",
    "pciutils",
    "perftest",
    "procps",
    "python3",
    "rdma-core",
    "runc",
)
_OPTIONS = (
    "--mode=root",
    "--variant=apt",
    "--format=directory",
    f"--include={','.join(PACKAGES)}",
    '--aptopt=Acquire::Retries "3"',
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
)
_SIZE = "3G"  # sparse: unwritten parts take no room
_INIT = Path(__file__).with_name("init.sh")


class Disk(NamedTuple):
    """The files that QEMU boots."""

    image: Path  #: ext4, never written: QEMU keeps changes in a temporary file
    kernel: Path
    initrd: Path


def disk() -> Disk:
    """Return the disk, made if it is missing: about two minutes and 1 GiB in the cache."""
    folder = archives.folder() / f"softroce-{archives.digest(SUITE, *_OPTIONS, _INIT.read_text())}"
    with archives.alone() as lock:
        if not archives.used(folder):
            new = folder.with_name(f".{folder.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            _make(new, lock)
            new.replace(folder)
            _prune(folder)
    return Disk(folder / "disk.img", folder / "vmlinuz", folder / "initrd.img")


def _make(folder: Path, lock: int) -> None:
    with TemporaryDirectory(prefix=".softroce-", dir=archives.folder()) as scratch:
        root = Path(scratch) / "root"
        with progress.step(f"installing Debian {SUITE} with a kernel and perftest in a folder"):
            command = ["mmdebstrap", *_OPTIONS, *(f"--aptopt={line}" for line in proxies())]
            run([*command, SUITE, str(root), *sources()], keep=[lock])
        for name in ("vmlinuz", "initrd.img"):
            shutil.copy(root / name, folder / name)
        shutil.copy(_INIT, root / "init.sh")
        (root / "init.sh").chmod(0o755)
        with progress.step("writing it to a disk image"):
            run(["mkfs.ext4", "-q", "-d", str(root), str(folder / "disk.img"), _SIZE])


def _prune(newest: Path) -> None:
    """Remove older disks, which nothing uses once the packages or init.sh have changed."""
    for path in newest.parent.glob("softroce-*"):
        if path != newest:
            shutil.rmtree(path)
