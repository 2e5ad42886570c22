"""The verdict speaks about the libraries that move the data between nodes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import (
    V100,
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
from webhook.decide.verdict.libraries.usage import without_ours
from webhook.model.fabric import FabricEnv, RdmaResource
from webhook.model.facts import NamespaceFacts
from webhook.model.pod import PodManifest

EQUIPPED = ("yes", "Equipped")
ON_V100 = {"rdma.lab/fabric": "v100-ib"}
SENTENCE = "Device, memory, network and environment are right for RDMA"
ASSUMED = ", assuming that the image runs as root"
NIXL = ["vllm", "serve", "--kv-transfer-config", '{"kv_connector": "NixlConnector"}']
MOONCAKE = ["sglang", "serve", "--disaggregation-mode", "prefill"]
MORI = ["sglang", "serve", "--disaggregation-transfer-backend", "mori"]
DEEPEP = ["sglang", "serve", "--moe-a2a-backend", "deepep"]
TORCH = ["torchrun", "train.py"]
GROUP = {"leaderworkerset.sigs.k8s.io/name": "server"}
OFF = {"NCCL_IB_DISABLE": "1"}


def server(command: list[str], **values: str) -> PodManifest:
    """Make a pod with GPUs and these variables."""
    return pod(gpu(command=command, env=env(**values)))


def named(manifest: PodManifest) -> tuple[str, ...]:
    """Return the libraries that the verdict on a pod is about."""
    return verdict_on(manifest).libraries


@pytest.mark.parametrize(
    ("manifest", "libraries"),
    [
        (pod(), ("NCCL",)),
        (server(NIXL), ("NIXL",)),
        (server(MOONCAKE), ("Mooncake",)),
        (server(MORI), ("MoRI",)),
        (server(DEEPEP), ("NVSHMEM",)),
        (server(DEEPEP, NVSHMEM_REMOTE_TRANSPORT="None"), ("NCCL",)),
        (server(NIXL, NVSHMEM_REMOTE_TRANSPORT="none"), ("NIXL",)),
        (server(["bpslaunch", "x"], DMLC_ENABLE_RDMA="1"), ("ps-lite",)),
        (server([*NIXL, "--nnodes", "2"]), ("NIXL", "NCCL")),
        (server(NIXL, MASTER_ADDR="server-0"), ("NIXL", "NCCL")),
        (pod(gpu(command=NIXL), labels=GROUP), ("NIXL", "NCCL")),
        (pod(gpu(command=NIXL), gpu("b")), ("NIXL", "NCCL")),
        (pod(gpu("a", command=NIXL), gpu("b", command=NIXL)), ("NIXL",)),
        (pod(container(command=["mpirun", "-np", "4", "a"]), annotations=ON_V100), ("MPI",)),
        (
            pod(
                container(command=["mpirun", "a"], env=env(NCCL_DEBUG="INFO")), annotations=ON_V100
            ),
            ("NCCL", "MPI"),
        ),
        (pod(container(command=["ib_write_bw"]), annotations=ON_V100), ()),
        (pod(container(env=env(NCCL_DEBUG="INFO")), annotations=ON_V100), ("NCCL",)),
        (server([*TORCH, "--backend", "gloo"]), ("Gloo",)),
        (server([*TORCH, "--backend=mpi"]), ("MPI",)),
        (server([*NIXL, "--dist-backend=gloo"]), ("NIXL",)),
        (pod(gpu(command=[*TORCH, "--backend=gloo"], env=env(**OFF)), labels=GROUP), ("Gloo",)),
        (pod(container()), ()),
    ],
)
def test_the_libraries_are_named(manifest: PodManifest, libraries: tuple[str, ...]) -> None:
    """NCCL moves the data, unless another library does; in a group over several nodes, both."""
    assert named(manifest) == libraries


@pytest.mark.parametrize("command", [NIXL, MOONCAKE, MORI, DEEPEP], ids=case_name)
def test_nccl_may_be_off_where_another_library_moves_the_data(command: list[str]) -> None:
    """NCCL_IB_DISABLE turns off NCCL's own transport alone; the message ends with it."""
    library = named(server(command))[0]
    for setting in ("NCCL_IB_DISABLE=1", "NCCL_NET=Socket", 'NCCL_IB_HCA="mlx5_9"'):
        verdict = verdict_on(server(command, **dict([setting.replace('"', "").split("=")])))
        assert (verdict.rdma, verdict.because.code) == EQUIPPED
        off = f"; NCCL's RDMA is switched off by {setting}"
        assert verdict.message == f"{SENTENCE} with {library}{ASSUMED}{off}"
    assert verdict_on(server(command)).message == f"{SENTENCE} with {library}{ASSUMED}"


