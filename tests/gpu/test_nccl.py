"""NCCL on a machine with a GPU and without an RDMA device."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import decide_on, gpu, pod
from tests.gpu.conftest import CUDA, Run
from webhook.cli import main

#: As sshd's children have no variables of the container, the webhook writes a file.
SSHD = pod(gpu(command=["/usr/sbin/sshd", "-D"]))

#: Every machine has this interface, unlike the fabric's.
LOGGED = {"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "lo"}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Write the file that the webhook gives to a container with sshd."""
    file = tmp_path / "nccl.conf"
    file.write_text(decide_on(SSHD).pod["metadata"]["annotations"]["rdma.lab/nccl-conf"])
    return file


def test_nccl_reads_the_file_that_the_webhook_writes(run: Run, written: Path) -> None:
    """It prints each variable of the file that concerns the choice of devices."""
    ran = run(
        *CUDA, "nccl", NCCL_CONF_FILE=str(written), NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="ALL"
    )
    lines = written.read_text().splitlines()
    (hcas,) = (line.removeprefix("NCCL_IB_HCA=") for line in lines if "NCCL_IB_HCA=" in line)
    assert f"NCCL_IB_HCA set to {hcas}" in ran.stdout, ran


def test_a_variable_comes_before_the_file(run: Run, written: Path) -> None:
    """So what the user sets stays in effect."""
    ran = run(*CUDA, "nccl", NCCL_CONF_FILE=str(written), NCCL_IB_HCA="=user_0", **LOGGED)
    assert "NCCL_IB_HCA set to =user_0" in ran.stdout, ran


def test_the_log_of_a_machine_without_rdma(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`verify judge` names the reason."""
    ran = run(*CUDA, "nccl", **LOGGED)
    if "NET/IB : Using" in ran.stdout and "No device found" not in ran.stdout:
        pytest.skip("this machine has an RDMA device")
    (tmp_path / "log").write_text(ran.stdout)
    assert main(["verify", "judge", str(tmp_path / "log")]) == 1
    assert "[NoDeviceFound]" in capsys.readouterr().out
