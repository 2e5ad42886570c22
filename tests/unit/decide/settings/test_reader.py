from __future__ import annotations

import pytest

from tests.builders import container
from tests.growth import MAX_CPU_RATIO, cpu_ratio
from tests.unit.decide.settings.reading import certain, possible, settings_in, settings_of
from webhook.decide.settings.reader import SettingsReader
from webhook.decide.settings.setting import NO_SETTINGS
from webhook.decide.shell.scripts import SHORT
from webhook.model.pod import Pod

SOCKET = {"NCCL_NET": "Socket"}


@pytest.mark.parametrize(
    ("script", "source"),
    [
        ("export NCCL_NET=Socket; torchrun a", "export"),
        ("cd /w && export NCCL_NET='Socket' && torchrun a", "export"),
        ("{ export NCCL_NET=Socket; }; torchrun a", "export"),
        ("NCCL_NET=Socket; export NCCL_NET; torchrun a", "export"),
        ("declare -x NCCL_NET=Socket; torchrun a", "export"),
        ("set -a; NCCL_NET=Socket; torchrun a", "assignment"),
        ("NCCL_NET=Socket torchrun a", "assignment"),
        ("NCCL_NET=Socket torchrun a 2>&1 | tee log", "assignment"),
        ("NCCL_NET=Socket torchrun a; echo done; exit 0", "assignment"),
        ("NCCL_NET=Socket torchrun a & wait", "assignment"),
        ("sleep 5; NCCL_NET=Socket torchrun a || true", "assignment"),
        ("env NCCL_NET=Socket torchrun a", "env"),
        ("exec env NCCL_NET=Socket torchrun a; echo never; b", "env"),
        ("timeout 60 env -u X NCCL_NET=Socket torchrun a", "env"),
        ("bash -c 'NCCL_NET=Socket torchrun a'", "assignment"),
        ("bash -c 'export NCCL_NET=Socket; torchrun a'", "export"),
        ("mpirun -x NCCL_NET=Socket -np 2 a", "mpirun -x"),
        ("mpirun -x NCCL_NET=Socket $ARGS", "mpirun -x"),
        ("export NCCL_NET=IB; mpirun -x NCCL_NET=Socket -np 2 a", "mpirun -x"),
        ("mpirun -x NCCL_NET=IB -np 2 env NCCL_NET=Socket a", "env"),
        ("mpirun -x NCCL_NET=IB bash -c 'export NCCL_NET=Socket; a'", "export"),
        ("mpiexec -genv NCCL_NET IB -env NCCL_NET Socket a", "mpiexec -env"),
        ("srun --export=ALL,NCCL_NET=Socket a", "srun --export"),
        ("su worker -c 'NCCL_NET=Socket torchrun a'", "assignment"),
        ("sudo NCCL_NET=Socket torchrun a", "sudo"),
        ("sudo -E -u worker env NCCL_NET=Socket torchrun a", "env"),
    ],
)
def test_certain_settings(script: str, source: str) -> None:
    """What the process that carries the traffic gets: the last setting, and what set it."""
    settings = settings_in(script)
    assert certain(settings) == SOCKET
    assert settings.certain["NCCL_NET"].source == f"{source} in its command"
    assert possible(settings) == {}


