"""Edited commands, run for real by Open MPI, MPICH and two shells; and Open MPI's own files.

Each command runs as the kubelet would run it: the words of `command` and `args`, with the
environment that the decision wrote, on one machine and without a network.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import container, decide_on, pod
from tests.integration.programs import require_program
from webhook.decide.settings.library_files import with_library_files
from webhook.decide.settings.setting import NO_SETTINGS
from webhook.model.pod import Pod

LABEL = {"training.kubeflow.org/job-role": "launcher"}
#: The program that is launched, in its own file: a command that mentions hcoll is not edited.
RANK = '#!/bin/sh\necho "rank ${OMPI_MCA_coll_hcoll_enable-unset}${A-}"\n'
#: Lets Open MPI run as root, which it refuses otherwise; in a container it often is root.
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
FLAG = ["-mca", "coll_hcoll_enable", "0"]


@pytest.fixture
def openmpi(tmp_path: Path) -> Path:
    """Make a folder where `mpirun` is Open MPI's."""
    return _named_mpirun(tmp_path, require_program("mpirun.openmpi", "openmpi-bin"))


@pytest.fixture
def mpich(tmp_path: Path) -> Path:
    """Make a folder where `mpirun` is MPICH's."""
    return _named_mpirun(tmp_path, require_program("mpirun.mpich", "mpich"))


def _named_mpirun(folder: Path, launcher: str) -> Path:
    written = {"mpirun": f'#!/bin/sh\nexec {launcher} "$@"\n', "rank": RANK}
    for name, script in written.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return folder


def edited(command: list[str], **fields: Any) -> dict[str, Any]:
    """Decide on a launcher that runs the command; return its container afterwards."""
    manifest = pod(container("launcher", command=command, **fields))
    manifest["metadata"]["labels"] = LABEL
    after: dict[str, Any] = decide_on(manifest).pod["spec"]["containers"][0]
    return after


