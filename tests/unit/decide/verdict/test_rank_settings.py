from __future__ import annotations

import pytest

from tests.builders import container, pod
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.model.pod import PodManifest

LABEL = {"training.kubeflow.org/job-role": "launcher"}


def launcher(script: str) -> PodManifest:
    """Make the pod of a launcher that runs a script."""
    return pod(container(command=["bash", "-c", script]), labels=LABEL)


@pytest.mark.parametrize(
    ("script", "setting", "source"),
    [
        ("mpirun -x NCCL_IB_DISABLE=1 a", "NCCL_IB_DISABLE=1", "mpirun -x"),
        ("mpirun -x NCCL_NET=Socket a", "NCCL_NET=Socket", "mpirun -x"),
        ("export NCCL_NET=Socket; deepspeed a", "NCCL_NET=Socket", "export"),
    ],
)
def test_a_launcher_that_turns_rdma_off(script: str, setting: str, source: str) -> None:
    """Its ranks have no RDMA, whatever their own pods get."""
    verdict = verdict_on(launcher(script))
    assert (verdict.rdma, verdict.because.code) == ("no", "RanksWithoutRdma")
    assert verdict.message == (
        f"container trainer starts its ranks with {setting}: remove it ({source} in its command)"
    )


@pytest.mark.parametrize(
    "script",
    [
        "mpirun -x NCCL_NET=IB a",
        "mpirun -x NCCL_IB_DISABLE=0 a",
        "mpirun -x UCX_TLS=tcp a",
        "export NCCL_NET=Socket; mpirun a",
        "mpirun -x NCCL_NET=$X a",
    ],
)
def test_other_launchers(script: str) -> None:
    """The verdicts of the workers count."""
    assert judged(launcher(script)) == ("none", "Launcher")
