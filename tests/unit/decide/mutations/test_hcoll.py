from __future__ import annotations

from typing import Any

import pytest

from tests.builders import (
    V100,
    container,
    decide_on,
    decision_input,
    fabric,
    gpu,
    ops,
    outcomes_of,
    pod,
)
from webhook.model.fabric import FabricEnv, RdmaResource
from webhook.model.pod import PodManifest

NAME = "hcoll"
HCOLL_VARIABLE = {"name": "OMPI_MCA_coll_hcoll_enable", "value": "0"}
SET = "set OMPI_MCA_coll_hcoll_enable=0"
FLAG = ["-mca", "coll_hcoll_enable", "0"]
ENV = {"op": "add", "path": "/spec/containers/0/env", "value": [HCOLL_VARIABLE]}


def launcher(*command: str, **fields: Any) -> PodManifest:
    """Make a pod with a container without a GPU."""
    return pod(container("main", command=list(command), **fields))


def decided(manifest: PodManifest, **defaults: Any) -> tuple[list[Any], dict[str, Any]]:
    """Decide; return the outcomes without the container's name, and the container afterwards."""
    decision = decide_on(manifest, decision_input(V100, defaults=defaults))
    outcomes = [tuple(words) for _, *words in outcomes_of(decision, NAME)]
    return outcomes, decision.pod["spec"]["containers"][0]


def test_targets_get_the_variable() -> None:
    """They get it even without a sign of MPI, since a script in the image may start ranks."""
    decision = decide_on(pod(gpu()))
    assert outcomes_of(decision, NAME) == [("trainer", "applied", "AddedInCase", SET)]
    assert ops(decision, NAME)[-1]["value"] == HCOLL_VARIABLE
    speaking = pod(gpu(command=["python", "-m", "mpi4py", "train.py"]))
    assert outcomes_of(decide_on(speaking), NAME) == [("trainer", "applied", "Added", SET)]


def test_a_list_of_words() -> None:
    """The flag is three items directly after the launcher's word."""
    decision = decide_on(launcher("env", "A=b", "mpirun", "-x", "A", "a"))
    assert outcomes_of(decision, NAME) == [
        ("main", "applied", "Added", f"{SET}, and -mca coll_hcoll_enable 0 in command[2]")
    ]
    added = [
        {"op": "add", "path": f"/spec/containers/0/command/{3 + at}", "value": word}
        for at, word in enumerate(FLAG)
    ]
    assert ops(decision, NAME) == [*added, ENV]


def test_a_command_with_args() -> None:
    """The flag goes into the list that holds the launcher."""
    _, after = decided(launcher("orterun", args=["-np", "2", "a"]))
    assert (after["command"], after["args"]) == (["orterun", *FLAG], ["-np", "2", "a"])
    _, after = decided(launcher("env", args=["orterun", "-np", "2", "a"]))
    assert (after["command"], after["args"]) == (["env"], ["orterun", *FLAG, "-np", "2", "a"])


def test_a_script() -> None:
    """Each launch that is proven to be Open MPI's gets the flag; every other byte stays."""
    script = "é=1 $(HOST) # mpirun -x A\nmpirun -x A a $$ | tee 'x  y'\nmpiexec b\northerun c\n"
    outcomes, after = decided(launcher("sh", "-c", script + "if orterun>log -np 2 d; then :; fi"))
    assert outcomes == [("applied", "Added", f"{SET}, and -mca coll_hcoll_enable 0 in command[2]")]
    assert after["command"][2] == (
        "é=1 $(HOST) # mpirun -x A\nmpirun -mca coll_hcoll_enable 0 -x A a $$ | tee 'x  y'\n"
        "mpiexec b\northerun c\nif orterun -mca coll_hcoll_enable 0 >log -np 2 d; then :; fi"
    )