def run(manifest: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a container's command as the kubelet would, but with an input that does not end.

    MPICH's mpirun passes the end of its input on, and dies of SIGPIPE if its rank ends meanwhile.
    """
    reading, writing = os.pipe()
    try:
        return _run(manifest, folder, reading)
    finally:
        os.close(reading)
        os.close(writing)


def _run(manifest: dict[str, Any], folder: Path, stdin: int) -> subprocess.CompletedProcess[str]:
    env = {item["name"]: item["value"] for item in manifest.get("env", [])}
    return subprocess.run(
        [*manifest["command"], *manifest.get("args", [])],
        env={**ROOT, "PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder), **env},
        cwd=folder,
        stdin=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_open_mpi_takes_the_flag(openmpi: Path) -> None:
    """The flag is accepted, and every rank sees hcoll switched off."""
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", "rank"]
    after = edited(command)
    assert after["command"] == ["mpirun", *FLAG, *command[1:]]
    ran = run(after, openmpi)
    assert (ran.returncode, ran.stdout) == (0, "rank 0\nrank 0\n"), ran.stderr


def test_open_mpi_hands_the_variable_to_ranks(openmpi: Path) -> None:
    """A launcher that is not provably Open MPI's gets only the variable, which its ranks see."""
    after = edited(["mpirun", "-np", "1", "rank"])
    assert after["command"] == ["mpirun", "-np", "1", "rank"]
    ran = run(after, openmpi)
    assert (ran.returncode, ran.stdout) == (0, "rank 0\n"), ran.stderr


def test_the_users_flag_wins(openmpi: Path) -> None:
    """The command's own flag overrides the variable, and a second flag would be an error."""
    command = ["mpirun", "-mca", "coll_hcoll_enable", "1", "-np", "1", "rank"]
    after = edited(command)
    assert after["command"] == command
    assert run(after, openmpi).stdout == "rank 1\n"
    twice = run({**after, "command": ["mpirun", *FLAG, *command[1:]]}, openmpi)
    assert twice.returncode != 0


def test_mpich_refuses_the_flag(mpich: Path) -> None:
    """MPICH rejects the flag, so an unproven mpirun is not edited; the variable does no harm."""
    command = ["mpirun", "-np", "1", "rank"]
    after = edited(command)
    assert after["command"] == command
    ran = run(after, mpich)
    assert (ran.returncode, ran.stdout) == (0, "rank 0\n"), ran.stderr
    flagged = run({**after, "command": ["mpirun", *FLAG, *command[1:]]}, mpich)
    assert flagged.returncode != 0
    assert "unrecognized argument mca" in flagged.stderr


@pytest.mark.parametrize("proof", [["-x", "A=b"], ["--allow-run-as-root"], ["--mca", "a", "b"]])
def test_mpich_refuses_what_we_take_for_proofs(mpich: Path, proof: list[str]) -> None:
    """MPICH runs no command with one of these options, so the flag breaks no MPICH command."""
    refused = run({"command": ["mpirun", *proof, "-np", "1", "true"]}, mpich)
    assert refused.returncode != 0
    assert "unrecognized argument" in refused.stderr


def test_open_mpi_gives_words_after_its_program_to_the_program(openmpi: Path) -> None:
    """Open MPI gives words after its program to the program, so the flag follows the launcher."""
    ran = run({"command": ["mpirun", "-np", "1", "echo", *FLAG]}, openmpi)
    assert ran.stdout == "-mca coll_hcoll_enable 0\n"


SCRIPT = """set -eu
# mpirun -x A would start here
hosts=`echo localhost | tr -d "\\n"`
for attempt in 1 2; do
  if timeout 50 mpirun --allow-run-as-root --host "$hosts:2" -np 2 \\
       -x A=$attempt rank; then
    break
  fi
done 2>>log
lines=$(env A=b mpirun -x A -np 1 rank | cat)
echo "$lines" && echo 'mpirun -x A'
cat <<END
mpirun -x A $(mpirun -x A -np 1 echo inner)
END
mpirun>out -x A -np 1 echo 'to a file'; cat out
"""
PRINTED = "rank 01\nrank 01\nrank 0b\nmpirun -x A\nmpirun -x A inner\nto a file\n"


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_script_runs_as_before(openmpi: Path, shell: str) -> None:
    """Loops, substitutions, wrappers, here-documents and redirections stay what they are."""
    after = edited([require_program(shell, shell), "-c", SCRIPT])
    assert after["command"][2].count("mpirun -mca coll_hcoll_enable 0") == 4
    ran = run(after, openmpi)
    log = (openmpi / "log").read_text()
    assert (ran.returncode, ran.stdout) == (0, PRINTED), ran.stderr + log


SNIPPETS = (
    "mpirun -x A a",
    "mpirun -x A 'a b' \"$X\" $X ${Y:-z} a\\ b",
    "true && mpirun -x A a || mpirun -x B b",
    "mpirun -x A a | cat; mpirun -x A b & wait",
    "f() { mpirun -x A a \"$@\"; }; f a 'b c'",
    "case x in x) mpirun -x A a;; esac",
    "while mpirun -x A a; do break; done </dev/null",
    "(exec mpirun -x A a)",
    'env -i PATH="$PATH" LOG="$LOG" mpirun -x A a',
    "nice -n 1 timeout -s KILL 9 mpirun -x A a",
    "! mpirun -x A a",
    'x=`mpirun -x A a`; y="$(mpirun -x A "$(mpirun -x A a)")"',
    "cat <<E\n$(mpirun -x A a)\nmpirun -x A b\nE\nmpirun -x A c",
    "cat <<'E'\n$(mpirun -x A a)\nE\nmpirun <<E -x A c\nx\nE",
    "mpirun -x A \\\n  a \\\n  b # mpirun -x A",
    "mpirun>/dev/null 2>&1 -x A a",
    "'mpirun' -x A a; \"mpirun\" -x A b",
    "if mpirun -x A a; then mpirun -x A b; fi; echo mpirun -x A",
    "trap 'mpirun -x A t' EXIT; eval mpirun -x A e; mpirun -x A a",
)


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_shell_sees_only_the_flag(tmp_path: Path, shell: str, snippet: str) -> None:
    """Every launch gets the same words as before, after the flag or, if not edited, without it."""
    record = tmp_path / "mpirun"
    record.write_text('#!/bin/sh\nprintf "%s|" "$@" >>"$LOG"\necho >>"$LOG"\n')
    record.chmod(0o755)
    path = require_program(shell, shell)
    after = edited([path, "-c", snippet])
    assert after["command"][2] != snippet
    before = _recorded(tmp_path, [path, "-c", snippet])
    now = _recorded(tmp_path, after["command"])
    flag = "".join(f"{word}|" for word in FLAG)
    assert [line.removeprefix(flag) for line in now] == before
    assert any(line.startswith(flag) for line in now)


def _recorded(folder: Path, command: list[str]) -> list[str]:
    log = folder / "log"
    log.unlink(missing_ok=True)
    env = {"PATH": f"{folder}:/usr/bin:/bin", "LOG": str(log), "X": "x y"}
    subprocess.run(command, env=env, cwd=folder, capture_output=True, timeout=300, check=False)
    return sorted(log.read_text().splitlines())


def test_a_missing_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing program skips a developer's test, naming its package, and fails it in CI."""
    judged: list[tuple[str | None, Callable[..., Any]]] = [(None, pytest.skip), ("1", pytest.fail)]
    for ci, outcome in judged:
        if ci is None:
            monkeypatch.delenv("CI", raising=False)
        else:
            monkeypatch.setenv("CI", ci)
        with pytest.raises(outcome.Exception, match="apt-get install nothing"):  # type: ignore[attr-defined]
            require_program("no-such-program", "nothing")


@pytest.mark.parametrize(
    "text",
    [
        "# pml = cm\n",
        "pml = cm\npml = ob1\n",
        "btl=tcp,self",
        'btl = "tcp,self" # x\n',
        "btl = 'tcp,self'\nmtl=\n",
        "\t mtl = ofi \nx\n#btl = tcp\n",
    ],
)
def test_files_are_read_as_open_mpi_reads_them(tmp_path: Path, text: str) -> None:
    """`ompi_info` shows the parameters that the decision reads in the file, and no others."""
    file = tmp_path / ".openmpi" / "mca-params.conf"
    file.parent.mkdir()
    file.write_text(text)
    values = {name: _shown(name, file) for name in ("pml", "btl", "mtl")}
    mount = {"name": "v", "mountPath": "/root/.openmpi"}
    manifest = pod(
        container(volumeMounts=[mount]), volumes=[{"name": "v", "configMap": {"name": "m"}}]
    )
    reading, path = Pod(manifest), ("spec", "containers", 0)
    config_maps = {"m": {file.name: text}}
    settings = with_library_files(NO_SETTINGS, reading, reading.container(path), config_maps)
    assert {name: setting.value for name, setting in settings.certain.items()} == {
        f"OMPI_MCA_{name}": value for name, value in values.items() if value is not None
    }


def _shown(name: str, file: Path) -> str | None:
    """Return a parameter's value from a file, as `ompi_info` shows it; None from elsewhere."""
    info = require_program("ompi_info", "openmpi-bin")
    words = [info, "--all", "--parsable"]
    env = {"HOME": str(file.parent.parent), "PATH": os.environ["PATH"]}
    lines = subprocess.run(words, env=env, check=True, capture_output=True, text=True).stdout
    prefix = f"mca:{name}:base:param:{name}:"
    fields = dict(
        line.removeprefix(prefix).split(":", 1)
        for line in lines.splitlines()
        if line.startswith((f"{prefix}value:", f"{prefix}source:"))
    )
    return fields["value"] if str(file) in fields["source"] else None
