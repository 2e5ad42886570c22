import pytest

from webhook.decide.mutations.nvlink.remap import SCRIPT, script, wrapping
from webhook.decide.shell.argv import remap_length

COMMAND = ["python3", "-m", "train"]


def test_the_kubelet_finds_nothing_to_expand() -> None:
    """The kubelet replaces `$$` and `$(NAME)` in every word of a command, even within quotes."""
    assert "$$" not in SCRIPT
    assert "$(" not in SCRIPT


def test_the_script_ends_in_exec() -> None:
    """The command must replace the shell, with its process ID, signals and exit code."""
    assert SCRIPT.endswith('\nshift\nexec "$@"\n')


def test_nothing_of_the_script_looks_like_what_other_mutations_search_for() -> None:
    """Other mutations search commands, and on the second call they find ours."""
    words = ("mpirun", "mpiexec", "orterun", "sshd", "nccl.conf", "hcoll", "UCX_")
    assert [word for word in words if word in SCRIPT] == []


def test_a_root_precedes_every_path() -> None:
    """With a root, a test can provide its own /proc, /dev and /var/run."""
    assert script() == SCRIPT
    assert "@ROOT@" not in SCRIPT
    assert script("/r").replace("/r/", "/") == SCRIPT
    assert script("/r").count("/r/") == 3


def test_the_wrapping_is_five_words() -> None:
    """The shell gets the script, the name `rdma-remap` and the number of GPUs."""
    assert wrapping(8) == ("/bin/sh", "-c", SCRIPT, "rdma-remap", "8")


@pytest.mark.parametrize(
    ("command", "length"),
    [
        ([*wrapping(2), *COMMAND], 5),
        (["/bin/sh", "-c", "of an older release", "rdma-remap", "2", "train"], 5),
        (COMMAND, 0),
        ([], 0),
        (list(wrapping(2)), 0),
        (["/bin/sh", "-c", SCRIPT, "rdma-remap", "two", *COMMAND], 0),
        (["/bin/sh", "-c", SCRIPT, "mine", "2", *COMMAND], 0),
        (["/bin/bash", "-c", SCRIPT, "rdma-remap", "2", *COMMAND], 0),
    ],
)
def test_the_length_of_the_remap(command: list[str], length: int) -> None:
    """A script of an older release counts, too, so that a pasted preview is not wrapped twice."""
    assert remap_length(command) == length
