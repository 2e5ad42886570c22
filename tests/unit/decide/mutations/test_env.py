from __future__ import annotations

from typing import Any

import pytest

from tests.builders import V100, container, decision_input, defaulted, env, fabric, gpu, ops, pod
from tests.builders import decide_on as all_decide_on
from tests.builders import outcomes_of as all_outcomes
from tests.case_names import case_name
from webhook.model.decision import Decision
from webhook.model.fabric import Fabric, FabricEnv
from webhook.model.pod import PodManifest

NAME = "env"
GPU = frozenset({"nvidia.com/v100"})
FULL = {
    "NCCL_IB_HCA": "=mlx5_0,mlx5_1",
    "NCCL_SOCKET_IFNAME": "eth0",
    "GLOO_SOCKET_IFNAME": "eth0",
    "UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1,eth0",
}
SET_ALL = f"set {', '.join(FULL)}"
MPIRUN = ["mpirun", "--allow-run-as-root", "--hostfile", "/etc/mpi/hostfile"]


def trainer(**variables: str) -> PodManifest:
    """Make a pod whose target has these variables."""
    return pod(gpu(env=env(**variables)))


def decide_on(manifest: PodManifest, *members: Fabric) -> Decision:
    """Decide with hcoll off, since it would add its own variable."""
    return all_decide_on(manifest, decision_input(*members, defaults={"hcoll": "off"}))


def outcomes(decision: Decision) -> list[tuple[str, str, str, str]]:
    """List the outcomes of `env`."""
    return all_outcomes(decision, NAME)


def values(decision: Decision, index: int = 0) -> dict[str, Any]:
    """Return a container's variables after the decision; no name may occur twice."""
    written = decision.pod["spec"]["containers"][index].get("env") or []
    values_by_name = {
        variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in written
    }
    assert len(values_by_name) == len(written)
    return values_by_name


def launching(**fields: Any) -> PodManifest:
    """Make a pod that launches ranks on the first fabric."""
    launcher = container("launcher", command=MPIRUN, **{"args": ["a.out"], **fields})
    return pod(launcher, annotations={"rdma.lab/fabric": "v100-ib"})


def test_a_fabric_may_have_nothing_to_set() -> None:
    """The outcome is reported, and the container gets no env."""
    decision = decide_on(pod(), fabric(gpu_resources=GPU))
    assert outcomes(decision) == [
        ("trainer", "skipped", "NotConfigured", "fabric plain sets no variables")
    ]
    assert "env" not in decision.pod["spec"]["containers"][0]


def test_a_fabric_that_sets_no_more_than_the_sockets_finds_them_there() -> None:
    """A second call reports them as present, so that the status still names `env` as applied."""
    members = fabric(gpu_resources=GPU, socket_interface="eth0")
    first = decide_on(pod(), members)
    added = "set NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME"
    assert outcomes(first) == [("trainer", "applied", "Added", added)]
    second = decide_on(first.pod, members)
    present = ("trainer", "already", "Present", "the container already has all variables")
    assert outcomes(second) == [present]
    assert second.patch == ()


def test_a_container_may_have_all_of_it() -> None:
    """If all values are already the fabric's, nothing is written."""
    decision = decide_on(trainer(**FULL))
    assert outcomes(decision) == [
        ("trainer", "already", "Present", "the container already has all variables")
    ]
    assert ops(decision, NAME) == []


@pytest.mark.parametrize("fields", [{}, {"env": None}, {"env": []}], ids=repr)
def test_all_of_it_is_added(fields: dict[str, Any]) -> None:
    """If the container has no list yet, one operation adds them all."""
    decision = decide_on(pod(gpu(**fields)))
    assert outcomes(decision) == [("trainer", "applied", "Added", SET_ALL)]
    assert values(decision) == FULL


def test_the_users_variables_stay_in_front() -> None:
    """Our variables are appended; `$(NAME)` in the user's refers to the user's variables."""
    decision = decide_on(trainer(B="1", A="$(B)"))
    assert ops(decision, NAME) == [
        {"op": "add", "path": "/spec/containers/0/env/-", "value": {"name": name, "value": value}}
        for name, value in FULL.items()
    ]
    assert list(values(decision)) == ["B", "A", *FULL]


