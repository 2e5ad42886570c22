"""The emulated machine: boot it with a folder that it shares, and wait until it is off."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import progress
from tests.cluster.missing import give_up
from tests.softroce.disk import disk

#: Each program that an experiment runs on this machine, and its Debian package.
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mkfs.ext4": "e2fsprogs",
    "mmdebstrap": "mmdebstrap",
}
_KERNEL = (
    "root=/dev/vda rw console=ttyS0 init=/init.sh panic=-1 quiet net.ifnames=0 cgroup_no_v1=all"
)
#: The scripts that a machine can run; common.sh has their common parts.
EXPERIMENTS = Path(__file__).parent / "experiments"


class EmulationError(Exception):
    """The machine did not come to its end; the message has its console's last lines."""


def missing() -> str | None:
    """Return in one line the missing parts and the remedy; None if nothing is missing."""
    lacks = sorted({PROGRAMS[name] for name in PROGRAMS if shutil.which(name) is None})
    if lacks:
        return f"an emulated machine needs {' '.join(lacks)}: make experiments-deps"
    return None if os.geteuid() == 0 else "an emulated machine needs root, to install its Debian"


def require() -> None:
    """Skip the test if something is missing; in CI, end the run as failed.

    Only a test or a fixture may call it.
    """
    line = missing()
    if line is not None:
        give_up(line)


def prepare(share: Path, experiment: str) -> None:
    """Fill the folder that a machine shares with the scripts, and select the one that it runs."""
    for script in EXPERIMENTS.glob("*.sh"):
        shutil.copy(script, share)
    shutil.copy(EXPERIMENTS / f"{experiment}.sh", share / "experiment.sh")


def shared(tag: str, folder: Path, *, writable: bool = False) -> tuple[str, str]:
    """Return the options that let a machine mount a folder."""
    how = "off" if writable else "on"
    return "-virtfs", f"local,path={folder},mount_tag={tag},security_model=none,readonly={how}"


def boot(share: Path, *, seconds: float, options: Sequence[str] = ("-nic", "none")) -> str:
    """Run the prepared experiment as root in a fresh machine; return its output.

    The files in its working directory stay in `share`; `options` are more of QEMU's. Raise
    EmulationError if it fails, or if the machine is not off after `seconds`.
    """
    console = share / "console.txt"
    with progress.step("running an experiment in an emulated machine"), console.open("wb") as log:
        command = qemu(share, options)
        machine = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            machine.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise EmulationError(f"not off after {seconds:.0f} s\n{_tail(share)}") from None
        finally:
            machine.kill()
            machine.wait()
    status = share / "status"
    if not status.exists() or status.read_text().strip() != "0":
        raise EmulationError(f"the experiment failed\n{_tail(share)}")
    return (share / "output.txt").read_text(errors="replace")


def qemu(share: Path, options: Sequence[str], memory: int = 2048) -> list[str]:
    """Return the command that boots a machine with two CPUs; `memory` is in MiB."""
    image, kernel, initrd = disk()
    return [
        "qemu-system-x86_64",
        # Emulation, since a container rarely may use KVM; it is enough to boot in half a minute.
        *("-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", str(memory)),
        *("-kernel", str(kernel), "-initrd", str(initrd), "-append", _KERNEL),
        *("-drive", f"file={image},if=virtio,format=raw,snapshot=on"),
        *shared("share", share, writable=True),
        *("-nographic", "-no-reboot", *options),
    ]


def _tail(share: Path) -> str:
    lines: list[str] = []
    for name in ("console.txt", "output.txt"):
        path = share / name
        if path.exists():
            tail = path.read_text(errors="replace").splitlines()[-20:]
            lines += [f"--- {name}", *tail]
    return "\n".join(lines)
