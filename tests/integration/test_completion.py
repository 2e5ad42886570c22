"""The scripts of `rdma-webhook completion`, in the shells that read them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.integration.programs import require_program
from webhook.cli import main

#: Words of a command line, the last of them unfinished → what must and must not be offered.
LINES = {
    "rdma-webhook pre": ({"preview"}, {"serve"}),
    "rdma-webhook preview --en": ({"--enable"}, {"--facts"}),
    "rdma-webhook preview -o ": ({"json", "yaml", "text", "patch", "diff"}, {"preview"}),
    "rdma-webhook certs ro": ({"rotate"}, {"status"}),
    "rdma-webhook verify ju": ({"judge"}, {"preview"}),
    "rdma-webhook verify judge --ra": ({"--rate"}, {"--live"}),
    "rdma-webhook completion ": ({"bash", "zsh", "fish"}, {"preview"}),
    "rdma-webhook check-config man": ({"manifest.yaml"}, {"other.yaml"}),
    "rdma-webhook why FabricA": ({"FabricAmbiguous"}, {"FabricUnknown", "preview"}),
    "rdma-webhook why train-0 ": ({"FabricAmbiguous", "PortIsDown"}, {"preview"}),
}

#: What bash does when Tab is pressed: it calls the function that the script registered.
_BASH = r"""
source "$1"
IFS=' ' read -r -a COMP_WORDS <<< "$2"
[[ $2 != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$2 COMP_POINT=${#2}
complete -p rdma-webhook | sed 's/.*-F \([^ ]*\).*/\1/' > name
"$(cat name)" rdma-webhook "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""
_FISH = """
source $argv[1]
complete --do-complete $argv[2]
"""
#: zsh completes at a terminal only, so here it reads the script, and prints what it registered.
_ZSH = """
autoload -U compinit
compinit -D
eval "$(<"$1")"
print -r -- "$_comps[rdma-webhook] $+functions[$_comps[rdma-webhook]]"
"""


def run(shell: str, program: str, *arguments: str, folder: Path) -> str:
    """Run a program in a shell; the arguments are its own, without the shell's $0."""
    zeroth = [] if shell == "fish" else [shell]
    flags = {"bash": ["--norc"], "fish": ["--no-config"], "zsh": ["-f"]}[shell]
    done = subprocess.run(
        [shell, *flags, "-c", program, *zeroth, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout


def script_of(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Write the script of a shell to a file; the shell must be installed."""
    require_program(shell, shell)
    assert main(["completion", shell]) == 0
    path = folder / f"rdma-webhook.{shell}"
    path.write_text(capsys.readouterr().out)
    return str(path)


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize("line", LINES)
def test_a_shell_completes_the_line(
    shell: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands, options, choices and files are offered, each only where it is allowed."""
    for name in ("manifest.yaml", "other.yaml"):
        (tmp_path / name).touch()
    program = {"bash": _BASH, "fish": _FISH}[shell]
    script = script_of(shell, tmp_path, capsys)
    lines = run(shell, program, script, line, folder=tmp_path).splitlines()
    offered = {
        suggestion.partition("\t")[0].strip() for suggestion in lines
    }  # fish describes each word
    must, must_not = LINES[line]
    assert must <= offered
    assert not must_not & offered


def test_zsh_reads_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It registers a function for the program, which is then defined."""
    script = script_of("zsh", tmp_path, capsys)
    name, defined = run("zsh", _ZSH, script, folder=tmp_path).split()
    assert (name.startswith("_"), defined) == (True, "1")
