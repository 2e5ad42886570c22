from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.shell import FABRICS, POD, Shell


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """Return a shell with a fabrics file and a pod, without the program's variables."""
    monkeypatch.chdir(tmp_path)
    for name in ("RDMA_WEBHOOK_CONFIG", "RDMA_WEBHOOK_TRACEBACK", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    shell = Shell(tmp_path, capsys)
    shell.file("fabrics.yaml", FABRICS)
    shell.file("pod.yaml", POD)
    return shell
