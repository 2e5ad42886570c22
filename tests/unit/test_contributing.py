"""CONTRIBUTING.md names only existing places, and leaves the floors' order to the contracts."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "tests/README.md"])
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
_TABLE = CONTRIBUTING[CONTRIBUTING.index("| change | place |") :].partition("\n\n")[0]
#: Each change, and its place.
ROWS: list[tuple[str, str]] = re.findall(r"^\| (.+?) \| (.+) \|$", _TABLE, re.MULTILINE)[1:]
CONTRACTS: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
    "tool"
]["importlinter"]["contracts"]
LAYERS: list[list[str]] = [layer.split(" | ") for layer in CONTRACTS[0]["layers"]]
PURE_CONTRACT = next(contract for contract in CONTRACTS if contract["name"].startswith("Pure"))

_PATH = re.compile(r"`((?:webhook|certs|tests|manifests|docs)/[^` ]*|[A-Z]\w+\.md)`")


def _named(text: str) -> list[str]:
    """Return the paths in a text, with `<name>` as a pattern and without the name of a test."""
    return [re.sub(r"<\w+>", "*", path.partition("::")[0]) for path in _PATH.findall(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_exist(page: Path) -> None:
    """Every path on the page exists, and a path with `<name>` stands for at least one."""
    for path in _named(page.read_text(encoding="utf-8")):
        assert any(ROOT.glob(path.rstrip("/"))), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    """Every relative link leads to a file of the repository."""
    for link in re.findall(r"\]\(([^)#:\s]+)[^):]*\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


def test_the_table_has_the_usual_changes() -> None:
    """The rows are in this order, each with a path."""
    assert [change for change, place in ROWS if _named(place)] == [
        "a mutation",
        "a reason",
        "a fabric field",
        "a library's variable",
        "a known variable",
        "a controller",
        "an operator that makes the pods' metadata",
        "a reader of a tool's output",
        "a cause that `why` names",
        "a metric",
        "an alert",
        "a condition of the status",
        "a flag",
        "the page",
        "a rule of check-config",
        "an object or a setting of an installation",
        "a check of check-install",
        "a doc page",
    ]


def test_every_page_is_linked() -> None:
    """A page in docs/ that neither README.md nor another page links to is never found."""
    linked = {
        (page.parent / link).resolve()
        for page in PAGES
        for link in re.findall(r"\]\(([^)#:\s]+)[^):]*\)", page.read_text(encoding="utf-8"))
    }
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page not in linked] == []


@pytest.mark.parametrize(("change", "place"), ROWS, ids=[change for change, _ in ROWS])
def test_names_are_in_their_files(change: str, place: str) -> None:
    """A name in a row, such as `VARIABLES`, occurs in the code that the row points to."""
    files = [file for path in _named(place) for file in ROOT.glob(path) if file.suffix == ".py"]
    names = set(re.findall(r"`(\w+)`", place)) - {"preview", "serve"}  # commands
    for name in names:
        assert any(re.search(rf"\b{name}\b", file.read_text("utf-8")) for file in files), change


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_only_the_contracts_list_the_floors_in_order(page: Path) -> None:
    """A second list of the packages, unless generated, would soon be outdated."""
    rooms = "|".join({room for layer in LAYERS for room in layer})
    lists = rf"\b(?:(?:{rooms})\b`?(?:,|;|<|>| \|| and)? `?){{4}}"
    by_hand = re.sub(r"(?s)<!-- floors:.*<!-- end of floors -->", "", page.read_text("utf-8"))
    assert not re.search(lists, by_hand)


def test_the_pure_floors_are_below_config() -> None:
    """The contract that forbids I/O names all below `config` but `text`, and two rooms above."""
    above = next(number for number, layer in enumerate(LAYERS) if "config" in layer)
    below = {room for layer in LAYERS[above + 1 :] for room in layer}
    pure = {module.removeprefix("webhook.") for module in PURE_CONTRACT["source_modules"]}
    assert below - pure == {"text"}
    assert pure - below == {"admission", "diagnose.tools"}


def test_coverage_is_complete_on_the_pure_floors() -> None:
    """`make test` requires every branch of exactly the packages of that contract."""
    (line,) = re.findall(r"^PURE := (.*)$", MAKEFILE, re.MULTILINE)
    packages = {
        module.removeprefix("webhook.").replace(".", "/")
        for module in PURE_CONTRACT["source_modules"]
        if (ROOT / module.replace(".", "/")).is_dir()
    }
    assert set(line.split()) == packages


def test_make_golden_rewrites_all_expected_output() -> None:
    """`make golden` runs each test of the fast rings that can rewrite its expected output."""
    (recipe,) = re.findall(r"^golden:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    given = [ROOT / word for word in recipe.split() if word.startswith("tests/")]
    for ring in ("golden", "property", "unit"):
        for file in (ROOT / "tests" / ring).rglob("test_*.py"):
            if "UPDATE_GOLDEN" in file.read_text("utf-8") and file != Path(__file__):
                assert any(file.is_relative_to(folder) for folder in given), file
