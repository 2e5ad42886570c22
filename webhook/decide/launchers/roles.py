"""Find the containers that start ranks, in their own pod or in others, with the evidence.

    evidence                                             of             the ranks run
    --------                                             --             -------------
    a role label, `ray.io/node-type: head`               the pod        in other pods
    K_MPI_JOB_ROLE (mpi-operator v2), a hostfile or      the container  in other pods
      an agent for ssh in env
    a launcher with hosts, deepspeed, or                 the container  in other pods
      `ray start --head` in command or args
    a launcher without hosts, OMPI_MCA_* in env          the container  here, as far as is known

A label concerns the pod: the launcher is then the container with evidence of its own, or else the
first container. Nothing that this webhook writes is evidence, nor are a site's variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from webhook.decide.launchers.commands import DEEPSPEED, HOROVOD, RAY_HEAD, Commands, may_launch
from webhook.decide.launchers.launches import hosts_option, sets_hosts
from webhook.decide.launchers.openmpi import HCOLL_VARIABLE, MCA_PREFIX
from webhook.decide.shell.argv import Word, basename
from webhook.model.pod import Path, Pod

Role = Literal["launcher", "worker"]

#: Sources: mpi-operator pkg/apis/kubeflow/v2beta1, v1 and, for `mpi_role_type`, v1alpha1;
#: et-operator pkg/controllers/trainingjob_controller.go (arena's etjob and deepspeedjob). The
#: training-operator sets `replica-type` for all its kinds, but only MPIJob has a launcher.
_ROLE_LABELS = (
    *("training.kubeflow.org/job-role", "mpi-job-role", "mpi_role_type", "training-job-role"),
)
#: Labels of launchers, with their values for these; other pods, not MPI's, have the labels too.
_LAUNCHER_LABELS = {"training.kubeflow.org/replica-type": "launcher", "ray.io/node-type": "head"}
_LABELS = frozenset({*_ROLE_LABELS, *_LAUNCHER_LABELS})
_ROLE_ENV = "K_MPI_JOB_ROLE"
_HOSTFILE_ENV = ("I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE")
#: Prefixes of Open MPI's parameters, and of those of PRRTE, the launcher of Open MPI 5.
_PARAMETER_PREFIXES = (MCA_PREFIX, "PRTE_MCA_")
#: Words in the commands of programs that may use MPI, and prefixes of their variables; each prefix
#: begins with the newline that separates variables.
_MPI_WORDS = ("mpi4py", "openmpi", "hpcx", "OMPI_", HOROVOD, DEEPSPEED, "srun")
_MPI_ENV = ("\nOMPI_", "\nPRTE_", "\nPMIX_", "\nI_MPI_", "\nHYDRA_", "\nHOROVOD_", f"\n{_ROLE_ENV}")


class LauncherEvidence(NamedTuple):
    """The evidence that a container is a launcher."""

    evidence: str  #: such as "label mpi-job-role" or "mpirun --hostfile in its command"
    #: Whether the ranks run in other pods; else they run here, as far as is known.
    ranks_in_other_pods: bool


def may_lack_env(
    pod: Pod, path: Path, commands: Commands, user_env: Mapping[str, str | None]
) -> bool:
    """Return whether processes in the container at `path` may lack its `env`, which is `user_env`.

    Examples are the processes of an MPI worker, which the launcher starts by ssh or kubectl, and
    the children of sshd, even if the command only mentions it.
    """
    role = (_role(user_env[_ROLE_ENV]) if _ROLE_ENV in user_env else None) or _role_from_labels(
        pod
    )[0]
    return role == "worker" or commands.mentions_sshd(path)


def mentions_mpi(
    pod: Pod, path: Path, commands: Commands, text: str, user_env: Mapping[str, str | None]
) -> bool:
    """Return whether a container or its pod's labels mention MPI.

    `text` has the container's command, and perhaps its scripts; `user_env` is its `env`.
    """
    names = "\n".join(("", *user_env))
    return (
        may_launch(text)
        or any(map(text.__contains__, _MPI_WORDS))
        or any(map(names.__contains__, _MPI_ENV))
        or may_lack_env(pod, path, commands, user_env)
    )


def launchers_of(
    pod: Pod, commands: Commands, ignored: frozenset[str] = frozenset()
) -> dict[int, LauncherEvidence]:
    """Return the app containers that start ranks: index → evidence.

    `ignored`: variables that are not evidence, since a target may have got them from us.
    """
    roles: list[Role | None] = []
    evidence_by_index: dict[int, LauncherEvidence] = {}
    apps = (container for container in pod.containers if container.kind == "app")
    for index, app in enumerate(apps):
        user_env = {name: value for name, value in app.env.items() if name not in ignored}
        roles.append(_role(user_env.get(_ROLE_ENV)))
        evidence = next(_evidence(user_env, commands, app.path), None)
        if evidence is not None:
            evidence_by_index[index] = evidence
    role, label = _role_from_labels(pod)
    if role == "launcher" and roles:
        of_label = LauncherEvidence(f"label {label}", ranks_in_other_pods=True)
        evidence_by_index = dict.fromkeys(evidence_by_index or (0,), of_label)
    return {
        index: evidence
        for index, evidence in evidence_by_index.items()
        if (roles[index] or role) != "worker"
    }


def _role_from_labels(pod: Pod) -> tuple[Role | None, str]:
    """Return the role that an operator gave to the pod, and its label; (None, "") if none."""
    labels = pod.labels
    if labels.keys().isdisjoint(_LABELS):  # looks up few names, however many labels there are
        return None, ""
    for label in _ROLE_LABELS:
        role = _role(labels[label]) if label in labels else None
        if role is not None:
            return role, label
    for label, value in _LAUNCHER_LABELS.items():
        if labels.get(label) == value:
            return "launcher", label
    return None, ""


def _role(value: object) -> Role | None:
    match value:
        case "launcher" | "worker":
            return value
        case _:
            return None


def _evidence(
    user_env: Mapping[str, str | None], commands: Commands, path: Path
) -> Iterator[LauncherEvidence]:
    """Yield the evidence that a container with this `env` is a launcher, strongest first."""
    parameters = [
        name for name in user_env if name.startswith(_PARAMETER_PREFIXES) and name != HCOLL_VARIABLE
    ]
    launchers = [launch.launcher_words for launch in commands.launches(path) if not launch.problem]
    launchers += commands.other_launcher_commands(path)
    if user_env.get(_ROLE_ENV) == "launcher":
        yield LauncherEvidence(f"{_ROLE_ENV} in env", ranks_in_other_pods=True)
    naming = [name for name in parameters if sets_hosts(name, user_env[name])]
    for name in (*_HOSTFILE_ENV, *naming):
        if name in user_env:
            yield LauncherEvidence(f"{name} in env", ranks_in_other_pods=True)
    for description in filter(None, map(_description, launchers)):
        yield LauncherEvidence(f"{description} in its command", ranks_in_other_pods=True)
    for words in launchers:
        yield LauncherEvidence(
            f"{basename(words[0] or '')} in its command", ranks_in_other_pods=False
        )
    for name in parameters:
        if name.startswith(MCA_PREFIX):
            yield LauncherEvidence(f"{name} in env", ranks_in_other_pods=False)


def _description(words: Sequence[Word]) -> str:
    """Describe a launcher that certainly starts processes in other pods; return "" for others."""
    name = basename(words[0] or "")
    if name == RAY_HEAD[0]:
        return " ".join(RAY_HEAD)
    option = hosts_option(words)
    if option:
        return f"{name} {option}"
    return name if name == DEEPSPEED else ""