def test_a_variable_proves_all_launches() -> None:
    """An OMPI_MCA_* variable of the container counts for each of its commands."""
    env = [{"name": "OMPI_MCA_btl", "value": "tcp,self"}]
    _, after = decided(launcher("sh", "-c", "mpirun a; mpiexec b", env=env))
    assert after["command"][2] == (
        "mpirun -mca coll_hcoll_enable 0 a; mpiexec -mca coll_hcoll_enable 0 b"
    )


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        ("mpirun -np 2 a", "mpirun is not certain to be Open MPI"),
        ("mpirun -x A --mca coll_hcoll_enable 1 a", "mpirun configures HCOLL itself"),
        ("mpirun -x A --mca coll ^hcoll a", "mpirun configures HCOLL itself"),
        ("mpirun -x A -np 1 a : -np 2 b", "mpirun has several contexts (`:`)"),
        ("mpirun -x A --app file", "mpirun reads options from a file"),
        (
            "export OMPI_MCA_coll_hcoll_enable=1; mpirun -x A a",
            "the command configures HCOLL itself",
        ),
        (
            "export HCOLL_MAIN_IB=mlx5_0:1; mpirun -x HCOLL_MAIN_IB a",
            "the command configures HCOLL itself",
        ),
        (
            "source /opt/intel/setvars.sh; mpirun -x A a",
            "the container names another MPI implementation",
        ),
        ("mpirun -x A $MPI_OPTIONS a", "mpirun has words that only the shell can expand"),
        ("horovodrun -np 2 a", ""),
        ("echo mpirun -x A a", ""),
        ("mpirun --version", ""),
    ],
)
def test_commands_that_stay(command: str, refusal: str) -> None:
    """If Open MPI is not proven or hcoll is already settled, only the variable is written."""
    outcomes, after = decided(pod(gpu(command=["bash", "-c", command])))
    assert outcomes == [
        (
            "applied",
            "Added",
            f"{SET}; -mca coll_hcoll_enable 0 was not added, since {refusal}" if refusal else SET,
        )
    ]
    assert after["command"][2] == command
    assert HCOLL_VARIABLE in after["env"]


@pytest.mark.parametrize(
    ("entry", "status", "code", "message"),
    [
        (HCOLL_VARIABLE, "already", "Present", "OMPI_MCA_coll_hcoll_enable=0 is already set"),
        (
            {**HCOLL_VARIABLE, "value": "1"},
            *("skipped", "HcollSet"),
            "kept your OMPI_MCA_coll_hcoll_enable, which configures HCOLL",
        ),
        (
            {
                "name": HCOLL_VARIABLE["name"],
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
            },
            *("skipped", "HcollSet"),
            "kept your OMPI_MCA_coll_hcoll_enable, which configures HCOLL",
        ),
        (
            {"name": "OMPI_MCA_coll", "value": "^tuned"},
            *("skipped", "HcollSet"),
            "kept your OMPI_MCA_coll, which configures HCOLL",
        ),
    ],
)
def test_the_user_wins(entry: Any, status: str, code: str, message: str) -> None:
    """If the user sets one of these variables, with any value, nothing is written."""
    decision = decide_on(pod(gpu(command=["mpirun", "-x", "A", "a"], env=[entry])))
    assert outcomes_of(decision, NAME) == [("trainer", status, code, message)]


def test_env_from_may_hold_it() -> None:
    """An entry in env would override a key from envFrom: nothing is written, with a warning."""
    sources = [{"configMapRef": {"name": "mpi"}}]
    decision = decide_on(launcher("mpirun", "-x", "A", "a", envFrom=sources))
    assert ops(decision, NAME) == []
    assert outcomes_of(decision, NAME) == [
        ("main", "skipped", "EnvFrom", "envFrom may set OMPI_MCA_coll_hcoll_enable"),
        (
            *("main", "warned", "EnvFrom"),
            "HCOLL stays on; to switch it off, add OMPI_MCA_coll_hcoll_enable=0 to env",
        ),
    ]
    assert decided(launcher("mpirun", "-x", "A", "a", envFrom=[]))[0][0][0] == "applied"