def test_a_name_that_the_container_has_is_never_written() -> None:
    """A value from another source stays too, and a value that differs causes a warning."""
    user_env = [
        *env(NCCL_IB_HCA="mlx5_1"),
        {"name": "UCX_NET_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]
    decision = decide_on(pod(gpu(env=user_env)))
    assert outcomes(decision) == [
        ("trainer", "applied", "Added", "set NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME"),
        (
            "trainer",
            "warned",
            "UserValue",
            "kept your NCCL_IB_HCA=mlx5_1; the value of fabric v100-ib is =mlx5_0,mlx5_1",
        ),
        (
            "trainer",
            "warned",
            "UserValue",
            "kept your UCX_NET_DEVICES; the value of fabric v100-ib is mlx5_0:1,mlx5_1:1,eth0",
        ),
    ]
    assert decision.pod["spec"]["containers"][0]["env"][:2] == user_env


@pytest.mark.parametrize(
    ("variables", "added"),
    [
        ({"NCCL_SOCKET_IFNAME": "=eth1"}, "mlx5_0:1,mlx5_1:1,eth1"),
        ({"GLOO_SOCKET_IFNAME": "eth1"}, "mlx5_0:1,mlx5_1:1,eth1"),
        ({"NCCL_SOCKET_IFNAME": "^lo"}, None),
    ],
    ids=case_name,
)
def test_socket_names_are_a_group(variables: dict[str, str], added: str | None) -> None:
    """If the pod sets either name, neither is written, and UCX gets the pod's plain name."""
    decision = decide_on(trainer(**variables))
    ucx = {"UCX_NET_DEVICES": added} if added else {}
    assert values(decision) == {**variables, "NCCL_IB_HCA": "=mlx5_0,mlx5_1", **ucx}


def test_the_host_network_gets_the_hosts_interface() -> None:
    """The name of the pod network's interface has no meaning on the host."""
    decision = decide_on(pod(hostNetwork=True))
    assert values(decision)["NCCL_SOCKET_IFNAME"] == "bond0"
    assert values(decision)["UCX_NET_DEVICES"] == "mlx5_0:1,mlx5_1:1,bond0"


def test_env_from_may_hold_the_names() -> None:
    """Nothing is set: NCCL's go into a file that NCCL reads last, and a warning lists the rest."""
    manifest = pod(gpu(envFrom=[{"configMapRef": {"name": "site"}}], env=env(A="b")))
    decision = decide_on(manifest)
    assert outcomes(decision) == [
        (
            "trainer",
            "skipped",
            "EnvFrom",
            "variables not set here, since envFrom may set them; NCCL_* go into /etc/nccl.conf",
        ),
        (
            "trainer",
            "warned",
            "EnvFrom",
            (
                "variables not set, since envFrom may set them; add to env: GLOO_SOCKET_IFNAME, "
                "UCX_NET_DEVICES"
            ),
        ),
    ]
    assert values(decision) == {"A": "b"}
    assert decision.warnings[1:] == (
        (
            "rdma.lab: env trainer: variables not set, since envFrom may set them; "
            "add to env: GLOO_SOCKET_IFNAME, UCX_NET_DEVICES"
        ),
    )


@pytest.mark.parametrize(
    ("annotations", "defaults"),
    [({"rdma.lab/skip": "config-files"}, {}), ({}, {"config_files": "never"})],
    ids=("skip", "never"),
)
def test_without_files_env_from_keeps_all_of_it_out(
    annotations: dict[str, str], defaults: dict[str, str]
) -> None:
    """Without the file, the warning lists NCCL's variables too."""
    source = [{"configMapRef": {"name": "site"}}]
    manifest = pod(gpu(envFrom=source), annotations=annotations)
    decision = all_decide_on(manifest, decision_input(defaults=defaults))
    assert outcomes(decision) == [
        ("trainer", "skipped", "EnvFrom", "variables not set here, since envFrom may set them"),
        (
            "trainer",
            "warned",
            "EnvFrom",
            f"variables not set, since envFrom may set them; add to env: {', '.join(FULL)}",
        ),
    ]


def test_env_from_is_no_matter_where_nothing_is_missing() -> None:
    """A variable in env takes precedence over envFrom."""
    source = [{"configMapRef": {"name": "site"}}]
    assert outcomes(decide_on(pod(gpu(envFrom=source, env=env(**FULL)))))[0][1:3] == (
        "already",
        "Present",
    )


def test_env_from_with_nccl_alone_needs_no_warning() -> None:
    """All of NCCL's variables go into the file."""
    nccl_only = fabric(
        gpu_resources=GPU, env=FabricEnv(library_variables=(("NCCL_IB_HCA", "=mlx5_0"),))
    )
    decision = decide_on(pod(gpu(envFrom=[{"secretRef": {"name": "s"}}])), nccl_only)
    assert [outcome[1:3] for outcome in outcomes(decision)] == [("skipped", "EnvFrom")]


@pytest.mark.parametrize(
    ("tls", "warned"),
    [
        ("tcp", True),
        ("cuda_ipc,cuda_copy,tcp", True),
        ("sm,self", True),
        ("rc,sm,self", False),
        ("rc_x", False),
        ("tcp, ud_v", False),
        ("dc_mlx5", False),
        ("ib", False),
        ("all", False),
        ("^tcp", False),
        ("", False),
    ],
)
def test_transports_without_rdma_are_warned_of(tls: str, warned: bool) -> None:
    """The user's value is kept with a warning; a list that only excludes transports leaves RDMA."""
    expected = [
        (
            "trainer",
            "warned",
            "UcxTlsWithoutRdma",
            f"your UCX_TLS={tls} includes no RDMA transport",
        )
    ]
    assert outcomes(decide_on(trainer(UCX_TLS=tls)))[1:] == (expected if warned else [])


@pytest.mark.parametrize(("value", "warned"), [("1", True), ("0", False), ("", False)])
def test_nccl_without_infiniband_is_warned_of(value: str, warned: bool) -> None:
    """The user's value is kept, with a warning."""
    expected = (
        "trainer",
        "warned",
        "NcclIbDisabled",
        "your NCCL_IB_DISABLE=1 turns NCCL's RDMA off",
    )
    assert outcomes(decide_on(trainer(NCCL_IB_DISABLE=value)))[1:] == ([expected] if warned else [])


def test_a_launcher_gets_them_too() -> None:
    """Many launchers pass on their environment; Open MPI does not, so there is a warning."""
    decision = decide_on(launching())
    assert outcomes(decision) == [
        ("launcher", "applied", "Added", SET_ALL),
        (
            "launcher",
            "warned",
            "NotForwarded",
            "UCX settings do not reach ranks over ssh; add -x UCX_NET_DEVICES to mpirun",
        ),
    ]
    assert values(decision) == FULL
    assert decision.warnings == (
        (
            "rdma.lab: env launcher: UCX settings do not reach ranks over ssh; "
            "add -x UCX_NET_DEVICES to mpirun"
        ),
    )


def test_a_launcher_that_forwards_them_is_not_warned() -> None:
    """There is no warning if the user has written the flag."""
    manifest = launching(args=["-x", "UCX_NET_DEVICES", "a.out"])
    assert [outcome[1] for outcome in outcomes(decide_on(manifest))] == ["applied"]


def test_without_ucx_settings_a_launcher_is_not_warned() -> None:
    """There is no warning, since Open MPI has nothing to forward."""
    without_ucx = fabric("v100-ib", env=FabricEnv(library_variables=V100.env.library_variables))
    assert [outcome[1] for outcome in outcomes(decide_on(launching(), without_ucx))] == ["applied"]


def test_a_launchers_env_from_may_hold_all_names() -> None:
    """A launcher gets no file, so the warning lists NCCL's variables too."""
    decision = decide_on(launching(envFrom=[{"configMapRef": {"name": "site"}}]))
    assert outcomes(decision)[1] == (
        "launcher",
        "warned",
        "EnvFrom",
        f"variables not set, since envFrom may set them; add to env: {', '.join(FULL)}",
    )


def test_the_sites_own_variables_are_added() -> None:
    """They are added even if the fabric itself sets none."""
    site = fabric(gpu_resources=GPU, env=FabricEnv(site_variables=(("NCCL_DEBUG", "WARN"),)))
    decision = decide_on(pod(), site)
    assert outcomes(decision) == [("trainer", "applied", "Added", "set NCCL_DEBUG")]


SITE_SOCKET = fabric(
    gpu_resources=GPU,
    env=FabricEnv(ucx_devices="mlx5_0:1", site_variables=(("NCCL_SOCKET_IFNAME", "eth3"),)),
)


@pytest.mark.parametrize(
    ("manifest", "member"),
    [
        (pod(), V100),
        (trainer(NCCL_IB_HCA="x", UCX_TLS="tcp"), V100),
        (trainer(GLOO_SOCKET_IFNAME="=eth1"), V100),
        (trainer(GLOO_SOCKET_IFNAME="eth1"), SITE_SOCKET),
        (pod(), SITE_SOCKET),
        (pod(gpu(envFrom=[{"configMapRef": {"name": "site"}}])), V100),
        (pod(hostNetwork=True), V100),
        (launching(), V100),
    ],
    ids=case_name,
)
def test_deciding_again_changes_nothing(manifest: PodManifest, member: Fabric) -> None:
    """The second call finds our variables and adds no warning."""
    first = decide_on(defaulted(manifest), member)
    assert decide_on(defaulted(first.pod), member).patch == ()


def warned(decision: Decision) -> list[tuple[str, str]]:
    """List the codes and sentences of the warnings of `env`."""
    return [
        (code, message) for _, status, code, message in outcomes(decision) if status == "warned"
    ]


def test_nccl_on_sockets_is_warned_of() -> None:
    """The user's value is kept, with a warning."""
    message = "your NCCL_NET=Socket turns NCCL's RDMA off"
    assert warned(decide_on(trainer(NCCL_NET="Socket"))) == [("NcclNetSocket", message)]
    assert warned(decide_on(trainer(NCCL_NET="IB"))) == []


def test_devices_of_no_fabric_are_warned_of() -> None:
    """NCCL would find no device and use sockets; there is a single warning."""
    message = "your NCCL_IB_HCA=mlx5_9 selects no device of fabric v100-ib, whose value is "
    assert warned(decide_on(trainer(NCCL_IB_HCA="mlx5_9"))) == [
        ("NcclIbHcaElsewhere", f"{message}NCCL_IB_HCA==mlx5_0,mlx5_1")
    ]
    assert warned(decide_on(trainer(NCCL_IB_HCA="=mlx5_0:2"))) == [
        (
            "UserValue",
            "kept your NCCL_IB_HCA==mlx5_0:2; the value of fabric v100-ib is =mlx5_0,mlx5_1",
        )
    ]
    other = trainer(NCCL_IB_HCA="mlx5_9", UCX_NET_DEVICES="mlx5_7:1")
    assert [code for code, _ in warned(decide_on(other))] == ["NcclIbHcaElsewhere", "UserValue"]
    assert [code for code, _ in warned(decide_on(trainer(NCCL_IB_HCA="=mlx5_0:1")))] == [
        "UserValue"
    ]
    site = fabric(gpu_resources=GPU, env=FabricEnv(site_variables=(("NCCL_IB_HCA", "=mlx5_0"),)))
    assert [code for code, _ in warned(decide_on(trainer(NCCL_IB_HCA="ibp"), site))] == [
        "NcclIbHcaElsewhere"
    ]
    assert warned(decide_on(trainer(NCCL_IB_HCA="mlx5_0"), site)) == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"args": ["--disaggregation-transfer-backend", "nixl"]}, "NixlWithoutRdma"),
        ({"env": env(VLLM_NIXL_SIDE_CHANNEL_PORT="5600")}, "NixlWithoutRdma"),
        ({}, "UcxTlsWithoutRdma"),
    ],
    ids=("command", "env", "neither"),
)
def test_nixl_without_rdma_is_warned_of(fields: dict[str, Any], code: str) -> None:
    """NIXL moves its data over UCX; other traffic may be NCCL's, where UCX_TLS has no meaning."""
    variables = [*env(UCX_TLS="cuda_ipc,cuda_copy,tcp"), *fields.get("env", [])]
    warnings = warned(decide_on(pod(gpu(**fields | {"env": variables}))))
    start = "NIXL uses UCX, and " if code == "NixlWithoutRdma" else ""
    tls = "your UCX_TLS=cuda_ipc,cuda_copy,tcp includes no RDMA transport"
    assert warnings == [(code, start + tls)]


