"""The interfaces that decisions write, used by real UCX and real Open MPI between two namespaces.

No HCA is needed: UCX leaves out absent devices, with a warning. The tests check that TCP, which all
of these libraries need to find each other, still has a device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.builders import V100, decide_on, decision_input, fabric, gpu, pod
from tests.builders import env as variables
from tests.case_names import case_name
from tests.integration.programs import require_program
from tests.integration.two_pods import TwoPods, script, two_pods
from tests.waiting import until

OPEN_MPI = fabric(
    gpu_resources=frozenset({"nvidia.com/v100"}),
    socket_interface="eth0",
    libraries=frozenset({"openmpi"}),
)
PORT = 13337
MESSAGE = 8 << 20  # bytes; Open MPI splits a message of this size over all interfaces that it uses


@pytest.fixture(scope="module")
def pods() -> Iterator[TwoPods]:
    """Connect two namespaces for all tests of this file."""
    with two_pods() as pods:
        yield pods


def written(manifest: Any, *members: Any) -> dict[str, str]:
    """Return the variables of a pod's container after the decision, without hcoll's."""
    decision = decide_on(manifest, decision_input(*members, defaults={"hcoll": "off"}))
    listed = decision.pod["spec"]["containers"][0]["env"]
    return {item["name"]: item["value"] for item in listed}


def ucx(pods: TwoPods, env: Mapping[str, str]) -> tuple[bool, str]:
    """Send ten messages by UCX over TCP alone; return whether both ends succeed, and their output.

    The test sets UCX_TLS=tcp, not the pod: such a pod would get no UCX_NET_DEVICES.
    """
    perftest = require_program("ucx_perftest", "ucx-utils")
    words = (perftest, "-t", "tag_lat", "-n", "10", "-w", "1", "-p", str(PORT))
    given = {**env, "UCX_TLS": "tcp"}
    with pods.running(pods.here, *words, env=given) as server:
        until(lambda: pods.listens(pods.here, PORT) or server.ended())
        address = pods.address(pods.here, "eth0")
        with pods.running(pods.there, *words, address, env=given) as client:
            until(lambda: client.failed() or server.failed() or (client.ended() and server.ended()))
            works = client.succeeded() and server.succeeded()
    return works, server.printed() + client.printed()


@pytest.mark.parametrize(
    ("manifest", "devices"),
    [
        (pod(), "eth0"),
        (pod(hostNetwork=True), "bond0"),
        (pod(gpu(env=variables(NCCL_SOCKET_IFNAME="=net1"))), "net1"),
        (pod(gpu(env=variables(NCCL_SOCKET_IFNAME="eth"))), "eth0"),
        (pod(gpu(env=variables(GLOO_SOCKET_IFNAME="eth0,net1"))), "eth0,net1"),
    ],
    ids=("pod network", "host network", "exact name", "prefix", "two names"),
)
def test_ucx_connects_with_each_kind_of_list(pods: TwoPods, manifest: Any, devices: str) -> None:
    """UCX_NET_DEVICES always names an IP interface, without which UCX would have no TCP."""
    env = written(manifest)
    assert env["UCX_NET_DEVICES"] == f"{V100.env.ucx_devices},{devices}"
    works, output = ucx(pods, {"UCX_NET_DEVICES": env["UCX_NET_DEVICES"]})
    assert works, output


@pytest.mark.parametrize(
    "manifest",
    [pod(hostNetwork=True), pod(gpu(env=variables(UCX_TLS="tcp")))],
    ids=("no interface", "no RDMA"),
)
def test_ucx_connects_where_no_list_is_written(pods: TwoPods, manifest: Any) -> None:
    """Where no interface is certain, or RDMA is not wanted, UCX chooses by itself."""
    bare = fabric("v100-ib", gpu_resources=V100.gpu_resources, env=V100.env)
    env = written(manifest, bare)
    assert "UCX_NET_DEVICES" not in env
    works, output = ucx(pods, {})
    assert works, output


@pytest.mark.parametrize(
    ("devices", "message"),
    [("mlx5_0:1,mlx5_1:1", "no usable transports/devices"), ("mlx5_0:1,lo", "unreachable")],
    ids=("none", "loopback"),
)
def test_ucx_fails_with_a_list_without_an_interface(
    pods: TwoPods, devices: str, message: str
) -> None:
    """This is why such a list is never written; `lo` does not reach the other pod."""
    works, output = ucx(pods, {"UCX_NET_DEVICES": devices})
    assert not works
    assert message in output


RANK = f"""\
import ctypes

mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
world, byte = (
    ctypes.byref(ctypes.c_char.in_dll(mpi, f"ompi_mpi_{{name}}")) for name in ("comm_world", "byte")
)
mpi.MPI_Init(None, None)
rank, message = ctypes.c_int(), ctypes.create_string_buffer({MESSAGE})
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
if rank.value == 0:
    mpi.MPI_Send(message, {MESSAGE}, byte, 1, 0, world)
else:
    mpi.MPI_Recv(message, {MESSAGE}, byte, 0, 0, world, None)
mpi.MPI_Barrier(world)
mpi.MPI_Finalize()
"""
#: In place of ssh: the words after the host's address run in the other namespace.
AGENT = """\
#!/bin/sh
shift
exec {ip} netns exec {there} unshare --uts sh -c "hostname there; $*"
"""
#: Variables of this test alone: run as root, and use TCP even if there were something faster.
MPI_ENV = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",
}


def mpirun(pods: TwoPods, folder: Path, env: Mapping[str, str]) -> tuple[bool, dict[str, int], str]:
    """Send a message from a rank `here` to one `there`.

    Return whether mpirun succeeds, the bytes that `here` sent over each link, and the output.
    """
    program = require_program("mpirun.openmpi", "openmpi-bin")
    require_program("unshare", "util-linux")
    agent = script(folder, "agent", AGENT.format(ip=pods.ip, there=pods.there))
    rank = script(folder, "rank.py", RANK)
    hosts = ",".join(pods.address(end, "eth0") for end in (pods.here, pods.there))
    words = (program, "--host", hosts, "-np", "2", "/usr/bin/python3", str(rank))
    before = {link: pods.sent(link) for link in ("eth0", "net1")}
    inside = ("unshare", "--uts", "sh", "-c", 'hostname here; exec "$@"', "sh", *words)
    given = {**MPI_ENV, "HOME": str(folder), "OMPI_MCA_plm_rsh_agent": str(agent), **env}
    with pods.running(pods.here, *inside, env=given) as running:
        until(running.ended)
    sent = {link: pods.sent(link) - before[link] for link in before}
    return running.succeeded(), sent, running.printed()


@pytest.mark.parametrize("confined", [True, False])
def test_open_mpi_keeps_ranks_on_the_interface(
    pods: TwoPods, tmp_path: Path, *, confined: bool
) -> None:
    """With our variables one interface carries the message; without, others carry parts of it."""
    env = written(pod(), OPEN_MPI)
    assert set(env.values()) == {"eth0"}
    works, sent, output = mpirun(pods, tmp_path, env if confined else {})
    assert works, output
    assert (sent["net1"] < MESSAGE // 100) is confined
    assert (sent["eth0"] >= MESSAGE) is confined


@pytest.mark.parametrize(
    "lists",
    [
        {"OMPI_MCA_oob_tcp_if_include": "absent0"},
        {"OMPI_MCA_oob_tcp_if_exclude": "net1"},
        {"OMPI_MCA_btl_tcp_if_exclude": "net1"},
    ],
    ids=case_name,
)
def test_open_mpi_aborts_with_an_absent_interface_or_two_lists(
    pods: TwoPods, tmp_path: Path, lists: dict[str, str]
) -> None:
    """This is why nothing is written for the host's network, nor next to an exclusion."""
    works, _, _ = mpirun(pods, tmp_path, {**written(pod(), OPEN_MPI), **lists})
    assert not works
