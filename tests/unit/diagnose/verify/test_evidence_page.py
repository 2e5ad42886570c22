"""docs/evidence.md agrees with the experiments that it tells of, and with what they run."""

from __future__ import annotations

import re

from tests.cluster.rootfs import SUITE
from tests.cluster.versions import DEFAULT_MINOR, ETCD, KUBERNETES, MODULES
from tests.generated_pages import DOCS
from tests.softroce import test_link, test_memlock, test_perftest

PAGE = (DOCS / "evidence.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """Return the first table below a heading: the cells of each row, by the first."""
    lines = PAGE.partition(f"\n{heading}\n")[2].split("\n")
    first = next(place for place, line in enumerate(lines) if line.startswith("|"))
    found: dict[str, list[str]] = {}
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found[name.strip("`")] = cells
    return found


def test_versions_are_those_that_are_built() -> None:
    """A raised version makes the page stale: the experiments are to be run again."""
    shown = rows("## Versions")
    assert shown["Kubernetes"] == [KUBERNETES[DEFAULT_MINOR]]
    assert shown["etcd"] == [ETCD[DEFAULT_MINOR]]
    assert shown["k8s-rdma-shared-dev-plugin"] == [MODULES["rdma-shared-dev-plugin"].version]
    assert f"Debian {SUITE}," in shown["machine"][0]


def test_who_may_register_memory() -> None:
    """The table has the runs that are tested, with the same results."""
    shown = {run: cells[-1] for run, cells in rows("## Who may register memory").items()}
    assert shown == test_memlock.TABLE


def test_verdicts() -> None:
    """So do those of perftest on one machine, and between two."""
    for heading, expected in (
        ("## perftest, good and bad, and what `verify judge` says", test_perftest.EXPECTED),
        ("### Between two machines", test_link.EXPECTED),
    ):
        shown = {run: (cells[1], cells[2].strip("`")) for run, cells in rows(heading).items()}
        assert shown == expected


def test_transcripts_name_no_place_of_one_machine() -> None:
    """A path of somebody's home or scratch folder helps no reader."""
    assert not re.search(r"/(?:root|home|tmp|work)/", PAGE)