def test_policies() -> None:
    """`env` writes only the variable, and `off` writes nothing."""
    manifest = launcher("mpirun", "-x", "A", "a")
    outcomes, after = decided(manifest, hcoll="env")
    assert outcomes == [("applied", "Added", SET)]
    assert after["command"] == ["mpirun", "-x", "A", "a"]
    assert decided(manifest, hcoll="off")[0] == [
        ("skipped", "Off", "the configuration has hcoll: off")
    ]


def test_another_user_is_warned_of() -> None:
    """`sudo` drops the variable, and a command that runs under it is not edited."""
    outcomes, after = decided(launcher("sudo", "mpirun", "-x", "A", "a"))
    assert outcomes == [
        ("applied", "Added", SET),
        *[
            (
                *("warned", "OtherUser"),
                "sudo may clear env; add -mca coll_hcoll_enable 0 to mpirun yourself",
            )
        ],
    ]
    assert after["command"] == ["sudo", "mpirun", "-x", "A", "a"]


def test_a_large_script_is_warned_of() -> None:
    """The script is not parsed, so it stays unchanged."""
    script = "mpirun -x A a\n" * 3000
    outcomes, after = decided(pod(gpu(command=["sh", "-c", script])))
    assert outcomes == [
        ("applied", "Added", SET),
        (
            *("warned", "ScriptTooLarge"),
            "command[2] was not edited, since the pod's scripts exceed 32 KiB in total",
        ),
    ]
    assert after["command"][2] == script


@pytest.mark.parametrize(
    ("script", "code", "problem"),
    [
        ("mpirun -x A a; )", "ScriptUnclear", "it is unclear how a shell interprets it"),
        ("( " * 65 + "mpirun -x A a", "ScriptTooLarge", "it is nested more than 64 levels deep"),
        (
            "mpirun -x A a\n" * 200,
            "ScriptTooLarge",
            "the pod's scripts have too many commands or words in total",
        ),
    ],
)
def test_a_script_that_is_not_understood_is_warned_of(script: str, code: str, problem: str) -> None:
    """The script stays, with a warning that has the reason; `hcoll: env` gives no warning."""
    manifest = pod(gpu(command=["sh", "-c", script]))
    outcomes, after = decided(manifest)
    assert outcomes == [
        ("applied", "Added", SET),
        ("warned", code, f"command[2] was not edited, since {problem}"),
    ]
    assert after["command"][2] == script
    assert decided(manifest, hcoll="env")[0] == outcomes[:1]


def test_the_sites_variables_prove_nothing() -> None:
    """The webhook writes a fabric's env, so on a second call it would look like evidence."""
    site = FabricEnv(site_variables=(("OMPI_MCA_btl", "tcp,self"),))
    cluster = decision_input(
        fabric(
            "lab",
            gpu_resources=frozenset({"nvidia.com/v100"}),
            resources=(RdmaResource(name="rdma/v100"),),
            env=site,
        )
    )
    first = decide_on(pod(gpu(command=["mpirun", "-np", "2", "a"])), cluster)
    assert outcomes_of(first, NAME) == [
        (
            "trainer",
            "applied",
            "Added",
            (
                f"{SET}; -mca coll_hcoll_enable 0 was not added, "
                "since mpirun is not certain to be Open MPI"
            ),
        )
    ]
    assert decide_on(first.pod, cluster).patch == ()


@pytest.mark.parametrize(
    "command", [["mpirun", "-x", "A", "a"], ["sh", "-c", "mpirun -x A a; sudo mpirun b"]]
)
def test_deciding_again_changes_nothing(command: list[str]) -> None:
    """The variable shows that everything was done."""
    first = decide_on(launcher(*command))
    second = decide_on(first.pod)
    assert second.patch == ()
    assert outcomes_of(second, NAME) == [
        ("main", "already", "Present", "OMPI_MCA_coll_hcoll_enable=0 is already set")
    ]


