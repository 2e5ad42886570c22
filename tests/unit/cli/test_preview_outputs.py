"""What preview prints: text, json, yaml, diff and patch."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.unit.cli.shell import DENIED, POD, SERVICE, Answer, Shell
from webhook.text.yaml.documents import read_documents


def preview(shell: Shell, *arguments: str) -> Answer:
    """Run preview with the fabrics file."""
    return shell("preview", "-c", "fabrics.yaml", *arguments)


def test_text_is_the_default(shell: Shell) -> None:
    """A pod that would be patched gives exit code 0; a pipe gets no colors."""
    answer = preview(shell, "pod.yaml")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(
        "Pod default/trainer  pod.yaml:1\n  ✔ equipped for RDMA over v100-ib"
    )
    assert answer.out.endswith("\n1 pod: 1 equipped for RDMA\n")


def test_a_denied_pod_makes_the_exit_code_1(shell: Shell) -> None:
    """Every output format gives the same exit code."""
    shell.file("denied.yaml", DENIED)
    for output in ("text", "json", "yaml", "patch", "diff"):
        assert preview(shell, "-o", output, "pod.yaml", "denied.yaml").code == 1


def test_json_is_the_documented_form(shell: Shell) -> None:
    """The output matches the schema that `schema preview` prints."""
    shell.file("denied.yaml", f"{SERVICE}---\n{DENIED}")
    answer = preview(shell, "-o", "json", "pod.yaml", "denied.yaml")
    form = json.loads(answer.out)
    Draft202012Validator(json.loads(shell("schema", "preview").out)).validate(form)
    decisions = [
        (decision["document"], decision["name"], decision["allowed"])
        for decision in form["decisions"]
    ]
    assert decisions == [(0, "trainer", True), (2, "denied", False)]
    assert form["notes"] == ["Service web: no pod template"]


def test_yaml_is_ready_to_apply(shell: Shell) -> None:
    """All documents are printed, patched, with comments; other messages go to standard error."""
    shell.file("denied.yaml", f"{SERVICE}---\n{DENIED}")
    answer = preview(shell, "-o", "yaml", "pod.yaml", "denied.yaml")
    first, *following = answer.out.split("---\n")
    assert "name: trainer  # at night\n" in first
    assert "rdma/rdma_v100" in first
    assert following == [SERVICE, DENIED]
    assert "rdma-webhook: denied: Pod default/denied: annotation rdma.lab/enable is" in answer.err
    assert "rdma-webhook: note: Service web: no pod template\n" in answer.err


def test_yaml_ends_as_its_input(shell: Shell) -> None:
    """A file without a final line break stays one."""
    shell.file("service.yaml", SERVICE.rstrip())
    assert preview(shell, "-o", "yaml", "service.yaml").out == SERVICE.rstrip()


UNENDED = POD.replace("  - name: main\n", "  - name: main\n    image: x\n").rstrip() + (
    "\n    args:\n    - |\n      one\n      two"
)


@pytest.mark.parametrize("text", [UNENDED, UNENDED.replace("|", ">"), UNENDED.replace("|", "|+")])
def test_a_last_block_without_line_break_keeps_its_string(shell: Shell, text: str) -> None:
    """Lines are added below it, or another document follows: the argument is unchanged."""
    shell.file("pod.yaml", text)
    shell.file("service.yaml", SERVICE)
    (before,) = read_documents(text)
    for files in (["pod.yaml"], ["pod.yaml", "service.yaml"]):
        answer = preview(shell, "-o", "yaml", *files)
        pod, *_ = read_documents(answer.out)
        assert (
            pod.value["spec"]["containers"][0]["args"]
            == before.value["spec"]["containers"][0]["args"]
        )
        assert "rewritten without" not in answer.out + answer.err
    shell.file("pod.yaml", text.replace('"true"', '"false"'))
    output = preview(shell, "-o", "yaml", "pod.yaml", "service.yaml").out
    pod, _ = read_documents(output)
    assert pod.value["spec"] == before.value["spec"]


@pytest.mark.parametrize("text", [POD, POD.rstrip(), UNENDED, UNENDED + "\n"])
def test_the_diff_makes_the_yaml(shell: Shell, tmp_path: Path, text: str) -> None:
    """`patch` turns the file into what `-o yaml` prints, to the byte."""
    shell.file("pod.yaml", text)
    patched = preview(shell, "-o", "yaml", "pod.yaml").out
    difference = preview(shell, "-o", "diff", "pod.yaml").out
    program = ["patch", "-p1", "--quiet"]
    subprocess.run(program, input=difference.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "pod.yaml").read_text() == patched


@pytest.mark.parametrize("output", ["yaml", "diff", "patch"])
@pytest.mark.parametrize("annotation", ['{rdma.lab/enable: "true"}', "{a: b}"])
def test_no_status_is_written(shell: Shell, tmp_path: Path, output: str, annotation: str) -> None:
    """A status in a template would be stale in Git, and hide pods that the webhook missed."""
    shell.file("pod.yaml", POD.replace('{rdma.lab/enable: "true"}', annotation))
    shell.file("none.yaml", POD.replace("nvidia.com/v100", "example.com/fpga"))
    answer = preview(shell, "--enable", "-o", output, "pod.yaml", "none.yaml")
    assert "rdma/rdma_v100" in answer.out
    assert "rdma.lab/status" not in answer.out
    unchanged = {"yaml": (tmp_path / "none.yaml").read_text(), "diff": "", "patch": "[]\n"}
    assert preview(shell, "-o", output, "none.yaml").out == unchanged[output]


def test_a_status_of_the_input_stays(shell: Shell) -> None:
    """An exported pod has a status; the patch does not change it in a file."""
    exported = POD.replace('"true"}', "\"true\", rdma.lab/status: '{}'}")
    shell.file("pod.yaml", exported)
    assert "rdma.lab/status: '{}'}" in preview(shell, "-o", "yaml", "pod.yaml").out


def test_yaml_says_where_comments_are_lost(shell: Shell) -> None:
    """A document whose alias repeats a part that changes cannot be edited in place."""
    shell.file("alias.yaml", POD.replace("limits: {", "limits: &some {") + "unknown: *some\n")
    answer = preview(shell, "-o", "yaml", "alias.yaml")
    assert answer.code == 0
    assert answer.err == (
        "rdma-webhook: warning: alias.yaml:1: rewritten without its comments and layout, because "
        "on line 9 the patch edits below the anchor &some, and its aliases would change too\n"
    )


def test_patch_is_a_line_for_each_document(shell: Shell) -> None:
    """Each line is an RFC 6902 patch with paths from the document's root; [] if unchanged."""
    shell.file("service.yaml", SERVICE)
    first, second = preview(shell, "-o", "patch", "service.yaml", "pod.yaml").out.splitlines()
    assert first == "[]"
    assert "/spec/containers/0/securityContext" in {op["path"] for op in json.loads(second)}


def test_diff_names_the_files(shell: Shell) -> None:
    """There is one diff for each input that changes, in the order of the inputs."""
    shell.file("service.yaml", SERVICE)
    shell.file("other.yaml", f"{SERVICE}---\n{POD}")
    lines = preview(shell, "-o", "diff", "pod.yaml", "service.yaml", "other.yaml").out.splitlines()
    names = [line for line in lines if line.startswith(("--- ", "+++ "))]
    assert names == ["--- a/pod.yaml", "+++ b/pod.yaml", "--- a/other.yaml", "+++ b/other.yaml"]


def test_a_namespace_that_cannot_be_is_refused(shell: Shell) -> None:
    """No API server has such a namespace, so facts about it would be meaningless."""
    answer = preview(shell, "-n", "A_B", "pod.yaml")
    assert (answer.code, answer.out) == (2, "")
    assert "'A_B' is not a valid namespace name; write at most 63 lowercase letters" in answer.err