def test_no_library_is_named_where_none_is_visible() -> None:
    """NCCL needs a GPU, so a list of devices for it does not matter without one."""
    tool = container(command=["ib_write_bw"], env=env(NCCL_IB_HCA="mlx5_9"))
    assert verdict_on(pod(tool, annotations=ON_V100)).message == f"{SENTENCE}{ASSUMED}"
    three = [*NIXL, "--all2all-backend", "deepep", "--nnodes", "2"]
    assert verdict_on(server(three)).message == f"{SENTENCE} with NIXL, NVSHMEM and NCCL{ASSUMED}"


def test_gloo_has_no_rdma() -> None:
    """In PyTorch it uses TCP, whatever else the pod has; MPI may use RDMA."""
    verdict = verdict_on(server([*TORCH, "--backend=gloo"]))
    assert (verdict.rdma, verdict.because.code) == ("no", "GlooOverTcp")
    assert verdict.message == (
        "container trainer chooses PyTorch's backend gloo, which uses TCP; choose nccl"
    )
    by_mpi = verdict_on(server([*TORCH, "--backend=mpi"]))
    assert by_mpi.message == f"{SENTENCE} with MPI{ASSUMED}"


def test_a_group_over_several_nodes_needs_nccl_too() -> None:
    """The worst library counts, and the message also names the other, which is right."""
    verdict = verdict_on(pod(gpu(command=NIXL, env=env(**OFF)), labels=GROUP))
    assert (verdict.rdma, verdict.because.code) == ("no", "NcclIbDisabled")
    assert verdict.message == (
        "container trainer sets NCCL_IB_DISABLE=1; remove the variable (but NIXL can use RDMA "
        "either way)"
    )
    assert verdict.libraries == ("NIXL", "NCCL")
    assert verdict.libraries_clause == "NIXL and NCCL"
    plugin = {"NCCL_NET_PLUGIN": "fastrak", "UCX_TLS": "tcp"}
    worst = verdict_on(pod(gpu(command=NIXL, env=env(**plugin)), labels=GROUP))
    assert (worst.rdma, worst.because.code) == ("no", "NixlWithoutRdma")
    assert worst.message.endswith("no RDMA transport; remove the variable")
    right = verdict_on(pod(gpu(command=NIXL), labels=GROUP))
    assert right.message == f"{SENTENCE} with NIXL and NCCL{ASSUMED}"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"NCCL_NET_PLUGIN": "aws-ofi"}, ("unsure", "NcclNetPlugin")),
        ({"NCCL_NET": "FasTrak"}, ("unsure", "NcclNetPlugin")),
        ({"NCCL_NET": "IBext_v8"}, ("no", "NcclIbDisabled")),
        ({"NCCL_NET_PLUGIN": "anp"}, ("no", "NcclIbDisabled")),
        ({"NCCL_NET": "IB"}, ("no", "NcclIbDisabled")),
        ({"NCCL_NET_PLUGIN": "none"}, ("no", "NcclIbDisabled")),
    ],
    ids=case_name,
)
def test_plugins_and_the_switch_of_nccls_own_transport(
    values: dict[str, str], expected: tuple[str, str]
) -> None:
    """Only plugins that derive from that transport obey NCCL_IB_DISABLE."""
    assert judged(server(["x"], **OFF, **values)) == expected


