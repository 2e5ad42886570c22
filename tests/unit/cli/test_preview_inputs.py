"""What preview reads: manifests, folders, fabrics files and facts."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.shell import POD, SERVICE, Answer, Shell
from webhook.cli import preview as preview_command
from webhook.config import EXAMPLE
from webhook.text.yaml.documents import read_documents


def preview(shell: Shell, *arguments: str) -> Answer:
    """Run preview with the fabrics file."""
    return shell("preview", "-c", "fabrics.yaml", *arguments)


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


def test_the_json_names_the_fabrics_of_an_example_that_was_given(shell: Shell) -> None:
    """A page made of the JSON can then say whose fabrics these are."""
    given = json.loads(shell("preview", "pod.yaml", "-o", "json", "-c", str(EXAMPLE)).out)
    assert (given["example"], given["exampleFabrics"]) == (False, "v100-ib, a100-ib")
    assert json.loads(preview(shell, "pod.yaml", "-o", "json").out)["exampleFabrics"] == ""


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
    monkeypatch.setattr(preview_command, "INSTALLED_FABRICS", tmp_path / "fabrics.yaml")
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
        assert "note: all/c is a Helm chart; run helm template all/c |" in answer.err
    diff = ("diff-config", "fabrics.yaml", "-c", "fabrics.yaml", "-f", "all")
    assert "2 pods" in shell(*diff, "-R").out


def test_subdirectories_that_are_not_read(shell: Shell, tmp_path: Path) -> None:
    """A note counts them, so that nobody takes their pods for previewed."""
    shell.file("all/pod.yaml", POD)
    shell.file("all/.git/config", "")
    (tmp_path / "all" / "link").symlink_to(tmp_path)
    assert "-R" not in preview(shell, "all").err
    shell.file("all/b/pod.yaml", POD)
    assert "note: all: 1 subdirectory not read; -R reads them\n" in preview(shell, "all").err
    shell.file("all/c/pod.yaml", POD)
    assert "note: all: 2 subdirectories not read; -R reads them\n" in preview(shell, "all").err
    assert "not read" not in preview(shell, "all", "-R").err


def test_subdirectories_of_a_chart(shell: Shell) -> None:
    """The note on a chart names the command that renders all of it, so -R is not the remedy."""
    shell.file("all/pod.yaml", POD)
    shell.file("all/templates/pod.yaml", POD)
    shell.file("all/Chart.yaml", "apiVersion: v2\nname: x\nversion: 1.0.0\n")
    answer = preview(shell, "all")
    assert "all is a Helm chart" in answer.err
    assert "not read" not in answer.err


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
        "rdma-webhook: note: base is built by kustomize; run kustomize build base "
        "| rdma-webhook preview -"
    )


def test_a_helm_chart_is_walked(shell: Shell) -> None:
    """It has only templates, so the error has the command that renders them."""
    shell.file("chart/Chart.yaml", "apiVersion: v2\nname: x\nversion: 1.0.0\n")
    shell.file("chart/values.yaml", "replicas: 3\n")
    shell.file("chart/template.yaml", "{{- if .Values.x }}\na: 1\n{{- end }}\n")
    answer = preview(shell, "chart")
    how = "chart is a Helm chart; run helm template chart | rdma-webhook preview -"
    assert (answer.code, answer.out) == (2, "")
    *skipped, error = answer.err.splitlines()
    assert [line.split(": ")[3] for line in skipped] == ["chart/template.yaml", "chart/values.yaml"]
    assert error == f"rdma-webhook: error: {how}"
    named = preview(shell, "chart/values.yaml")
    assert (named.code, named.err.endswith(f"({how})\n")) == (2, True)


@pytest.mark.parametrize(
    ("file", "command"),
    [("Chart.yaml", "helm template"), ("kustomization.yaml", "kustomize build")],
)
def test_the_name_of_a_folder_runs_nothing(shell: Shell, file: str, command: str) -> None:
    """A checkout of somebody else's may have any name, and people paste the command."""
    shell.file(f"a;$(b)/{file}", "x: 1\n")
    assert f"run {command} 'a;$(b)' | rdma-webhook preview -" in preview(shell, "a;$(b)").err


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
    how = "(base is built by kustomize; run kustomize build base | rdma-webhook preview -)"
    assert how in answer.err


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
        "Namespace default: taken into account",
        "ResourceQuota q: taken into account",
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
        "Namespace default: taken into account",
        (
            "Namespace x: not taken into account, since metadata.labels must be a "
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
