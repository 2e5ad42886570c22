"""`discover` on a machine with a real verbs device, by its script and by itself."""

from __future__ import annotations

import json
import shutil
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.softroce.kept import ROOT, keep, rdma_webhook
from tests.softroce.machine import boot, prepare, require, shared
from webhook.diagnose.discover.inputs import collect_script


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the script and the program itself in one machine."""
    require()
    folder = tmp_path_factory.mktemp("discover")
    prepare(folder, "discover")
    (folder / "collect.sh").write_text(collect_script())
    for name in ("webhook", "certs"):
        shutil.copytree(ROOT / name, folder / "program" / name)
    # Debian's Python is of the same version as this one, as far as libraries are concerned.
    try:
        libraries = shared("libraries", Path(sysconfig.get_path("platlib")))
        boot(folder, seconds=1800, options=("-nic", "none", *libraries))
    finally:
        keep("discover", folder)
    return folder


def _discovered(text: str) -> dict[str, Any]:
    ran = rdma_webhook("discover", "-", "-o", "json", text=text)
    assert ran.returncode in (0, 1), ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def test_the_script_shows_the_device(share: Path) -> None:
    """The script's output has the device, its port's state, link layer and interface."""
    (node,) = _discovered((share / "collected.txt").read_text())["nodes"]
    (port,) = node["ports"]
    fields = {key: port[key] for key in ("device", "port", "netdev", "state", "linkLayer")}
    assert fields == {
        "device": "rxe0",
        "port": 1,
        "netdev": "veth0",
        "state": "Active",
        "linkLayer": "Ethernet",
    }


def test_nothing_is_made_up(share: Path) -> None:
    """An emulated machine has no GPU, and soft-RoCE neither a PCI function nor a model."""
    (node,) = _discovered((share / "collected.txt").read_text())["nodes"]
    (port,) = node["ports"]
    assert node["gpus"] == []
    assert node["machineType"] is None
    assert port["pci"] is None
    assert port["model"] is None


def test_it_runs_there(share: Path) -> None:
    """`discover --run` in the machine itself gives the same result as the script."""
    assert (share / "run.status").read_text().strip() in ("0", "1"), (share / "run.txt").read_text()
    ran = json.loads((share / "run.json").read_text())
    read = _discovered((share / "collected.txt").read_text())
    (here,), (there,) = ran["nodes"], read["nodes"]
    assert [(port["device"], port["state"]) for port in here["ports"]] == [
        (port["device"], port["state"]) for port in there["ports"]
    ]