@pytest.mark.parametrize(
    "script",
    [
        "if true; then export NCCL_NET=Socket; fi; torchrun a",
        "if true; then NCCL_NET=Socket torchrun a; fi",
        'case "$X" in a) export NCCL_NET=Socket ;; esac; torchrun a',
        "for i in 1 2; do export NCCL_NET=Socket; done; torchrun a",
        "while true; do NCCL_NET=Socket torchrun a; done",
        '[ -n "$X" ] && export NCCL_NET=Socket; torchrun a',
        "[[ -n $X ]] && export NCCL_NET=Socket; torchrun a",
        "test -f x && { export NCCL_NET=Socket; }; torchrun a",
        "grep -q x y && echo z && export NCCL_NET=Socket; torchrun a",
        "false || export NCCL_NET=Socket; torchrun a",
        "false || true && export NCCL_NET=Socket; torchrun a",
        "false ||\n  export NCCL_NET=Socket; torchrun a",
        "f() { export NCCL_NET=Socket; }; f; torchrun a",
        "f() ( export NCCL_NET=Socket; ); f; torchrun a",
        "(export NCCL_NET=Socket; torchrun a)",
        "export NCCL_NET=Socket | cat; torchrun a",
        "export NCCL_NET=Socket & torchrun a",
        "true | export NCCL_NET=Socket; torchrun a",
        "x=$(export NCCL_NET=Socket; torchrun a)",
        "if true; then NCCL_NET=Socket; fi; torchrun a",
        "NCCL_NET=Socket check a; torchrun a",
        "NCCL_NET=Socket torchrun a; python evaluate.py",
        "mpirun -x NCCL_NET=Socket -np 1 a : -np 1 b",
        "eval 'export NCCL_NET=Socket'; torchrun a",
        "ssh b NCCL_NET=Socket torchrun a",
        "echo NCCL_NET=Socket >> ~/.deepspeed_env; deepspeed a",
        "cat > /etc/nccl.conf <<E\nNCCL_NET=Socket\nE\ntorchrun a",
        r"printf 'NCCL_NET=Socket\n' > /etc/nccl.conf; torchrun a",
        r"printf 'NCCL_DEBUG=INFO\nNCCL_NET=Socket\n' > /etc/nccl.conf; torchrun a",
        r'printf "a\tNCCL_NET=Socket" > /etc/nccl.conf; torchrun a',
        """echo 'export NCCL_NET="Socket"' > a; . a; torchrun a""",
        r'echo "export NCCL_NET=\"Socket\"" > a; . a; torchrun a',
        r"""echo "{\"NCCL_NET\": \"Socket\"}" > a; serve a""",
        """python -c 'os.environ["NCCL_NET"] = "Socket"'""",
        """ray job submit --runtime-env-json '{"env_vars": {"NCCL_NET": "Socket"}}'""",
        "env -S 'NCCL_NET=Socket torchrun' a",
        "echo 'unclosed; export NCCL_NET=Socket",
    ],
)
def test_possible_settings(script: str) -> None:
    """Settings in branches, for some processes only, or in a text that nobody reads for sure."""
    settings = settings_in(script)
    assert certain(settings) == {}
    assert possible(settings) == SOCKET


def test_a_text_with_a_conversion() -> None:
    """The argument of printf or of Python's % has the value."""
    settings = settings_in(r"printf 'NCCL_NET=%s\n' Socket > /etc/nccl.conf; torchrun a")
    assert possible(settings) == {"NCCL_NET": None}


@pytest.mark.parametrize(
    "script",
    [
        "torchrun a",
        "NCCL_NET=Socket; torchrun a",
        "NCCL_NET=Socket echo a; torchrun a",
        "declare NCCL_NET=Socket; torchrun a",
        "# export NCCL_NET=Socket\ntorchrun a",
        'echo "$NCCL_NET"; torchrun a',
        'echo "NCCL_NET=$NCCL_NET"; torchrun a',
        """echo "NCCL_NET='$NCCL_NET' NCCL_NET=\\"$NCCL_NET\\""; torchrun a""",
        "echo 'NCCL_NET='; echo MY_NCCL_NET=Socket nNCCL_NET=Socket; torchrun a",
        '[ "$NCCL_NET" = Socket ] && echo a; torchrun a',
        "export NCCL_NET; torchrun a",
        "export NCCL_NET=$NCCL_NET; torchrun a",
        "export X=Socket; torchrun a",
        "mpirun -x NCCL_NET -np 2 a",
        "mpirun -x NCCL_NET=${NCCL_NET} -np 2 a",
        "$X env NCCL_DEBUG=INFO",
        "env; env -u; echo $NCCL_NET",
        "env -u NCCL_NET",
        "exec; env | grep NCCL_",
        "mpirun; mpirun -x; mpirun -x X=; srun --export",
    ],
)
def test_no_settings(script: str) -> None:
    """Comments, tests, variables of the shell alone and of minor commands, and plain forwarding."""
    settings = settings_in(script)
    assert (certain(settings), possible(settings)) == ({}, {})


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("export NCCL_NET=$X; torchrun a", None),
        ("export NCCL_NET=`x`; torchrun a", None),
        ("export NCCL_NET=$(x); torchrun a", None),
        ("set -a; NCCL_NET+=Socket; torchrun a", None),
        ("mpirun -x NCCL_NET=$X -np 2 a", None),
        ("mpiexec -genv NCCL_NET $X -np 2 a", None),
        ("mpirun -x X=1 -np 1 a : -x NCCL_NET=IB -np 1 b", None),
        ("export NCCL_NET=Socket; unset NCCL_NET; torchrun a", "removed"),
        ("export NCCL_NET=Socket; export -n NCCL_NET; torchrun a", "removed"),
        ("env -u NCCL_NET torchrun a", "removed"),
        ("env --unset=NCCL_NET torchrun a", "removed"),
        ("env --unset NCCL_NET torchrun a", "removed"),
        ("env -uNCCL_NET torchrun a", "removed"),
        ("unset NCCL_NET; NCCL_NET=IB; torchrun a", "removed"),
        ("export NCCL_NET; NCCL_NET=Socket; torchrun a", "Socket"),
        ("export NCCL_NET; unset NCCL_NET; NCCL_NET=IB; torchrun a", "removed"),
        ("export NCCL_NET=IB; NCCL_NET=Socket; torchrun a", "Socket"),
        ("export NCCL_NET=IB; export NCCL_NET=${NCCL_NET:-Socket}; torchrun a", "IB"),
        ("unset NCCL_NET; export NCCL_NET=${NCCL_NET:-Socket}; torchrun a", "Socket"),
        ("export NCCL_NET=Socket; exec -c torchrun a", None),
    ],
)
def test_values_in_order(script: str, expected: str | None) -> None:
    """The last setting wins; a value with an expansion is unknown, a removal is a setting."""
    actual = certain(settings_in(script)).get("NCCL_NET")
    assert actual == expected


