"""The image that users build to measure RDMA: its programs run in a pod of the cluster."""

from __future__ import annotations

import json
import re
import sys
from subprocess import run
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.images import ROOT, perftest_image
from tests.waiting import until

NAME = "perftest-image"
PROGRAMS = (
    *(
        f"ib_{operation}_{how}"
        for operation in ("write", "read", "send", "atomic")
        for how in ("bw", "lat")
    ),
    *("ucx_perftest", "ucx_info", "rping", "ibv_devinfo"),
    # Of the scripts that run them.
    *("sh", "timeout", "getent", "sleep"),
)
_DOCKERFILE = (ROOT / "images" / "perftest" / "Dockerfile").read_text(encoding="utf-8")
#: Each package that the image installs, and its version.
_PACKAGES = _DOCKERFILE.partition("ARG PACKAGES=")[2].partition("\n")[0]
_VERSIONS = dict(re.findall(r"([a-z-]+)=([^ \"]+)", _PACKAGES))
_SCRIPT = f"""
for name in {" ".join(PROGRAMS)}; do
    command -v "$name" >/dev/null || echo "missing $name"
done
echo "user $(id -u)"
dpkg-query --show --showformat='installed ${{Package}}=${{Version}}\\n' {" ".join(_VERSIONS)}
ib_write_bw --version
ucx_info -v | grep Version
rping 2>&1 | grep -c "^rping"
set -x
ib_write_bw -d mlx5_0 -F 2>&1
exit 0
"""


def _pod() -> dict[str, Any]:
    container = {
        "name": "perftest",
        "image": perftest_image().name,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", _SCRIPT],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


@pytest.fixture(scope="module")
def log(cluster: Cluster) -> str:
    """Run the programs of the image in a pod, and return its output."""
    cluster.skip_if_existing("an image for workloads on its nodes")
    cluster.load(perftest_image().archive)
    cluster.kubectl("create", "--filename=-", input=json.dumps(_pod()))
    phase = ("get", "pod", NAME, "--output=jsonpath={.status.phase}")
    until(lambda: cluster.kubectl(*phase) in ("Succeeded", "Failed"))
    printed = cluster.kubectl("logs", NAME)
    assert cluster.kubectl(*phase) == "Succeeded", printed
    cluster.kubectl("delete", "pod", NAME, "--wait=false")
    return printed


def test_its_programs(log: str) -> None:
    """perftest, ucx_perftest and rping are there, with all libraries that they need."""
    assert "missing" not in log
    assert "error while loading" not in log
    assert "Version: " in log
    assert "# Version 1." in log or "# Library version: 1." in log
    assert "\n2\n" in log  # rping has two lines of usage, for the server and the client


def test_its_versions(log: str) -> None:
    """The packages have the versions that the Dockerfile pins."""
    assert len(_VERSIONS) >= 5
    installed = dict(re.findall(r"^installed (.+?)=(.+)$", log, re.MULTILINE))
    assert installed == _VERSIONS


def test_its_user(log: str) -> None:
    """Processes run as root, since IPC_LOCK has no effect for others."""
    assert "user 0\n" in log


def test_without_a_device_it_is_explained(log: str) -> None:
    """`verify judge` recognizes perftest's error in a pod without an RDMA device."""
    argv = [sys.executable, "-m", "webhook", "verify", "judge", "-o", "json", "-"]
    ran = run(argv, input=log, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    report = json.loads(ran.stdout)
    assert (report["level"], report["code"]) == ("error", "NoRdmaDevice"), report
    assert "Request the fabric's RDMA resource" in report["remedy"], report
