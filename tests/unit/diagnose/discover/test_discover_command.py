"""`rdma-webhook discover`: its input, its output, and its errors."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from webhook.cli import main
from webhook.config.load import parse_fabrics

IBSTAT = """CA 'mlx5_0'
	CA type: MT4123
	Number of ports: 1
	Firmware version: 20.38.1900
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 200
		Base lid: 7
		LMC: 0
		SM lid: 1
		Link layer: InfiniBand
"""
NODES = """apiVersion: v1
kind: List
items:
- kind: Node
  metadata: {name: n1, labels: {nvidia.com/gpu.product: Tesla-V100-SXM2-32GB}}
  status: {allocatable: {nvidia.com/v100: "8", rdma/rdma_v100: "63", cpu: "8"}}
"""


class Ran(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str


Discover = Callable[..., Ran]


@pytest.fixture
def discover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Discover:
    """Return a function that runs discover in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, stdin: str = "") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main(["discover", *words])
        return Ran(code, *capsys.readouterr())

    return run


def test_a_file_is_a_node(discover: Discover) -> None:
    """The node has the name of the file without its ending, and the output loads."""
    Path("n1.txt").write_text(IBSTAT)
    ran = discover("n1.txt", "-o", "yaml")
    assert ran.code == 0
    assert parse_fabrics(ran.out, "fabrics.yaml").findings == ()
    assert "1 node (n1)" in ran.out


def test_standard_input_names_its_node_itself(discover: Discover) -> None:
    """The node has the name in hostnamectl's output."""
    ran = discover("-", "-o", "json", stdin=f"   Static hostname: node7\n{IBSTAT}")
    assert [node["name"] for node in json.loads(ran.out)["nodes"]] == ["node7"]


def test_a_folder_is_a_node_with_several_files(discover: Discover) -> None:
    """Its files of /sys are read, too; hidden files are not."""
    ports = Path("nodes/n2/sys/class/infiniband/mlx5_0/ports/1")
    ports.mkdir(parents=True)
    (ports / "state").write_text("4: ACTIVE\n")
    Path("nodes/n2/ibstat.out").write_text(IBSTAT)
    Path("nodes/n2/.hidden").write_text("?")
    Path("nodes/n1.log").write_text(IBSTAT)
    ran = discover("--dir", "nodes", "-o", "json")
    assert [node["name"] for node in json.loads(ran.out)["nodes"]] == ["n1", "n2"]


def test_without_input_the_error_lists_commands(discover: Discover) -> None:
    """Exit code 2, and the commands to run on each node."""
    ran = discover()
    assert ran.code == 2
    assert "`rdma-webhook discover script` prints a script" in ran.err
    assert "ibstat" in ran.err


def test_an_unknown_text_is_quoted(discover: Discover) -> None:
    """The error has the file, the line, its text, and the known tools."""
    Path("n1.txt").write_text("\n\nbash: htop: command not found\n")
    ran = discover("n1.txt")
    assert ran.code == 2
    assert ran.out == ""
    first, second = ran.err.splitlines()
    assert "n1.txt:3: 'bash: htop: command not found' is not the output of a known" in first
    assert "no usable input" in second


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%PDF-1.7\n\0\n", "n1.txt: is not text; expected the output of ibstat"),
        ("# Ours\nfabrics:\n- name: a\n", "n1.txt: is a fabrics file, such as discover writes"),
        (NODES, "n1.txt: is output of kubectl (pass it with --nodes)"),
        ('{\n  "kind": "List"\n}\n', "n1.txt: is output of kubectl (pass it with --nodes)"),
    ],
    ids=["binary", "fabrics", "nodes", "list"],
)
def test_another_file_is_named_for_what_it_is(discover: Discover, text: str, message: str) -> None:
    """A file of another known kind has an error of its own."""
    Path("n1.txt").write_text(text)
    ran = discover("n1.txt")
    assert ran.code == 2
    assert message in ran.err.splitlines()[0]