@pytest.mark.parametrize(
    ("command", "values", "code", "message"),
    [
        (
            MOONCAKE,
            {"MC_FORCE_TCP": "1"},
            "MooncakeOverTcp",
            "makes Mooncake use TCP; remove MC_FORCE_TCP=1",
        ),
        (
            MOONCAKE,
            {"MOONCAKE_DEVICE": "mlx5_7"},
            "DevicesOfNoFabric",
            'sets MOONCAKE_DEVICE="mlx5_7", but the fabric\'s NCCL_IB_HCA is "=mlx5_0,mlx5_1"',
        ),
        (
            MOONCAKE,
            {"MC_MS_FILTERS": "mlx5_7"},
            "DevicesOfNoFabric",
            'sets MC_MS_FILTERS="mlx5_7", but the fabric\'s NCCL_IB_HCA is "=mlx5_0,mlx5_1"',
        ),
        (
            MORI,
            {"MORI_RDMA_DEVICES": "rdma0,rdma1"},
            "DevicesOfNoFabric",
            (
                'sets MORI_RDMA_DEVICES="rdma0,rdma1", but the fabric\'s NCCL_IB_HCA is '
                '"=mlx5_0,mlx5_1"'
            ),
        ),
        (
            NIXL,
            {"UCX_NET_DEVICES": "eth0"},
            "DevicesOfNoFabric",
            'sets UCX_NET_DEVICES="eth0", but the fabric\'s NCCL_IB_HCA is "=mlx5_0,mlx5_1"',
        ),
        (
            DEEPEP,
            {"NVSHMEM_HCA_LIST": "mlx5_7:1"},
            "DevicesOfNoFabric",
            'sets NVSHMEM_HCA_LIST="mlx5_7:1", but the fabric\'s NCCL_IB_HCA is "=mlx5_0,mlx5_1"',
        ),
        (
            DEEPEP,
            {"NVSHMEM_REMOTE_TRANSPORT": "UCX", "UCX_TLS": "tcp"},
            "NvshmemUcxTls",
            "uses NVSHMEM over UCX with UCX_TLS=tcp; remove the variable",
        ),
        (
            DEEPEP,
            {"NVSHMEM_REMOTE_TRANSPORT": "ucx", "UCX_NET_DEVICES": "eth0"},
            "DevicesOfNoFabric",
            'sets UCX_NET_DEVICES="eth0", but the fabric\'s NCCL_IB_HCA is "=mlx5_0,mlx5_1"',
        ),
    ],
    ids=case_name,
)
def test_what_keeps_the_other_libraries_off_rdma(
    command: list[str], values: dict[str, str], code: str, message: str
) -> None:
    """Each has its own settings."""
    verdict = verdict_on(server(command, **values))
    assert (verdict.rdma, verdict.because.code) == ("no", code)
    assert verdict.message == f"container trainer {message}"


def test_ucx_under_nvshmem_by_the_command() -> None:
    """The message says where it is."""
    script = f"export UCX_TLS=tcp NVSHMEM_REMOTE_TRANSPORT=ucx; {' '.join(DEEPEP)}"
    assert verdict_on(pod(gpu(command=["sh", "-c", script]))).message == (
        "container trainer uses NVSHMEM over UCX with UCX_TLS=tcp (export in its command); "
        "remove that setting"
    )


@pytest.mark.parametrize(
    ("command", "values"),
    [
        (["x"], {"UCX_NET_DEVICES": "eth0", "MORI": "rdma0"}),
        (DEEPEP, {"UCX_TLS": "tcp", "NVSHMEM_REMOTE_TRANSPORT": "ibgda"}),
        (DEEPEP, {"UCX_NET_DEVICES": "eth0", "NVSHMEM_REMOTE_TRANSPORT": "ibgda"}),
        (MOONCAKE, {"MOONCAKE_DEVICE": "mlx5_7,mlx5_1", "MOONCAKE_PROTOCOL": "rdma"}),
        (NIXL, {"UCX_NET_DEVICES": "all", "MC_FORCE_TCP_X": "1"}),
    ],
    ids=case_name,
)
def test_settings_of_libraries_that_are_not_used_do_not_count(
    command: list[str], values: dict[str, str]
) -> None:
    """Nor do those that leave a device of the fabric."""
    assert judged(server(command, **values)) == EQUIPPED


SOURCE = {"configMapKeyRef": {"name": "site", "key": "value"}}


