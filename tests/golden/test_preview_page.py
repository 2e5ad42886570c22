"""docs/preview.md has real output, and the real form's keys; UPDATE_GOLDEN=1 writes both."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from webhook.cli import main
from webhook.config import EXAMPLE
from webhook.preview.report.json import preview_schema
from webhook.preview.workloads.controllers import CONTROLLERS
from webhook.preview.workloads.metadata_sources import METADATA_SOURCES

PAGE = Path(__file__).parents[2] / "docs" / "preview.md"
MANIFEST = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
SESSION = re.compile(r"(```console\n\$ rdma-webhook (.*?)\n)(.*?)```", re.DOTALL)
TABLE = re.compile(
    r"<!-- (form|decision|verdict|outcome|changes|hunk|row|row reason|controllers|operators) -->\n"
    r"(.*?)<!-- end -->",
    re.DOTALL,
)


def keys(of: dict[str, Any]) -> str:
    """Write the properties of a part of the schema as a table."""
    rows = [
        f"| `{key}` | {_type(value)} | {value['description']} |\n"
        for key, value in of["properties"].items()
    ]
    return "| key | type | what |\n|---|---|---|\n" + "".join(rows)


def controllers() -> str:
    """Write the table of controllers, their kinds, and what they add."""
    rows = [
        f"| {controller.name or 'Kubernetes'} "
        f"| {', '.join(map(_kind, sorted(controller.kinds)))} | {controller.adds} |"
        for controller in CONTROLLERS
    ]
    return "\n".join(("| controller | kinds | adds |", "|---|---|---|", *rows, ""))


def operators() -> str:
    """Write the table of operators that make the metadata of their pods."""
    rows = [
        f"| {row.operator} | {', '.join(map(_group_kind, sorted(row.kinds)))} "
        f"| {', '.join(f'`{field}`' for field in row.fields) or 'none'} | {row.advice or '-'} |"
        for row in METADATA_SOURCES
    ]
    head = (
        "| operator | kinds | fields with the pods' annotations | another way |",
        "|---|---|---|---|",
    )
    return "\n".join((*head, *rows, ""))


def _group_kind(named: str) -> str:
    group, _, kind = named.partition(" ")
    return f"{kind} (`{group}`)"


def _kind(named: str) -> str:
    api_version, _, kind = named.rpartition(" ")
    return f"{kind} (`{api_version}`)"


def _type(value: dict[str, Any]) -> str:
    """Return a type, or the types of a union; a reference is to an object."""
    if "anyOf" in value:
        return " or ".join(_type(part) for part in value["anyOf"])
    return "object" if "$ref" in value else str(value["type"])


def test_the_page_shows_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page has the output of each command for the manifest that it shows."""
    page = PAGE.read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("RDMA_WEBHOOK_CONFIG", raising=False)
    (manifest,) = MANIFEST.findall(page)
    Path("train.yaml").write_text(manifest)
    Path("fabrics.yaml").write_text(EXAMPLE.read_text())

    def session(match: re.Match[str]) -> str:
        assert main(shlex.split(match[2])) == 0
        return f"{match[1]}{capsys.readouterr().out}```"

    schema = json.loads(preview_schema())
    defined = schema["$defs"]
    parts = {
        "form": schema,
        "decision": defined["DecisionForm"],
        "verdict": defined["VerdictForm"],
        "outcome": defined["OutcomeForm"],
        "changes": defined["ChangesForm"],
        "hunk": defined["HunkForm"],
        "row": defined["RowForm"],
        "row reason": defined["RowReasonForm"],
    }
    tables = {name: keys(part) for name, part in parts.items()}
    tables |= {"controllers": controllers(), "operators": operators()}

    def table(match: re.Match[str]) -> str:
        written = tables[match[1]]
        return f"<!-- {match[1]} -->\n\n{written}\n<!-- end -->"

    written = TABLE.sub(table, SESSION.sub(session, page))
    if os.environ.get("UPDATE_GOLDEN") and written != page:
        PAGE.write_text(written)
        page = written
    assert page == written, "the page is stale: run `make golden` and look at the diff"
