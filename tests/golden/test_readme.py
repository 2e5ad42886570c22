"""The README has real output and the real tables; UPDATE_GOLDEN=1 writes them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from webhook.cli import main
from webhook.decide.mutations import MUTATIONS

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PART = re.compile(r"<!-- ([a-z-]+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)
#: The fabrics that the README names, and the pod.
TRAINER = [
    "-c",
    "webhook/config/examples/lab-two-infiniband.yaml",
    "manifests/examples/trainer.yaml",
]
EXAMPLES = ROOT / "webhook" / "config" / "examples"

Print = Callable[[list[str]], str]


def mutations() -> str:
    """Write the table of mutations."""
    rows = [f"| `{mutation.name}` | {mutation.summary} |\n" for mutation in MUTATIONS]
    return "\n| mutation | does |\n|---|---|\n" + "".join(rows) + "\n"


def examples() -> str:
    """List the example files, each with the first sentence of its comment."""
    return "\n" + "".join(
        f"- [{file.name}](webhook/config/examples/{file.name}): {_first_sentence(file)}\n"
        for file in sorted(EXAMPLES.glob("*.yaml"))
    )


def _first_sentence(file: Path) -> str:
    comment = " ".join(
        line.removeprefix("#").strip()
        for line in file.read_text().split("apiVersion:")[0].splitlines()
        if "yaml-language-server" not in line
    )
    return comment.split(". ")[0].strip().rstrip(".") + "."


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Print:
    """Run a command line in the root of the repository and return its output."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.delenv("RDMA_WEBHOOK_CONFIG", raising=False)

    def run(arguments: list[str]) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    return run


def test_the_readme_shows_the_output(printed: Print) -> None:
    """Every part between markers equals the code's output of today."""
    parts = {
        "trainer": f"```text\n{printed(['preview', *TRAINER])}```\n",
        "trainer-diff": f"```diff\n{printed(['preview', *TRAINER, '-o', 'diff'])}```\n",
        "mutations": mutations(),
        "examples": examples(),
    }
    page = README.read_text()
    written = PART.sub(lambda at: f"<!-- {at[1]} -->\n{parts[at[1]]}<!-- /{at[1]} -->", page)
    if os.environ.get("UPDATE_GOLDEN") and written != page:
        README.write_text(written)
        page = written
    assert page == written, "the README is stale: run `make golden` and look at the diff"


def test_the_readme_links_to_files_that_exist() -> None:
    """Every link to a file in the repository leads to an existing file."""
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