def test_a_sites_own_switch_settles_it() -> None:
    """It does if `env` wrote it; a container with envFrom lacks it, and is reported as usual."""
    site = FabricEnv(site_variables=(("OMPI_MCA_coll_hcoll_enable", "1"),))
    cluster = decision_input(
        fabric("ib", gpu_resources=frozenset({"nvidia.com/gpu"}), env=site),
    )
    gpus = {"limits": {"nvidia.com/gpu": "1"}}
    sources = [{"configMapRef": {"name": "x"}}]
    written = decide_on(pod(container(resources=gpus)), cluster)
    command = ["mpirun", "a"]
    hidden = decide_on(pod(container(command=command, resources=gpus, envFrom=sources)), cluster)
    assert [outcome[1:3] for outcome in outcomes_of(written, "hcoll")] == [("skipped", "HcollSet")]
    assert outcomes_of(hidden, "hcoll")[0][1:3] == ("skipped", "EnvFrom")


def test_hcoll_is_not_mentioned_without_a_sign_of_mpi() -> None:
    """A pod of JAX with envFrom has no hcoll that would stay on."""
    sources = [{"configMapRef": {"name": "x"}}]
    decision = decide_on(pod(gpu(command=["python", "train.py"], envFrom=sources)))
    assert [outcome[1:3] for outcome in outcomes_of(decision, NAME)] == [("skipped", "NoMPI")]
    assert "NoMPI" not in decision.pod["metadata"]["annotations"]["rdma.lab/status"]


def ranks(**fields: Any) -> PodManifest:
    """Make a pod that runs its ranks itself, on a named fabric."""
    return pod(
        container("osu", **{"command": ["mpirun", "-np", "2", "osu"], **fields}),
        annotations={"rdma.lab/fabric": "v100-ib"},
    )


SHARP = 'HCOLL, and with it SHARP, is off; OMPI_MCA_coll_hcoll_enable: "1" keeps both on'


def test_ranks_without_gpus_learn_how_to_keep_hcoll() -> None:
    """Hcoll was made for them; a value of the user settles it."""
    decision = decide_on(ranks(), decision_input(V100))
    assert [outcome[1:] for outcome in outcomes_of(decision, NAME)][-1] == (
        "warned",
        "CPURanks",
        SHARP,
    )
    assert len(f"rdma.lab: hcoll openfoam: {SHARP}") <= 120
    for value in ("0", "1"):
        manifest = ranks(env=[{"name": "OMPI_MCA_coll_hcoll_enable", "value": value}])
        assert [
            outcome[1] for outcome in outcomes_of(decide_on(manifest, decision_input(V100)), NAME)
        ] in (
            ["already"],
            ["skipped"],
        )


@pytest.mark.parametrize(
    "manifest",
    [
        pod(gpu(command=["mpirun", "a"])),
        pod(container(resources={"limits": {"rdma/v100": 1}}, command=["store"])),
        ranks(resources={"limits": {"amd.com/gpu": 1}}),
        {**ranks(), "spec": {**ranks()["spec"], "resourceClaims": [{"name": "gpu"}]}},
        {**ranks(), "spec": {**ranks()["spec"], "initContainers": [gpu("setup")]}},
        launcher("mpirun", "-H", "a,b", "x"),
    ],
    ids=["gpu", "no MPI", "another GPU", "a claim", "a GPU beside it", "a launcher"],
)
def test_other_pods_get_no_such_warning(manifest: PodManifest) -> None:
    """With a GPU, NCCL does the work; without MPI there is no hcoll; a launcher has no ranks."""
    assert "CPURanks" not in [
        outcome[2] for outcome in outcomes_of(decide_on(manifest, decision_input(V100)), NAME)
    ]