def test_a_variable_of_the_container_stays_exported() -> None:
    """Assigning to it changes the environment; to another one it does not."""
    assert certain(settings_in("NCCL_NET=IB; torchrun a", NCCL_NET="Socket")) == {"NCCL_NET": "IB"}
    assert certain(settings_in("NCCL_NET=IB; torchrun a", NCCL_DEBUG="INFO")) == {}


def test_a_default_is_marked() -> None:
    """Whether it applies depends on the container's own variables."""
    setting = settings_in("export NCCL_NET=${NCCL_NET:-Socket}; torchrun a").certain["NCCL_NET"]
    assert (setting.value, setting.yields_to_env) == ("Socket", True)


@pytest.mark.parametrize(
    "words",
    [
        ("env", "NCCL_NET=Socket", "torchrun", "a"),
        ("sh", "-c", 'export NCCL_NET=Socket; exec "$@"', "sh", "torchrun", "a"),
        ("sh", "-c", 'echo "$NCCL_DEBUG"; exec "$@"', "sh", "env", "NCCL_NET=Socket", "torchrun"),
        ("/bin/sh", "-c", "remap", "rdma-remap", "8", "env", "NCCL_NET=Socket", "torchrun"),
        ("mpirun", "-np", "2", "-x", "NCCL_NET=Socket", "a"),
        ("tini", "--", "gosu", "0", "env", "NCCL_NET=Socket", "torchrun"),
        ("sh", "-c", 'export NCCL_NET=Socket; exec "$@"'),
        ("nice", "-n", "5", "env", "NCCL_NET=Socket", "torchrun"),
    ],
)
def test_words_without_a_script(words: tuple[str, ...]) -> None:
    """`command` and `args` are words already."""
    assert certain(settings_of(*words)) == SOCKET


@pytest.mark.parametrize(
    ("words", "source", "drops_env"),
    [
        (("su", "-", "worker", "-c", "torchrun a"), "su - worker", True),
        (("sh", "-c", "exec env -i PATH=/bin torchrun a"), "env -i", True),
        (("env", "-", "torchrun", "a"), "env -i", True),
        (("sh", "-c", "exec -c torchrun a"), "exec -c", True),
        (("sh", "-c", "sudo torchrun a"), "sudo", True),
        (("sh", "-c", "srun --export=NONE a"), "srun --export", True),
        (("sh", "-c", "if true; then sudo torchrun a; fi; torchrun b"), "sudo", False),
    ],
)
def test_dropped_environments(words: tuple[str, ...], source: str, drops_env: bool) -> None:
    """What starts the process with another environment is named."""
    settings = settings_of(*words)
    assert settings.env_dropped_by == f"{source} in its command"
    assert settings.drops_env is drops_env


def test_what_a_program_keeps_of_the_environment() -> None:
    """`sudo --preserve-env=NAME` and `su -w NAME` keep what was exported before."""
    script = "export NCCL_NET=Socket UCX_TLS=tcp; sudo --preserve-env=NCCL_NET,X torchrun a"
    assert certain(settings_in(script)) == SOCKET
    assert certain(settings_in("export NCCL_NET=IB; sudo torchrun a")) == {}


