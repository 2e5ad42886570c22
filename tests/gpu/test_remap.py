"""The script of `rdma.lab/nvlink` before a program that uses CUDA."""

from __future__ import annotations

import pytest

from tests.gpu.conftest import CUDA, Gpu, Run
from webhook.decide.mutations.nvlink.remap import SCRIPT, wrapping


def _uuids(gpus: list[Gpu]) -> list[str]:
    return [gpu.uuid for gpu in gpus]


@pytest.mark.parametrize("visible", ["", "void", "all", "uuids", "numbers"])
def test_a_container_with_all_gpus_computes_on_all(gpus: list[Gpu], run: Run, visible: str) -> None:
    """However the container runtime names them; CUDA has them in the order of their buses."""
    named = {
        "uuids": ",".join(_uuids(gpus)),
        "numbers": ",".join(gpu.number for gpu in gpus),
    }
    ran = run(
        *wrapping(len(gpus)), *CUDA, "uuids", NVIDIA_VISIBLE_DEVICES=named.get(visible, visible)
    )
    assert ran.stdout.split() == _uuids(gpus), ran
    assert ran.returncode == 0


def test_a_container_computes_on_its_own_gpu(gpus: list[Gpu], run: Run) -> None:
    """The container runtime names it by its UUID."""
    for gpu in gpus:
        ran = run(*wrapping(1), *CUDA, "uuids", NVIDIA_VISIBLE_DEVICES=gpu.uuid)
        assert ran.stdout.split() == [gpu.uuid], ran


def test_other_gpus_end_the_container(gpus: list[Gpu], run: Run) -> None:
    """A GPU of another node, one GPU twice, and more GPUs than the node has."""
    other = "GPU-00000000-0000-0000-0000-000000000000"
    for count, visible in ((1, other), (2, f"{gpus[0].uuid},{gpus[0].uuid}"), (len(gpus) + 1, "")):
        ran = run(*wrapping(count), *CUDA, "uuids", NVIDIA_VISIBLE_DEVICES=visible)
        assert (ran.returncode, ran.stdout) == (1, ""), ran
        assert ran.stderr.startswith("rdma-remap: ")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_shells_agree(gpus: list[Gpu], run: Run, shell: str) -> None:
    """Images have one or the other as /bin/sh."""
    ran = run(shell, "-c", SCRIPT, "rdma-remap", str(len(gpus)), *CUDA, "uuids")
    assert ran.stdout.split() == _uuids(gpus), ran
