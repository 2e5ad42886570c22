from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.builders import fabric
from tests.case_names import case_name
from webhook.decide.fabric_variables import (
    desired_env,
    fabric_by_setting,
    own_variables_like_evidence,
    own_variables_like_evidence_of_all,
)
from webhook.model.fabric import Fabric, FabricEnv, build_configuration

ALL = frozenset({"nccl", "ucx", "gloo", "nvshmem", "mooncake", "openmpi"})
OPEN_MPI = {
    "OMPI_MCA_btl_tcp_if_include": "eth0",
    "OMPI_MCA_oob_tcp_if_include": "eth0",
    "PRTE_MCA_prte_if_include": "eth0",
}
ENV = FabricEnv(
    library_variables=(
        ("NCCL_IB_HCA", "=mlx5_0"),
        ("NCCL_IB_TC", "106"),
        ("UCX_IB_TRAFFIC_CLASS", "106"),
        ("NVSHMEM_HCA_LIST", "mlx5_0:1"),
        ("MC_MS_FILTERS", "mlx5_0"),
    ),
    ucx_devices="mlx5_0:1",
)


def full(**fields: Any) -> Fabric:
    """Make a fabric that sets every variable."""
    return fabric(
        **{
            "env": ENV,
            "libraries": ALL,
            "socket_interface": "eth0",
            "host_socket_interface": "bond0",
            **fields,
        }
    )


def variables(
    member: Fabric, user_env: Mapping[str, str | None] | None = None, *, host_network: bool = False
) -> dict[str, str]:
    """Return the variables for a container with `user_env`; no name may occur twice."""
    pairs = desired_env(member, user_env or {}, host_network=host_network)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def test_a_fabric_may_set_nothing() -> None:
    """A fabric may have no variables; with SR-IOV, for example, HCA names differ between pods."""
    assert variables(fabric()) == {}


def test_every_library_gets_its_variables() -> None:
    """NCCL and Gloo get the interface; UCX gets it after the HCAs, or it would have no TCP."""
    assert variables(full()) == {
        "NCCL_IB_HCA": "=mlx5_0",
        "NCCL_IB_TC": "106",
        "NCCL_SOCKET_IFNAME": "eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
        "UCX_NET_DEVICES": "mlx5_0:1,eth0",
        "UCX_IB_TRAFFIC_CLASS": "106",
        "NVSHMEM_HCA_LIST": "mlx5_0:1",
        "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME": "eth0",
        "MC_MS_FILTERS": "mlx5_0",
        **OPEN_MPI,
    }


@pytest.mark.parametrize(
    ("library", "names"),
    [
        ("nccl", {"NCCL_IB_HCA", "NCCL_IB_TC", "NCCL_SOCKET_IFNAME"}),
        ("gloo", {"GLOO_SOCKET_IFNAME"}),
        ("ucx", {"UCX_NET_DEVICES", "UCX_IB_TRAFFIC_CLASS"}),
        ("nvshmem", {"NVSHMEM_HCA_LIST", "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME"}),
        ("mooncake", {"MC_MS_FILTERS"}),
        ("openmpi", set(OPEN_MPI)),
    ],
)
def test_only_the_libraries_of_the_fabric_count(library: str, names: set[str]) -> None:
    """Variables of libraries that the site does not use are not written."""
    assert variables(full(libraries=frozenset({library}))).keys() == names


def test_the_host_network_has_an_interface_of_its_own() -> None:
    """With hostNetwork the host's interface is used; if it is unset, no interface is written."""
    assert variables(full(), host_network=True)["UCX_NET_DEVICES"] == "mlx5_0:1,bond0"
    assert variables(full(), host_network=True)["NCCL_SOCKET_IFNAME"] == "bond0"
    bare = Fabric(name="plain", env=ENV, socket_interface="eth0")
    assert "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME" not in variables(
        full(host_socket_interface=None), host_network=True
    )
    assert variables(bare, host_network=True) == {
        "NCCL_IB_HCA": "=mlx5_0",
        "NCCL_IB_TC": "106",
        "UCX_IB_TRAFFIC_CLASS": "106",
    }


def test_the_pods_own_interfaces_are_all_listed() -> None:
    """UCX and NVSHMEM get each interface that the pod names for NCCL, separated by commas."""
    values = variables(full(), {"NCCL_SOCKET_IFNAME": "=net1,net2"})
    assert values["UCX_NET_DEVICES"] == "mlx5_0:1,net1,net2"
    assert values["NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME"] == "net1,net2"


