"""Saved text is split by node."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.transcripts import NodeOutput, split_by_node
from webhook.diagnose.tools.transcripts.commands import is_command, nodes_of_command
from webhook.diagnose.tools.transcripts.prefixes import MAX_NAMES, unfold

FIXTURES = sorted(Path(__file__).parents[1].glob("fixtures/node_outputs/*.txt"))


def written(output: NodeOutput) -> str:
    """Write the output of a node as its name, its command, and its numbered lines."""
    status = "" if output.exit_status is None else f" (exit {output.exit_status})"
    head = f"{output.node or '-'}: {output.command or ''}{status}".rstrip()
    return "\n".join((head, *(f"  {line.number}: {line.text!r}" for line in output.lines), ""))


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: str(path.stem))
def test_a_text_is_taken_apart(fixture: Path) -> None:
    """The file next to a text, of each form, has the output of each node."""
    actual = "".join(map(written, split_by_node(fixture.read_text(encoding="utf-8"))))
    golden = fixture.with_suffix(".expected")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(actual, encoding="utf-8")
    assert actual == golden.read_text(encoding="utf-8")


def test_what_terminals_add_is_removed() -> None:
    """Colors, titles, a byte order mark, no-break blanks and carriage returns are removed."""
    text = "\ufeff\x1b]0;root@n1\x07\x1b[01;32mmlx5_0\x1b[0m\xa0port\r\n\x1b(B 50%\r100%\r\r\n"
    assert split_by_node(text) == (
        NodeOutput(None, (Line(1, "mlx5_0 port"), Line(2, " 50%"), Line(2, "100%"), Line(3, ""))),
    )


@pytest.mark.parametrize("text", ["", "\n \n", "root@gpu-01:~# \n\n"], ids=["empty", "blank", "-"])
def test_nothing_is_no_capture(text: str) -> None:
    """A text without a word has no output of any node."""
    assert split_by_node(text) == ()


def test_folded_machines_share_their_lines() -> None:
    """The lines of an output of many nodes are in memory once."""
    dashes = "-" * 15
    first, second = split_by_node(f"{dashes}\nn[1-2] (2)\n{dashes}\nCA 'mlx5_0'")
    assert (first.node, second.node) == ("n1", "n2")
    assert first.lines is second.lines


def test_a_short_text_does_not_become_endless() -> None:
    """A header that would multiply a long text by many nodes is text."""
    dashes, text = "-" * 15, "x\n" * 11_000
    assert len(split_by_node(f"{dashes}\nn[1-1000]\n{dashes}\n{text}")) == 1


@pytest.mark.parametrize(
    ("folded", "names"),
    [
        ("n1", ("n1",)),
        ("n[01-03,7],m1", ("n01", "n02", "n03", "n7", "m1")),
        ("r[1-2]n[8,9]-ib", ("r1n8-ib", "r1n9-ib", "r2n8-ib", "r2n9-ib")),
        ("n[098-101]", ("n098", "n099", "n100", "n101")),
        ("n[2-1]", ()),
        ("n[1-]", ()),
        ("n[1", ()),
        ("n1,", ()),
        ("a b", ()),
        (f"n[1-{MAX_NAMES}]", tuple(f"n{number}" for number in range(1, MAX_NAMES + 1))),
        (f"n[1-{MAX_NAMES + 1}]", ()),
        (f"n[1-{MAX_NAMES}],m", ()),
        ("n[1-999]m[1-99]", ()),
    ],
    ids=lambda value: str(value)[:40],
)
def test_names_are_unfolded(folded: str, names: tuple[str, ...]) -> None:
    """Ranges keep their leading zeros; other text, or too long a list, has no names."""
    assert unfold(folded) == names


@pytest.mark.parametrize(
    ("command", "output", "next_prompt"),
    [
        ("", "here", "shell"),
        ("ibstat", "here", "shell"),
        ("sudo /usr/sbin/ibstat mlx5_0", "here", "shell"),
        ("LANG=C ibstat | grep Rate", "here", "shell"),
        ("ssh gpu-02", "gpu-02", "gpu-02"),
        ("ssh -i key -o A=b user@gpu-02 ibstat", "gpu-02", "shell"),
        ("ssh $node ibstat", None, "shell"),
        ("ssh", None, None),
        ("kubectl get nodes", None, "shell"),
        ("kubectl", None, "shell"),
        ("kubectl exec pod-1 -- ibstat", "pod-1", "shell"),
        ("kubectl -n lab exec -it pod/pod-1 -c main -- bash", "pod-1", "pod-1"),
        ("kubectl exec pod-1 -- sh -c ibstat", "pod-1", "shell"),
        ("kubectl exec", None, "shell"),
        ("oc debug node/gpu-02", "gpu-02", "gpu-02"),
        ("oc rsh pod-1", "pod-1", "pod-1"),
        ("pdsh -w gpu-[01-02] ibstat", None, "shell"),
        ("for n in a b; do ssh $n ibstat; done", None, "shell"),
        ("cat saved.txt", None, "shell"),
        ("cat /sys/class/infiniband/mlx5_0/fw_ver", "here", "shell"),
        ("exit", None, None),
    ],
)
def test_a_command_may_show_another_machine(
    command: str, output: str | None, next_prompt: str | None
) -> None:
    """The output comes from the command's node; a prompt without a name, from the open shell."""
    assert nodes_of_command(command, "here", "shell") == (output, next_prompt)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ibstat", True),
        ("/usr/sbin/ibstat -s", True),
        ("cat x", True),
        ("kubectl get pods", True),
        ("ssh gpu-01", True),
        ("for all nodes", False),
        ("nThread 1 nGpus 1", False),
        ("A=b", False),
    ],
)
def test_a_comment_is_no_command(text: str, expected: bool) -> None:
    """After "# ", which may begin a comment, only well-known commands are commands."""
    assert is_command(text) is expected


def test_a_command_goes_on_in_the_next_line() -> None:
    """It continues after a backslash, with or without a blank; the shell's > is removed."""
    for typed in ("ibdev2netdev \\\n> -v", "ibdev2netdev\\\n-v"):
        (output,) = split_by_node(f"$ {typed}\nmlx5_0\n")
        assert (output.command, len(output.lines)) == ("ibdev2netdev -v", 2)
