"""docs/verify.md shows the output of the command, and names every code of a judgement."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import addresses, head, row, table, text
from webhook.cli import main
from webhook.diagnose.tools.causes import CAUSES

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "verify.md"
BEGIN, END = "<!-- example -->", "<!-- end of example -->"
VERIFY = ROOT / "webhook" / "diagnose" / "verify"
COMMAND = ["verify", "judge", "--rate", "100", "good.txt", "failed.txt"]
FILES = {
    "good.txt": text(
        head(), addresses(), table(row(88.1, 8192), row(96.8, 65536), row(97.4, 8 << 20))
    ),
    "failed.txt": "Couldn't allocate MR\nfailed to create mr\n Couldn't create IB resources\n",
}
_CODE = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*")
#: Words of webhook/diagnose/verify that look like codes.
WORDS = {"Active", "InfiniBand", "Ethernet", "Less", "Slower", "Results", "Output"}


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


def _codes(files: Iterable[Path]) -> set[str]:
    """Return the codes in the code: words in CamelCase that are whole strings."""
    constants = {
        node.value
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {word for word in constants if _CODE.fullmatch(word)} - WORDS


def _documented(heading: str) -> list[str]:
    """Return the codes of a table, in its order."""
    page = PAGE.read_text(encoding="utf-8")
    table_of_codes = page[page.index(heading) :].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)`", table_of_codes, re.MULTILINE)


def test_each_code_is_documented() -> None:
    """The table has every code that is not a cause, and no other code."""
    codes = _codes(VERIFY / f"{name}.py" for name in ("evaluate", "grade", "output", "results"))
    assert sorted(_documented("| code |")) == sorted(codes)


def test_each_code_of_a_run_is_documented() -> None:
    """The second table has the codes that only a run has."""
    codes = _codes(VERIFY / "runs" / name for name in ("pair_output.py", "errors.py"))
    other_codes = {*_documented("| code |"), *(cause.code for cause in CAUSES)}
    assert sorted(_documented("| code of a run |")) == sorted(codes - other_codes)


def test_each_code_of_nccl_tests_is_documented() -> None:
    """The third table has the codes that only runs of nccl-tests have."""
    other_codes = {
        *_documented("| code |"),
        *_documented("| code of a run |"),
        *(cause.code for cause in CAUSES),
    }
    codes = _codes([VERIFY / "runs/nccl_run.py"])
    assert sorted(_documented("| code of nccl-tests |")) == sorted(codes - other_codes)