@pytest.mark.parametrize("interface", [None, "lo"])
def test_ucx_devices_are_never_written_without_an_ip_interface(interface: str | None) -> None:
    """UCX applies the list to TCP too, and `lo` reaches no peer: it chooses by itself instead."""
    assert "UCX_NET_DEVICES" not in variables(full(socket_interface=interface))


@pytest.mark.parametrize(
    ("tls", "written"),
    [("tcp", False), ("^ib", False), ("rc,tcp", True), ("", True), (None, True)],
    ids=case_name,
)
def test_ucx_devices_follow_the_transports_of_the_pod(tls: str | None, *, written: bool) -> None:
    """A pod whose UCX_TLS allows no RDMA transport gets no list of HCAs; one that may, does."""
    assert ("UCX_NET_DEVICES" in variables(full(), {"UCX_TLS": tls})) is written


def test_ucx_devices_follow_the_transports_of_the_site() -> None:
    """The site's UCX_TLS counts, unless the pod has its own."""
    with_site_tls = full(
        env=FabricEnv(ucx_devices="mlx5_0:1", site_variables=(("UCX_TLS", "tcp"),))
    )
    assert "UCX_NET_DEVICES" not in variables(with_site_tls)
    assert variables(with_site_tls, {"UCX_TLS": "rc"})["UCX_NET_DEVICES"] == "mlx5_0:1,eth0"


def test_ucx_devices_are_never_written_without_an_hca() -> None:
    """`UCX_NET_DEVICES=eth0` would turn RDMA off."""
    assert "UCX_NET_DEVICES" not in variables(full(env=FabricEnv()))


@pytest.mark.parametrize(
    ("user_env", "ucx"),
    [
        ({"NCCL_SOCKET_IFNAME": "eth1"}, "mlx5_0:1,eth1"),
        ({"NCCL_SOCKET_IFNAME": "=eth1"}, "mlx5_0:1,eth1"),
        ({"NCCL_SOCKET_IFNAME": "eth1,eth2"}, "mlx5_0:1,eth1,eth2"),
        ({"GLOO_SOCKET_IFNAME": "eth1"}, "mlx5_0:1,eth1"),
        ({"GLOO_SOCKET_IFNAME": "eth2", "NCCL_SOCKET_IFNAME": "eth1"}, "mlx5_0:1,eth1"),
        ({"NCCL_SOCKET_IFNAME": "eth"}, "mlx5_0:1,eth0"),
        ({"NCCL_SOCKET_IFNAME": "^docker0"}, None),
        ({"NCCL_SOCKET_IFNAME": ""}, None),
        ({"NCCL_SOCKET_IFNAME": "="}, None),
        ({"NCCL_SOCKET_IFNAME": None}, None),
    ],
    ids=case_name,
)
def test_socket_names_are_a_group(user_env: dict[str, str | None], ucx: str | None) -> None:
    """If the pod sets either name, neither is written, and UCX gets the pod's plain names."""
    values = variables(full(), user_env)
    assert "NCCL_SOCKET_IFNAME" not in values
    assert "GLOO_SOCKET_IFNAME" not in values
    assert values.get("UCX_NET_DEVICES") == ucx


def test_other_names_of_the_container_are_listed_too() -> None:
    """A name that the container has is returned too: the caller compares the values."""
    assert variables(full(), {"NCCL_IB_HCA": "mlx5_1"})["NCCL_IB_HCA"] == "=mlx5_0"


def test_the_site_adds_its_own_variables() -> None:
    """The site's variables come last, in the site's order."""
    site = (("NCCL_DEBUG", "WARN"), ("A", "b"))
    assert desired_env(fabric(env=FabricEnv(site_variables=site)), {}, host_network=False) == site


def test_ucx_uses_the_sites_interface() -> None:
    """UCX uses the interface of the site's variables.

    The second call reads it as the pod's own, and UCX must get the same value then.
    """
    env = FabricEnv(ucx_devices="mlx5_0:1", site_variables=(("NCCL_SOCKET_IFNAME", "=eth1"),))
    with_site_socket = fabric(env=env)
    first = variables(with_site_socket)
    assert first == {"UCX_NET_DEVICES": "mlx5_0:1,eth1", "NCCL_SOCKET_IFNAME": "=eth1"}
    assert variables(with_site_socket, {**first}) == first