@pytest.mark.parametrize(
    ("command", "name", "library"),
    [
        (["x"], "NCCL_IB_DISABLE", "NCCL"),
        (["x"], "NCCL_NET", "NCCL"),
        (["x"], "NCCL_NET_PLUGIN", "NCCL"),
        (["x"], "NCCL_IB_HCA", "NCCL"),
        (NIXL, "UCX_TLS", "NIXL"),
        (NIXL, "UCX_NET_DEVICES", "NIXL"),
        (MOONCAKE, "MOONCAKE_PROTOCOL", "Mooncake"),
        (MORI, "MORI_RDMA_DEVICES", "MoRI"),
        (DEEPEP, "NVSHMEM_REMOTE_TRANSPORT", "NVSHMEM"),
        (["mpirun", "osu_bw"], "UCX_TLS", "MPI"),
        (["mpirun", "osu_bw"], "UCX_NET_DEVICES", "MPI"),
    ],
    ids=case_name,
)
def test_a_value_that_is_not_seen_is_not_certain(
    command: list[str], name: str, library: str
) -> None:
    """It comes from a ConfigMap, or from another variable, and may turn RDMA off."""
    site = {"name": "SITE", "valueFrom": SOURCE}
    for item, source in (
        ({"valueFrom": SOURCE}, "key value of ConfigMap site"),
        ({"value": "$(SITE)"}, "valueFrom or $(NAME)"),
    ):
        verdict = verdict_on(pod(gpu(command=command, env=[site, {"name": name, **item}])))
        assert (verdict.rdma, verdict.because.code) == ("unsure", "ValueUnseen")
        assert verdict.message == (
            f"container trainer sets {name} from {source}, and that value may keep {library} from "
            "using RDMA"
        )


@pytest.mark.parametrize("name", ["UCX_TLS", "UCX_NET_DEVICES"])
@pytest.mark.parametrize(
    ("transport", "expected"), [("ucx", ("unsure", "ValueUnseen")), ("ibgda", EQUIPPED)]
)
def test_nvshmem_reads_ucxs_variables_only_over_ucx(
    name: str, transport: str, expected: tuple[str, str]
) -> None:
    """A value that is not seen may keep it off RDMA then."""
    variables = [*env(NVSHMEM_REMOTE_TRANSPORT=transport), {"name": name, "valueFrom": SOURCE}]
    assert judged(pod(gpu(command=DEEPEP, env=variables))) == expected


@pytest.mark.parametrize(
    ("command", "name", "code"),
    [
        (NIXL, "UCX_NET_DEVICES", "DevicesOfNoFabric"),
        (MORI, "MORI_RDMA_DEVICES", "DevicesOfNoFabric"),
        (MOONCAKE, "MOONCAKE_PROTOCOL", "ValueUnseen"),
        (DEEPEP, "NVSHMEM_REMOTE_TRANSPORT", "ValueUnseen"),
    ],
    ids=case_name,
)
def test_a_reference_that_stays_is_no_tick(command: list[str], name: str, code: str) -> None:
    """No device has such a name, and what a library makes of other nonsense is unknown."""
    verdict = verdict_on(pod(gpu(command=command, env=env(**{name: "$(X)", "X": "1"}))))
    assert verdict.because.code == code
    assert "$(X) is not expanded, since env defines it only later" in verdict.message


@pytest.mark.parametrize(
    ("command", "name", "expected"),
    [
        (NIXL, "UCX_NET_DEVICES", ("unsure", "SettingComputed")),
        (MORI, "MORI_RDMA_DEVICES", ("unsure", "SettingComputed")),
        (MOONCAKE, "MOONCAKE_PROTOCOL", ("unsure", "SettingComputed")),
        (DEEPEP, "NVSHMEM_REMOTE_TRANSPORT", EQUIPPED),
    ],
    ids=case_name,
)
def test_what_a_shell_computes_is_no_reference(
    command: list[str], name: str, expected: tuple[str, str]
) -> None:
    """`$(X)` is a command then; each transport of NVSHMEM between nodes may use RDMA."""
    by_command = ["sh", "-c", f"{name}=$(X) {' '.join(command)}"]
    assert judged(pod(gpu(command=by_command))) == expected


def test_a_port_counts_in_lists_of_devices() -> None:
    """The fabric names no port, so its devices may have only port 1."""
    assert judged(server(NIXL, UCX_NET_DEVICES="mlx5_0:1")) == EQUIPPED
    verdict = verdict_on(server(NIXL, UCX_NET_DEVICES="mlx5_0:2"))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "DevicePortUnseen")
    assert verdict.message == (
        'container trainer sets UCX_NET_DEVICES="mlx5_0:2", but the fabric may have only '
        "mlx5_0:1,mlx5_1:1"
    )


def test_a_device_of_no_fabric_goes_before_a_port() -> None:
    """RDMA is certainly off then, whichever variable comes first."""
    values = {"MOONCAKE_DEVICE": "mlx5_0:2", "MC_MS_FILTERS": "mlx5_7"}
    assert judged(server(MOONCAKE, **values)) == ("no", "DevicesOfNoFabric")


