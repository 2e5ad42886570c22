"""One emulated machine per experiment, and what it left."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.softroce.machine import boot, require

EXPERIMENTS = Path(__file__).parent / "experiments"


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, float], Path]:
    """Run `experiments/NAME.sh` in a machine; return the folder with what it wrote."""

    def run(name: str, seconds: float) -> Path:
        require()
        share = tmp_path_factory.mktemp(name)
        for script in EXPERIMENTS.glob("*.sh"):
            shutil.copy(script, share)
        boot(share, (EXPERIMENTS / f"{name}.sh").read_text(), seconds=seconds)
        return share

    return run
