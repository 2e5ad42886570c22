"""Each folder `<subject>/<case>` states one rule by example; these tests check that it holds.

    pod.yaml        what the user writes; its first line states the rule in a sentence
    fabrics.yaml    the configuration
    facts.yaml      the facts about the cluster, if the rule depends on them
    expected.yaml   the result; written by `make golden`, and reviewed by people

A case runs through the command line and through `/mutate`; both must agree.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from tests.api_server import defaulted, patched, post, review_of, without_status
from tests.fabrics_file import load_fabrics
from tests.server_state import configured
from webhook.cli import main
from webhook.config.files import load_facts
from webhook.decide import decide
from webhook.model.facts import Facts
from webhook.serve.http.mutate import Mutate
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics

HERE = Path(__file__).parent
CASES = sorted(file.parent for file in HERE.glob("*/*/pod.yaml"))
SHIPPED = HERE.parents[1] / "webhook" / "config" / "examples"
#: Shipped configurations of no cloud or vendor; other tests use their fields.
GENERAL = {
    "cloud-boolean",
    "h100-eight-rails",
    "lab-two-infiniband",
    "roce-host-network",
    "roce-sriov-multus",
}
FILES = {"pod.yaml", "fabrics.yaml", "facts.yaml", "expected.yaml"}
OPTIONAL = {"facts.yaml"}
HEADER = "# Written by `make golden`: look at the diff before you commit.\n"
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))
REWRITTEN = "rewritten: look at the diff, commit it if it is right, and run the tests again"
STALE = "is not what comes out; if the change is meant, run `make golden` and look at the diff"

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.relative_to(HERE)))


@each_case
def test_preview_prints_the_expected_file(
    case: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The command line's decision equals expected.yaml, to the byte."""
    written = _expected_text(_previewed(case, capsysbinary))
    file = case / "expected.yaml"
    if UPDATE and (not file.exists() or file.read_text() != written):
        file.write_text(written)
        pytest.skip(f"{file.relative_to(HERE)}: {REWRITTEN}")
    assert file.exists(), f"{file} is missing: run `make golden`"
    assert file.read_text() == written, f"{file} {STALE}"


@each_case
def test_mutate_agrees_with_the_preview(case: Path) -> None:
    """The API server's pod, made with our patch, equals the preview's."""
    expected = yaml.safe_load((case / "expected.yaml").read_text())
    server = _Server(case)
    pod = defaulted(_pod(case))
    response = server.answer(pod)
    assert response["allowed"] is expected["allowed"]
    assert response.get("warnings", []) == expected["warnings"]
    if not expected["allowed"]:
        assert response["status"]["message"] == expected["message"]
        return
    result = defaulted(server.patched(pod, response))
    assert without_status(result) == without_status(defaulted(expected["object"]))


@each_case
def test_a_second_call_changes_nothing(case: Path) -> None:
    """Deciding again on the result, as with reinvocationPolicy IfNeeded, yields no operation."""
    server = _Server(case)
    pod = defaulted(_pod(case))
    first = server.answer(pod)
    second = server.answer(defaulted(server.patched(pod, first)))
    assert "patch" not in second
    assert second["allowed"] is first["allowed"]


@each_case
def test_yaml_and_json_outputs_agree(
    case: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """`-o yaml` is the pod of `-o json`, still with the comment that states the rule."""
    decision = _previewed(case, capsysbinary)
    written = _run(case, capsysbinary, "yaml").decode()
    assert written.splitlines()[0] == (case / "pod.yaml").read_text().splitlines()[0]
    pods = (yaml.safe_load(written), decision["object"])
    from_yaml, from_json = (without_status(pod)[0] for pod in pods)
    assert from_yaml == from_json


def test_no_folder_is_left_over() -> None:
    """Every folder is a case, every case has its files, and there are no other files."""
    folders = {path for path in HERE.glob("*/*") if path.is_dir() and path.name != "__pycache__"}
    sites = {path for path in folders if path.parent.name == "discover"}
    assert all((site / "RULE").exists() for site in sites)
    assert folders - sites == set(CASES)
    for case in CASES:
        names = {file.name for file in case.iterdir()}
        assert FILES - OPTIONAL <= names <= FILES, case
    stray = [path for path in HERE.iterdir() if path.is_file() and path.suffix != ".py"]
    assert stray == []


def test_each_example_of_a_cloud_or_vendor_is_tried() -> None:
    """The cases in `examples` link to shipped configurations: they hold for what a user copies."""
    linked = [case / "fabrics.yaml" for case in CASES if case.parent.name == "examples"]
    assert all(file.is_symlink() for file in linked)
    tried = {file.resolve() for file in linked}
    assert {file for file in SHIPPED.glob("*.yaml") if file.stem not in GENERAL} == tried


@each_case
def test_a_case_is_a_good_example(case: Path) -> None:
    """The first line of pod.yaml is a sentence, and the configuration has no findings.

    Cases that are not about HCAs name none, to keep them short.
    """
    first = (case / "pod.yaml").read_text().splitlines()[0]
    assert first.startswith("# ")
    assert first.endswith(".")
    assert len(first) <= 100
    findings = load_fabrics(case / "fabrics.yaml").findings
    assert [finding for finding in findings if not finding.location.path.endswith(".hcas")] == []


class _Server:
    """`/mutate` in this process, with a case's configuration and facts."""

    def __init__(self, case: Path) -> None:
        facts_file = case / "facts.yaml"
        facts = load_facts(facts_file) if facts_file.exists() else Facts()
        state = configured(load_fabrics(case / "fabrics.yaml").compiled, facts)
        self._app = Mutate(state, Metrics(), Log("error"), decide)

    def answer(self, pod: dict[str, Any]) -> dict[str, Any]:
        status, body = post(self._app, "/mutate", review_of(pod))
        assert status == 200, body
        response: dict[str, Any] = orjson.loads(body)["response"]
        return response

    @staticmethod
    def patched(pod: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
        if "patch" not in response:
            return pod
        return patched(pod, orjson.loads(b64decode(response["patch"])))


def _pod(case: Path) -> dict[str, Any]:
    pod: dict[str, Any] = yaml.safe_load((case / "pod.yaml").read_text())
    return pod


def _run(case: Path, captured: pytest.CaptureFixture[bytes], output: str) -> bytes:
    facts = ["--facts", str(case / "facts.yaml")] if (case / "facts.yaml").exists() else []
    files = ["-f", str(case / "pod.yaml"), "-c", str(case / "fabrics.yaml"), *facts]
    code = main(["preview", *files, "-o", output])
    out = captured.readouterr().out
    assert code in (0, 1)
    return out


def _previewed(case: Path, captured: pytest.CaptureFixture[bytes]) -> dict[str, Any]:
    (decision,) = json.loads(_run(case, captured, "json"))["decisions"]
    assert isinstance(decision, dict)
    return decision


class _Dumper(yaml.SafeDumper):
    """Writes scripts as blocks."""


def _string(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _string)


def _expected_text(decision: dict[str, Any]) -> str:
    keys = ("rdma", "because", "allowed", "reason", "message", "fabric", "evidence")
    form = {key: decision[key] for key in keys}
    form["outcomes"] = [_line(outcome) for outcome in decision["outcomes"]]
    form["warnings"] = decision["warnings"]
    if decision["allowed"]:
        form["object"] = decision["object"]
    return HEADER + yaml.dump(form, Dumper=_Dumper, sort_keys=False, width=1000)


def _line(outcome: dict[str, Any]) -> str:
    place = outcome["container"] or "pod"
    return f"{outcome['mutation']} {place} {outcome['status']} {outcome['reason']}"
