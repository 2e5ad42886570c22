"""docs/evidence.md agrees with the experiments that it describes, and with their versions."""

from __future__ import annotations

import re

from tests.cluster.rootfs import SUITE
from tests.cluster.versions import DEFAULT_MINOR, ETCD, KUBERNETES, MODULES
from tests.generated_pages import DOCS
from tests.softroce import test_link, test_memlock, test_perftest

PAGE = (DOCS / "evidence.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """Return the first table below a heading: the cells of each row, by the first cell."""
    lines = PAGE.partition(f"\n{heading}\n")[2].split("\n")
    first = next(index for index, line in enumerate(lines) if line.startswith("|"))
    table: dict[str, list[str]] = {}
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        table[name.strip("`")] = cells
    return table


def test_versions_are_those_that_are_built() -> None:
    """A raised version makes the page stale: the experiments must be run again."""
    table = rows("## Versions")
    assert table["Kubernetes"] == [KUBERNETES[DEFAULT_MINOR]]
    assert table["etcd"] == [ETCD[DEFAULT_MINOR]]
    assert table["k8s-rdma-shared-dev-plugin"] == [MODULES["rdma-shared-dev-plugin"].version]
    assert f"Debian {SUITE}," in table["machine"][0]


def test_which_processes_may_register_memory() -> None:
    """The table has the tested runs, with the same results."""
    table = {
        run: cells[-1] for run, cells in rows("## Which processes may register memory").items()
    }
    assert table == test_memlock.TABLE


def test_levels() -> None:
    """The tables of perftest, on a single machine and between two, have the tested runs."""
    for heading, expected in (
        (
            "## Runs of perftest, good and bad, as `verify judge` grades them",
            test_perftest.EXPECTED,
        ),
        ("### Between two machines", test_link.EXPECTED),
    ):
        table = {run: (cells[1], cells[2].strip("`")) for run, cells in rows(heading).items()}
        assert table == expected


def test_transcripts_have_no_local_paths() -> None:
    """A path in a home or scratch folder does not help readers."""
    assert not re.search(r"/(?:root|home|tmp|work)/", PAGE)
