"""The GPUs of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

#: A program of `tests.gpu.cuda`, followed by its arguments.
CUDA = (sys.executable, "-m", "tests.gpu.cuda")
#: Seconds; the first use of a GPU takes a few.
_PATIENCE = 300


class Gpu(NamedTuple):
    """A GPU, as nvidia-smi lists it."""

    bus: str
    uuid: str
    number: str


@pytest.fixture(scope="session")
def gpus() -> list[Gpu]:
    """List the GPUs by the addresses of their buses, as CUDA_DEVICE_ORDER=PCI_BUS_ID does."""
    if shutil.which("nvidia-smi") is None:
        pytest.skip("this machine has no nvidia-smi")
    query = ("--query-gpu=pci.bus_id,uuid,index", "--format=csv,noheader")
    listed = subprocess.run(["nvidia-smi", *query], capture_output=True, text=True, check=True)
    return sorted(Gpu(*line.split(", ")) for line in listed.stdout.splitlines())


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(gpus: list[Gpu]) -> Run:
    """Return a function that runs a command with some variables of the environment."""
    assert gpus

    def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        removed = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
        inherited = {name: value for name, value in os.environ.items() if name not in removed}
        return subprocess.run(
            command,
            env={**inherited, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )

    return run
