from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.unit.cli.shell import DENIED, FABRICS, POD, SERVICE, Answer, Shell
from webhook import __version__
from webhook.cli import main
from webhook.cli import preview as preview_command
from webhook.cli.schema import _SCHEMAS
from webhook.config.crd import definition_text
from webhook.config.findings import INVALID_VALUE
from webhook.text.yaml.documents import read_documents


def preview(shell: Shell, *arguments: str) -> Answer:
    """Run preview with the fabrics file."""
    return shell("preview", "-c", "fabrics.yaml", *arguments)


def test_version(shell: Shell) -> None:
    """`--version` prints the package's version."""
    assert shell("--version") == (0, f"rdma-webhook {__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["prview"],
        ["preview", "-o", "xml", "pod.yaml"],
        ["preview", "pod.yaml", "--namespace-label", "x"],
        ["preview", "pod.yaml", "--enab"],
        ["preview"],
        ["check-config"],
        ["schema", "pod"],
        ["serve", "--port", "65536"],
        ["serve", "--port", "https"],
        ["serve", "--drain-seconds", "-1"],
        ["serve", "--drain-seconds", "nan"],
        ["serve", "--drain-seconds", "soon"],
        ["serve", "--ca-propagation", "2"],
        ["serve", "--ca-round", "1.5s"],
        ["certs"],
        ["certs", "renew"],
        ["certs", "verify", "--address", "127.0.0.1"],
        ["certs", "verify", "--address", ":443"],
        ["certs", "verify", "--address", "a:65536"],
    ],
)
def test_a_usage_error_is_a_single_line(shell: Shell, arguments: list[str]) -> None:
    """The line has the error and names the help; the exit code is 2."""
    answer = shell(*arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith("rdma-webhook: error: ")
    assert "--help)" in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [],
            "missing command; use one of serve, preview, why, fabrics, discover, verify, ",
        ),
        (["previw"], "(did you mean preview?)"),
        (
            ["preview", "--enabled", "pod.yaml"],
            "unknown option: --enabled (did you mean --enable?)",
        ),
        (["preview", "--enabled", "pod.yaml"], "(see rdma-webhook preview --help)"),
        (["why", "--enabel"], "unknown option: --enabel (see rdma-webhook why --help)"),
        (
            ["preview", "--name", "lab"],
            "unknown option: --name (did you mean --namespace?)",
        ),
        (["check", "fabrics.yaml"], "(did you mean check-config?)"),
        (["preview", "a.yaml", "--bo", "x", "--gus"], "error: unknown options: --bo --gus (see "),
        (["certs", "status", "x", "y"], "error: unknown arguments: x y (see rdma-webhook certs "),
        (
            ["diff-config", "x", "--facs", "y"],
            "error: unknown option: --facs (did you mean --facts",
        ),
        (["verify", "nccl"], "error: missing --image (see rdma-webhook verify nccl --help)"),
        (["certs", "x"], "error: ACTION: 'x' is not one of status, verify, rotate (see "),
        (["preview", "-o", "yml", "pod.yaml"], "(did you mean yaml?)"),
        (
            ["certs"],
            ("missing ACTION; use one of status, verify, rotate (see "),
        ),
        (["certs", "stats"], "(did you mean status?)"),
        (["completion"], "error: missing SHELL; use one of bash, zsh, fish (see "),
        (["completion", "bsh"], "error: SHELL: 'bsh' is not one of bash, zsh, fish (did you mean "),
        (["schema", "foo"], "error: SCHEMA: 'foo' is not one of fabrics, crd, check-config, "),
        (["why", "-f"], "error: -f/--filename: missing FILE (see "),
        (["why", "-n"], "error: -n/--namespace: missing NAMESPACE (see "),
        (["why", "-o"], "error: -o/--output: missing value; use one of text, json (see "),
        (["why", "--logs=x"], "error: --logs takes no value (see "),
        (
            ["verify", "run", "--ring", "--all-pairs"],
            "error: --all-pairs cannot be combined with --ring (see ",
        ),
        (["--bogus"], "unknown option: --bogus (see rdma-webhook --help)"),
        (
            ["certs", "status", "--kubeconfig", "none"],
            "the kubeconfig none does not exist: name one with",
        ),
    ],
)
def test_a_usage_error_suggests_the_right_word(
    shell: Shell, words: list[str], message: str
) -> None:
    """The line has the nearest command, option or value, and names the help of the command."""
    answer = shell(*words)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err


