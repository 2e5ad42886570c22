"""The completion of `kubectl rdma`; tests/e2e runs it with kubectl itself."""

from __future__ import annotations

import sys

import pytest

from webhook.cli import completion
from webhook.cli.completion import candidate_lines, complete_for_kubectl
from webhook.cli.parser import COMMANDS
from webhook.preview.formats import FORMATS

NO_OFFER: tuple[list[str], bool] = ([], False)


def offer(*words: str) -> tuple[list[str], bool]:
    """Return the words that are offered, and whether files are offered."""
    *lines, directive = candidate_lines(words).splitlines()
    assert directive in (":0", ":4")
    return [line.partition("\t")[0] for line in lines], directive == ":0"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["pre"], ["preview"]),
        ([""], list(COMMANDS)),
        (["--v"], ["--version"]),
        (["help", "pre"], ["preview"]),
        (["prev", "x"], []),
        (["preview", "--en"], ["--enable"]),
        (["preview", "train.yaml", "--en"], ["--enable"]),
        (["preview", "--enable", "--en"], []),
        (["preview", "--namespace-label", "a=b", "--namespace-l"], ["--namespace-label"]),
        (["preview", "-n", "lab", "--namespace"], ["--namespace-label"]),
        (["preview", "--namespace=lab", "--namespace"], ["--namespace-label"]),
        (["preview", "-o", ""], [output_format.name for output_format in FORMATS]),
        (["preview", "-o", "y"], ["yaml"]),
        (["preview", "--output=y"], ["yaml"]),
        (["preview", "-n", ""], []),
        (["why", "--unknown=x"], []),
        (["why", "FabricAm"], ["FabricAmbiguous"]),
        (["why", "train-0", "EnvF"], ["EnvFrom"]),
        (["why", "train-0"], []),
        (["certs", "ro"], ["rotate"]),
        (["certs", "-n", "rdma-webhook", "ro"], ["rotate"]),
        (["certs", "--namespace=rdma-webhook", "ro"], ["rotate"]),
        (["certs", "status", ""], []),
        (["completion", "z"], ["zsh"]),
        (["verify", "j"], ["judge"]),
        (["verify", "--h"], ["--help"]),
        (["verify", "judge", "--ra"], ["--rate"]),
        (["verify", "judge", "a.txt", "-o", "ju"], ["junit"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_words(words: list[str], offered: list[str]) -> None:
    """Commands, options and choices are offered where they fit, without repetition."""
    assert offer(*words) == (offered, False)


@pytest.mark.parametrize(
    "words",
    [
        ["preview", ""],
        ["preview", "a.yaml", "man"],
        ["preview", "-c", ""],
        ["preview", "--facts", "f"],
        ["preview", "--enable", ""],
        ["preview", "-o", "json", ""],
        ["preview", "-", ""],
        ["why", "-f", ""],
        ["check-config", "fab"],
        ["verify", "judge", ""],
        ["verify", "judge", "-c", ""],
    ],
    ids=" ".join,
)
def test_files(words: list[str]) -> None:
    """The directive lets the shell offer files where a file fits."""
    assert offer(*words) == ([], True)


def test_an_option_that_is_for_tests_only() -> None:
    """Options that --help hides are not offered."""
    assert offer("serve", "--ca-l") == NO_OFFER


def test_explanations(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An explanation follows a tab, on the same line, with the default filled in."""
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-rdma", "serve", "--preview-p"])
    assert complete_for_kubectl() == 0
    explanation = (
        "--preview-port\tHTTPS port of /preview and the page, for people (default: 8444)\n:4\n"
    )
    assert capsysbinary.readouterr() == (explanation.encode(), b"")


def test_a_defect_writes_nothing(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell would show it in the middle of a command line."""

    def broken(words: list[str]) -> str:
        raise RuntimeError(str(words))

    monkeypatch.setattr(completion, "candidate_lines", broken)
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-rdma"])
    assert complete_for_kubectl() == 1
    assert capsysbinary.readouterr() == (b"", b"")
