"""Find the containers that start MPI ranks, in their own pod or in others.

    evidence                                             of
    --------                                             --
    a role label, `ray.io/node-type: head`               the pod
    K_MPI_JOB_ROLE in env                                each container (mpi-operator v2)
    OMPI_MCA_*, or a hostfile variable, in env           the container
    a launcher in command or args                        the container

A label concerns the pod: the launcher is then the container that has its own evidence, or else
the first container. Nothing that this webhook writes is evidence, nor are a site's variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from webhook.mpi.commands import Commands
from webhook.mpi.openmpi import PREFIX, SWITCH
from webhook.pod.container_env import env_names
from webhook.pod.manifest import PodManifest, items, mapping
from webhook.pod.path import Path

Role = Literal["launcher", "worker"]

#: Sources: mpi-operator pkg/apis/kubeflow/v2beta1, v1 and, for `mpi_role_type`, v1alpha1. The
#: training-operator sets `replica-type` for all its kinds, but only MPIJob has a launcher.
_ROLE_LABELS = ("training.kubeflow.org/job-role", "mpi-job-role", "mpi_role_type")
_REPLICA_LABEL = "training.kubeflow.org/replica-type"
_LABELS = frozenset({*_ROLE_LABELS, _REPLICA_LABEL})
_RAY_LABEL = "ray.io/node-type"
_ROLE_ENV = "K_MPI_JOB_ROLE"
_HOSTFILE_ENV = ("I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE")


def role_of(pod: PodManifest, manifest: dict[str, Any]) -> Role | None:
    """Return the MPI role that an operator gave to the container, or to its pod."""
    for item in items(manifest, ("env",)):
        if item.get("name") == _ROLE_ENV:
            return _role(item.get("value"))
    return _role_in_labels(pod)


def starts_without_env(
    pod: PodManifest, path: Path, commands: Commands, own: Mapping[str, str | None]
) -> bool:
    """Return whether processes in the container at `path` may lack its `env`, which is `own`.

    Such are the processes of an MPI worker, which the launcher starts by ssh or kubectl, and the
    children of sshd.
    """
    role = _role(own[_ROLE_ENV]) if _ROLE_ENV in own else _role_in_labels(pod)
    return role == "worker" or commands.runs_sshd(path)


def launchers_of(
    pod: PodManifest, commands: Commands, written: frozenset[str] = frozenset()
) -> frozenset[int]:
    """Return the indexes of the app containers that start ranks.

    `written` are the names that the `env` of any fabric sets. They are no evidence, since a target
    may have got them from us.
    """
    containers = items(pod, ("spec", "containers"))
    launching = {
        index
        for index, one in enumerate(containers)
        if _is_told(one, written) or _launches(commands, ("spec", "containers", index))
    }
    head = mapping(pod, ("metadata", "labels")).get(_RAY_LABEL) == "head"
    found = set()
    for index, one in enumerate(containers):
        role = _role_in_labels(pod) if _ROLE_ENV in written else role_of(pod, one)
        chosen = launching
        if not launching and (head or role == "launcher"):
            chosen = {0}
        if role != "worker" and index in chosen:
            found.add(index)
    return frozenset(found)


def _role_in_labels(pod: PodManifest) -> Role | None:
    labels = mapping(pod, ("metadata", "labels"))
    if _LABELS.isdisjoint(labels):
        return None
    for label in _ROLE_LABELS:
        role = _role(labels.get(label))
        if role is not None:
            return role
    return "launcher" if labels.get(_REPLICA_LABEL) == "launcher" else None


def _role(value: object) -> Role | None:
    match value:
        case "launcher" | "worker":
            return value
        case _:
            return None


def _is_told(manifest: dict[str, Any], written: frozenset[str]) -> bool:
    """Return whether a name in `env` is evidence of a launcher."""
    names = env_names(manifest)
    joined = "\n".join(names)
    if PREFIX not in joined and not any(name in joined for name in _HOSTFILE_ENV):
        return False
    return any(
        name not in written
        and ((name.startswith(PREFIX) and name != SWITCH) or name in _HOSTFILE_ENV)
        for name in names
    )


def _launches(commands: Commands, path: Path) -> bool:
    return any(not launch.problem for launch in commands.launches(path))