def test_a_fabrics_value_is_not_called_the_users() -> None:
    """An earlier preview may have written it to the file for another fabric."""
    other = fabric("other", env=FabricEnv(library_variables=(("NCCL_IB_HCA", "=mlx5_0,mlx5_4"),)))
    warnings = warned(decide_on(trainer(NCCL_IB_HCA="=mlx5_0,mlx5_4"), V100, other))
    message = "kept NCCL_IB_HCA==mlx5_0,mlx5_4 (from fabric other); the value of fabric v100-ib is "
    assert warnings == [("OtherFabricsValue", f"{message}=mlx5_0,mlx5_1")]
    far = fabric("far", env=FabricEnv(library_variables=(("NCCL_IB_HCA", "=mlx5_9"),)))
    warnings = warned(decide_on(trainer(NCCL_IB_HCA="=mlx5_9"), V100, far))
    message = (
        "NCCL_IB_HCA==mlx5_9 (from fabric far) selects no device of fabric v100-ib, whose value is "
    )
    assert warnings == [("NcclIbHcaElsewhere", f"{message}NCCL_IB_HCA==mlx5_0,mlx5_1")]


def test_ucx_settings_that_are_not_written_need_not_be_forwarded() -> None:
    """Without an IP interface UCX gets no list, so mpirun has nothing to forward."""
    without_interface = fabric(
        "v100-ib",
        env=FabricEnv(library_variables=V100.env.library_variables, ucx_devices="mlx5_0:1"),
    )
    assert [outcome[1] for outcome in outcomes(decide_on(launching(), without_interface))] == [
        "applied"
    ]