@pytest.mark.parametrize(
    ("words", "equivalent"),
    [
        (["help"], ["--help"]),
        (["help", "preview"], ["preview", "--help"]),
        (["help", "certs", "status"], ["certs", "--help"]),
        (["help", "verify", "judge"], ["verify", "judge", "--help"]),
    ],
)
def test_help_is_a_command(shell: Shell, words: list[str], equivalent: list[str]) -> None:
    """`help` alone lists the commands; with a command, it lists that command's options."""
    assert shell(*words) == shell(*equivalent)
    assert shell(*words).code == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["-n", "lab", "preview"], "rdma-webhook preview -n lab"),
        (["--enable", "preview", "pod.yaml"], "rdma-webhook preview --enable pod.yaml"),
        (["-n", "lab", "verify", "run"], "rdma-webhook verify run -n lab"),
        (["verify", "-n", "lab", "run", "-A"], "rdma-webhook verify run -n lab -A"),
        (["-f", "a b.yaml", "preview"], "rdma-webhook preview -f 'a b.yaml'"),
    ],
)
def test_options_come_after_the_command(shell: Shell, words: list[str], line: str) -> None:
    """The error has the line in the right order."""
    answer = shell(*words)
    message = f"options come after the command: {line} (see rdma-webhook --help)"
    assert answer == (2, "", f"rdma-webhook: error: {message}\n")


def test_a_long_line_is_cut(shell: Shell) -> None:
    """A command line may have thousands of files."""
    answer = shell("-f", *["pod.yaml"] * 100, "preview")
    assert "after the command: rdma-webhook preview -f pod.yaml pod.yaml" in answer.err
    assert len(answer.err) < 300


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", "lab"], "missing command before -n; use one of serve, preview, why, "),
        (["-n", "lab", "previw"], "missing command before -n; use one of serve, preview, why, "),
        (
            ["verify", "-n", "lab"],
            "missing command before -n; use one of judge, run, nccl, clean (see ",
        ),
        (["lab", "preview"], "unknown command 'lab'; use one of serve, preview, why, "),
        (["verify", "lab"], "unknown command 'lab'; use one of judge, run, nccl, clean ("),
        (["previw"], "unknown command 'previw' (did you mean preview?) (see rdma-webhook --help)"),
    ],
)
def test_a_command_line_without_a_command(shell: Shell, words: list[str], message: str) -> None:
    """The error lists the commands, unless one is near."""
    answer = shell(*words)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"rdma-webhook: error: {message}")


@pytest.mark.parametrize("option", ["--help", "-h", "--version"])
def test_the_program_has_options_of_its_own(shell: Shell, option: str) -> None:
    """They come before a command, which is then ignored."""
    assert shell(option, "preview") == shell(option)
    assert shell(option).code == 0


def test_files_may_stand_between_options(shell: Shell) -> None:
    """The order of files and options does not matter, as for kubectl."""
    shell.file("service.yaml", SERVICE)
    answer = shell("preview", "pod.yaml", "-c", "fabrics.yaml", "service.yaml", "-o", "patch")
    assert (answer.code, len(answer.out.splitlines())) == (0, 2)


