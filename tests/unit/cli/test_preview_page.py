"""`preview --page` starts a server for this computer alone, and combines with few options."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.cli.shell import Shell
from webhook.serve import server
from webhook.serve.options import ServeOptions


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[ServeOptions]:
    """Return the options with which servers are started; none really starts."""
    options: list[ServeOptions] = []

    def serve(given: ServeOptions) -> int:
        options.append(given)
        assert given.announce is not None
        given.announce("at \x1b[1m8081\n")
        return 7

    monkeypatch.setattr(server, "serve", serve)
    return options


def test_the_page_is_served_alone_and_locally(shell: Shell, started: list[ServeOptions]) -> None:
    """Nothing is served but the page, on any free port, with example fabrics."""
    answer = shell("preview", "--page")
    assert (answer.code, answer.err) == (7, "")
    assert answer.out.endswith("8081\n")
    assert "\x1b" not in answer.out
    (options,) = started
    assert (options.dev, options.page_only, options.page_port) == (True, True, 0)
    assert (options.config, options.example, options.log_level) == (None, True, "warning")


@pytest.mark.parametrize("source", ["option", "variable"])
def test_the_page_has_the_fabrics_of_a_preview(
    source: str, shell: Shell, started: list[ServeOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come from the same option and variable, and the port is the given one."""
    words = ["-c", "fabrics.yaml"] if source == "option" else []
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", "missing.yaml" if words else "fabrics.yaml")
    assert shell("preview", "--page", "--port", "8999", *words).code == 7
    (options,) = started
    assert (options.config, options.page_port) == (Path("fabrics.yaml"), 8999)
    assert options.example is False


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "fabrics.yaml: no such file or directory"), ("kind: Pod", "fabrics.yaml:1: ")],
)
def test_unusable_fabrics_are_an_error(
    text: str | None, message: str, shell: Shell, started: list[ServeOptions]
) -> None:
    """As without --page, instead of a page that can decide nothing."""
    Path(shell.file("fabrics.yaml", text or "")).unlink()
    if text is not None:
        shell.file("fabrics.yaml", text)
    answer = shell("preview", "--page", "-c", "fabrics.yaml")
    assert answer.code == 2
    assert message in answer.err
    assert started == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pod.yaml"], "FILE cannot be combined with --page; paste or drop the file into the page"),
        (["-f", "pod.yaml"], "FILE cannot be combined with --page; paste or drop the file"),
        (["-"], "FILE cannot be combined with --page; paste or drop the file into the page"),
        (["-R"], "--recursive cannot be combined with --page"),
        (["-n", "lab"], "--namespace cannot be combined with --page"),
        (["--namespace-label", "a=b"], "--namespace-label cannot be combined with --page"),
        (["--facts", "facts.yaml"], "--facts cannot be combined with --page"),
        (["--live"], "--live cannot be combined with --page"),
        (["--enable"], "--enable cannot be combined with --page"),
        (["--strict"], "--strict cannot be combined with --page"),
        (["-o", "diff"], "--output cannot be combined with --page"),
        (["--context", "lab"], "--context cannot be combined with --page"),
        (["--kubeconfig", "file"], "--kubeconfig cannot be combined with --page"),
        (["-c", "-"], "--page reads FABRICS again when it changes, so it must be a file"),
        (["--port", "65536"], "--port: '65536' is not a port from 0 to 65535"),
    ],
)
def test_other_options_do_not_go_with_the_page(
    words: list[str], message: str, shell: Shell, started: list[ServeOptions]
) -> None:
    """They are choices in the page, or need a cluster; ignoring them would go unnoticed."""
    answer = shell("preview", "--page", *words)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
    assert started == []


def test_fabrics_that_can_be_read_only_once_are_refused(
    shell: Shell, started: list[ServeOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe such as <(...) would be empty when the server reads it."""
    os.mkfifo("pipe")
    for words in (["-c", "pipe"], ["-c", "."], []):
        monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", "-")
        answer = shell("preview", "--page", *words)
        assert answer.code == 2
        assert "--page reads FABRICS again when it changes, so it must be a file" in answer.err
    assert started == []


@pytest.mark.parametrize("port", ["0", "8081"])
def test_a_port_is_for_the_page(port: str, shell: Shell) -> None:
    """Without --page nothing listens."""
    answer = shell("preview", "--port", port, "pod.yaml")
    assert answer.code == 2
    assert "--port requires --page" in answer.err
