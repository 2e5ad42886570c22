"""The API server accepts what `discover --plugin` writes, with the kinds of the operators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.binaries import module_dir
from tests.cluster.cluster import Cluster
from tests.cluster.kinds import install_kinds
from tests.e2e.documents import apply, namespace

GOLDEN = Path(__file__).parents[2] / "golden" / "discover"
#: All but the NetworkConfigs: AMD's Network Operator is no module that Go can fetch, so its CRD
#: cannot be installed here. tests/unit/diagnose/discover/test_amd_nics.py states their form.
FILES = sorted(
    file for file in GOLDEN.glob("*/plugin/*.yaml") if file.name != "network-config.yaml"
)
#: Where each project's module has its CRDs.
CRDS = {
    "network-operator": "config/crd/bases",
    "sriov-network-operator": "config/crd/bases",
    "network-attachment-definition-client": "artifacts/networks-crd.yaml",
}
#: The namespaces of the operator, and of the golden cases' networks.
NAMESPACES = ("nvidia-network-operator", "training")
DRY_RUN = ("apply", "--dry-run=server", "--validate=strict", "--filename")


@pytest.fixture(scope="module")
def kinds(cluster: Cluster) -> Iterator[Cluster]:
    """Give a cluster that knows the kinds of the device plugins' operators, and of Multus."""
    cluster.skip_if_existing("the kinds of other projects, as Go fetches them")
    existing = cluster.kubectl("get", "crd", "--output=name").split()
    folders = [str(module_dir(module) / path) for module, path in CRDS.items()]
    brought = [name for folder in folders for name in install_kinds(cluster, folder)]
    apply(cluster, *(namespace(name, None) for name in NAMESPACES))
    yield cluster
    new = [name for name in brought if name not in existing]
    cluster.kubectl("delete", "--wait=false", *new, *(f"namespace/{name}" for name in NAMESPACES))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parts[-3]} {file.stem}")
def test_the_api_server_accepts_the_files(kinds: Cluster, file: Path) -> None:
    """Each object of a golden case would be created: with no unknown field and no warning."""
    printed = kinds.kubectl(*DRY_RUN, str(file), check=False).splitlines()
    documents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    assert len(printed) == len(documents)
    assert [line for line in printed if not line.endswith("(server dry run)")] == []


def test_every_kind_is_among_them() -> None:
    """The golden cases have an object of each kind that discover can write, but NetworkConfig."""
    documents = (document for file in FILES for document in yaml.safe_load_all(file.read_text()))
    assert {document["kind"] for document in documents} == {
        *("ConfigMap", "NicClusterPolicy", "HostDeviceNetwork", "NetworkAttachmentDefinition"),
        *("SriovNetworkNodePolicy", "SriovNetwork", "SriovIBNetwork", "ResourceClaimTemplate"),
    }


MISSPELLED = {
    "policy": (
        "rails/plugin/nic-cluster-policy.yaml",
        ("rdmaSharedDevicePlugin:", "rdmaSharedPlugin:"),
        'unknown field "spec.rdmaSharedPlugin"',
    ),
    "value of the policy": (
        "host-device/plugin/nic-cluster-policy.yaml",
        ("autoUpgrade: false", "autoUpgrade: 'no'"),
        'must be of type boolean: "string"',
    ),
    "link of a rail": (
        "roce-sr-iov/plugin/sriov-l40s-roce.yaml",
        ("linkType: eth", "linkType: ether"),
        'Unsupported value: "ether"',
    ),
    "field of a rail": (
        "infiniband-sr-iov/plugin/sriov-a100-ib.yaml",
        ("numVfs: 8", "vfs: 8"),
        'unknown field "spec.vfs"',
    ),
    "network": (
        "roce-networks/plugin/networks-l40s-roce.yaml",
        ("config:", "conf:"),
        'unknown field "spec.conf"',
    ),
    "network of whole devices": (
        "host-device/plugin/host-device-h200-ib.yaml",
        ("resourceName:", "resource:"),
        'unknown field "spec.resource"',
    ),
}


@pytest.mark.parametrize(("name", "change", "because"), MISSPELLED.values(), ids=MISSPELLED)
def test_misspellings_are_refused(
    kinds: Cluster, name: str, change: tuple[str, str], because: str
) -> None:
    """The check above can fail: the kinds' schemas refuse other fields and values."""
    text = (GOLDEN / name).read_text(encoding="utf-8")
    assert change[0] in text
    printed = kinds.kubectl(*DRY_RUN, "-", input=text.replace(*change), check=False)
    assert because in printed
