"""docs/verify.md shows the output of the command, and explains every code."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import addresses, head, row, table, text
from webhook.cli import main
from webhook.diagnose import verify
from webhook.diagnose.verify.codes import CODES, POD_RUN_CODES, RESULT_CODES
from webhook.diagnose.verify.fault_localization import SUSPECT_CODES
from webhook.model.finding import Code

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "verify.md"
BEGIN, END = "<!-- example -->", "<!-- end of example -->"
COMMAND = ["verify", "judge", "--rate", "100", "good.txt", "failed.txt"]
FILES = {
    "good.txt": text(
        head(), addresses(), table(row(88.1, 8192), row(96.8, 65536), row(97.4, 8 << 20))
    ),
    "failed.txt": "Couldn't allocate MR\nfailed to create mr\n Couldn't create IB resources\n",
}


def test_the_example(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example on the page is the output of the command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert main(COMMAND) == 1
    printed = capsysbinary.readouterr().out.decode()
    section = f"{BEGIN}\n\n```console\n$ rdma-webhook {' '.join(COMMAND)}\n{printed}```\n\n{END}"
    page = PAGE.read_text(encoding="utf-8")
    fresh = page[: page.index(BEGIN)] + section + page[page.index(END) + len(END) :]
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(fresh, encoding="utf-8")
    stale = "docs/verify.md is stale: run `make golden`, and look at the diff"
    assert PAGE.read_text(encoding="utf-8") == fresh, stale


def _documented(heading: str) -> dict[str, str]:
    """Return the codes of a table, each with the text of its last column."""
    table_of_codes = PAGE.read_text(encoding="utf-8").partition(heading)[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `(\w+)` .*\| (.*) \|$", table_of_codes, re.MULTILINE))


@pytest.mark.parametrize(
    ("heading", "codes"),
    [
        ("| code |", RESULT_CODES),
        ("| finding |", SUSPECT_CODES),
        ("| code of a run |", POD_RUN_CODES[:-1]),
        ("| code of nccl-tests |", POD_RUN_CODES[-1:]),
    ],
)
def test_each_code_is_documented(heading: str, codes: tuple[Code, ...]) -> None:
    """A table has its codes with their meanings, in the same order, and no others."""
    assert list(_documented(heading).items()) == [(code.code, code.meaning) for code in codes]


def _constants() -> set[Code]:
    """Return the codes that the modules of verify define."""
    names = [module.name for module in walk_packages(verify.__path__, f"{verify.__name__}.")]
    constants = (value for name in names for value in vars(import_module(name)).values())
    return {value for value in constants if isinstance(value, Code)}


def test_each_code_is_registered() -> None:
    """`why CODE` explains the registered codes; each occurs once."""
    assert _constants() == set(CODES)
    assert len({code.code for code in CODES}) == len(CODES)