def test_a_reference_that_stays_is_named() -> None:
    """The value, and why it is what it is."""
    verdict = verdict_on(pod(gpu(command=MOONCAKE, env=env(MOONCAKE_PROTOCOL="$(X)"))))
    assert (verdict.rdma, verdict.message) == (
        "unsure",
        (
            "container trainer sets MOONCAKE_PROTOCOL to $(X) ($(X) is not expanded, since env "
            "defines it nowhere before), and that value may keep Mooncake from using RDMA"
        ),
    )


def test_a_value_that_decides_nothing_need_not_be_seen() -> None:
    """NCCL_DEBUG, and a variable of a library that is not used; a certain fault comes first."""
    names = ("NCCL_DEBUG", "UCX_TLS", "MORI_RDMA_DEVICE")
    unseen = [{"name": name, "valueFrom": SOURCE} for name in names]
    assert judged(pod(gpu(env=unseen))) == EQUIPPED
    variables = [{"name": "NCCL_NET", "valueFrom": SOURCE}, *env(**OFF)]
    assert judged(pod(gpu(env=variables))) == ("no", "NcclIbDisabled")


def test_what_the_site_sets_is_no_sign() -> None:
    """Else a second call, which sees it in the pod, would come to another verdict."""
    site = fabric(
        "site",
        gpu_resources=V100.gpu_resources,
        resources=(RdmaResource(name="rdma/x"),),
        env=FabricEnv(site_variables=(("NVSHMEM_QP_DEPTH", "1024"),)),
    )
    verdict = verdict_on(pod(), decision_input(site))
    assert (verdict.because.code, verdict.libraries) == ("Equipped", ("NCCL",))


def test_the_status_names_the_libraries_unless_nccl_is_alone() -> None:
    """NCCL is what readers expect."""
    status = decide_on(pod(gpu(command=NIXL), labels=GROUP)).pod["metadata"]["annotations"]
    assert '"fabric":"v100-ib","libraries":"NIXL,NCCL","applied"' in status["rdma.lab/status"]
    for alone in (pod(), pod(container())):
        annotations = decide_on(alone).pod["metadata"]["annotations"]
        assert "libraries" not in annotations["rdma.lab/status"]


def test_without_a_fabric_no_list_of_devices_is_wrong() -> None:
    """The device of another vendor may have any name."""
    efa: dict[str, Any] = quantities({"vpc.amazonaws.com/efa": "1", "nvidia.com/v100": "8"})
    manifest = pod(container(resources=efa, env=env(MORI_RDMA_DEVICES="rdma0")))
    assert judged(manifest) == ("unsure", "ForeignNIC")


def known(**data: str) -> Any:
    """Make a decision input with the ConfigMap `site`, as a preview has."""
    return decision_input(namespace=NamespaceFacts(name="lab", config_maps={"site": data}))


def test_a_config_map_that_a_preview_knows_is_read() -> None:
    """By valueFrom and by envFrom; other sources stay unknown."""
    item = {"name": "NCCL_NET", "valueFrom": SOURCE}
    off = verdict_on(pod(gpu(env=[item])), known(value="Socket"))
    assert off.message == (
        "container trainer sets NCCL_NET=Socket (key value of ConfigMap site); remove that setting"
    )
    assert judged(pod(gpu(env=[item])), known(value="IB")) == EQUIPPED
    assert judged(pod(gpu(env=[item])), known(other="IB")) == ("unsure", "ValueUnseen")
    site = {"configMapRef": {"name": "site"}}
    assert judged(pod(gpu(envFrom=[site])), known(NCCL_IB_DISABLE="1")) == ("no", "NcclIbDisabled")
    assert judged(pod(gpu(envFrom=[site])), known(HF_HOME="/a")) == EQUIPPED
    two_sources = pod(gpu(envFrom=[site, {"secretRef": {"name": "s"}}]))
    assert judged(two_sources, known(HF_HOME="/a")) == ("unsure", "EnvUnseen")
    assert judged(two_sources, known(NCCL_NET="Socket")) == ("no", "NcclNetSocket")
    assert named(pod(gpu(envFrom=[site]))) == ("NCCL",)
    nixl = verdict_on(pod(gpu(envFrom=[site])), known(VLLM_NIXL_SIDE_CHANNEL_PORT="1"))
    assert nixl.libraries == ("NIXL",)


