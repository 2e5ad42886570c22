"""An emulated machine for each experiment, and its output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.softroce.kept import keep
from tests.softroce.machine import boot, prepare, require


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, float], Path]:
    """Run `experiments/NAME.sh` in a machine; return the folder with its output."""

    def run(name: str, seconds: float) -> Path:
        require()
        share = tmp_path_factory.mktemp(name)
        prepare(share, name)
        try:
            boot(share, seconds=seconds)
        finally:
            keep(name, share)
        return share

    return run
