"""Controllers of other projects, run as programs next to the cluster.

Each also installs its project's kinds. Those for LWS, JobSet and cert-manager wait until the
controller works. None runs twice at a time: two would make the same pods, or listen at the same
port. So mpi-operator, whose kind a test removes, and cert-manager end with the block that started
them, and the others are started once for a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from tests.cluster import own_webhooks
from tests.cluster.binaries import binary, module_dir
from tests.cluster.cluster import Cluster
from tests.cluster.kinds import install_kinds
from tests.cluster.processes import ClusterError, Process


@contextmanager
def mpi_operator(cluster: Cluster) -> Iterator[None]:
    """Run mpi-operator during the block: MPIJob (kubeflow.org/v2beta1)."""
    install_kinds(
        cluster, str(module_dir("mpi-operator") / "manifests/base/kubeflow.org_mpijobs.yaml")
    )
    flag = f"-kubeConfig={cluster.kubeconfig}"
    process = cluster.start("mpi-operator", [binary("mpi-operator"), flag])
    try:
        yield
    finally:
        process.stop()


@cache
def start_training_operator(cluster: Cluster) -> Process:
    """Run training-operator: PyTorchJob and TFJob (kubeflow.org/v1)."""
    folder = module_dir("training-operator") / "manifests/base/crds"
    for kinds in ("pytorchjobs", "tfjobs"):
        install_kinds(cluster, str(folder / f"kubeflow.org_{kinds}.yaml"))
    flag = f"-kube-config={cluster.kubeconfig}"
    return cluster.start("training-operator", [binary("training-operator"), flag])


@cache
def start_kuberay(cluster: Cluster) -> Process:
    """Run KubeRay's operator: RayCluster, RayJob, RayService (ray.io/v1)."""
    install_kinds(cluster, str(module_dir("kuberay") / "config/crd/bases"))
    flags = ["-enable-leader-election=false", "-metrics-addr=0", "-health-probe-bind-address=0"]
    environ = {"KUBECONFIG": str(cluster.kubeconfig), "ENABLE_WEBHOOKS": "false"}
    return cluster.start("ray-operator", [binary("ray-operator"), *flags], environ)


@cache
def start_lws(cluster: Cluster) -> Process:
    """Run LeaderWorkerSet's controller, with its webhooks for pods and LeaderWorkerSets."""
    install_kinds(cluster, str(module_dir("lws") / "config/crd/bases"))
    return own_webhooks.start(
        cluster, own_webhooks.Manager("lws", "config.lws.x-k8s.io/v1alpha1", "config/webhook", 9443)
    )


@cache
def start_jobset(cluster: Cluster) -> Process:
    """Run JobSet's controller, with its webhooks for pods and JobSets."""
    install_kinds(cluster, str(module_dir("jobset") / "config/components/crd/bases"))
    return own_webhooks.start(
        cluster,
        own_webhooks.Manager(
            "jobset", "config.jobset.x-k8s.io/v1alpha1", "config/components/webhook", 9444
        ),
    )


@contextmanager
def cert_manager(cluster: Cluster) -> Iterator[Process]:
    """Run cert-manager's issuers and its injector of caBundles; remove everything afterwards."""
    crds = install_kinds(cluster, str(module_dir("cert-manager") / "deploy/crds"))
    environ = {"KUBECONFIG": str(cluster.kubeconfig)}
    process = cluster.start("cert-manager", [binary("cert-manager")], environ)

    def acts() -> bool:
        if process.ended():
            raise ClusterError(process.tail())
        return "Starting workers" in process.log.read_text()  # of the injector, which is last

    try:
        cluster.processes.until("cert-manager", acts)
        yield process
    finally:
        process.stop()
        cluster.kubectl("delete", *crds)