def test_a_bad_file_does_not_hide_the_others(discover: Discover) -> None:
    """The others are printed; the exit code shows that some could not be read."""
    Path("n1.txt").write_text(IBSTAT)
    Path("n2.txt").write_text("")
    ran = discover("n0.txt", "n1.txt", "n2.txt", "-o", "json")
    assert ran.code == 2
    assert [node["name"] for node in json.loads(ran.out)["nodes"]] == ["n1"]
    assert "n0.txt: no such file or directory" in ran.err
    assert "n2.txt: is empty" in ran.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.txt"], "missing.txt: no such file or directory"),
        (["--dir", "missing"], "missing: no such file or directory"),
        (["--dir", "."], ".: is empty; expected a file or directory for each node"),
        (["."], ".: is empty; expected files with the output of tools"),
        (["--nodes", "missing.yaml"], "missing.yaml: no such file or directory"),
        (["--nodes", "--kubeconfig", "missing"], "missing"),
        (["a\0b"], "cannot be read"),
    ],
    ids=["file", "directory", "empty directory", "empty folder", "nodes", "kubeconfig", "name"],
)
def test_what_cannot_be_read_is_named(discover: Discover, words: list[str], message: str) -> None:
    """One line with the name and the reason, and exit code 2."""
    ran = discover(*words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err.splitlines()[0]


@pytest.mark.parametrize("option", ["--network", "--namespace"])
def test_malformed_options_are_refused(discover: Discover, option: str) -> None:
    """A value that cannot be a name in Kubernetes is refused at once."""
    with pytest.raises(SystemExit):
        discover("-", option, "Not A Name")


def test_nodes_come_from_the_cluster_too(discover: Discover) -> None:
    """Their products and resources are used; a file without nodes is refused."""
    Path("n1.txt").write_text(IBSTAT)
    Path("nodes.yaml").write_text(NODES)
    Path("pods.yaml").write_text("kind: Pod\nmetadata: {name: p}\n")
    (fabric,) = json.loads(discover("n1.txt", "--nodes", "nodes.yaml", "-o", "json").out)["fabrics"]
    assert fabric["resources"] == [{"name": "rdma/rdma_v100"}]
    assert fabric["match"]["gpuResources"] == ["nvidia.com/v100"]
    ran = discover("n1.txt", "--nodes", "pods.yaml")
    assert ran.code == 2
    assert "pods.yaml: contains no Node; pass the output of kubectl get nodes" in ran.err


def test_nodes_alone_are_no_fabric(discover: Discover) -> None:
    """The API server has no ports of nodes, so there is no fabric, but a finding."""
    ran = discover("--nodes", "-", "-o", "json", stdin=json.dumps({"kind": "NodeList", "items": [
        {"metadata": {"name": "n1"}}]}))  # fmt: skip
    answer = json.loads(ran.out)
    assert ran.code == 1
    assert answer["fabrics"] == []
    assert answer["nodes"][0]["ports"] == []


def test_the_script_and_the_daemonset_are_printed(discover: Discover) -> None:
    """Both collect on nodes; nothing is read."""
    assert discover("script").out.startswith("#!/bin/sh")
    ran = discover("daemonset", "--namespace", "lab", "--image", "debian")
    assert "kind: DaemonSet" in ran.out
    assert "namespace: lab" in ran.out


def test_this_node_is_discovered(discover: Discover) -> None:
    """It may have no RDMA device; nothing is installed."""
    ran = discover("--run", "-o", "json")
    (node,) = json.loads(ran.out)["nodes"]
    assert node["name"]


def test_files_are_written_besides_the_output(discover: Discover) -> None:
    """A picture, a page, and the device plugin's files; all in UTF-8."""
    Path("n1.txt").write_text(IBSTAT)
    words = ["n1.txt", "--svg", "a.svg", "--html", "a.html", "--plugin", "p"]
    assert discover(*words).code == 0
    assert Path("a.svg").read_text().startswith("<svg ")
    assert "<!doctype html>" in Path("a.html").read_text()
    assert {file.name for file in Path("p").iterdir()} == {
        "rdma-devices.yaml",
        "nic-cluster-policy.yaml",
    }
    assert discover(*words).code == 0


def test_without_a_fabric_there_is_no_plugin(discover: Discover) -> None:
    """The note does not name fabrics that need no device plugin."""
    Path("nodes.yaml").write_text(NODES)
    assert (
        "nothing written, since no fabric was found"
        in discover("--nodes", "nodes.yaml", "--plugin", "p").err
    )


def test_a_plugin_file_that_differs_is_not_overwritten(discover: Discover) -> None:
    """A person may have changed it."""
    Path("n1.txt").write_text(IBSTAT)
    Path("p").mkdir()
    Path("p/rdma-devices.yaml").write_text("changed")
    ran = discover("n1.txt", "--plugin", "p")
    assert ran.code == 2
    assert "p/rdma-devices.yaml: exists and differs" in ran.err
    assert Path("p/rdma-devices.yaml").read_text() == "changed"


@pytest.mark.parametrize("option", ["--svg", "--html", "--plugin"])
def test_a_place_that_cannot_be_written_is_named(discover: Discover, option: str) -> None:
    """One line, and exit code 2."""
    Path("n1.txt").write_text(IBSTAT)
    ran = discover("n1.txt", option, "n1.txt/there")
    assert ran.code == 2
    assert "n1.txt/there" in ran.err.splitlines()[-1]
    assert ran.err.splitlines()[-1].endswith(": cannot be written: Not a directory")


def test_a_file_is_no_folder_for_the_plugins(discover: Discover) -> None:
    """One line explains the option."""
    Path("n1.txt").write_text(IBSTAT)
    ran = discover("n1.txt", "--plugin", "n1.txt")
    assert (ran.code, ran.err) == (
        2,
        "rdma-webhook: error: n1.txt: is a file; --plugin requires a directory\n",
    )


def test_rdma_link_alone_shows_infiniband(discover: Discover) -> None:
    """A port with a LID is InfiniBand; of one without, the link layer stays unknown."""
    infiniband = "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 13 sm_lid 1 lmc 0 "
    state = "state ACTIVE physical_state LINK_UP"
    ran = discover("-", "-o", "yaml", stdin=f"{infiniband}{state}\n")
    assert "linkLayer: InfiniBand" in ran.out
    ran = discover("-", stdin=f"link mlx5_0/1 {state} netdev ens3\n")
    assert "no tool shows the link layer of any port" in " ".join(ran.out.split())