def test_a_command_that_drops_the_environment_drops_what_a_config_map_sets() -> None:
    """Its variables do not reach the program."""
    item = {"name": "NCCL_NET", "valueFrom": SOURCE}
    manifest = pod(gpu(env=[item], command=["env", "-i", "./train"]))
    assert judged(manifest, known(value="Socket"))[1] != "NcclNetSocket"


CONF = {"name": "conf", "mountPath": "/etc/nccl.conf", "subPath": "nccl.conf"}
CONF_VOLUME = {"name": "conf", "configMap": {"name": "nccl"}}


def test_a_file_of_nccl_counts_behind_env() -> None:
    """Its content is known only to a preview; without it, the file may turn RDMA off."""
    manifest = pod(gpu(volumeMounts=[CONF]), volumes=[CONF_VOLUME])
    unseen = verdict_on(manifest)
    assert (unseen.rdma, unseen.because.code) == ("unsure", "FileUnseen")
    assert unseen.message == (
        "/etc/nccl.conf in container trainer may turn RDMA off (key nccl.conf of ConfigMap nccl)"
    )
    facts = NamespaceFacts(config_maps={"nccl": {"nccl.conf": "NCCL_IB_DISABLE=1\n"}})
    site = decision_input(V100)._replace(namespace=facts)
    verdict = verdict_on(manifest, site)
    assert verdict.message == (
        "container trainer sets NCCL_IB_DISABLE=1 (/etc/nccl.conf, key nccl.conf of ConfigMap "
        "nccl); remove that setting"
    )
    overridden = pod(gpu(volumeMounts=[CONF], env=env(NCCL_IB_DISABLE="0")), volumes=[CONF_VOLUME])
    assert judged(overridden, site) == EQUIPPED
    dropping = gpu(command=["su", "-", "-c", "train"], volumeMounts=[CONF], env=env(**OFF))
    harmless = site._replace(namespace=NamespaceFacts(config_maps={"nccl": {}}))
    assert judged(pod(dropping, volumes=[CONF_VOLUME]), harmless) == EQUIPPED
    assert judged(pod(dropping, volumes=[CONF_VOLUME]), site) == ("no", "NcclIbDisabled")
    assert judged(pod(gpu(command=NIXL, volumeMounts=[CONF]), volumes=[CONF_VOLUME])) == EQUIPPED


def test_a_script_that_is_not_known_is_assumed_to_be_harmless() -> None:
    """The first is named, after the assumption on the user, if there is one."""
    mount = {"name": "conf", "mountPath": "/scripts"}
    container = gpu(command=["bash", "/scripts/a"], volumeMounts=[mount])
    verdict = verdict_on(pod(container, volumes=[CONF_VOLUME]))
    assert verdict.unread_script is not None
    assert verdict.unread_script.title == "key a of ConfigMap nccl"
    clause = "that key a of ConfigMap nccl, which was not read, does not turn RDMA off"
    assert verdict.message.endswith(f", assuming that the image runs as root and {clause}")
    root = pod(container, volumes=[CONF_VOLUME], securityContext={"runAsUser": 0})
    assert verdict_on(root).message.endswith(f"right for RDMA, assuming {clause}")
    known_text = {"nccl": {"a": "vllm serve --kv-transfer-config NixlConnector\n"}}
    facts = decision_input(V100)._replace(namespace=NamespaceFacts(config_maps=known_text))
    read = verdict_on(pod(container, volumes=[CONF_VOLUME]), facts)
    assert (read.unread_script, read.libraries) == (None, ("NIXL",))


def test_variables_of_ours_show_no_library() -> None:
    """Those that the mutations set on any fabric, and the site's on this one."""
    site = fabric("site", env=FabricEnv(site_variables=(("NCCL_DEBUG", "INFO"),)))
    ours = {"NCCL_IB_HCA": "a", "OMPI_MCA_coll_hcoll_enable": "0", "NCCL_HOSTID": None}
    users: dict[str, str | None] = {"NCCL_NET": "IB"}
    assert without_ours({**ours, "NCCL_DEBUG": "INFO", **users}, site) == users
    assert without_ours({"NCCL_DEBUG": "INFO"}, None) == {"NCCL_DEBUG": "INFO"}