def test_a_plugin_of_kubectl_names_itself(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubectl runs `kubectl-rdma` for `kubectl rdma`; help and hints show the latter."""
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kubectl-rdma"])
    help_text = shell("check-config", "--help").out
    assert help_text.startswith("usage: kubectl rdma check-config ")
    assert "\n  kubectl rdma check-config fabrics.yaml\n" in help_text
    assert "kubectl get fabrics default -o yaml" in help_text
    assert "| kubectl rdma check-config -\n" in help_text
    assert "(see kubectl rdma preview --help)" in shell("preview", "--enabled").err


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


def test_files_come_by_position_by_option_and_from_a_folder(shell: Shell) -> None:
    """A folder means its manifests, sorted; a file that is named twice is read once."""
    shell.file("more/b.json", '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}}')
    shell.file("more/a.yml", SERVICE.replace("web", "a"))
    shell.file("more/README.md", "# none")
    answer = preview(shell, "-f", "./pod.yaml", "-f", "more", "-f", "more/a.yml", "pod.yaml")
    assert (
        "note: no pod template in Service a, Service b\n1 pod: 1 equipped for RDMA\n" in answer.out
    )


def test_standard_input_is_a_file(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` means standard input, which a diff calls stdin."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(POD.encode())))
    assert preview(shell, "-o", "diff", "-").out.startswith("--- a/stdin\n")


def test_without_a_fabrics_file_the_report_is_an_example(shell: Shell) -> None:
    """Text begins with the note; JSON has a key, and the note goes to standard error."""
    first, *_ = shell("preview", "pod.yaml").out.splitlines()
    assert first == (
        "! EXAMPLE: these are example fabrics (v100-ib, a100-ib), not yours; pass yours with -c "
        "FABRICS"
    )
    answer = shell("preview", "pod.yaml", "-o", "json")
    form = json.loads(answer.out)
    assert (form["example"], form["decisions"][0]["fabric"]) == (True, "v100-ib")
    assert answer.err == (
        "rdma-webhook: note: these are example fabrics (v100-ib, a100-ib), not yours; pass yours "
        "with -c FABRICS\n"
    )
    assert json.loads(preview(shell, "pod.yaml", "-o", "json").out)["example"] is False


@pytest.mark.parametrize("output", ["yaml", "patch", "diff"])
def test_nothing_to_apply_is_made_from_the_example(shell: Shell, output: str) -> None:
    """Piped to kubectl, the two HCAs of the example would stay in use at a site with four."""
    answer = shell("preview", "pod.yaml", "-o", output)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert f"error: -o {output} requires your fabrics" in answer.err
    assert "-c FABRICS or set $RDMA_WEBHOOK_CONFIG" in answer.err


def test_the_installed_fabrics_are_the_default(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file at the path where the manifests mount it needs no option."""
    monkeypatch.setattr(preview_command, "INSTALLED", tmp_path / "fabrics.yaml")
    assert shell("preview", "pod.yaml", "-o", "yaml") == preview(shell, "pod.yaml", "-o", "yaml")


def test_the_environment_may_name_the_fabrics(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option -c takes precedence over the variable."""
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", "fabrics.yaml")
    assert shell("preview", "pod.yaml").err == ""
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", "missing.yaml")
    assert shell("preview", "pod.yaml").code == 2
    assert preview(shell, "pod.yaml").code == 0


def test_namespace_labels_facts_and_enable_reach_the_decision(shell: Shell) -> None:
    """Each of them changes whether the webhook is called, or what it decides."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab", "labels": {}}}
    namespace["metadata"]["labels"]["rdma.lab/enable"] = "true"  # type: ignore[index]
    shell.file("facts.json", json.dumps(namespace))

    def called(*arguments: str) -> Any:
        return json.loads(preview(shell, "-o", "json", *arguments).out)["decisions"][0]["called"]

    assert called("pod.yaml") is None
    assert called("pod.yaml", "-n", "lab", "--facts", "facts.json") is True
    labels = ("--namespace-label", "rdma.lab/enable=true", "--namespace-label", "a=b=c")
    assert called("pod.yaml", *labels) is True
    shell.file("pod.yaml", POD.replace('"true"', '"false"'))
    assert called("pod.yaml", *labels) is False
    assert called("pod.yaml", *labels, "--enable") is True


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("a: [", "document 1, line 1"),
        (f"{SERVICE}---\n\n- 1\n", "document 2, line 6"),
        ("hello", "document 1, line 1"),
        ("replicas: 3\n", "document 1, line 1: this is not a Kubernetes object"),
        ("{", "line 1"),
        ("a: \x00", "line 1"),
    ],
)
def test_an_unreadable_input_is_a_single_line_with_document_and_line(
    shell: Shell, content: str, place: str
) -> None:
    """The exit code is 2, and nothing is printed on standard output."""
    shell.file("bad.yaml", content)
    answer = preview(shell, "bad.yaml")
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith("rdma-webhook: error: bad.yaml: ")
    assert place in answer.err


