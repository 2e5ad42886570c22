from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from webhook import __version__
from webhook.cli import main
from webhook.config import EXAMPLE

FABRICS = """\
apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration
fabrics:
- name: v100-ib
  match: {gpuResources: [nvidia.com/v100]}
  resources: [{name: rdma/rdma_v100}]
  linkLayer: InfiniBand
  hcas: [mlx5_0]
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: trainer  # at night
  annotations: {rdma.lab/enable: "true"}
spec:
  containers:
  - name: main
    resources: {limits: {nvidia.com/v100: 1}}
"""
DENIED = POD.replace('"true"', '"yes"').replace("trainer", "denied")
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"


class Answer(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


class Shell:
    """Runs commands in its own folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def file(self, name: str, text: str) -> str:
        """Write a file and return its name."""
        (self._folder / name).parent.mkdir(exist_ok=True)
        (self._folder / name).write_text(text)
        return name

    def __call__(self, *arguments: str) -> Answer:
        """Run one command; a usage error of argparse is returned as an answer too."""
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = int(stop.code or 0)
        written = self._capsys.readouterr()
        return Answer(code, written.out, written.err)


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """Return a shell with a fabrics file and a pod, without the program's variables."""
    monkeypatch.chdir(tmp_path)
    for name in ("RDMA_WEBHOOK_CONFIG", "RDMA_WEBHOOK_TRACEBACK", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    shell = Shell(tmp_path, capsys)
    shell.file("fabrics.yaml", FABRICS)
    shell.file("pod.yaml", POD)
    return shell


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
def test_a_usage_error_is_one_line(shell: Shell, arguments: list[str]) -> None:
    """The line says what is wrong and where to find help; the exit code is 2."""
    answer = shell(*arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith("rdma-webhook: error: ")
    assert "--help)" in answer.err


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
    """The output matches the schema that `schema form` prints."""
    shell.file("denied.yaml", f"{SERVICE}---\n{DENIED}")
    answer = preview(shell, "-o", "json", "pod.yaml", "denied.yaml")
    form = json.loads(answer.out)
    Draft202012Validator(json.loads(shell("schema", "form").out)).validate(form)
    found = [(one["document"], one["name"], one["allowed"]) for one in form["decisions"]]
    assert found == [(0, "trainer", True), (2, "denied", False)]
    assert form["notes"] == ["Service web: no pod template"]


def test_yaml_is_ready_to_apply(shell: Shell) -> None:
    """All documents are printed, patched, with comments; other messages go to standard error."""
    shell.file("denied.yaml", f"{SERVICE}---\n{DENIED}")
    answer = preview(shell, "-o", "yaml", "pod.yaml", "denied.yaml")
    first, *others = answer.out.split("---\n")
    assert "name: trainer  # at night\n" in first
    assert "rdma/rdma_v100" in first
    assert others == [SERVICE, DENIED]
    assert "rdma-webhook: denied: Pod default/denied: annotation rdma.lab/enable is" in answer.err
    assert "rdma-webhook: note: Service web: no pod template\n" in answer.err


def test_yaml_ends_its_last_line(shell: Shell) -> None:
    """The output ends with a line break even if the input does not."""
    shell.file("service.yaml", SERVICE.rstrip())
    assert preview(shell, "-o", "yaml", "service.yaml").out == SERVICE


def test_yaml_says_where_comments_are_lost(shell: Shell) -> None:
    """A document whose alias repeats a part that changes cannot be edited in place."""
    shell.file("alias.yaml", POD.replace("{rdma", "&notes {rdma") + "unknown: *notes\n")
    answer = preview(shell, "-o", "yaml", "alias.yaml")
    assert answer.code == 0
    assert "rdma-webhook: warning: alias.yaml:1: written anew" in answer.err


def test_patch_is_one_line_for_each_document(shell: Shell) -> None:
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
    """A folder stands for its manifests, sorted; a file that is named twice is read once."""
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


def test_without_a_fabrics_file_the_example_is_used_and_named(shell: Shell) -> None:
    """The note goes to standard error, so that the output stays clean."""
    answer = shell("preview", "pod.yaml", "-o", "json")
    assert json.loads(answer.out)["decisions"][0]["fabric"] == "v100-ib"
    assert answer.err == f"rdma-webhook: note: no -c given: using the example fabrics {EXAMPLE}\n"


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
    ("content", "said"),
    [
        ("a: [", "document 1, line 1"),
        (f"{SERVICE}---\n\n- 1\n", "document 2, line 6"),
        ("hello", "document 1, line 1"),
        ("replicas: 3\n", "document 1, line 1: no Kubernetes object"),
        ("{", "line 1"),
        ("a: \x00", "line 1"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_document_and_line(
    shell: Shell, content: str, said: str
) -> None:
    """The exit code is 2, and nothing is printed on standard output."""
    shell.file("bad.yaml", content)
    answer = preview(shell, "bad.yaml")
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith("rdma-webhook: error: bad.yaml: ")
    assert said in answer.err


def test_every_unreadable_file_is_told_and_the_rest_shown(shell: Shell) -> None:
    """Each file gets one line; the exit code says that the answer is incomplete."""
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
            "rdma-webhook: error: fabrics.yaml: line 1: this is a fabrics file: "
            "give it with -c, or use check-config\n"
        ),
    )


def test_a_forgotten_dash_is_a_denial(shell: Shell) -> None:
    """A mapping in place of the list of containers is denied."""
    shell.file("dash.yaml", POD.replace("- name: main\n  ", "  name: main\n"))
    answer = preview(shell, "dash.yaml")
    assert answer.code == 1
    assert "✘ denied: spec.containers must be a list, but is a mapping" in answer.out


@pytest.mark.parametrize("name", ["missing.yaml", "pod.yaml/x", "n\0l", "x" * 300])
def test_a_file_that_is_not_there_is_one_line(shell: Shell, name: str) -> None:
    """The message is the operating system's."""
    answer = preview(shell, name)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "cannot be read: " in answer.err


def test_a_folder_without_manifests_is_an_error(shell: Shell, tmp_path: Path) -> None:
    """A folder without manifests is an error, as in kubectl."""
    (tmp_path / "none").mkdir()
    assert preview(shell, "none").err == (
        "rdma-webhook: error: none: no .yaml, .yml or .json file in this directory\n"
    )


def test_an_input_without_documents_is_told(shell: Shell) -> None:
    """Usually the command before the pipe failed; one empty file among many is not an error."""
    shell.file("empty.yaml", "# nothing\n---\n")
    said = "rdma-webhook: error: empty.yaml: there is no document in it"
    assert preview(shell, "empty.yaml") == (2, "", f"{said}\n")
    shell.file("none.yaml", "")
    twice = preview(shell, "-o", "yaml", "empty.yaml", "none.yaml")
    assert twice == (2, "", f"{said}, nor in 1 more\n")
    assert preview(shell, "empty.yaml", "pod.yaml").code == 0


@pytest.mark.parametrize("option", ["-c", "--facts"])
def test_an_unusable_configuration_is_told_line_by_line(shell: Shell, option: str) -> None:
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


def test_check_config_of_a_config_map(shell: Shell) -> None:
    """The file inside is checked, and lines are those of the ConfigMap."""
    inside = "".join(f"    {line}\n" for line in FABRICS.replace("hcas", "hca").splitlines())
    held = f"kind: ConfigMap\ndata:\n  fabrics.yaml: |\n{inside}"
    shell.file("map.yaml", held)
    answer = shell("check-config", "map.yaml")
    assert answer.code == 1
    assert answer.out.splitlines()[0] == (
        "map.yaml:11: error: fabrics[0].hca: unknown field (did you mean hcas?)"
    )
    assert held.splitlines()[10] == "      hca: [mlx5_0]"


def test_check_config_of_what_is_not_yaml(shell: Shell) -> None:
    """The place has a column, too, also in JSON."""
    shell.file("tab.yaml", "a:\n\tb: 1\n")
    answer = shell("check-config", "tab.yaml")
    assert answer.out.splitlines() == [
        "tab.yaml:2:1: error: is not YAML: a tab indents this line: use spaces",
        "✘ tab.yaml: 1 error, 0 warnings",
    ]
    told = json.loads(shell("check-config", "-o", "json", "tab.yaml").out)
    assert (told["findings"][0]["line"], told["findings"][0]["column"]) == (2, 1)


def test_check_config_of_an_invalid_file(shell: Shell) -> None:
    """Every error has its file, line and path, and `-o json` has the same errors."""
    shell.file("bad.yaml", FABRICS.replace("InfiniBand", "Infiniband").replace("hcas", "hca"))
    answer = shell("check-config", "bad.yaml")
    assert answer.code == 1
    *findings, summary = answer.out.splitlines()
    assert findings[0].startswith("bad.yaml:7: error: fabrics[0].linkLayer: ")
    assert summary == f"✘ bad.yaml: {len(findings)} errors, 0 warnings"
    told = json.loads(shell("check-config", "-o", "json", "bad.yaml").out)
    assert told["valid"] is False
    assert told["findings"][0] == {
        "severity": "error",
        "path": "fabrics[0].linkLayer",
        "line": 7,
        "message": findings[0].partition("linkLayer: ")[2],
        "column": None,
        "file": "bad.yaml",
    }


def test_check_config_lists_by_line_and_marks_warnings(shell: Shell) -> None:
    """Findings look like a compiler's, so that an editor tells errors from warnings."""
    both = FABRICS.replace("  hcas: [mlx5_0]\n", "  env: {NCCL_ALGO: Ring}\n  hca: x\n")
    shell.file("both.yaml", both)
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


@pytest.mark.parametrize("name", ["/dev/null", ".", "latin.yaml", "missing.yaml"])
@pytest.mark.parametrize("output", ["text", "json"])
def test_check_config_of_what_cannot_be_read(
    shell: Shell, tmp_path: Path, name: str, output: str
) -> None:
    """The exit code is 2, with one line; readable files are checked, but `valid` is not true."""
    (tmp_path / "latin.yaml").write_bytes(b"kind: \xe9\n")
    answer = shell("check-config", "-o", output, name)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
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


def test_check_config_of_a_file_that_is_not_there(shell: Shell) -> None:
    """The exit code is 2, since nothing was checked."""
    assert shell("check-config", "missing.yaml") == (
        2,
        "",
        "rdma-webhook: error: missing.yaml: there is no such file\n",
    )


def test_schemas_are_json_schemas(shell: Shell) -> None:
    """Both schemas are valid; the schema of the fabrics file is the default."""
    for arguments in (["schema"], ["schema", "form"]):
        answer = shell(*arguments)
        Draft202012Validator.check_schema(json.loads(answer.out))
    assert shell("schema") == shell("schema", "fabrics")


def test_serving_needs_a_certificate(shell: Shell) -> None:
    """One line names the missing option; the fabrics file has a default location."""
    answer = shell("serve", "-c", "fabrics.yaml")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "--tls-cert" in answer.err


class Full(io.BytesIO):
    """A full disk."""

    def write(self, _: Any) -> int:
        """Raise the error of a full disk."""
        raise OSError(28, "No space left on device")


def test_output_that_cannot_be_written_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line ends with the operating system's error."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Full()))
    assert main(["schema", "form"]) == 2
    said = capsys.readouterr().err
    assert said == "rdma-webhook: error: cannot write the output: No space left on device\n"


def test_a_defect_is_one_line_unless_asked_for_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test's defect is a standard output without a binary buffer."""
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", io.StringIO())
        assert main(["schema", "form"]) == 2
        assert capsys.readouterr().err == (
            "rdma-webhook: error: internal error, please report it: AttributeError:"
            " '_io.StringIO' object has no attribute 'buffer'"
            " (RDMA_WEBHOOK_TRACEBACK=1 shows where)\n"
        )
        patched.setenv("RDMA_WEBHOOK_TRACEBACK", "1")
        with pytest.raises(AttributeError):
            main(["schema", "form"])
