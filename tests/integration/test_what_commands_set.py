"""What commands set, compared with what we read: in real shells, launchers, su and the like.

Each command runs as the kubelet would run it, and starts a program that prints what it got. Rows of
scripts run in bash and in dash.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.builders import container, env
from tests.integration.programs import require_program
from webhook.decide.settings.effective import effective_env
from webhook.decide.settings.reader import SettingsReader
from webhook.decide.settings.setting import CommandSettings
from webhook.model.pod import Pod

#: The container's variables, before its command runs.
ENV = {"NCCL_NET": "IB", "UCX_TLS": "rc"}
#: The variables that the program prints; "unset" if it has none.
NAMES = ("NCCL_NET", "UCX_TLS", "NCCL_IB_DISABLE")
_PROBE = "#!/bin/sh\necho got," + ",,".join(f"${{{name}-unset}}" for name in NAMES) + ",,$(id -u)\n"
#: Lets Open MPI run as root, and more ranks than the machine has cores.
_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


class Got(NamedTuple):
    """What the program got."""

    variables: dict[str, str]
    user: str


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    """Make a folder with the program and both kinds of mpirun, which any user can read."""
    folder = Path(tempfile.mkdtemp(prefix="commands-"))
    folder.chmod(0o755)
    written = {
        "probe": _PROBE,
        "mpirun": '#!/bin/sh\nexec mpirun.openmpi "$@"\n',
        "mpiexec.hydra": '#!/bin/sh\nexec mpirun.mpich "$@"\n',
    }
    for name, script in written.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def run(words: list[str], folder: Path) -> list[Got]:
    """Run a command; its input does not end, since MPICH passes the end on."""
    reading, writing = os.pipe()
    try:
        process = subprocess.run(
            words,
            env={**_ROOT, "PATH": f"{folder}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", **ENV},
            cwd="/",
            stdin=reading,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(reading)
        os.close(writing)
    lines = [line[4:].split(",,") for line in process.stdout.splitlines() if line[:4] == "got,"]
    assert lines, process.stderr
    return [Got(dict(zip(NAMES, line[:-1], strict=True)), line[-1]) for line in lines]


def read(words: list[str]) -> CommandSettings:
    """Read the same command."""
    manifest = {"spec": {"containers": [container(command=words, env=env(**ENV))]}}
    return SettingsReader(Pod(manifest)).settings(("spec", "containers", 0))


def expected(settings: CommandSettings) -> dict[str, str | None]:
    """Return what we expect the program to get; None if it is known only at run time."""
    effective = effective_env(ENV, settings, present=ENV)
    return {name: effective.get(name, "unset") for name in NAMES}


def check(words: list[str], folder: Path) -> None:
    """Compare what the program gets with the settings that are certain."""
    settings = read(words)
    certain = expected(settings)
    assert not {setting.name for setting in settings.possible}.intersection(NAMES)
    for got in run(words, folder):
        assert {
            name: value for name, value in got.variables.items() if certain[name] is not None
        } == {name: value for name, value in certain.items() if value is not None}
        assert (got.user != "0") == (settings.user is not None and settings.user.certain)


SHELL = (
    "exec probe",
    "export NCCL_NET=Socket; probe",
    "export NCCL_NET='Socket' UCX_TLS=\"tcp\"; probe",
    "cd / && export NCCL_NET=Socket && probe",
    "{ export NCCL_NET=Socket; }; probe",
    "NCCL_NET=Socket; probe",
    "NCCL_IB_DISABLE=1; probe",
    "NCCL_IB_DISABLE=1; export NCCL_IB_DISABLE; probe",
    "export NCCL_IB_DISABLE; NCCL_IB_DISABLE=1; probe",
    "set -a; NCCL_IB_DISABLE=1; probe",
    "set -eua; NCCL_IB_DISABLE=1; probe",
    "set -o allexport; NCCL_IB_DISABLE=1; probe",
    "NCCL_NET=Socket probe",
    "NCCL_NET=Socket UCX_TLS=tcp probe 2>&1 | cat",
    "NCCL_NET=Socket probe & wait",
    "NCCL_NET=Socket probe || true; exit 0",
    "export NCCL_NET=Socket; NCCL_NET=IB probe",
    "export NCCL_NET=Socket; unset NCCL_NET; probe",
    "unset NCCL_NET UCX_TLS; probe",
    "unset NCCL_NET; NCCL_NET=Socket; probe",
    "unset NCCL_NET; export NCCL_NET=${NCCL_NET:-Socket}; probe",
    "export NCCL_NET=${NCCL_NET:-Socket}; probe",
    "export NCCL_IB_DISABLE=${NCCL_IB_DISABLE:-1}; probe",
    "export NCCL_NET=$NCCL_NET; probe",
    "X=Socket; export NCCL_NET=$X; probe",
    "export NCCL_NET=$(echo Socket); probe",
    "# export NCCL_NET=Socket\nprobe",
    "export NCCL_NET=So\\cket; probe",
    "export NCCL_NET=So\"ck\"'et'; probe",
    "export \\\n  NCCL_NET=Socket\nprobe",
    "readonly NCCL_DEBUG=INFO; export NCCL_NET=Socket; probe",
    "env NCCL_NET=Socket probe",
    "env -u NCCL_NET probe",
    "env --unset=NCCL_NET UCX_TLS=tcp probe",
    "env -i PATH=/usr/bin:/bin NCCL_NET=Socket {folder}/probe",
    "env - {folder}/probe",
    "exec env NCCL_NET=Socket probe",
    "timeout 60 env NCCL_NET=Socket nice -n 1 probe",
    "NCCL_NET=Socket exec probe",
    "bash -c 'NCCL_NET=Socket probe'",
    "export NCCL_NET=Socket; sh -c 'unset UCX_TLS; exec probe'",
    "NCCL_NET=Socket sh -c 'export UCX_TLS=tcp; probe'",
    "sh -c 'export NCCL_NET=Socket; exec \"$@\"' sh probe",
)
BASH = (
    "declare -x NCCL_IB_DISABLE=1; probe",
    "typeset -x NCCL_IB_DISABLE=1; probe",
    "declare NCCL_IB_DISABLE=1; probe",
    "export NCCL_NET=Socket; export -n NCCL_NET; probe",
    "NCCL_NET+=x; probe",
    "exec -c {folder}/probe",
)
OPEN_MPI = (
    "mpirun -np 2 probe",
    "mpirun -np 2 -x NCCL_NET=Socket probe",
    "mpirun -np 1 --x NCCL_NET=Socket probe",
    "mpirun -np 1 -x NCCL_NET=Socket -x NCCL_NET=IB probe",
    "mpirun -np 1 -x NCCL_NET=Socket,UCX_TLS=tcp probe",
    "mpirun -np 1 -x NCCL_NET probe",
    "export NCCL_IB_DISABLE=1; mpirun -np 1 -x NCCL_IB_DISABLE probe",
    "export NCCL_NET=Socket; mpirun -np 1 probe",
    "export NCCL_NET=IB; mpirun -np 1 -x NCCL_NET=Socket probe",
    "mpirun -np 1 -x NCCL_NET=Socket env NCCL_NET=IB probe",
    "mpirun -np 1 -x NCCL_NET=Socket sh -c 'export NCCL_NET=IB; exec probe'",
    "mpirun -np 1 -x NCCL_NET= probe",
    "mpirun -np 1 --mca mca_base_env_list 'NCCL_NET=Socket;NCCL_IB_DISABLE=1' probe",
    "mpirun --mca pml ob1 --mca btl tcp,self -np 1 -x UCX_TLS=tcp probe",
    "NCCL_NET=Socket mpirun -np 1 probe",
    "env -u NCCL_NET mpirun -np 1 probe",
)
MPICH = (
    "mpiexec.hydra -n 1 probe",
    "mpiexec.hydra -genv NCCL_NET Socket -n 1 probe",
    "mpiexec.hydra -genv NCCL_NET=Socket -n 1 probe",
    "mpiexec.hydra -n 1 -env NCCL_NET Socket probe",
    "mpiexec.hydra -env NCCL_NET Socket -genv NCCL_NET IB -n 1 probe",
    "mpiexec.hydra -genv NCCL_NET IB -genv NCCL_NET Socket -n 1 probe",
    "mpiexec.hydra -genvlist NCCL_NET -n 1 probe",
    "mpiexec.hydra -genvnone -n 1 probe",
    "export NCCL_NET=Socket; mpiexec.hydra -genvall -n 1 probe",
)
USERS = (
    ("su", "su nobody -s /bin/sh -c {folder}/probe"),
    ("su", "su -s /bin/sh -c 'NCCL_NET=Socket {folder}/probe' nobody"),
    ("su", "su - nobody -s /bin/sh -c {folder}/probe"),
    ("su", "su -l nobody -s /bin/sh -c 'NCCL_NET=Socket {folder}/probe'"),
    ("su", "export NCCL_NET=Socket; su - -w NCCL_NET nobody -s /bin/sh -c {folder}/probe"),
    ("su", "su -p nobody -s /bin/sh -c {folder}/probe"),
    ("su", "su root -c {folder}/probe"),
    ("runuser", "runuser -u nobody {folder}/probe"),
    ("runuser", "runuser -u nobody -- env NCCL_NET=Socket {folder}/probe"),
    ("runuser", "runuser -l nobody -s /bin/sh -c {folder}/probe"),
    ("runuser", "runuser nobody -s /bin/sh -c {folder}/probe"),
    ("setpriv", "setpriv --reuid 65534 --clear-groups {folder}/probe"),
    ("setpriv", "setpriv --reuid=nobody --init-groups {folder}/probe"),
    ("setpriv", "setpriv --reuid 65534 --clear-groups --reset-env {folder}/probe"),
    ("setpriv", "setpriv --no-new-privs {folder}/probe"),
    ("sudo", "sudo {folder}/probe"),
    ("sudo", "sudo -E {folder}/probe"),
    ("sudo", "sudo -u nobody {folder}/probe"),
    ("sudo", "sudo -nEu nobody {folder}/probe"),
    ("sudo", "export NCCL_NET=Socket; sudo --preserve-env=NCCL_NET -u nobody {folder}/probe"),
    ("sudo", "sudo NCCL_NET=Socket {folder}/probe"),
    ("sudo", "sudo -u nobody env NCCL_NET=Socket {folder}/probe"),
    ("gosu", "gosu nobody {folder}/probe"),
    ("gosu", "gosu 1000:1000 env NCCL_NET=Socket {folder}/probe"),
    ("gosu", "gosu root {folder}/probe"),
    ("gosu", "export NCCL_NET=Socket; exec gosu nobody {folder}/probe"),
)
#: Commands whose settings are only possible: what the program gets, certain or possible.
POSSIBLE = (
    "if true; then export NCCL_NET=Socket; fi; probe",
    "if false; then export NCCL_NET=Socket; fi; probe",
    '[ -n "$X" ] && export NCCL_NET=Socket; probe',
    '[ -z "$X" ] && export NCCL_NET=Socket; probe',
    "false || export NCCL_NET=Socket; probe",
    "true || export NCCL_NET=Socket; probe",
    "f() {{ export NCCL_NET=Socket; }}; f; probe",
    "(export NCCL_NET=Socket); probe",
    "export NCCL_NET=Socket | true; probe",
    "for i in 1 2; do export NCCL_NET=Socket; done; probe",
    "case a in a) export NCCL_NET=Socket ;; esac; probe",
    "NCCL_NET=Socket probe; probe; NCCL_NET=IB sh -c probe; true",
    "eval 'export NCCL_NET=Socket'; probe",
)  # fmt: skip
#: Read, not run: Slurm's srun needs a cluster of its own.
SRUN = {
    "srun --export=ALL,NCCL_NET=Socket probe": {"NCCL_NET": "Socket", "UCX_TLS": "rc"},
    "srun --export=NONE probe": {},
    "srun --export=NCCL_NET=Socket probe": {"NCCL_NET": "Socket"},
    "srun -N 2 --export ALL probe": ENV,
}


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("script", SHELL)
def test_scripts(script: str, shell: str, programs: Path) -> None:
    """Both shells do what we read."""
    check(
        [require_program(shell, shell), "-c", script.replace("{folder}", str(programs))], programs
    )


@pytest.mark.parametrize("script", BASH)
def test_scripts_of_bash(script: str, programs: Path) -> None:
    """Some builtins and options are bash's own."""
    check(
        [require_program("bash", "bash"), "-c", script.replace("{folder}", str(programs))], programs
    )