def test_every_unreadable_file_is_reported_and_the_rest_previewed(shell: Shell) -> None:
    """Each file has its line; the exit code shows that the answer is incomplete."""
    shell.file("bad.yaml", "a: [")
    shell.file("values.yaml", "replicas: 3\n")
    answer = preview(shell, "missing.yaml", "bad.yaml", "pod.yaml", "values.yaml")
    assert answer.code == 2
    assert [line.split(": ")[2] for line in answer.err.splitlines()] == [
        "missing.yaml",
        "bad.yaml",
        "values.yaml",
    ]
    assert answer.out.endswith("\n1 pod: 1 equipped for RDMA\n")


def test_a_fabrics_file_is_no_manifest(shell: Shell) -> None:
    """It is easy to give a fabrics file without -c."""
    assert preview(shell, "fabrics.yaml") == (
        2,
        "",
        (
            "rdma-webhook: error: fabrics.yaml: line 1: this is a fabrics file, not a workload; "
            "pass it with -c, or check it with check-config\n"
        ),
    )


def test_a_forgotten_dash_is_a_denial(shell: Shell) -> None:
    """A mapping in place of the list of containers is denied."""
    shell.file("dash.yaml", POD.replace("- name: main\n  ", "  name: main\n"))
    answer = preview(shell, "dash.yaml")
    assert answer.code == 1
    assert "✘ denied: spec.containers must be a list, but is a mapping" in answer.out


@pytest.mark.parametrize("name", ["pod.yaml/x", "n\0l", "x" * 300])
def test_an_impossible_file_is_a_single_line(shell: Shell, name: str) -> None:
    """The message is from the operating system."""
    answer = preview(shell, name)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "cannot be read: " in answer.err


def test_a_folder_without_manifests_is_an_error(shell: Shell, tmp_path: Path) -> None:
    """A folder without manifests is an error, as in kubectl."""
    (tmp_path / "none").mkdir()
    error = "rdma-webhook: error: none: no .yaml, .yml or .json file in this directory"
    assert preview(shell, "none") == (2, "", f"{error}\n")
    (tmp_path / "none" / "below").mkdir()
    assert preview(shell, "none").err == f"{error}; to read its subdirectories, add -R\n"
    assert preview(shell, "none", "-R").err == f"{error}\n"


def test_a_folder_is_read_with_its_subdirectories(shell: Shell) -> None:
    """`-R` is kubectl's option; without it, only the files of the folder itself are read."""
    for name in ("z", "b", "k", "a", "m"):
        shell.file(f"all/d/{name}/service.yaml", SERVICE.replace("web", name))
    shell.file("all/b/a.yaml", POD)
    shell.file("all/b/deep/pod.json", json.dumps(read_documents(POD)[0].value))
    shell.file("all/c/Chart.yaml", "apiVersion: v2\nname: x\nversion: 1.0.0\n")
    shell.file("all/c/templates/pod.yaml", "{{- if .Values.x }}\na: 1\n{{- end }}\n")
    assert "pod: " not in preview(shell, "all").out
    for option in ("-R", "--recursive"):
        answer = preview(shell, "all", option)
        assert answer.code == 0
        pods = [line.split()[-1] for line in answer.out.splitlines() if line.startswith("Pod ")]
        assert pods == ["all/b/a.yaml:1", "all/b/deep/pod.json:1"]
        services = "no pod template in Service a, Service b, Service k, Service m, Service z"
        assert services in " ".join(answer.out.split())
        assert "note: all/c is a Helm chart: run helm template all/c |" in answer.err
    diff = ("diff-config", "fabrics.yaml", "-c", "fabrics.yaml", "-f", "all")
    assert "2 pods" in shell(*diff, "-R").out


