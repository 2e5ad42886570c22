"""The inputs of commands: one wording for a missing file, pipes, and standard input for each."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

import pytest

from tests.unit.cli.shell import FABRICS, POD, Answer, Shell
from webhook.cli.inputs import read_input

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
IBSTAT = """\
CA 'mlx5_0'
	CA type: MT4123
	Number of ports: 1
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 200
		Link layer: InfiniBand
"""
PERFTEST = """\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             197.58             197.57             0.376830
"""
#: Each option or argument that takes a file, with FILE in its place, and what the file has.
INPUTS = {
    "preview -c fabrics.yaml FILE": POD,
    "preview -c fabrics.yaml -f FILE": POD,
    "preview -c FILE pod.yaml": FABRICS,
    "preview -c fabrics.yaml --facts FILE pod.yaml": NAMESPACE,
    "why -f FILE": POD,
    "why -f pod.yaml -c FILE": FABRICS,
    "fabrics -c fabrics.yaml -f FILE": NODE,
    "fabrics -c FILE -f node.yaml": FABRICS,
    "discover FILE": IBSTAT,
    "discover ibstat.txt --nodes FILE": NODE,
    "verify judge --rate 200 FILE": PERFTEST,
    "verify judge --fabric v100-ib -c FILE perftest.txt": FABRICS,
    "check-config FILE": FABRICS,
    "check-config -f FILE": FABRICS,
    "diff-config FILE -c fabrics.yaml -f pod.yaml": FABRICS,
    "diff-config fabrics.yaml -c FILE -f pod.yaml": FABRICS,
    "diff-config fabrics.yaml -c fabrics.yaml -f FILE": POD,
    "diff-config fabrics.yaml -c fabrics.yaml -f pod.yaml --facts FILE": NAMESPACE,
}


@pytest.fixture
def files(shell: Shell) -> Shell:
    """Return a shell with a file for every kind of input."""
    shell.file("node.yaml", NODE)
    shell.file("ibstat.txt", IBSTAT)
    shell.file("perftest.txt", PERFTEST)
    return shell


def words(line: str, name: str) -> list[str]:
    """Return a command line with the name of a file in its place."""
    return [name if word == "FILE" else word for word in line.split()]


def piped_file(shell: Shell, line: str, text: str) -> Answer:
    """Run a command with a file as the shell's <(...) passes it."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    try:
        return shell(*words(line, f"/dev/fd/{reading}"))
    finally:
        os.close(reading)


@pytest.mark.parametrize(("line", "text"), INPUTS.items(), ids=INPUTS)
def test_every_file_may_be_a_pipe_or_standard_input(files: Shell, line: str, text: str) -> None:
    """A pipe, - and /dev/stdin give the same answer as a file, apart from the name."""
    files.file("given", text)
    expected = files(*words(line, "given"))
    assert (expected.code != 2, expected.err) == (True, "")
    answers = [files.piped(text, *words(line, name)) for name in ("-", "/dev/stdin")]
    for answer in (*answers, piped_file(files, line, text)):
        assert answer.code == expected.code
        assert answer.err == ""
        assert len(answer.out.splitlines()) == len(expected.out.splitlines())


@pytest.mark.parametrize("line", INPUTS)
def test_a_missing_file_has_the_same_message_everywhere(files: Shell, line: str) -> None:
    """The line begins with the file; the exit code is 2."""
    answer = files(*words(line, "missing"))
    assert answer.code == 2
    assert "rdma-webhook: error: missing: no such file or directory\n" in answer.err