@pytest.mark.parametrize("script", OPEN_MPI)
def test_open_mpi(script: str, programs: Path) -> None:
    """Ranks get what `-x` sets, and what their launcher has."""
    require_program("mpirun.openmpi", "openmpi-bin")
    check(["sh", "-c", script], programs)


@pytest.mark.parametrize("script", MPICH)
def test_mpich(script: str, programs: Path) -> None:
    """`-env` wins over `-genv`; on its own machine, a rank inherits even with -genvnone."""
    require_program("mpirun.mpich", "mpich")
    check(["sh", "-c", script], programs)


@pytest.mark.parametrize(("program", "script"), USERS)
def test_other_users(program: str, script: str, programs: Path) -> None:
    """The user, and what is left of the environment."""
    if os.geteuid() != 0:
        pytest.skip("only root may change to another user: run the tests as root")
    require_program(program, "util-linux" if program in ("su", "runuser", "setpriv") else program)
    check(["bash", "-c", script.replace("{folder}", str(programs))], programs)


@pytest.mark.parametrize("script", POSSIBLE)
def test_possible_settings(script: str, programs: Path) -> None:
    """The program gets a certain or a possible value: nothing that we do not know of."""
    words = ["bash", "-c", script.replace("{{", "{").replace("}}", "}")]
    settings = read(words)
    values = {setting.value for setting in settings.possible if setting.name == "NCCL_NET"}
    values.add(expected(settings)["NCCL_NET"])
    for got in run(words, programs):
        assert got.variables["NCCL_NET"] in values


@pytest.mark.parametrize("limit", ["64", "1024"])
def test_memlock(limit: str) -> None:
    """The limit holds for the programs that the shell starts."""
    words = ["bash", "-c", f"ulimit -l {limit}; bash -c 'ulimit -l'"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    memlock = read(words).memlock
    assert memlock is not None
    assert ran.stdout.strip() == memlock.limit


@pytest.mark.parametrize("script", SRUN)
def test_srun_is_read(script: str) -> None:
    """srun(1): only ALL passes the environment on."""
    settings = read(["sh", "-c", script])
    assert effective_env(ENV, settings, present=ENV) == SRUN[script]