def test_an_unreadable_subdirectory_is_an_error(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise its pods would silently be missing from the report."""
    shell.file("all/below/pod.yaml", POD)

    def denied(top: Path, onerror: Any) -> Any:
        onerror(PermissionError(13, "Permission denied", f"{top}/below"))

    monkeypatch.setattr(os, "walk", denied)
    answer = preview(shell, "all", "-R")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "rdma-webhook: error: all: cannot be read: Permission denied\n"


KUSTOMIZATION = "resources: [pod.yaml]\n"


def test_a_folder_of_kustomize_is_walked(shell: Shell) -> None:
    """Its manifests are previewed, its own files skipped, and a note has the command to pipe."""
    shell.file("base/kustomization.yaml", KUSTOMIZATION)
    shell.file("base/pod.yaml", POD)
    shell.file("base/patch.yaml", "- {op: add, path: /metadata/labels, value: {}}\n")
    answer = preview(shell, "base")
    assert (answer.code, "1 pod: 1 equipped for RDMA\n" in answer.out) == (0, True)
    skipped, built = answer.err.splitlines()
    assert skipped.startswith("rdma-webhook: note: skipped: base/patch.yaml: document 1, line 1: ")
    assert built == (
        "rdma-webhook: note: base is built by kustomize: run kustomize build base "
        "| rdma-webhook preview -"
    )


def test_a_helm_chart_is_walked(shell: Shell) -> None:
    """It has only templates, so the error has the command that renders them."""
    shell.file("chart/Chart.yaml", "apiVersion: v2\nname: x\nversion: 1.0.0\n")
    shell.file("chart/values.yaml", "replicas: 3\n")
    shell.file("chart/template.yaml", "{{- if .Values.x }}\na: 1\n{{- end }}\n")
    answer = preview(shell, "chart")
    how = "chart is a Helm chart: run helm template chart | rdma-webhook preview -"
    assert (answer.code, answer.out) == (2, "")
    *skipped, error = answer.err.splitlines()
    assert [line.split(": ")[3] for line in skipped] == ["chart/template.yaml", "chart/values.yaml"]
    assert error == f"rdma-webhook: error: {how}"
    named = preview(shell, "chart/values.yaml")
    assert (named.code, named.err.endswith(f"({how})\n")) == (2, True)


def test_a_broken_file_in_a_folder_is_an_error(shell: Shell) -> None:
    """Only files that are not manifests are skipped; a broken manifest makes the exit code 2."""
    shell.file("base/kustomization.yaml", KUSTOMIZATION)
    shell.file("base/bad.yaml", "a: [\n")
    shell.file("base/pod.yaml", POD)
    answer = preview(shell, "base")
    assert (answer.code, "error: base/bad.yaml: " in answer.err) == (2, True)
    assert "1 pod: " in answer.out


def test_a_named_file_of_kustomize_is_refused_with_a_remedy(shell: Shell) -> None:
    """It is not a Kubernetes object; the message names the command that builds objects from it."""
    shell.file("base/kustomization.yaml", KUSTOMIZATION)
    answer = preview(shell, "base/kustomization.yaml")
    assert answer.code == 2
    how = "(base is built by kustomize: run kustomize build base | rdma-webhook preview -)"
    assert how in answer.err


def test_a_namespace_that_cannot_be_is_refused(shell: Shell) -> None:
    """No API server has such a namespace, so facts about it would be meaningless."""
    answer = preview(shell, "-n", "A_B", "pod.yaml")
    assert (answer.code, answer.out) == (2, "")
    assert "'A_B' is not the name of a namespace: at most 63 lowercase letters" in answer.err


def test_objects_of_the_cluster_in_the_input_are_facts(shell: Shell) -> None:
    """They apply to all pods of the input, take precedence over --facts, and are noted."""
    off = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {}}}
    shell.file("facts.json", json.dumps(off))
    on = json.dumps(off).replace('"labels": {}', '"labels": {"rdma.lab/enable": "true"}')
    quota = "kind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {limits.memory: 1Ti}}\n"
    shell.file("input.yaml", f"{on}\n---\napiVersion: v1\n{quota}")
    limited = POD.replace("{nvidia.com/v100: 1}", "{nvidia.com/v100: 1, memory: 1Gi}")
    shell.file("pod.yaml", limited)
    form = json.loads(
        preview(shell, "--facts", "facts.json", "-o", "json", "pod.yaml", "input.yaml").out
    )
    (decision,) = form["decisions"]
    assert decision["called"] is True
    assert "ResourceQuota q counts limits.memory" in json.dumps(decision["outcomes"])
    assert form["notes"] == [
        "Namespace default: used as a fact about the cluster",
        "ResourceQuota q: used as a fact about the cluster",
    ]


def test_facts_may_stand_in_a_list(shell: Shell) -> None:
    """`kubectl get ns,pods -o yaml` prints a list; a malformed object is noted and ignored."""
    space = {"kind": "Namespace", "metadata": {"name": "default", "labels": {"a": "b"}}}
    broken = {"kind": "Namespace", "metadata": {"name": "x", "labels": []}}
    listed = {"apiVersion": "v1", "kind": "NamespaceList", "items": [space, broken, 1]}
    shell.file("list.json", json.dumps(listed).replace('"kind": "Namespace", ', ""))
    form = json.loads(preview(shell, "-o", "json", "pod.yaml", "list.json").out)
    assert form["decisions"][0]["called"] is False
    assert form["notes"][:2] == [
        "Namespace default: used as a fact about the cluster",
        (
            "Namespace x: not used as a fact about the cluster, since metadata.labels must be a "
            "mapping, but is a list ([])"
        ),
    ]


def test_an_input_without_documents_is_an_error(shell: Shell) -> None:
    """Usually the command before the pipe failed; one empty file among many is not an error."""
    shell.file("empty.yaml", "# nothing\n---\n")
    message = "rdma-webhook: error: empty.yaml contains no documents"
    assert preview(shell, "empty.yaml") == (2, "", f"{message}\n")
    shell.file("none.yaml", "")
    twice = preview(shell, "-o", "yaml", "empty.yaml", "none.yaml")
    error = "rdma-webhook: error: empty.yaml and 1 other input contain no documents\n"
    assert twice == (2, "", error)
    assert preview(shell, "empty.yaml", "pod.yaml").code == 0


@pytest.mark.parametrize("option", ["-c", "--facts"])
def test_an_unusable_configuration_is_reported_line_by_line(shell: Shell, option: str) -> None:
    """The exit code is 2, since no pod was decided."""
    shell.file("bad.yaml", "kind: FabricConfiguration\nfabrics: 5\n")
    answer = shell("preview", "-c", "fabrics.yaml", option, "bad.yaml", "pod.yaml")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err
    assert all(line.startswith("rdma-webhook: error: bad.yaml") for line in answer.err.splitlines())


def test_check_config_of_a_valid_file(shell: Shell) -> None:
    """The only line names the file; -f works as it does for kubectl."""
    expected = (0, "✔ fabrics.yaml: 1 fabric, 0 errors, 0 warnings\n", "")
    assert shell("check-config", "fabrics.yaml") == expected
    assert shell("check-config", "-f", "fabrics.yaml") == expected
    assert shell("check-config", "fabrics.yaml", "-f", "fabrics.yaml") == expected


def test_check_config_of_a_file_without_a_spec(shell: Shell) -> None:
    """A field outside the spec is an error like any other, also for the exit code."""
    shell.file("flat.yaml", FABRICS.replace("spec:\n", "").replace("\n  ", "\n"))
    message = "fabrics: is a field of spec: put it below `spec:`, indented"
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
    """Every error has its file, line and path, and `-o json` has the same errors."""
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
    assert report["findings"][0] == {
        "level": "error",
        "code": "InvalidValue",
        "text": findings[0].partition("linkLayer: ")[2].removesuffix(" [InvalidValue]"),
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
            "API server requires a string: put the value in quotes [RejectedByAPIServer]"
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


def test_schemas_are_json_schemas(shell: Shell) -> None:
    """All schemas are valid; the schema of the fabrics file is the default."""
    for arguments in (
        ["schema"],
        *(["schema", name] for name in _SCHEMAS if name != "crd"),
    ):
        answer = shell(*arguments)
        Draft202012Validator.check_schema(json.loads(answer.out))
    assert shell("schema") == shell("schema", "fabrics")
    assert shell("schema", "crd").out == definition_text()


def test_serving_needs_a_certificate(shell: Shell) -> None:
    """A line names the missing option; the fabrics file has a default location."""
    answer = shell("serve", "-c", "fabrics.yaml")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "--tls-cert" in answer.err


class Full(io.BytesIO):
    """A full disk."""

    def write(self, _: Any) -> int:
        """Raise the error of a full disk."""
        raise OSError(28, "No space left on device")


def test_output_that_cannot_be_written_is_a_single_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line ends with the operating system's error."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Full()))
    assert main(["schema", "preview"]) == 2
    message = capsys.readouterr().err
    assert message == "rdma-webhook: error: cannot write the output: No space left on device\n"


def test_a_defect_is_a_single_line_unless_a_traceback_is_requested(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test's defect is a standard output without a binary buffer."""
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", io.StringIO())
        assert main(["schema", "preview"]) == 2
        assert capsys.readouterr().err == (
            "rdma-webhook: error: internal error: AttributeError: '_io.StringIO' object has no "
            "attribute 'buffer'; please report it with the traceback, which "
            "RDMA_WEBHOOK_TRACEBACK=1 prints\n"
        )
        patched.setenv("RDMA_WEBHOOK_TRACEBACK", "1")
        with pytest.raises(AttributeError):
            main(["schema", "preview"])


def test_diff_config_reports_the_changes_of_a_new_file(shell: Shell) -> None:
    """Exit codes as for diff: 0 no change, 1 a change, 2 an input that cannot be read."""
    shell.file("new.yaml", FABRICS.replace("mlx5_0", "mlx5_7"))
    against = ("-c", "fabrics.yaml", "-f", "pod.yaml")
    assert shell("diff-config", "fabrics.yaml", *against).code == 0
    changed = shell("diff-config", "new.yaml", *against)
    assert changed.code == 1
    assert "mlx5_7" in changed.out
    report = json.loads(shell("diff-config", "new.yaml", *against, "-o", "json").out)
    assert [change["name"] for change in report["changes"]] == ["trainer"]
    for words in (("missing.yaml", *against), ("new.yaml", "-c", "missing.yaml", "-f", "pod.yaml")):
        answer = shell("diff-config", *words)
        assert (answer.code, answer.out) == (2, "")
        assert "missing.yaml: no such file or directory" in answer.err
    incomplete = shell(
        "diff-config", "new.yaml", "-c", "fabrics.yaml", "-f", "pod.yaml", "-f", "gone.yaml"
    )
    assert incomplete.code == 2
    assert "mlx5_7" in incomplete.out
    assert "gone.yaml" in incomplete.err
    shell.file("empty.yaml", "")
    assert (
        "contains no documents"
        in shell("diff-config", "new.yaml", "-c", "fabrics.yaml", "-f", "empty.yaml").err
    )