def test_the_sites_interface_gives_way_to_the_group_of_the_pod() -> None:
    """A user who sets Gloo's interface has chosen for NCCL too."""
    site = (("NCCL_SOCKET_IFNAME", "=eth1"), ("A", "b"))
    with_site_socket = fabric(env=FabricEnv(ucx_devices="mlx5_0:1", site_variables=site))
    assert variables(with_site_socket, {"GLOO_SOCKET_IFNAME": "eth2"}) == {
        "UCX_NET_DEVICES": "mlx5_0:1,eth2",
        "A": "b",
    }


def test_open_mpi_uses_the_interface_that_the_pod_names() -> None:
    """Open MPI needs exact names: the user's NCCL_SOCKET_IFNAME, if its names are certain."""
    open_mpi_only = full(libraries=frozenset({"openmpi"}))
    assert set(variables(open_mpi_only, {"NCCL_SOCKET_IFNAME": "=net1,net2"}).values()) == {
        "net1,net2"
    }
    assert variables(open_mpi_only, {"NCCL_SOCKET_IFNAME": "^docker0"}) == {}


@pytest.mark.parametrize(
    "name",
    [
        "OMPI_MCA_btl_tcp_if_exclude",
        "OMPI_MCA_oob_tcp_if_exclude",
        "PRTE_MCA_prte_if_exclude",
    ],
)
def test_open_mpi_gets_no_interface_with_an_exclusion(name: str) -> None:
    """Open MPI aborts if it gets a list of each kind, be the other the user's or the site's."""
    open_mpi_only = full(libraries=frozenset({"openmpi"}))
    assert variables(open_mpi_only, {name: "docker0"}) == {}
    site = full(
        libraries=frozenset({"openmpi"}), env=FabricEnv(site_variables=((name, "docker0"),))
    )
    assert variables(site) == {name: "docker0"}


def test_open_mpi_gets_no_interface_where_it_may_be_absent() -> None:
    """An absent interface aborts mpirun; nodes differ, so the host's network gets none."""
    assert not set(OPEN_MPI) & variables(full(), host_network=True).keys()
    excluding = desired_env(full(), {}, host_network=False, excludes_interfaces=True)
    assert not set(OPEN_MPI) & dict(excluding).keys()


def test_the_sites_own_value_is_not_repeated() -> None:
    """A name in the site's `env` is not written a second time, for any library."""
    site_env = {"NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME": "net1", "PRTE_MCA_prte_if_include": "net2"}
    values = variables(full(env=FabricEnv(site_variables=tuple(site_env.items()))))
    assert site_env.items() <= values.items()


def test_what_a_fabric_writes_is_not_evidence() -> None:
    """The site's names, and Open MPI's if the fabric writes them, may be ours in a pod."""
    plain = fabric(env=FabricEnv(site_variables=(("A", "b"),)))
    assert own_variables_like_evidence(plain) == {"A"}
    assert own_variables_like_evidence(full()) == set(OPEN_MPI)
    configuration = build_configuration((plain, full(name="full")))
    assert own_variables_like_evidence_of_all(configuration) == {"A", *OPEN_MPI}


def test_each_value_has_the_first_fabric_that_writes_it() -> None:
    """In either network, the first fabric counts; a site's `env` identifies no fabric."""
    site = fabric("site", env=FabricEnv(site_variables=(("NCCL_DEBUG", "INFO"),)))
    first, second = (full(name=name, libraries=frozenset({"gloo"})) for name in ("one", "two"))
    assert fabric_by_setting(build_configuration((site, first, second))) == {
        ("GLOO_SOCKET_IFNAME", "eth0"): "one",
        ("GLOO_SOCKET_IFNAME", "bond0"): "one",
    }


@pytest.mark.parametrize(
    ("variables", "ucx", "lists"),
    [
        ((("NCCL_IB_HCA", "=a"),), "a:1", ("=a", "=a:1")),
        ((("NCCL_IB_HCA", "^=a"),), "", ("^=a", "")),
        ((("NCCL_IB_TC", "1"),), "a:1", ("", "")),
    ],
)
def test_the_device_lists_of_a_fabric(
    variables: tuple[tuple[str, str], ...], ucx: str, lists: tuple[str, str]
) -> None:
    """UCX gets exact names with ports; without NCCL's list, the site's own may have others."""
    fabric = Fabric(name="x", env=FabricEnv(library_variables=variables, ucx_devices=ucx))
    assert fabric.device_lists == lists
