"""check-config reports all findings, like a compiler."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.unit.cli.shell import FABRICS, Shell
from webhook.config.findings import INVALID_VALUE


def test_check_config_of_a_valid_file(shell: Shell) -> None:
    """The only line names the file; -f works as it does for kubectl."""
    expected = (0, "✔ fabrics.yaml: 1 fabric, 0 errors, 0 warnings\n", "")
    assert shell("check-config", "fabrics.yaml") == expected
    assert shell("check-config", "-f", "fabrics.yaml") == expected
    assert shell("check-config", "fabrics.yaml", "-f", "fabrics.yaml") == expected


def test_check_config_of_a_file_without_a_spec(shell: Shell) -> None:
    """A field outside the spec is an error like any other, also for the exit code."""
    shell.file("flat.yaml", FABRICS.replace("spec:\n", "").replace("\n  ", "\n"))
    message = "fabrics: is a field of spec; put it below `spec:`, indented"
    lines = f"flat.yaml:3: error: {message} [UnknownField]\n✘ flat.yaml: 1 error, 0 warnings\n"
    assert shell("check-config", "flat.yaml") == (1, lines, "")
    refused = (2, "", f"rdma-webhook: error: flat.yaml:3: {message}\n")
    assert shell("preview", "-c", "flat.yaml", "pod.yaml") == refused


def test_check_config_of_invalid_yaml(shell: Shell) -> None:
    """The location has a column, also in JSON."""
    shell.file("tab.yaml", "a:\n\tb: 1\n")
    answer = shell("check-config", "tab.yaml")
    assert answer.out.splitlines() == [
        "tab.yaml:2:1: error: not YAML: a tab indents this line; use spaces [NotYAML]",
        "✘ tab.yaml: 1 error, 0 warnings",
    ]
    report = json.loads(shell("check-config", "-o", "json", "tab.yaml").out)
    assert report["findings"][0]["location"] == {"file": "tab.yaml", "line": 2, "column": 1}


def test_check_config_of_an_invalid_file(shell: Shell) -> None:
    """Each error has its file, line and path; `-o json` has the same errors, with their subject."""
    shell.file("bad.yaml", FABRICS.replace("InfiniBand", "Infiniband").replace("hcas", "hca"))
    answer = shell("check-config", "bad.yaml")
    assert answer.code == 1
    *findings, summary = answer.out.splitlines()
    assert findings[0].startswith("bad.yaml:8: error: spec.fabrics[0].linkLayer: ")
    assert summary == f"✘ bad.yaml: {len(findings)} errors, 0 warnings"
    report = json.loads(shell("check-config", "-o", "json", "bad.yaml").out)
    assert report["valid"] is False
    schema = json.loads(shell("schema", "check-config").out)
    assert Draft202012Validator(schema).is_valid(report)
    line = findings[0].partition("linkLayer: ")[2].removesuffix(" [InvalidValue]")
    assert report["findings"][0] == {
        "level": "error",
        "code": "InvalidValue",
        "text": f"linkLayer {line}",
        "remedy": INVALID_VALUE.remedy,
        "location": {"file": "bad.yaml", "line": 8, "path": "spec.fabrics[0].linkLayer"},
    }


def test_check_config_warns_about_values_that_the_api_server_would_reject(shell: Shell) -> None:
    """The file is meant for `kubectl apply`, and in the object the value is a string."""
    shell.file("typed.yaml", FABRICS.replace("hcas: [mlx5_0]", "hcas: [mlx5_0]\n    env: {A: 1}"))
    answer = shell("check-config", "typed.yaml")
    assert (answer.code, answer.out.splitlines()[0]) == (
        0,
        (
            "typed.yaml:10: warning: spec.fabrics[0].env.A: kubectl sends the number 1, but the "
            "API server requires a string; put the value in quotes [RejectedByAPIServer]"
        ),
    )


def test_check_config_lists_by_line_and_marks_warnings(shell: Shell) -> None:
    """Findings look like a compiler's, so that an editor distinguishes errors and warnings."""
    content = FABRICS.replace("  hcas: [mlx5_0]\n", "  env: {NCCL_ALGO: Ring}\n  hca: x\n")
    shell.file("both.yaml", content)
    *findings, _ = shell("check-config", "both.yaml").out.splitlines()
    places = [line.split(":")[1:3] for line in findings]
    assert places == sorted(places, key=lambda place: int(place[0]))
    assert {severity for _, severity in places} == {" error", " warning"}


def test_check_config_takes_several_files_and_standard_input(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line names its file, and each file has a summary."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: Pod\n")))
    answer = shell("check-config", "fabrics.yaml", "-")
    assert answer.code == 1
    first, *findings, summary = answer.out.splitlines()
    assert first == "✔ fabrics.yaml: 1 fabric, 0 errors, 0 warnings"
    assert findings
    assert all(line.startswith("<stdin>:1: error: ") for line in findings)
    assert summary == f"✘ <stdin>: {len(findings)} errors, 0 warnings"


def test_check_config_of_too_much_standard_input(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard input is limited to the size of a file."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" " * (1 << 21))))
    answer = shell("check-config", "-")
    assert (answer.code, "<stdin>: is larger than" in answer.err) == (2, True)


@pytest.mark.parametrize("name", [".", "latin.yaml", "missing.yaml"])
@pytest.mark.parametrize("output", ["text", "json"])
def test_check_config_of_an_unreadable_file(
    shell: Shell, tmp_path: Path, name: str, output: str
) -> None:
    """The exit code is 2, with a line; readable files are checked, but `valid` is false."""
    (tmp_path / "latin.yaml").write_bytes(b"kind: \xe9\n")
    answer = shell("check-config", "-o", output, name)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith(f"rdma-webhook: error: {name}:")
    answer = shell("check-config", "-o", output, "fabrics.yaml", name)
    assert answer.code == 2
    assert answer.out
    assert '"valid": true' not in answer.out


def test_check_config_strict_takes_warnings_for_errors(shell: Shell) -> None:
    """With --strict, a warning makes the exit code 1, for pipelines that require a clean file."""
    shell.file("odd.yaml", FABRICS.replace("  hcas: [mlx5_0]\n", "  env: {NCCL_ALGO: Ring}\n"))
    answer = shell("check-config", "odd.yaml")
    assert answer.code == 0
    assert answer.out.splitlines()[-1] == "! odd.yaml: 1 fabric, 0 errors, 2 warnings"
    assert " 0 warnings" not in answer.out
    assert shell("check-config", "--strict", "odd.yaml").code == 1


def test_check_config_of_a_missing_file(shell: Shell) -> None:
    """The exit code is 2, since nothing was checked."""
    assert shell("check-config", "missing.yaml") == (
        2,
        "",
        "rdma-webhook: error: missing.yaml: no such file or directory\n",
    )
