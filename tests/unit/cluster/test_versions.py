from __future__ import annotations

import re

import pytest

from tests.cluster.binaries import MODULE_FILES
from tests.cluster.versions import (
    DEFAULT_MINOR,
    ETCD,
    GO,
    KUBERNETES,
    MODULES,
    Module,
    provider,
)


@pytest.fixture(params=MODULES.values(), ids=list(MODULES))
def module(request: pytest.FixtureRequest) -> Module:
    """Return each module in turn."""
    assert isinstance(request.param, Module)
    return request.param


def go_mod(module: Module) -> str:
    """Return the module's go.mod."""
    return (MODULE_FILES / module.name / "go.mod").read_text()


def requirements(text: str) -> dict[str, str]:
    """Return path → version of a go.mod."""
    text, _, _ = text.partition("\nexclude")
    return dict(re.findall(r"^(?:require |\t)(\S+) (v\S+)(?: // indirect)?$", text, re.MULTILINE))


def test_versions_are_the_modules(module: Module) -> None:
    """The version in the table is the built version."""
    assert requirements(go_mod(module))[module.path] == module.version


def test_commands_are_the_modules_tools(module: Module) -> None:
    """Each command is a tool of its module, so that `go mod tidy` keeps what it needs."""
    tools = re.findall(r"^(?:tool |\t)([^\s(]+)$", go_mod(module), re.MULTILINE)
    assert sorted(tools) == sorted(module.commands.values())


def test_go_has_a_single_version(module: Module) -> None:
    """Every module requires the minor version of Go that `missing` requires."""
    oldest = re.search(r"^go (\d+)\.(\d+)\.\d+$", go_mod(module), re.MULTILINE)
    assert oldest
    assert (int(oldest[1]), int(oldest[2])) == GO


def test_no_module_is_left_over() -> None:
    """Each folder of `modules` is a module that the cluster runs."""
    assert {folder.name for folder in MODULE_FILES.iterdir()} == set(MODULES)


def test_locks_hold_no_address() -> None:
    """Modules are named by path only; each machine configures where to download them."""
    for file in MODULE_FILES.glob("*/go.*"):
        # A checksum may begin with slashes: h1://QW6SD9…
        assert not re.search("[a-z]://", file.read_text()), file


@pytest.mark.parametrize("minor", KUBERNETES)
def test_etcd_is_kubernetes_choice(minor: str) -> None:
    """All etcd modules have the version that this Kubernetes is tested with."""
    required = requirements(go_mod(MODULES[f"kubernetes-{minor}"]))
    versions = {
        version for path, version in required.items() if path.startswith("go.etcd.io/etcd/")
    }
    assert versions == {ETCD[minor]}


@pytest.mark.parametrize("minor", KUBERNETES)
def test_staging_libraries_are_of_the_same_release(minor: str) -> None:
    """Kubernetes' own libraries have its version, whatever other modules require."""
    lines = re.findall(
        r"^\t(k8s\.io/\S+) => (\S+) v0\.(\S+)$",
        go_mod(MODULES[f"kubernetes-{minor}"]),
        re.MULTILINE,
    )
    assert len(lines) > 30
    assert {version for _, _, version in lines} == {KUBERNETES[minor].removeprefix("v1.")}
    assert all(old == new for old, new, _ in lines)


@pytest.mark.parametrize(
    ("name", "newer"),
    [
        ("coredns", set()),
        ("cert-manager", set()),
        ("kwok", {"errors", "otelrestful"}),  # kwok requires newer ones, on which little depends
    ],
)
def test_libraries_are_the_same_as_in_kubernetes(name: str, newer: set[str]) -> None:
    """With Kubernetes' versions they reuse its compiled libraries, and otherwise none."""
    foreign = filter(lambda path: not staging(path), disagreeing("kubernetes-1.36", name))
    assert {path.rpartition("/")[2] for path in foreign} == newer


@pytest.mark.parametrize("name", ["lws", "jobset", "kuberay", "training-operator"])
def test_controllers_share_their_libraries(name: str) -> None:
    """Controllers share all libraries, and all but staging ones with Kubernetes."""
    assert not disagreeing("lws", name)
    assert all(map(staging, disagreeing("kubernetes-1.36", name)))


def test_an_old_controller_shares_what_it_can() -> None:
    """mpi-operator needs old Kubernetes libraries, and the libraries that describe their kinds."""
    foreign = {path for path in disagreeing("kubernetes-1.36", "mpi-operator") if not staging(path)}
    assert foreign == {"github.com/google/gnostic-models", "k8s.io/kube-openapi"}


def test_both_versions_of_helm_share_their_libraries() -> None:
    """Building the second one then takes seconds, not minutes."""
    assert not disagreeing("helm-3", "helm-4")


def disagreeing(module: str, other: str) -> set[str]:
    """Return the libraries that both modules have, in different versions."""
    first, second = (requirements(go_mod(MODULES[name])) for name in (module, other))
    return {path for path in first.keys() & second.keys() if first[path] != second[path]}


def staging(path: str) -> bool:
    """Return whether the library is released with Kubernetes, under its version."""
    return f"\t{path} => " in go_mod(MODULES["kubernetes-1.36"])


@pytest.mark.parametrize("minor", KUBERNETES)
def test_kubernetes_is_stamped(minor: str) -> None:
    """The binaries have version stamps; without major and minor they would panic."""
    version = "k8s.io/component-base/version"
    assert MODULES[f"kubernetes-{minor}"].stamps == {
        f"{version}.gitVersion": KUBERNETES[minor],
        f"{version}.gitMajor": "1",
        f"{version}.gitMinor": minor.removeprefix("1."),
    }


def test_providers() -> None:
    """A command belongs to its minor's module, or to one that all minors share."""
    assert provider("etcd").name == f"kubernetes-{DEFAULT_MINOR}"
    assert provider("etcd", "1.34").name == "kubernetes-1.34"
    assert provider("ray-operator", "1.34").name == "kuberay"


@pytest.mark.parametrize(("command", "minor"), [("etcdctl", "1.36"), ("kubectl", "1.2")])
def test_an_unknown_command_or_minor(command: str, minor: str) -> None:
    """An unknown command or minor is an error of the caller."""
    with pytest.raises(KeyError):
        provider(command, minor)
