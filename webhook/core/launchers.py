"""Which containers start MPI ranks, in their own pod or in others.

    evidence                                             whose
    --------                                             -----
    a role label, `ray.io/node-type: head`               the pod's
    K_MPI_JOB_ROLE in env                                mpi-operator v2, each container's
    OMPI_MCA_*, a hostfile's name in env                 the container's
    a launcher in command or args                        the container's

A label says it of a pod: there it is the container with evidence of its own, else the
first one. Nothing that this webhook writes is evidence.
"""

from __future__ import annotations

from typing import Any, Literal

from webhook.core.commands import env_names, launches_of
from webhook.core.openmpi import PREFIX, SWITCH
from webhook.core.pod import PodManifest, items, mapping
from webhook.core.shell import TOO_LARGE

Role = Literal["launcher", "worker"]

#: Sources: mpi-operator pkg/apis/kubeflow/v2beta1, v1 and v1alpha1 (the last one);
#: `replica-type` is training-operator's, for all its kinds, but only MPIJob has a launcher.
_ROLE_LABELS = ("training.kubeflow.org/job-role", "mpi-job-role", "mpi_role_type")
_REPLICA_LABEL = "training.kubeflow.org/replica-type"
_RAY_LABEL = "ray.io/node-type"
_ROLE_ENV = "K_MPI_JOB_ROLE"
_HOSTFILE_ENV = ("I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE")


def role_of(pod: PodManifest, manifest: dict[str, Any]) -> Role | None:
    """Return the MPI role that an operator gave the container, or its pod."""
    for item in items(manifest, ("env",)):
        if item.get("name") == _ROLE_ENV:
            return _role(item.get("value"))
    labels = mapping(pod, ("metadata", "labels"))
    if not labels:
        return None
    for label in _ROLE_LABELS:
        role = _role(labels.get(label))
        if role is not None:
            return role
    return "launcher" if labels.get(_REPLICA_LABEL) == "launcher" else None


def launchers_of(pod: PodManifest) -> frozenset[int]:
    """Return the indexes of the app containers that start ranks, in one pass over the pod."""
    containers = items(pod, ("spec", "containers"))
    launching = {index for index, one in enumerate(containers) if _launches(pod, one)}
    head = mapping(pod, ("metadata", "labels")).get(_RAY_LABEL) == "head"
    found = set()
    for index, one in enumerate(containers):
        role = role_of(pod, one)
        chosen = launching
        if not launching and (head or role == "launcher"):
            chosen = {0}
        if role != "worker" and index in chosen:
            found.add(index)
    return frozenset(found)


def _role(value: object) -> Role | None:
    match value:
        case "launcher" | "worker":
            return value
        case _:
            return None


def _launches(pod: PodManifest, manifest: dict[str, Any]) -> bool:
    for name in env_names(manifest):
        if (name.startswith(PREFIX) and name != SWITCH) or name in _HOSTFILE_ENV:
            return True
    return any(launch.behind != TOO_LARGE for launch in launches_of(pod, manifest))