@pytest.mark.parametrize("line", INPUTS)
def test_a_url_is_no_file(files: Shell, line: str) -> None:
    """No command reads from the network."""
    assert "s3://a: no such file or directory\n" in files(*words(line, "s3://a")).err
    answer = files(*words(line, "HTTPS://example.org/a.yaml"))
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "error: HTTPS://example.org/a.yaml: URLs are not supported; use curl -s" in answer.err


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("preview -c fabrics.yaml FILE", "rdma-webhook preview -"),
        ("preview -f FILE", "rdma-webhook preview -f -"),
        ("preview --facts FILE pod.yaml", "rdma-webhook preview --facts -"),
        ("verify judge --fabric v100-ib --config FILE x", "rdma-webhook verify judge -c -"),
    ],
)
def test_the_remedy_for_a_url_is_a_pipe(files: Shell, line: str, command: str) -> None:
    """The URL is quoted for the shell, and the option is repeated."""
    url = "https://example.org/a.yaml?b=1&c=2"
    remedy = f"{url}: URLs are not supported; use curl -s '{url}' | {command} (see "
    assert remedy in files(*words(line, url)).err


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("preview -c - -", "FILE and -c"),
        ("preview -f - --facts -", "-f and --facts"),
        ("why -f - -c /dev/stdin", "-f and -c"),
        ("fabrics -f - -c -", "-c and -f"),
        ("discover --nodes - -", "FILE and --nodes"),
        ("verify judge --fabric v100-ib -c - -", "FILE and -c"),
        ("diff-config - -c -", "NEW and -c"),
        ("diff-config - -f -", "NEW and -f"),
    ],
)
def test_standard_input_is_read_once(files: Shell, line: str, options: str) -> None:
    """The second option would find nothing."""
    answer = files.piped(FABRICS, *line.split())
    message = f"{options} both name standard input, which can be read only once"
    assert (answer.code, answer.out) == (2, "")
    assert f"rdma-webhook: error: {message} (see rdma-webhook " in answer.err


def test_a_list_of_files_may_repeat_standard_input(files: Shell) -> None:
    """As any file, it is read once, by position, as -f, or both."""
    answer = files.piped(POD, "preview", "-c", "fabrics.yaml", "-", "-f", "-", "-f", "/dev/stdin")
    assert (answer.code, answer.err) == (0, "")
    assert "1 pod: " in answer.out
    answer = files.piped(POD, "why", "-f", "-", "-f", "-")
    assert (answer.err, answer.out.count("default/trainer")) == ("", 1)


@pytest.mark.parametrize("line", INPUTS)
def test_a_directory_is_no_file(files: Shell, tmp_path: Path, line: str) -> None:
    """Only manifests are read from a directory, and only files of a node from that of a node."""
    (tmp_path / "folder").mkdir()
    answer = files(*words(line, "folder"))
    assert (answer.code, answer.out) == (2, "")
    assert re.match(
        r"rdma-webhook: error: folder: (is a directory; name a file in it$|is empty; |no \.yaml)",
        answer.err,
        re.MULTILINE,
    )


@pytest.mark.parametrize("size", [0, 3, 4, 5, 9])
def test_more_than_the_limit_is_not_read(tmp_path: Path, size: int) -> None:
    """A byte more than the limit is read, from which the caller sees that the input is larger."""
    (tmp_path / "file").write_bytes(b"x" * size)
    assert len(read_input(str(tmp_path / "file"), 4)) == min(size, 5)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * size)))
        assert len(read_input("-", 4)) == min(size, 5)


def test_a_file_is_named_as_it_was_given(files: Shell, tmp_path: Path) -> None:
    """Messages begin with the name as given, so that editors can jump to the line."""
    (tmp_path / "latin.yaml").write_bytes(b"\xe9")
    for name, text, message in (
        ("./a.yaml", "a: 1", "./a.yaml:1: apiVersion: is missing"),
        (f"{tmp_path}/latin.yaml", "", f"{tmp_path}/latin.yaml:1: byte 0xe9 is not UTF-8"),
    ):
        if text:
            files.file(name, text)
        answer = files("preview", "-c", name, "pod.yaml")
        assert answer.err.startswith(f"rdma-webhook: error: {message}")


def test_a_name_is_not_empty(files: Shell) -> None:
    """A variable that is not set gives an empty name, which is not the current directory."""
    answer = files("preview", "-f", "")
    assert (answer.code, answer.out) == (2, "")
    assert "error: -f/--filename: the file name is empty (see" in answer.err
    assert "error: FILE: the file name" in files("preview", "pod.yaml", "-n", "lab", "").err


def test_pods_may_stand_between_options(files: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are pods, not the files of -f."""
    monkeypatch.setenv("KUBECONFIG", "missing")
    answer = files("why", "train-0", "-n", "lab", "train-1")
    assert answer.err.startswith("rdma-webhook: error: the kubeconfig missing does not exist")


def test_fabrics_asks_for_the_output_that_it_reads(shell: Shell) -> None:
    """A fabrics file after -f is refused with the command that lists the nodes."""
    answer = shell("fabrics", "-c", "fabrics.yaml", "-f", "fabrics.yaml")
    assert "kind 'FabricConfiguration'; pass the output of `kubectl get nodes -o" in answer.err