OPEN_MPI = fabric(gpu_resources=GPU, socket_interface="eth0", libraries=frozenset({"openmpi"}))
INCLUDE = (
    "OMPI_MCA_btl_tcp_if_include",
    "OMPI_MCA_oob_tcp_if_include",
    "PRTE_MCA_prte_if_include",
)


def test_open_mpi_gets_the_interface() -> None:
    """Ranks of Open MPI then use only the pod network, regardless of Multus."""
    decision = decide_on(pod(), OPEN_MPI)
    assert outcomes(decision) == [("trainer", "applied", "Added", f"set {', '.join(INCLUDE)}")]
    assert values(decision) == dict.fromkeys(INCLUDE, "eth0")
    assert values(decide_on(pod(hostNetwork=True), OPEN_MPI)) == {}


@pytest.mark.parametrize(
    "command",
    [
        ["mpirun", "--mca", "btl_tcp_if_exclude", "docker0", "a.out"],
        ["sh", "-c", "mpirun --prtemca prte_if_exclude docker0 a.out"],
    ],
    ids=("argv", "script"),
)
def test_open_mpi_gets_none_where_the_command_excludes_some(command: list[str]) -> None:
    """Open MPI aborts if it gets a list of each kind."""
    decision = decide_on(pod(gpu(command=command)), OPEN_MPI)
    assert values(decision) == {}


def test_the_interface_is_no_evidence_of_open_mpi() -> None:
    """Our variables make no container a launcher, and prove nothing about its `mpirun`."""
    plain = container("setup", command=["mpirun", "-n", "2", "a.out"])
    named = pod(plain, annotations={"rdma.lab/fabric": "plain", "rdma.lab/containers": "setup"})
    first = all_decide_on(named, decision_input(OPEN_MPI))
    assert first.pod["spec"]["containers"][0]["command"] == plain["command"]
    assert all_decide_on(defaulted(first.pod), decision_input(OPEN_MPI)).patch == ()
    idle = pod(container("a", env=env(**dict.fromkeys(INCLUDE, "eth0"))))
    assert decide_on(idle, OPEN_MPI).reason.code == "NoTarget"
