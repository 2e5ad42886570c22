from __future__ import annotations

from typing import get_args

import pytest

from tests.builders import fabric
from tests.unit.config.files import compiled, efa
from webhook.config.environment import RENDER
from webhook.config.model import FabricEntry, QosEntry
from webhook.decide.fabric_variables import desired_env
from webhook.model.fabric import SOCKET_VARIABLES, FabricEnv
from webhook.model.libraries import LIBRARIES, POD_SOURCES, VARIABLES, FabricSource, Library

#: The fields of `qos` in webhook/config/model.py, and the names of their values in VARIABLES.
QOS = {
    "traffic_class": "traffic class",
    "service_level": "service level",
    "fifo_traffic_class": "fifo traffic class",
    "gid_index": "gid index",
    "pkey": "ucx pkey",
}


def test_each_variable_has_one_row() -> None:
    """A second row would give a pod the same name twice."""
    names = [row.name for row in VARIABLES]
    assert sorted(set(names)) == sorted(names)


def test_each_library_has_a_name_for_people() -> None:
    """LIBRARIES in webhook/model/libraries.py, which the summary of `env` lists, names each."""
    assert tuple(LIBRARIES) == get_args(Library)
    assert {row.library for row in VARIABLES} == set(LIBRARIES)


def test_each_value_of_the_configuration_is_rendered() -> None:
    """RENDER in webhook/config/environment.py has a function for each."""
    assert RENDER.keys() == set(get_args(FabricSource))


def test_each_value_of_the_pod_is_made() -> None:
    """`_pod_values` in webhook/decide/fabric_variables.py makes each: a name would get nothing."""
    everything = fabric(
        libraries=frozenset(LIBRARIES),
        socket_interface="eth0",
        env=FabricEnv(ucx_devices="mlx5_0:1"),
    )
    written = {name for name, _ in desired_env(everything, {}, host_network=False)}
    assert written == {row.name for row in VARIABLES if row.source in POD_SOURCES}


def test_the_group_of_sockets_is_what_a_user_chooses_together() -> None:
    """SOCKET_VARIABLES in webhook/model/fabric.py are the rows that yield to the user's choice."""
    assert {row.name for row in VARIABLES if row.source == "socket"} == set(SOCKET_VARIABLES)


@pytest.mark.parametrize(("field", "value"), QOS.items(), ids=QOS)
def test_a_field_of_qos_says_which_variables_it_sets(field: str, value: str) -> None:
    """The string below the field in webhook/config/model.py names each, for the reference."""
    assert QOS.keys() == QosEntry.model_fields.keys(), "add the field to QOS in this file"
    text = QosEntry.model_fields[field].description or ""
    names = [row.name for row in VARIABLES if row.source == value]
    assert [name for name in names if name not in text] == []


def test_the_field_of_the_interface_says_which_variables_it_sets() -> None:
    """`socketInterface` names the variables that yield together."""
    text = FabricEntry.model_fields["socket_interface"].description or ""
    assert [name for name in SOCKET_VARIABLES if name not in text] == []


@pytest.mark.parametrize("transport", ["libfabric", "gib"])
def test_a_fabric_with_a_plugin(transport: str) -> None:
    """No variable names a device: the plugin finds them; `env` has what else it needs."""
    over_plugin = compiled(
        **efa(transport=transport, libraries=[*LIBRARIES], env={"FI_PROVIDER": "efa"})
    )
    assert dict(desired_env(over_plugin, {}, host_network=False)) == {
        "NCCL_SOCKET_IFNAME": "eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
        "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME": "eth0",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "OMPI_MCA_oob_tcp_if_include": "eth0",
        "PRTE_MCA_prte_if_include": "eth0",
        "FI_PROVIDER": "efa",
    }