@pytest.mark.parametrize(
    ("script", "source", "is_certain"),
    [
        ("exec gosu 1000 torchrun a", "gosu 1000", True),
        ("gosu worker torchrun a; echo done", "gosu worker", True),
        ('[ "$(id -u)" = 0 ] && exec gosu worker torchrun a; torchrun a', "gosu worker", False),
        ("su worker -c 'torchrun a'; python b", "su worker", False),
        ("su worker -c 'su other -c torchrun'", "su other", True),
    ],
)
def test_other_users(script: str, source: str, is_certain: bool) -> None:
    """A user other than root, and whether the process that carries the traffic has it."""
    user = settings_in(script).user
    assert user == (f"{source} in its command", is_certain)


@pytest.mark.parametrize(
    "script",
    ["gosu root torchrun a", "gosu worker mkdir x; torchrun a", "sudo -u worker", "gosu", "sudo a"],
)
def test_no_other_user(script: str) -> None:
    """Root stays root, and a minor command of another user does not matter."""
    assert settings_in(script).user is None


def test_memlock() -> None:
    """`ulimit -l` limits what the commands after it may lock."""
    memlock = settings_in("ulimit -l 64; torchrun a").memlock
    assert memlock == ("64", "ulimit -l in its command")
    assert settings_in("sudo -E sh -c 'ulimit -l 64; exec torchrun'").memlock == memlock
    assert settings_in("ulimit -l; ulimit -n 4096; torchrun a").memlock is None
    assert settings_in("if true; then ulimit -l 64; fi; torchrun a").memlock is None


def test_each_container_is_read_once() -> None:
    """Two containers have settings of their own, and share the limits of the pod."""
    words = ["env", "NCCL_NET=Socket", "torchrun"]
    members = [container(command=words), container("b"), container("c", command=words)]
    reader = SettingsReader(Pod({"spec": {"containers": members}}))
    first = reader.settings(("spec", "containers", 0))
    assert reader.settings(("spec", "containers", 0)) is first
    assert reader.settings(("spec", "containers", 1)) is NO_SETTINGS
    assert reader.settings(("spec", "containers", 2)) == first


def test_containers_share_the_limits_of_their_pod() -> None:
    """A script that many containers run costs its commands each time; the last are not read."""
    words = ["sh", "-c", "export NCCL_NET=Socket\n" * 1000 + "torchrun a"]
    pod = Pod({"spec": {"containers": [container(str(i), command=words) for i in range(9)]}})
    reader = SettingsReader(pod)
    members = [reader.settings(("spec", "containers", index)) for index in range(9)]
    assert certain(members[0]) == SOCKET
    assert (certain(members[8]), possible(members[8])) == ({}, SOCKET)


def test_words_beyond_the_limits() -> None:
    """They are not read, but what they mention is possible."""
    settings = settings_of("env", *(["X=y"] * 9000), "NCCL_NET=Socket", "torchrun")
    assert (certain(settings), possible(settings)) == ({}, SOCKET)


def test_shells_within_shells_are_followed_to_a_depth() -> None:
    """Deeper ones are not read."""
    words = ["gosu", "0"] * 9
    assert certain(settings_of(*words[:16], "env", "NCCL_NET=Socket", "a")) == SOCKET
    assert certain(settings_of(*words[:18], "env", "NCCL_NET=Socket", "a")) == {}
    script = "NCCL_NET=Socket a"
    for _ in range(5):
        script = f"bash -c {script!r}" if "'" not in script else f'bash -c "{script}"'
    assert certain(settings_of(*["gosu", "0"] * 8, "sh", "-c", "export NCCL_NET=Socket; a")) == {}


@pytest.mark.parametrize(
    "piece",
    [
        "export NCCL_NET=Socket; ",
        "NCCL_NET=Socket a; ",
        "NCCL_NET=Socket a; echo b; ",
        "NCCL_IB_HCA=a; ",
        "sudo -u b c && ",
        "sh -c 'UCX_TLS=a b'; ",
        "gosu a ",
        "env NCCL_NET=a ",
        "x || export UCX_TLS=tcp\n",
        "mpirun -x NCCL_NET=a : ",
    ],
)
def test_time_is_linear(piece: str) -> None:
    """No repetition makes reading slow; neither script is short enough for a cached result."""
    times = SHORT // len(piece) + 1
    small, large = piece * times + "a", piece * 4 * times + "a"
    growth = cpu_ratio(lambda: settings_in(small), lambda: settings_in(large))
    assert growth < MAX_CPU_RATIO
