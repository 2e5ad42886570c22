from __future__ import annotations

import pytest

from webhook.decide.settings.builtins import BUILTINS, Shell, assignments, possible_settings
from webhook.decide.settings.process import Process
from webhook.decide.settings.setting import Setting
from webhook.decide.shell.argv import Word

REMOVED = Setting("NCCL_NET", None, "unset in its command", removed=True)


def setting_after(*lines: str) -> Setting | None:
    """Return NCCL_NET after commands of a shell, split at blanks; `?` is an unknown word."""
    shell = Shell(Process())
    for line in lines:
        words = words_of(line)
        if words[0] in BUILTINS:
            shell.run(words)
        else:
            shell.assign(words, ())
    return shell.process.current("NCCL_NET")


def words_of(line: str) -> list[Word]:
    """Split a line; `_` is an empty word."""
    return [None if word == "?" else word.strip("_") for word in line.split()]


@pytest.mark.parametrize(
    "lines",
    [
        ["declare -i -x NCCL_NET=IB"],
        ["typeset -rx A ? _ +i NCCL_NET=IB"],
        ["NCCL_NET=IB", "declare -x NCCL_NET"],
        ["export ? _ NCCL_NET=IB"],
    ],
)
def test_exporting_builtins(lines: list[str]) -> None:
    """`declare` exports with the option x among other options and unknown words."""
    assert setting_after(*lines) == Setting("NCCL_NET", "IB", "export in its command")


@pytest.mark.parametrize("line", ["declare NCCL_NET=x", "local -i NCCL_NET=x", "declare ? _ A=x"])
def test_declared_variables_of_the_shell(line: str) -> None:
    """An x in a value is not the option."""
    assert setting_after(line) is None


@pytest.mark.parametrize(
    ("line", "exports"),
    [
        ("set -a", True),
        ("set -ea", True),
        ("set -o allexport", True),
        ("set -e", False),
        ("set data a -", False),
        ("set ? _", False),
    ],
)
def test_exporting_all(line: str, *, exports: bool) -> None:
    """Option a of `set`, or its long name, exports what is assigned later; operands do not."""
    exported = Setting("NCCL_NET", "IB", "assignment in its command")
    assert setting_after(line, "NCCL_NET=IB") == (exported if exports else None)


def test_unset_variables() -> None:
    """A value is forgotten, also that of the shell alone: a later `export` has none to pass on."""
    assert setting_after("export NCCL_NET=IB", "unset ? _ NCCL_NET") == REMOVED
    assert setting_after("NCCL_NET=IB", "unset NCCL_NET", "export NCCL_NET") == REMOVED


@pytest.mark.parametrize(
    ("line", "source"),
    [("export NCCL_NET=IB", "export"), ("? NCCL_NET=IB A=b", "assignment")],
)
def test_settings_of_a_branch(line: str, source: str) -> None:
    """They name the kind of words that would set them."""
    expected = [Setting("NCCL_NET", "IB", f"{source} in its command")]
    assert list(possible_settings(words_of(line))) == expected


def test_words_that_assign() -> None:
    """What `+=` appends to is unknown; a name is an identifier."""
    words = ("A=b=c", "AB+=c", "1=b", "=b", "a-b=c", "A", "", None)
    assert list(assignments(words)) == [("A", "b=c"), ("AB", "$")]
