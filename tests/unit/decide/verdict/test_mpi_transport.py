from __future__ import annotations

from typing import Any

import pytest

from tests.builders import (
    container,
    decide_on,
    decision_input,
    env,
    fabric,
    gpu,
    pod,
    quantities,
)
from tests.case_names import case_name
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.model.config_maps import DataKey
from webhook.model.decision import Decision
from webhook.model.fabric import FabricEnv, RdmaResource
from webhook.model.facts import NamespaceFacts
from webhook.model.pod import PodManifest

EQUIPPED = ("yes", "Equipped")
PROVIDER, PERHAPS = ("no", "MPIProviderOverTCP"), ("unsure", "MPIPerhapsOverTCP")
NO_DEVICE = ("no", "DevicesOfNoFabric")
OVER_TCP, OB1, UCX_TLS = ("no", "MPIOverTCP"), ("unsure", "MPIOb1"), ("no", "MPIUcxTls")


def ranks(command: str, **values: str) -> PodManifest:
    """Make a pod without GPUs that runs ranks itself on a fabric."""
    main = container(command=command.split(), env=env(**values))
    return pod(main, annotations={"rdma.lab/fabric": "v100-ib"})


@pytest.mark.parametrize(
    ("command", "values", "expected"),
    [
        ("mpirun -np 4 a", {}, EQUIPPED),
        ("mpirun -mca pml ucx a", {}, EQUIPPED),
        ("mpirun -mca btl tcp,self a", {}, EQUIPPED),
        ("mpirun --mca pml ob1 --mca btl self,tcp a", {}, OVER_TCP),
        ("mpirun --mca btl vader --mca pml ob1 a", {}, OVER_TCP),
        ("mpirun -mca pml ob1 a", {}, OB1),
        ("mpirun -mca pml ^ucx a", {}, OB1),
        ("mpirun -mca pml ^ucx -mca btl tcp,self a", {}, OB1),
        ("mpirun -mca pml ob1 -mca btl ^openib a", {}, OB1),
        ("mpirun -mca pml ob1 -mca btl self,openib a", {}, OB1),
        ("mpirun -mca pml ob1 -mca btl self,uct a", {}, OB1),
        ("mpirun -mca pml ob1 -mca btl self,ofi a", {}, OB1),
        ("mpirun -np 2 a -mca pml ob1", {}, EQUIPPED),
        ("mpirun -np 2 a", {"OMPI_MCA_pml": "ob1"}, OB1),
        ("mpirun -np 2 a", {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"}, OVER_TCP),
        ("mpirun -mca pml ucx a", {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp"}, EQUIPPED),
        ("mpirun a", {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp"}, OVER_TCP),
        ("mpirun -mca btl tcp,self a", {"OMPI_MCA_pml": "ob1"}, OVER_TCP),
        ("./start.sh", {"OMPI_MCA_pml": "ob1"}, OB1),
        ("env OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self mpirun a", {}, OVER_TCP),
        ("mpiexec.hydra -np 2 a -mca pml ob1", {}, EQUIPPED),
        ("sudo mpirun -mca pml ob1 -mca btl tcp,self a", {}, OVER_TCP),
        ("mpirun -np 4 a", {"UCX_TLS": "tcp"}, UCX_TLS),
        ("mpirun -np 4 a", {"UCX_TLS": "rc,self"}, EQUIPPED),
        ("python -m mpi4py a.py", {"UCX_TLS": "tcp,self"}, UCX_TLS),
        ("mpirun -mca pml ob1 a", {"UCX_TLS": "tcp"}, UCX_TLS),
        ("mpirun -mca pml ob1 -mca btl tcp a", {"UCX_TLS": "tcp"}, OVER_TCP),
        ("./start.sh", {"OMPI_MCA_coll": "^hcoll", "UCX_TLS": "tcp"}, UCX_TLS),
        ("ucx_perftest", {"UCX_TLS": "tcp"}, EQUIPPED),
        ("mpirun -np 4 a", {"UCX_NET_DEVICES": "eth0"}, NO_DEVICE),
        ("mpirun -np 4 -x UCX_NET_DEVICES=eth0 a", {}, NO_DEVICE),
        ("mpirun -np 4 a", {"UCX_NET_DEVICES": "mlx5_0:1,eth0"}, EQUIPPED),
        ("mpirun -mca pml ob1 a", {"UCX_NET_DEVICES": "eth0"}, OB1),
        ("mpirun -mca pml cm -x FI_PROVIDER=tcp a", {}, PROVIDER),
        ("mpirun -mca pml cm -mca mtl ofi a", {"FI_PROVIDER": "sockets"}, PROVIDER),
        ("mpirun -mca pml cm -mca mtl ofi a", {"FI_PROVIDER": "verbs"}, EQUIPPED),
        ("mpirun -mca mtl ofi a", {"FI_PROVIDER": "tcp"}, PERHAPS),
        ("mpirun -mca pml ucx -mca mtl ofi a", {"FI_PROVIDER": "tcp"}, EQUIPPED),
        ("mpirun -mca mtl psm2 a", {"FI_PROVIDER": "tcp"}, EQUIPPED),
        ("mpirun --allow-run-as-root a", {"FI_PROVIDER": "tcp"}, EQUIPPED),
        ("mpirun a", {"FI_PROVIDER": "tcp", "OMPI_MCA_btl": "^openib"}, EQUIPPED),
        ("mpirun a", {"FI_PROVIDER": "tcp"}, PERHAPS),
        ("./mpi4py.sh", {"FI_PROVIDER": "tcp", "OMPI_MCA_pml": "ucx"}, EQUIPPED),
        (
            "./mpi4py.sh",
            {"FI_PROVIDER": "tcp", "OMPI_MCA_pml": "ucx", "I_MPI_DEBUG": "5"},
            PROVIDER,
        ),
        ("./mpi4py.sh", {"FI_PROVIDER": "tcp", "OMPI_MCA_btl": "^openib"}, EQUIPPED),
        ("./mpi4py.sh", {"FI_PROVIDER": "tcp", "OMPI_MCA_mtl": "psm2"}, EQUIPPED),
        ("./mpi4py.sh", {"FI_PROVIDER": "tcp", "OMPI_MCA_coll": "^hcoll"}, PERHAPS),
        ("mpiexec.hydra a", {"FI_PROVIDER": "tcp;ofi_rxm"}, PERHAPS),
        ("mpiexec.hydra -genv FI_PROVIDER tcp a", {}, PERHAPS),
        ("mpiexec.hydra a", {"FI_PROVIDER": "tcp", "I_MPI_DEBUG": "5"}, PROVIDER),
        ("mpiexec.hydra a", {"I_MPI_OFI_PROVIDER": "tcp"}, PROVIDER),
        ("./mpi4py.sh", {"I_MPI_OFI_PROVIDER": "tcp", "OMPI_MCA_pml": "ucx"}, PROVIDER),
        ("mpirun -mca pml ucx a", {"I_MPI_OFI_PROVIDER": "tcp"}, EQUIPPED),
        ("mpirun -mca pml ucx a", {"I_MPI_DEBUG": "5", "FI_PROVIDER": "tcp"}, EQUIPPED),
        ("mpirun -mca pml ucx a", {"I_MPI_FABRICS": "shm:tcp"}, EQUIPPED),
        ("mpiexec.hydra -genv I_MPI_OFI_PROVIDER sockets a", {}, PROVIDER),
        ("mpiexec.hydra a", {"I_MPI_OFI_PROVIDER": "mlx", "FI_PROVIDER": "mlx"}, EQUIPPED),
        ("mpiexec.hydra a", {"I_MPI_FABRICS": "shm:tcp"}, PERHAPS),
        ("mpiexec.hydra a", {"I_MPI_FABRICS": "tcp"}, PERHAPS),
        ("mpiexec.hydra a", {"I_MPI_FABRICS": "shm:ofi"}, EQUIPPED),
        ("mpiexec.hydra a", {"I_MPI_FABRICS": "shm:tcp", "FI_PROVIDER": "tcp"}, PROVIDER),
        ("mpirun -mca pml ob1 -mca btl tcp a", {"FI_PROVIDER": "tcp"}, OVER_TCP),
    ],
    ids=case_name,
)
def test_ranks_without_gpus_need_a_transport_with_rdma(
    command: str, values: dict[str, str], expected: tuple[str, str]
) -> None:
    """Open MPI's ob1 has RDMA in some BTLs and builds; UCX has it unless UCX_TLS excludes it."""
    assert judged(ranks(command, **values)) == expected


def test_the_message_names_what_to_remove() -> None:
    """The setting may be in the command or in env."""
    tcp = verdict_on(ranks("mpirun -mca pml ob1 -mca btl tcp,self a")).message
    assert tcp == "container trainer runs Open MPI with pml ob1 and btl tcp,self; remove both"
    ob1 = verdict_on(ranks("mpirun -mca pml ob1 a")).message
    assert ob1 == "container trainer runs Open MPI with pml ob1, which may lack RDMA; remove pml"
    tls = verdict_on(ranks("mpirun a", UCX_TLS="tcp")).message
    assert tls == "container trainer runs MPI over UCX with UCX_TLS=tcp; remove the variable"
    provider = verdict_on(ranks("mpiexec.hydra -genv I_MPI_OFI_PROVIDER tcp a")).message
    assert provider == (
        "container trainer runs MPI with I_MPI_OFI_PROVIDER=tcp (mpiexec.hydra -genv in its "
        "command), which has no RDMA; remove that setting"
    )
    perhaps = verdict_on(ranks("mpiexec.hydra a", I_MPI_FABRICS="shm:tcp")).message
    assert perhaps == (
        "container trainer runs MPI with I_MPI_FABRICS=shm:tcp, with which it may lack RDMA; "
        "remove the variable"
    )


HOROVOD = ["mpirun", "-mca", "pml", "ob1", "-mca", "btl", "tcp,self", "python"]


@pytest.mark.parametrize(
    "manifest",
    [
        pod(gpu(command=HOROVOD)),
        pod(
            gpu(), container("ranks", command=HOROVOD), annotations={"rdma.lab/containers": "ranks"}
        ),
        pod(
            container(command=HOROVOD, resources=quantities({"nvidia.com/mig-1g.5gb": "1"})),
            annotations={"rdma.lab/fabric": "v100-ib"},
        ),
    ],
    ids=("gpu", "gpu of another container", "mig"),
)
def test_with_gpus_the_traffic_is_nccls(manifest: Any) -> None:
    """Horovod recommends these options of mpirun for jobs that use NCCL."""
    assert judged(manifest) == EQUIPPED


def test_what_only_the_container_knows_is_not_certain() -> None:
    """The value of the variable may be ob1."""
    source = {"name": "OMPI_MCA_pml", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "p"}}}
    manifest = pod(container(env=[source]), annotations={"rdma.lab/fabric": "v100-ib"})
    verdict = verdict_on(manifest)
    assert (verdict.rdma, verdict.because.code) == ("unsure", "ValueUnseen")
    assert verdict.message == (
        "container trainer sets OMPI_MCA_pml from key p of ConfigMap m, and that value may keep "
        "MPI from using RDMA"
    )


def test_a_script_that_is_not_read_is_not_judged() -> None:
    """Its commands are not certain."""
    script = "if [ 1 ]; then\nmpirun -mca pml ob1 -mca btl tcp,self a\n"
    manifest = pod(
        container(command=["sh", "-c", script]), annotations={"rdma.lab/fabric": "v100-ib"}
    )
    assert judged(manifest) == EQUIPPED


@pytest.mark.parametrize(
    ("script", "values", "expected"),
    [
        ("mpirun --mca pml ob1 --mca btl tcp,self -np 4 ./osu_bw; sleep 9", {}, OVER_TCP),
        ("export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self; mpirun osu_bw; sleep 9", {}, OVER_TCP),
        ("mpirun -x UCX_TLS=tcp osu_latency", {}, UCX_TLS),
        ("mpiexec.hydra -n 4 IMB-MPI1", {"I_MPI_OFI_PROVIDER": "tcp"}, PROVIDER),
        ("mpirun osu_bw", {"NCCL_IB_DISABLE": "1", "NCCL_DEBUG": "INFO"}, EQUIPPED),
        ("mpirun -mca pml ucx osu_bw", {}, EQUIPPED),
        ("mpirun -mca pml ob1 -mca btl tcp,self all_reduce_perf", {}, EQUIPPED),
    ],
    ids=case_name,
)
def test_mpis_own_benchmarks_with_gpus(
    script: str, values: dict[str, str], expected: tuple[str, str]
) -> None:
    """MPI moves their data, and NCCL that of its own."""
    assert judged(pod(gpu(command=["sh", "-c", script], env=env(**values)))) == expected


UNKNOWN = ("unsure", "MPIUnlessNccl")
TCP = "-mca pml ob1 -mca btl tcp,self"


@pytest.mark.parametrize(
    ("script", "values", "expected"),
    [
        (f"mpirun {TCP} ./solver", {}, UNKNOWN),
        (f"mpirun {TCP} python -m mpi4py a", {}, UNKNOWN),
        ("mpirun -mca pml ob1 ./solver", {}, UNKNOWN),
        ("mpirun ./solver", {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp"}, UNKNOWN),
        ("mpirun ./solver", {"UCX_TLS": "tcp"}, UNKNOWN),
        ("export UCX_TLS=tcp; mpirun ./solver", {}, UNKNOWN),
        ("mpirun -x UCX_TLS=self,sm,tcp ./solver", {}, UNKNOWN),
        ("mpirun ./solver", {"UCX_NET_DEVICES": "eth0"}, UNKNOWN),
        ("mpiexec.hydra ./solver", {"FI_PROVIDER": "tcp"}, UNKNOWN),
        ("mpiexec.hydra ./solver", {"I_MPI_OFI_PROVIDER": "tcp"}, UNKNOWN),
        ("./solver", {"I_MPI_OFI_PROVIDER": "tcp"}, UNKNOWN),
        ("mpirun -x UCX_TLS=$X ./solver", {}, ("unsure", "SettingComputed")),
        ("mpirun ./solver", {}, EQUIPPED),
        ("mpirun ./solver", {"FI_PROVIDER": "verbs", "UCX_TLS": "rc"}, EQUIPPED),
        ("./solver", {"UCX_TLS": "tcp"}, EQUIPPED),
        (f"mpirun {TCP} ./solver", {"NCCL_DEBUG": "INFO"}, EQUIPPED),
        (f"mpirun {TCP} all_reduce_perf", {}, EQUIPPED),
        (f"mpirun {TCP} python train.py", {}, EQUIPPED),
        (f"mpirun {TCP} a --nixl", {}, EQUIPPED),
        (f"mpirun {TCP} a --backend gloo", {}, ("no", "GlooOverTcp")),
        (f"mpirun {TCP} a; /usr/sbin/sshd -D", {}, EQUIPPED),
    ],
    ids=case_name,
)
def test_a_program_with_gpus_that_shows_no_library(
    script: str, values: dict[str, str], expected: tuple[str, str]
) -> None:
    """If MPI starts it, MPI or NCCL may move its data; what sshd starts is not known."""
    assert judged(pod(gpu(command=["sh", "-c", script], env=env(**values)))) == expected


def test_the_message_names_the_other_possibility() -> None:
    """NCCL's data does not depend on the settings of MPI."""
    assert verdict_on(pod(gpu(command=f"mpirun {TCP} ./solver".split()))).message == (
        "container trainer runs Open MPI with pml ob1 and btl tcp,self; remove both (no action is "
        "needed if NCCL moves the data)"
    )


def test_a_value_that_only_the_container_knows_with_gpus() -> None:
    """It may keep MPI off RDMA, and MPI may move the data."""
    source = {"name": "OMPI_MCA_pml", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "p"}}}
    verdict = verdict_on(pod(gpu(command=["mpirun", "./solver"], env=[source])))
    assert (verdict.rdma, verdict.because.code) == UNKNOWN
    assert verdict.key == DataKey("m", "p")


PARAMETERS = {"name": "etc", "mountPath": "/etc/openmpi"}
PARAMETERS_VOLUME = {"name": "etc", "configMap": {"name": "mpi"}}


@pytest.mark.parametrize(
    ("text", "command", "expected"),
    [
        ("pml = ob1\nbtl = tcp,self\n", "mpirun a", OVER_TCP),
        ("pml = ob1\nbtl = tcp,self\n", "mpirun -mca pml ucx a", EQUIPPED),
        ("pml = ucx\n", "mpirun a", EQUIPPED),
        (None, "mpirun a", ("unsure", "FileUnseen")),
        (None, "ucx_perftest", EQUIPPED),
    ],
    ids=case_name,
)
def test_a_file_with_open_mpis_parameters(
    text: str | None, command: str, expected: tuple[str, str]
) -> None:
    """It counts behind options and variables; admission does not see it."""
    data = {} if text is None else {"mpi": {"openmpi-mca-params.conf": text}}
    cluster = decision_input(namespace=NamespaceFacts(name="lab", config_maps=data))
    main = container(command=command.split(), volumeMounts=[PARAMETERS])
    manifest = pod(main, volumes=[PARAMETERS_VOLUME], annotations={"rdma.lab/fabric": "v100-ib"})
    assert judged(manifest, cluster) == expected
    with_gpu = pod(
        gpu(command=command.split(), volumeMounts=[PARAMETERS]), volumes=[PARAMETERS_VOLUME]
    )
    unless = UNKNOWN if expected == OVER_TCP else expected
    assert judged(with_gpu, cluster) == unless


def test_an_option_is_not_said_to_be_in_the_file() -> None:
    """The message names what decides."""
    data = {"mpi": {"openmpi-mca-params.conf": "pml = ucx\nbtl = ofi\n"}}
    cluster = decision_input(namespace=NamespaceFacts(name="lab", config_maps=data))
    main = container(command=f"mpirun {TCP} a".split(), volumeMounts=[PARAMETERS])
    manifest = pod(main, volumes=[PARAMETERS_VOLUME], annotations={"rdma.lab/fabric": "v100-ib"})
    verdict = verdict_on(manifest, cluster)
    assert verdict.message == (
        "container trainer runs Open MPI with pml ob1 and btl tcp,self; remove both"
    )
    assert verdict.key is None


def test_a_script_in_a_config_map_with_gpus() -> None:
    """The container's env does not override what the script sets."""
    scripts = {"run.sh": "export UCX_TLS=tcp; mpirun ./solver"}
    cluster = decision_input(namespace=NamespaceFacts(name="lab", config_maps={"s": scripts}))
    trainer = gpu(
        command=["sh", "/scripts/run.sh"],
        volumeMounts=[{"name": "s", "mountPath": "/scripts"}],
    )
    volumes = [{"name": "s", "configMap": {"name": "s"}}]
    verdict = verdict_on(pod(trainer, volumes=volumes), cluster)
    assert (verdict.rdma, verdict.because.code) == UNKNOWN
    assert (verdict.key, verdict.overrides_env) == (DataKey("s", "run.sh"), True)
    del trainer["resources"]
    ranks = pod(trainer, volumes=volumes, annotations={"rdma.lab/fabric": "v100-ib"})
    assert judged(ranks, cluster) == UCX_TLS


def test_a_file_of_nccl_does_not_matter_to_mpi() -> None:
    """Ranks without GPUs do not read it."""
    script = "cp /x/nccl.conf /etc/nccl.conf; mpirun a"
    main = container(command=["sh", "-c", script])
    assert judged(pod(main, annotations={"rdma.lab/fabric": "v100-ib"})) == EQUIPPED


def test_the_message_names_the_file() -> None:
    """With the key of the ConfigMap that has it."""
    data = {"mpi": {"openmpi-mca-params.conf": "pml = ob1\nbtl = tcp,self\n"}}
    cluster = decision_input(namespace=NamespaceFacts(name="lab", config_maps=data))
    main = container(command=["mpirun", "a"], volumeMounts=[PARAMETERS])
    manifest = pod(main, volumes=[PARAMETERS_VOLUME], annotations={"rdma.lab/fabric": "v100-ib"})
    verdict = verdict_on(manifest, cluster)
    assert verdict.message == (
        "container trainer runs Open MPI with pml ob1 and btl tcp,self "
        "(/etc/openmpi/openmpi-mca-params.conf, key openmpi-mca-params.conf of ConfigMap mpi); "
        "remove both"
    )
    assert verdict.key == DataKey("mpi", "openmpi-mca-params.conf")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('mpirun -mca pml ob1 -mca btl "$BTL" osu_bw', OB1),
        ('OMPI_MCA_btl="$BTL" mpirun -mca pml ob1 osu_bw', OB1),
        ("mpirun -mca pml ucx osu_bw; I_MPI_OFI_PROVIDER=tcp mpiexec.hydra osu_bw", PROVIDER),
        ("torchrun train.py --backend mpi; UCX_TLS=tcp torchrun train.py --backend mpi", UCX_TLS),
        ("mpirun python3.11 -m mpi4py.bench -mca pml ob1", EQUIPPED),
        ("mpirun -mca pml ob1 python3.11 -m mpi4py.bench", OB1),
    ],
)
def test_each_command_with_gpus_has_its_own_settings(
    script: str, expected: tuple[str, str]
) -> None:
    """A value that the shell computes is unknown, and Intel's settings are none of Open MPI's."""
    assert judged(pod(gpu(command=["sh", "-c", script]))) == expected


def test_a_script_that_is_known_shows_that_mpi_moves_the_data() -> None:
    """The command alone need not mention MPI."""
    scripts = {"run.sh": "torchrun train.py --backend mpi"}
    cluster = decision_input(namespace=NamespaceFacts(name="lab", config_maps={"s": scripts}))
    trainer = gpu(
        command=["sh", "/scripts/run.sh"],
        env=env(UCX_TLS="tcp"),
        volumeMounts=[{"name": "s", "mountPath": "/scripts"}],
    )
    volume = {"name": "s", "configMap": {"name": "s"}}
    assert judged(pod(trainer, volumes=[volume]), cluster) == UCX_TLS


def test_a_setting_that_is_not_certain() -> None:
    """A computed provider may be TCP; a library that moves the data goes first."""
    computed = pod(gpu(command=["sh", "-c", "export I_MPI_OFI_PROVIDER=$P; mpiexec.hydra osu_bw"]))
    assert judged(computed) == ("unsure", "SettingComputed")
    nixl = pod(gpu(command=["mpirun", "osu_bw", "--nixl"], env=env(FI_PROVIDER="tcp")))
    assert verdict_on(nixl).libraries == ("NIXL",)


@pytest.mark.parametrize("value", ["b", "tcp,self"])
def test_what_the_site_sets_shows_no_mpi(value: str) -> None:
    """An earlier call has set it by the second call, which must not decide otherwise."""
    site = fabric(
        resources=(RdmaResource(name="rdma/v100"),),
        env=FabricEnv(site_variables=(("OMPI_MCA_btl", value), ("OMPI_MCA_pml", "ob1"))),
    )
    cluster = decision_input(site)
    main = container(env=env(FI_PROVIDER="tcp"), resources=quantities({"rdma/v100": "1"}))
    labels = {"training-job-role": "worker"}
    first = decide_on(pod(main, labels=labels), cluster)
    assert "OMPI_MCA_btl" in str(first.pod)
    assert verdict_of(first) == PERHAPS
    assert verdict_of(decide_on(first.pod, cluster)) == PERHAPS
    own = pod(container(**{**main, "env": env(OMPI_MCA_pml="ob1")}), labels=labels)
    assert judged(own, decision_input(fabric(resources=site.resources))) == OB1


def test_what_a_fabric_sets_shows_no_open_mpi() -> None:
    """It is in the pod by the second call, for any MPI."""
    openmpi = fabric(
        resources=(RdmaResource(name="rdma/v100"),),
        libraries=frozenset({"openmpi"}),
        socket_interface="eth0",
    )
    resources = quantities({"rdma/v100": "1"})
    main = container(command=["mpirun", "a"], env=env(FI_PROVIDER="tcp"), resources=resources)
    assert "OMPI_MCA_btl_tcp_if_include" in str(decide_on(pod(main), decision_input(openmpi)).pod)
    assert judged(pod(main), decision_input(openmpi)) == PERHAPS


def test_ucx_tls_of_the_site() -> None:
    """It is in the pod by the second call, and the verdict stays."""
    site = fabric(
        resources=(RdmaResource(name="rdma/v100"),),
        env=FabricEnv(site_variables=(("UCX_TLS", "tcp"),)),
    )
    main = container(command=["mpirun", "a"], resources=quantities({"rdma/v100": "1"}))
    first = decide_on(pod(main), decision_input(site))
    assert verdict_of(first) == EQUIPPED
    assert verdict_of(decide_on(first.pod, decision_input(site))) == EQUIPPED


def verdict_of(decision: Decision) -> tuple[str, str]:
    """Return the verdict and the code of its reason."""
    assert decision.verdict is not None
    return decision.verdict.rdma, decision.verdict.because.code
