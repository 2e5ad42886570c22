"""The parts that this machine lacks for a cluster, and the command that installs them."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from tests.cluster.versions import GO

#: Each program that a cluster runs, and its Debian package (`make cluster-deps`).
PROGRAMS = {
    "buildah": "buildah",
    "containerd": "containerd",
    "ctr": "containerd",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "nsenter": "util-linux",
    "runc": "runc",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
}

#: Makes the namespaces that a cluster needs.
_UNSHARE = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "true")
_CGROUPS = Path("/sys/fs/cgroup")


def missing() -> str | None:
    """Return in one line the missing parts and the remedy; None if nothing is missing."""
    if platform.system() != "Linux":
        return "a cluster needs Linux"
    if os.geteuid() != 0:
        return "a cluster needs root: run it with sudo -E"
    lacks = [line for line in (_packages(), _go(), _forbidden()) if line]
    return f"a cluster needs {'; '.join(lacks)}" if lacks else None


def require() -> None:
    """Skip the test if something is missing; in CI, where nothing may be missing, fail the run.

    Raises pytest's outcomes, so only a test or a fixture may call it.
    """
    line = missing()
    if line is not None:
        give_up(line)


def give_up(line: str) -> NoReturn:
    """Skip the test, or fail the run in CI; the line names the missing parts."""
    if os.environ.get("CI"):
        pytest.exit(line, returncode=1)
    pytest.skip(line)


def _packages() -> str | None:
    packages = sorted({PROGRAMS[name] for name in PROGRAMS if shutil.which(name) is None})
    return f"{' '.join(packages)}: make cluster-deps" if packages else None


def _go() -> str | None:
    """Check the version of Go; Debian's is too old, so no package is suggested."""
    required = ".".join(map(str, GO))
    if shutil.which("go") is None:
        return f"Go {required} or newer on the PATH"
    # Not `go version`: with GOTOOLCHAIN set, it would report another Go.
    environ = {**os.environ, "GOTOOLCHAIN": "local"}
    ran = subprocess.run(
        ["go", "env", "GOVERSION"], env=environ, capture_output=True, text=True, check=False
    )
    match = re.match(r"go(\d+)\.(\d+)", ran.stdout)
    if match and (int(match[1]), int(match[2])) >= GO:
        return None
    return f"Go {required} or newer, not {ran.stdout.strip() or ran.stderr.strip()}"


def _forbidden() -> str | None:
    """Check the rights, since being root in a container is not always enough."""
    if not _namespaces():
        return "the right to make namespaces (CAP_SYS_ADMIN)"
    if not all(_writable(path) for path in _hierarchies()):
        return f"cgroups that can be written ({_CGROUPS} is read-only)"
    return None


def _namespaces() -> bool:
    if shutil.which("unshare") is None:
        return True  # reported already, as a missing package
    return subprocess.run(_UNSHARE, capture_output=True, check=False).returncode == 0


def _hierarchies() -> list[Path]:
    """Return version 2's only hierarchy, or the hierarchies of version 1 that containers need."""
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return [_CGROUPS / name for name in ("cpu", "memory", "pids")]


def _writable(path: Path) -> bool:
    try:
        return not os.statvfs(path).f_flag & os.ST_RDONLY
    except OSError:
        return False
