"""The command line as a whole: usage errors, help, and the streams of a command."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.unit.cli.shell import SERVICE, Shell
from webhook import __version__
from webhook.cli import main
from webhook.cli.schema import _SCHEMAS
from webhook.config.crd import definition_text


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
        ["serve", "--decision-cache", "-1"],
        ["serve", "--decision-cache", "4097"],
        ["serve", "--decision-cache", "²"],
        ["serve", "--decision-cache", "1" * 5000],
        ["serve", "--ca-propagation", "2"],
        ["serve", "--ca-interval", "1.5s"],
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
            "the kubeconfig none does not exist (set --kubeconfig)",
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
            "attribute 'buffer'; please run the command again with "
            "RDMA_WEBHOOK_TRACEBACK=1, and report the traceback\n"
        )
        patched.setenv("RDMA_WEBHOOK_TRACEBACK", "1")
        with pytest.raises(AttributeError):
            main(["schema", "preview"])
