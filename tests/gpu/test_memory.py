"""Pinned memory on the host, and memory of the GPU for other processes and devices."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.gpu.conftest import CUDA, Run
from tests.gpu.cuda import NUMBER

#: MiB: a limit, and amounts below and above it. CUDA itself needs a few hundred.
LIMIT, LESS, MORE = 2048, 256, 4096


@pytest.fixture
def group() -> Iterator[Path]:
    """Make a cgroup with a limit on its memory."""
    root = Path("/sys/fs/cgroup")
    if os.geteuid() or not (root / "cgroup.controllers").is_file():
        pytest.skip("needs root and cgroup v2")
    group = root / f"rdma-test-{uuid4()}"
    group.mkdir()
    (group / "memory.max").write_text(str(LIMIT << 20))
    yield group
    group.rmdir()


def test_pinned_memory_counts_against_the_limit(run: Run, group: Path) -> None:
    """So a pod with a memory limit is killed for what its program pins."""
    within = f'echo $$ >{group}/cgroup.procs; exec "$@"'
    ran = run("sh", "-c", within, "sh", *CUDA, "pin", str(LESS))
    assert ran.stdout == "pinned\n", ran
    assert "oom_kill 0" in (group / "memory.events").read_text()
    ran = run("sh", "-c", within, "sh", *CUDA, "pin", str(MORE))
    assert ran.returncode == -9, ran
    assert "oom_kill 1" in (group / "memory.events").read_text()


def test_cuda_pins_memory_without_memlock(run: Run) -> None:
    """RLIMIT_MEMLOCK limits RDMA, but not NVIDIA's driver."""
    ran = run("sh", "-c", 'ulimit -l 64; exec "$@"', "sh", *CUDA, "pin", str(LESS))
    assert ran.stdout == "pinned\n", ran


#: Commands that start a program in other namespaces, as a container runtime does: as the first
#: process there, or as a later one.
_SEPARATE = ("unshare", "--ipc", "--net", "--uts")
_FIRST = (*_SEPARATE, "--pid", "--fork", "--mount-proc")
_SECOND = (*_FIRST, "sh", "-c", '"$@"; exit $?', "sh")


@pytest.mark.parametrize(
    ("offering", "opening", "opens"),
    [
        ((), (), True),
        (_SEPARATE, _SEPARATE, True),
        (_FIRST, _SECOND, True),
        (_SECOND, _FIRST, True),
        (_FIRST, _FIRST, False),
        (_SECOND, _SECOND, False),
    ],
    ids=["one", "ipc, net and uts", "PIDs 1 and 2", "PIDs 2 and 1", "PIDs 1 and 1", "PIDs 2 and 2"],
)
def test_a_handle_from_another_container(
    run: Run, tmp_path: Path, offering: tuple[str, ...], opening: tuple[str, ...], opens: bool
) -> None:
    """CUDA opens it across all namespaces; but with an equal PID, it takes the handle for its own.

    Containers' programs often have PID 1, so hostPID is needed.
    """
    file = tmp_path / "handle"
    with subprocess.Popen([*offering, *CUDA, "offer", str(file)]) as process:
        try:
            while not file.exists():
                assert process.poll() is None
                time.sleep(0.05)
            ran = run(*opening, *CUDA, "open", str(file))
        finally:
            file.unlink(missing_ok=True)
    result = (ran.stdout, ran.stderr)
    assert result == ((f"{NUMBER}\n", "") if opens else ("", "cuIpcOpenMemHandle_v2: 201\n"))


def test_the_gpu_exports_memory_for_other_devices(run: Run) -> None:
    """GPUDirect RDMA with DMA-BUF begins with this."""
    ran = run(*CUDA, "dma-buf")
    assert "dmabuf" in ran.stdout, ran
