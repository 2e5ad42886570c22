"""Each folder `discover/<site>` is a site; these tests check discover's output for it.

RULE            what the site shows, in a sentence
nodes/          what tools printed: a file or a folder for each node
NODES           what kubectl printed, if the site has it
ARGUMENTS       further options, such as --against with earlier.json
report.txt, answer.json, fabrics.yaml, picture.svg, plugin/    the results, by `make golden`
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from webhook.cli import main
from webhook.diagnose.discover.drift import DRIFT_CODES
from webhook.diagnose.discover.output import discover_schema

HERE = Path(__file__).parent
SITES = sorted(file.parent for file in HERE.glob("discover/*/RULE"))
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))
STALE = "is not what comes out; if the change is meant, run `make golden` and look at the diff"
RESULTS = {"text": "report.txt", "json": "answer.json", "yaml": "fabrics.yaml"}

each_site = pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)


def discovered(
    site: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    *options: str,
) -> tuple[int, str]:
    """Run discover in the folder of a site; return its exit code and output."""
    monkeypatch.chdir(site)
    monkeypatch.setenv("COLUMNS", "120")
    words = ["discover", "--dir", "nodes"]
    if Path("NODES").exists():
        words += ["--nodes", "NODES"]
    if Path("ARGUMENTS").exists():
        words += Path("ARGUMENTS").read_text().split()
    code = main([*words, *options])
    return code, capsysbinary.readouterr().out.decode()


def check(file: Path, fresh: str) -> None:
    """Compare a result with its file, or write the file."""
    if UPDATE and (not file.exists() or file.read_text() != fresh):
        file.parent.mkdir(exist_ok=True)
        file.write_text(fresh)
    assert file.exists(), f"{file} is missing: run `make golden`"
    assert file.read_text() == fresh, f"{file} {STALE}"


@each_site
@pytest.mark.parametrize("form", RESULTS)
def test_a_site_is_discovered(
    site: Path,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Report, answer and fabrics file equal the files of the site, to the byte."""
    code, fresh = discovered(site, monkeypatch, capsysbinary, "-o", form)
    check(site / RESULTS[form], fresh)
    answer = json.loads(discovered(site, monkeypatch, capsysbinary, "-o", "json")[1])
    assert code == int(any(finding["level"] == "error" for finding in answer["findings"]))
    assert not list(Draft202012Validator(json.loads(discover_schema())).iter_errors(answer))


@each_site
def test_nothing_changed_since_the_same_output(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Compared with its own JSON, a site has no finding about drift."""
    code, fresh = discovered(
        site, monkeypatch, capsysbinary, "-o", "json", "--against", "answer.json"
    )
    findings = json.loads(fresh)["findings"]
    drift = {code.code for code in DRIFT_CODES}
    assert not [finding for finding in findings if finding["code"] in drift]
    assert code == int(any(finding["level"] == "error" for finding in findings))


@each_site
def test_the_picture_is_drawn(
    site: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Each line, box and word is at the place that was last reviewed."""
    discovered(site, monkeypatch, capsysbinary, "--svg", str(tmp_path / "picture.svg"))
    check(site / "picture.svg", (tmp_path / "picture.svg").read_text(encoding="utf-8"))


@each_site
def test_the_device_plugins_side_is_written(
    site: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """The files of --plugin are the ones in plugin/, and no others."""
    discovered(site, monkeypatch, capsysbinary, "--plugin", str(tmp_path))
    fresh = {file.name: file.read_text() for file in tmp_path.iterdir()}
    for name, text in fresh.items():
        check(site / "plugin" / name, text)
    assert {file.name for file in (site / "plugin").glob("*")} == set(fresh)


@each_site
def test_the_fabrics_file_passes_a_strict_check(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Discover's output is accepted without changes."""
    monkeypatch.chdir(site)
    assert main(["check-config", "--strict", "fabrics.yaml"]) == 0
    assert b"0 errors, 0 warnings" in capsysbinary.readouterr().out
