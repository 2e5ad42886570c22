"""The RDMA shared device plugin itself accepts the configuration that `discover --plugin` writes.

The plugin's own code reads and checks it; that needs no RDMA device.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.binaries import BuildError, binary
from tests.integration.programs import lacking

GOLDEN = Path(__file__).parents[1] / "golden" / "discover"
#: Where the configuration is in the objects that have one.
PLACES = {"ConfigMap": ("data",), "NicClusterPolicy": ("spec", "rdmaSharedDevicePlugin")}
FINE = {"resourceName": "v100_ib", "rdmaHcaMax": 63, "selectors": {"vendors": ["15b3"]}}


def written() -> Iterator[tuple[str, str]]:
    """Yield the configurations of the golden cases, with a name for each."""
    for file in sorted(GOLDEN.glob("*/plugin/*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            holder = document
            for key in PLACES.get(document["kind"], ("none",)):
                holder = holder.get(key, {})
            for key in ("config.json", "config"):
                if key in holder:
                    yield f"{file.parts[-3]} {file.stem}", holder[key]


CONFIGURATIONS = dict(written())


@pytest.fixture(scope="session")
def checker() -> Path:
    """Return the program that reads a configuration as the plugin does; build it if missing."""
    try:
        return binary("rdma-shared-dev-plugin-config")
    except BuildError as error:
        lacking(f"the device plugin's rules cannot be built: {error}")
        raise


def checked(checker: Path, text: str, folder: Path) -> tuple[int, str]:
    """Return the exit code for a configuration, and the last line: the reason for a refusal."""
    file = folder / "config.json"
    file.write_text(text, encoding="utf-8")
    ran = subprocess.run([checker, file], capture_output=True, text=True, check=False, timeout=60)
    return ran.returncode, ran.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize("text", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_what_discover_writes_is_accepted(checker: Path, tmp_path: Path, text: str) -> None:
    """Every ConfigMap and NicClusterPolicy of the golden cases is valid, without unknown fields."""
    code, message = checked(checker, text, tmp_path)
    assert code == 0, message


INVALID: dict[str, tuple[Any, str]] = {
    "a name with a prefix": (
        [{**FINE, "resourceName": "rdma/v100"}],
        'resource name "rdma/v100" contains invalid characters',
    ),
    "one name twice": ([FINE, FINE], 'resource name "v100_ib" already exists'),
    "less than no devices": ([{**FINE, "rdmaHcaMax": -1}], "Invalid value for rdmaHcaMax < 0"),
    "no selector": ([{**FINE, "selectors": {}}], 'neither "selectors" nor "devices"'),
    "a misspelled selector": (
        [{**FINE, "selectors": {"vendors": ["15b3"], "ifName": ["ib0"]}}],
        'unknown field "ifName"',
    ),
    "a number as an id": (
        [{**FINE, "selectors": {"deviceIDs": [1017]}}],
        "cannot unmarshal number into Go struct field",
    ),
    "no resource": ([], "no resources configuration found"),
}


@pytest.mark.parametrize(("entries", "because"), INVALID.values(), ids=INVALID)
def test_invalid_configurations_are_refused(
    checker: Path, tmp_path: Path, entries: list[Any], because: str
) -> None:
    """The check above can fail: the plugin's rules refuse these."""
    code, message = checked(checker, json.dumps({"configList": entries}), tmp_path)
    assert code == 1
    assert because in message


def test_there_is_something_to_accept() -> None:
    """Two files of each case that uses the plugin contain its configuration."""
    assert len(CONFIGURATIONS) >= 12
