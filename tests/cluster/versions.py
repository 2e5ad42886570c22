"""The versions of the cluster's programs, and how to build each command.

Each version is here and in `modules/<name>/go.mod`; a test compares the two. To raise one, run in
its module's folder: `go get -tool PACKAGE@VERSION && go mod tidy`. Kubernetes' own go.mod replaces
its staging libraries, which has no effect in other modules: each needs `k8s.io/X => k8s.io/X
v0.MINOR.PATCH` in ours. etcd stays at the version that Kubernetes requires. Modules that are used
only for their CRDs are raised by `go mod edit -require PATH@VERSION`, then `go mod download PATH`.

Go compiles a package again if a library below it has another version, so the modules use the same
versions wherever they can: building JobSet after LWS then takes seconds, not minutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: The oldest Go that can build the modules.
GO = (1, 26)

#: The default minor.
DEFAULT_MINOR = "1.36"
KUBERNETES: Mapping[str, str] = {"1.36": "v1.36.3", "1.34": "v1.34.4"}
ETCD: Mapping[str, str] = {"1.36": "v3.6.8", "1.34": "v3.6.4"}

_KUBERNETES_COMMANDS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)


@dataclass(frozen=True)
class Module:
    """One Go module whose commands or CRDs the cluster uses: `modules/<name>/`."""

    name: str
    path: str
    """The Go module that has the commands."""
    version: str
    commands: Mapping[str, str] = field(default_factory=dict)
    """The package of each command, in that module or in ours; none if only its CRDs are used."""
    stamps: Mapping[str, str] = field(default_factory=dict)
    """The variables that the linker sets (`-X`)."""
    tags: Sequence[str] = ()
    """The build tags."""
    in_clusters: bool = True
    """Whether the tests run its commands in or next to a cluster; the others are built by name."""


def _kubernetes(minor: str) -> Module:
    path, version = "k8s.io/kubernetes", KUBERNETES[minor]
    first, second = minor.split(".")
    # The binaries panic at start if one of these is empty.
    stamp = "k8s.io/component-base/version"
    return Module(
        name=f"kubernetes-{minor}",
        path=path,
        version=version,
        commands={
            "etcd": "go.etcd.io/etcd/server/v3",
            **{name: f"{path}/cmd/{name}" for name in _KUBERNETES_COMMANDS},
        },
        stamps={
            f"{stamp}.gitVersion": version,
            f"{stamp}.gitMajor": first,
            f"{stamp}.gitMinor": second,
        },
    )


#: The modules that do not depend on the cluster's minor.
_INDEPENDENT = (
    Module(
        name="coredns",
        path="github.com/coredns/coredns",
        version="v1.13.1",
        commands={
            "coredns": "tests/cluster/coredns"
        },  # main.go explains why it is not the stock one
    ),
    Module(
        name="kwok",
        path="sigs.k8s.io/kwok",
        version="v0.8.0",
        commands={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
        stamps={"sigs.k8s.io/kwok/pkg/consts.Version": "v0.8.0"},
    ),
    Module(
        name="mpi-operator",
        path="github.com/kubeflow/mpi-operator",
        version="v0.6.0",
        commands={"mpi-operator": "tests/cluster/mpi-operator"},  # main.go explains why
    ),
    Module(
        name="lws",
        path="sigs.k8s.io/lws",
        version="v0.7.0",
        commands={"lws": "sigs.k8s.io/lws/cmd"},
        stamps={"sigs.k8s.io/lws/pkg/version.GitVersion": "v0.7.0"},
    ),
    Module(
        name="jobset",
        path="sigs.k8s.io/jobset",
        version="v0.10.1",
        commands={"jobset": "sigs.k8s.io/jobset"},
        stamps={"sigs.k8s.io/jobset/pkg/version.GitVersion": "v0.10.1"},
    ),
    Module(
        name="kuberay",
        path="github.com/ray-project/kuberay/ray-operator",
        version="v1.4.2",
        commands={"ray-operator": "github.com/ray-project/kuberay/ray-operator"},
    ),
    Module(
        name="training-operator",
        path="github.com/kubeflow/training-operator",
        version="v1.9.2",
        commands={"training-operator": "tests/cluster/training-operator"},  # main.go explains why
    ),
    Module(
        name="cert-manager",
        path="github.com/cert-manager/cert-manager",
        version="v1.20.2",
        commands={"cert-manager": "tests/cluster/cert-manager"},  # main.go names the part of it
    ),
    Module(
        name="rdma-shared-dev-plugin",
        path="github.com/Mellanox/k8s-rdma-shared-dev-plugin",
        version="v1.5.3",
        commands={
            "k8s-rdma-shared-dp": (
                "github.com/Mellanox/k8s-rdma-shared-dev-plugin/cmd/k8s-rdma-shared-dp"
            ),
            "rdma-shared-dev-plugin-config": "tests/cluster/rdma-shared-dev-plugin",
        },
    ),
    # No newer release of network-operator is a Go module: its tags v23 and later, which its path
    # lacks, have no version there.
    Module(
        name="network-operator",
        path="github.com/Mellanox/network-operator",
        version="v1.4.0",
    ),
    Module(
        name="sriov-network-operator",
        path="github.com/k8snetworkplumbingwg/sriov-network-operator",
        version="v1.5.0",
    ),
    Module(
        name="network-attachment-definition-client",
        path="github.com/k8snetworkplumbingwg/network-attachment-definition-client",
        version="v1.7.5",
    ),
    Module(
        name="vegeta",
        path="github.com/tsenart/vegeta/v12",
        version="v12.12.0",
        commands={"vegeta": "github.com/tsenart/vegeta/v12"},
        stamps={"main.Version": "v12.12.0"},
    ),
    Module(
        name="gatekeeper",  # only for `make bench-cluster`
        path="github.com/open-policy-agent/gatekeeper/v3",
        version="v3.23.1",
        commands={"gatekeeper": "github.com/open-policy-agent/gatekeeper/v3"},
        stamps={"github.com/open-policy-agent/gatekeeper/v3/pkg/version.Version": "v3.23.1"},
        in_clusters=False,
    ),
    Module(
        name="kubeconform",
        path="github.com/yannh/kubeconform",
        version="v0.8.0",
        commands={"kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform"},
        stamps={"main.version": "v0.8.0"},
    ),
    # Helm 3 merges three ways, Helm 4 applies server-side: the chart is tested with both.
    Module(
        name="helm-3",
        path="helm.sh/helm/v3",
        version="v3.22.0",
        commands={"helm-3": "helm.sh/helm/v3/cmd/helm"},
        stamps={
            "helm.sh/helm/v3/internal/version.version": "v3.22.0",
            # Without these, `helm template` claims Kubernetes 1.20, which the chart refuses.
            "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": "37",
            "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor": "37",
        },
    ),
    Module(
        name="helm-4",
        path="helm.sh/helm/v4",
        version="v4.3.1",
        commands={"helm-4": "helm.sh/helm/v4/cmd/helm"},
        stamps={"helm.sh/helm/v4/internal/version.version": "v4.3.1"},
    ),
    # Prometheus 3.13.5: as a Go module, it has the version v0.313.5.
    Module(
        name="prometheus",
        path="github.com/prometheus/prometheus",
        version="v0.313.5",
        commands={"promtool": "github.com/prometheus/prometheus/cmd/promtool"},
        stamps={"github.com/prometheus/common/version.Version": "3.13.5"},
        tags=("remove_all_sd",),  # without the clients of two dozen clouds
    ),
    # The tools of a release (`make release`, `make test-release`).
    Module(
        name="crane",  # also a registry on loopback
        path="github.com/google/go-containerregistry",
        version="v0.22.1",
        commands={"crane": "github.com/google/go-containerregistry/cmd/crane"},
        stamps={"github.com/google/go-containerregistry/cmd/crane/cmd.Version": "v0.22.1"},
        in_clusters=False,
    ),
    Module(
        name="cosign",
        path="github.com/sigstore/cosign/v3",
        version="v3.1.3",
        commands={"cosign": "github.com/sigstore/cosign/v3/cmd/cosign"},
        stamps={"sigs.k8s.io/release-utils/version.gitVersion": "v3.1.3"},
        in_clusters=False,
    ),
    Module(
        name="syft",
        path="github.com/anchore/syft",
        version="v1.57.1",
        commands={"syft": "github.com/anchore/syft/cmd/syft"},
        stamps={"main.version": "v1.57.1"},
        in_clusters=False,
    ),
)

MODULES: Mapping[str, Module] = {
    module.name: module for module in (*map(_kubernetes, KUBERNETES), *_INDEPENDENT)
}


def provider(command: str, minor: str = DEFAULT_MINOR) -> Module:
    """Return the module of a command; raise KeyError for an unknown command or minor."""
    kubernetes = MODULES[f"kubernetes-{minor}"]
    for module in (kubernetes, *_INDEPENDENT):
        if command in module.commands:
            return module
    raise KeyError(command)
