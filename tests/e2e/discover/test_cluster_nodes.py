"""`discover --nodes` reads the nodes of a cluster, by an account that may do just that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.node import NAME as REAL
from tests.e2e.discover.running import discover
from tests.e2e.installed.identity import kubeconfig_of
from tests.e2e.installed.space import Space
from tests.e2e.rights import service_account, wait_for_right
from webhook.diagnose.discover.cluster import OBJECTS_COMMAND

PORT = """\
CA 'mlx5_0'
	CA type: {card}
	Number of ports: 1
	Firmware version: {firmware}
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: {rate}
		Base lid: 7
		SM lid: 1
		Link layer: InfiniBand
"""
#: The configuration of a device plugin, as a site might have it.
CONFIG = '{"configList": [{"resourceName": "rdma_v100", "selectors": {"vendors": ["15b3"]}}]}'


@pytest.fixture(scope="module")
def nodes(a100_node: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write ibstat's output for the real node and a made-up one, which have different GPUs."""
    folder = tmp_path_factory.mktemp("nodes")
    outputs = {
        REAL: PORT.format(card="MT4119", firmware="16.35.3502", rate=100),
        a100_node: PORT.format(card="MT4123", firmware="20.38.1900", rate=200),
    }
    for name, text in outputs.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def reader(space: Space, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Write the kubeconfig of an account that may list nodes, and nothing else."""
    file = kubeconfig_of(space, "reader", tmp_path_factory.mktemp("reader"))
    space.cluster.kubectl(
        "create", "clusterrole", "discover-reader", "--verb=list", "--resource=nodes"
    )
    given = f"--serviceaccount={space.name}:reader"
    binding = ("clusterrolebinding", "discover-reader", "--clusterrole=discover-reader")
    space.cluster.kubectl("create", *binding, given)
    wait_for_right(space.cluster, service_account(space.name, "reader"), "list", "nodes")
    yield file
    for kind in ("clusterrole", "clusterrolebinding"):
        space.cluster.kubectl("delete", kind, "discover-reader")


def test_nodes_provide_gpus_and_resources(nodes: Path, reader: Path, a100_node: str) -> None:
    """Labels give the GPU products, allocatable amounts the resources."""
    ran = discover("--dir", nodes, "--nodes", "--kubeconfig", reader, "-o", "json")
    assert ran.code == 0, ran.err
    fabrics = {fabric["name"]: fabric for fabric in ran.form["fabrics"]}
    assert {name: fabric["match"] for name, fabric in fabrics.items()} == {
        "v100-ib": {
            "gpuResources": ["nvidia.com/v100"],
            "gpuProducts": ["Tesla-V100-SXM2-32GB"],
        },
        "a100-ib": {
            "gpuResources": ["nvidia.com/a100"],
            "gpuProducts": ["NVIDIA-A100-SXM4-40GB"],
        },
    }
    assert fabrics["v100-ib"]["resources"] == [{"name": "rdma/rdma_v100"}]
    assert fabrics["a100-ib"]["resources"] == [{"name": "rdma/rdma_a100"}]
    assert [node["name"] for node in ran.form["nodes"]] == sorted([a100_node, REAL])


def test_each_list_that_may_not_be_read_has_a_line(nodes: Path, reader: Path) -> None:
    """For each kind of the cluster that could add something, a note has the missing right."""
    ran = discover("--dir", nodes, "--nodes", "--kubeconfig", reader, "-o", "yaml")
    notes = [line.partition(", so they are not used")[0] for line in ran.err.splitlines()]
    assert notes[-3:] == [
        "rdma-webhook: note: cannot list configmaps",
        "rdma-webhook: note: cannot list resourceslices",
        "rdma-webhook: note: cannot list deviceclasses",
    ]


def test_a_file_gives_the_same_as_the_api_server(space: Space, nodes: Path, tmp_path: Path) -> None:
    """The command that the help names, printed into a file, gives the same answer."""
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "rdma-devices"},
        "data": {"config.json": CONFIG},
    }
    space.kubectl("create", "--filename=-", input=json.dumps(config))
    file = tmp_path / "nodes.yaml"
    # Of these kinds, the cluster may lack the operator's.
    command = OBJECTS_COMMAND.removeprefix("kubectl ").replace("nicclusterpolicies,", "").split()
    file.write_text(space.cluster.kubectl(*command), encoding="utf-8")
    live = discover(
        "--dir", nodes, "--nodes", "--kubeconfig", space.cluster.kubeconfig, "-o", "json"
    )
    assert live.form == discover("--dir", nodes, "--nodes", file, "-o", "json").form
    text = "rdma-devices configures the RDMA shared device plugin for rdma/rdma_v100"
    assert f"ConfigMap {space.name}/{text}" in [
        finding["text"] for finding in live.form["findings"]
    ]


def test_without_rights_a_line_names_the_missing_right(
    space: Space, nodes: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It names the account, the missing right, and that this right is enough."""
    nobody = kubeconfig_of(space, "nobody", tmp_path_factory.mktemp("nobody"))
    ran = discover("--dir", nodes, "--nodes", "--kubeconfig", nobody)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "rdma-webhook: error: cannot list nodes: the API server answered 403: nodes is forbidden: "
        f'User "system:serviceaccount:{space.name}:nobody" cannot list resource "nodes" in API '
        'group "" at the cluster scope; --nodes needs only the right to list nodes\n'
    )


def test_an_api_server_that_does_not_answer_is_named(nodes: Path, tmp_path: Path) -> None:
    """One line with its address, and exit code 2."""
    ran = discover("--dir", nodes, "--nodes", "--kubeconfig", tmp_path / "none",
                   "--server", "https://127.0.0.1:1")  # fmt: skip
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert "127.0.0.1:1" in line
