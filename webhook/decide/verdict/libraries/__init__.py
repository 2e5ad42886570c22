"""The libraries: whether a target's variables and commands keep its data off RDMA.

A verdict speaks about the libraries that move the target's data between nodes (`usage`). Each has
a function that finds what keeps it off RDMA, and `_switches` names the variables whose values must
be known for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from webhook.decide.settings.library_files import nccl_files, openmpi_files, unseen_file
from webhook.decide.settings.mounted_files import MountedFile
from webhook.decide.settings.terms import SWITCHES
from webhook.decide.settings.written_files import file_filled_from_elsewhere
from webhook.decide.verdict.libraries.gloo import GLOO_OVER_TCP, judge_gloo
from webhook.decide.verdict.libraries.mpi import (
    MPI_REASONS,
    judge_mpi_transport,
    unless_nccl,
)
from webhook.decide.verdict.libraries.nccl import (
    NCCL_REASONS,
    judge_nccl,
    nccl_switched_off_by,
)
from webhook.decide.verdict.libraries.over_libfabric import (
    NOT_OVER_LIBFABRIC,
    is_over_libfabric,
    judge_over_libfabric,
)
from webhook.decide.verdict.libraries.parameter_server import (
    PARAMETER_SERVER_REASONS,
    judge_parameter_server,
)
from webhook.decide.verdict.libraries.transfers import (
    TRANSFER_REASONS,
    judge_mooncake,
    judge_mori,
    judge_nixl,
    judge_nvshmem,
    nvshmem_uses_ucx,
)
from webhook.decide.verdict.libraries.usage import with_libraries_shown_by
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.config_maps import keys_in_env
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import Transport
from webhook.model.names import enumerated
from webhook.model.pod import Container
from webhook.model.pod.hooks import hook_commands
from webhook.model.traffic_libraries import TrafficLibrary

_WHO_READS_THEM = (
    "`rdma-webhook why` reads the pod's ConfigMaps. A preview reads the ConfigMaps in its input; "
    "with --live, it also reads those in the cluster."
)
ENV_UNSEEN = Reason(
    "EnvUnseen",
    "The variables of envFrom may turn RDMA off, but admission cannot see them.",
    remedy=(
        "Check that the ConfigMaps and Secrets of envFrom do not turn RDMA off for any library: "
        "for NCCL, that they set none of NCCL_IB_DISABLE, NCCL_NET, NCCL_NET_PLUGIN and "
        "NCCL_IB_HCA. Or, if the job uses only NCCL, and NCCL needs no plugin on the fabric, set "
        "all four in env, which overrides envFrom: NCCL_IB_DISABLE=0, NCCL_NET=IB, "
        f"NCCL_NET_PLUGIN=none and the fabric's NCCL_IB_HCA. {_WHO_READS_THEM}"
    ),
    rdma="unsure",
)
FILE_UNSEEN = Reason(
    "FileUnseen",
    "A file with NCCL's variables or Open MPI's parameters may turn RDMA off, but admission cannot "
    "see its content.",
    remedy=(
        "Check that the file sets none of NCCL_IB_DISABLE, NCCL_NET, NCCL_NET_PLUGIN and "
        "NCCL_IB_HCA, and neither of Open MPI's parameters pml and btl. Or set the variables in "
        "env, which overrides the file: for NCCL, NCCL_IB_DISABLE=0, NCCL_NET=IB (unless NCCL "
        "needs a plugin on the fabric) and the fabric's NCCL_IB_HCA; for Open MPI, "
        f"OMPI_MCA_pml=ucx. {_WHO_READS_THEM}"
    ),
    rdma="unsure",
)
VALUE_UNSEEN = Reason(
    "ValueUnseen",
    "A variable may turn RDMA off: admission cannot see its value, which comes from valueFrom or "
    "$(NAME), or the value contains a $(NAME) that is not expanded, since neither envFrom nor an "
    "earlier entry of env defines NAME.",
    remedy=(
        "Check that the value does not turn RDMA off, or write it in env as a literal `value`. If "
        "$(NAME) is not expanded, define NAME in env before the variable that refers to NAME. "
        f"{_WHO_READS_THEM}"
    ),
    rdma="unsure",
)


#: The variables with numbers: NCCL ignores any other value (nccl, misc/param.cc).
_IGNORES_NONSENSE = frozenset({"NCCL_IB_DISABLE"})

#: Library → what keeps it off RDMA; it reads the variables that `_switches` names.
_JUDGES: dict[TrafficLibrary, Callable[[PatchedPod, PatchedTarget], Verdict | None]] = {
    "NCCL": judge_nccl,
    "NIXL": judge_nixl,
    "Mooncake": judge_mooncake,
    "MoRI": judge_mori,
    "NVSHMEM": judge_nvshmem,
    "MPI": judge_mpi_transport,
    "ps-lite": judge_parameter_server,
    "Gloo": judge_gloo,
}
LIBRARY_REASONS = (
    *NCCL_REASONS,
    ENV_UNSEEN,
    FILE_UNSEEN,
    VALUE_UNSEEN,
    *TRANSFER_REASONS,
    *MPI_REASONS,
    *PARAMETER_SERVER_REASONS,
    GLOO_OVER_TCP,
    NOT_OVER_LIBFABRIC,
)


def judge_libraries(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the worst verdict on the libraries that move a target's data, or None."""
    verdicts = dict(_verdicts(pod, patched))
    if verdicts:
        verdict = min(verdicts.values(), key=lambda verdict: verdict.rdma)  # "no" before "unsure"
        able = [name for name in patched.carriers if name not in verdicts]
        return verdict._replace(message=f"{verdict.message}{_able(able)}")
    possible = _verdict_if_mpi(pod, patched)
    if possible is not None:
        return possible
    unseen_source = patched.declared_env.unseen_source
    if unseen_source and not _sets_all_switches(patched):
        subject = f"envFrom of container {patched.target.name}"
        message = f"{subject} may set variables that turn RDMA off ({unseen_source.title})"
        return Verdict.of(ENV_UNSEEN, message).with_key(unseen_source.key)
    return _judge_unseen_file(pod, patched)


def _sets_all_switches(patched: PatchedTarget) -> bool:
    """Return whether `env` has each variable that may keep its libraries off RDMA."""
    names = {name for library in patched.carriers for name in _switches(patched, library)}
    return bool(names) and names <= patched.original.env.keys()


def _judge_unseen_file(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the verdict on a library's file that admission cannot see, or None."""
    config_maps, file = pod.analysis.namespace.config_maps, _unseen_file(pod, patched)
    path = file.path if file else ""
    if not path and "NCCL" in patched.carriers:
        path = _file_from_elsewhere(patched.original, _scripts(pod, patched))
    if not path:
        return None
    key = file.read(config_maps).key if file else None
    subject = f"{path:.60} in container {patched.target.name}"
    key_suffix = f" ({key.title})" if key else ""
    message = f"{subject} may turn RDMA off{key_suffix}"
    return Verdict.of(FILE_UNSEEN, message).with_key(key)


def _unseen_file(pod: PatchedPod, patched: PatchedTarget) -> MountedFile | None:
    pod_view, container = pod.analysis.original, patched.original
    files = [*nccl_files(pod_view, container)] if "NCCL" in patched.carriers else []
    if "MPI" in patched.carriers or patched.may_use_mpi:
        files += openmpi_files(pod_view, container)
    return unseen_file(files, pod.analysis.namespace.config_maps)


def _scripts(pod: PatchedPod, patched: PatchedTarget) -> list[str]:
    return pod.analysis.settings_reader.script_texts(patched.target.path)


def _file_from_elsewhere(container: Container, scripts: list[str]) -> str:
    """Return NCCL's file if the command, a script or a hook of a container copies it, or ""."""
    hooks = (hook.words for hook in hook_commands(container.manifest))
    commands = (container.command + container.args, *hooks, *((text,) for text in scripts))
    return next(filter(None, map(file_filled_from_elsewhere, commands)), "")


def with_libraries(pod: PatchedPod) -> PatchedPod:
    """Return the pod with the libraries that move the data of its targets."""
    targets = [
        with_libraries_shown_by(pod, patched, patched.effective_env)
        for patched in pod.decisive_targets
    ]
    return pod._replace(decisive_targets=tuple(targets))


def _verdicts(pod: PatchedPod, patched: PatchedTarget) -> Iterator[tuple[TrafficLibrary, Verdict]]:
    for library, judge in _JUDGES.items():
        if library in patched.carriers:
            if is_over_libfabric(pod, library):
                verdict = judge_over_libfabric(patched, library)
            else:
                verdict = judge(pod, patched) or _unseen(patched, library)
            if verdict is not None:
                yield library, verdict


def _verdict_if_mpi(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the verdict on a program whose data MPI may move, and then not by RDMA; or None."""
    if not patched.may_use_mpi:
        return None
    verdict = judge_mpi_transport(pod, patched) or _unseen(patched, "MPI")
    return verdict and unless_nccl(verdict)


def _switches(patched: PatchedTarget, library: TrafficLibrary) -> tuple[str, ...]:
    """Return the variables that can keep a library off RDMA."""
    if library == "NVSHMEM" and nvshmem_uses_ucx(patched):
        return (*SWITCHES[library], "UCX_TLS", "UCX_NET_DEVICES")
    return (*SWITCHES[library],)


def _unseen(patched: PatchedTarget, library: TrafficLibrary) -> Verdict | None:
    """Return the verdict on a variable whose value is unknown, or a reference that stays, or None.

    What a command computes is judged elsewhere (`command_settings`).
    """
    for name in _switches(patched, library):
        if name not in patched.effective_env or patched.is_set_by_command(name):
            continue
        message = _unclear(patched, name)
        if message:
            message = f"container {patched.target.name} sets {name} {message}, and that value"
            verdict = Verdict.of(VALUE_UNSEEN, f"{message} may keep {library} from using RDMA")
            return verdict.with_key(keys_in_env(patched.original).get(name))
    return None


def _unclear(patched: PatchedTarget, name: str) -> str:
    """Return why the effect of a variable in env is not known, as a clause; or ""."""
    value = patched.effective_env[name]
    if value is None:
        key = keys_in_env(patched.original).get(name)
        return f"from {key.title if key else 'valueFrom or $(NAME)'}"
    clause = "" if name in _IGNORES_NONSENSE else patched.original.unexpanded(name)
    return f"to {value:.60} ({clause})" if clause else ""


def _able(names: list[TrafficLibrary]) -> str:
    """Return a clause on the libraries that can use RDMA although another cannot, or ""."""
    return f" (but {enumerated(names)} can use RDMA either way)" if names else ""


#: A fabric's transport → NCCL with the plugin that admission cannot see.
_PLUGIN_CLAUSES: dict[Transport, str] = {
    "verbs": "",
    "libfabric": "NCCL (the image must contain its plugin for libfabric, aws-ofi-nccl)",
    "gib": "NCCL (the pod must mount Google's plugin gIB)",
}


def libraries_of(pod: PatchedPod) -> tuple[TrafficLibrary, ...]:
    """List the libraries that move the pod's data between nodes, each once."""
    targets = pod.decisive_targets
    return tuple(dict.fromkeys(name for patched in targets for name in patched.carriers))


def clause_on_libraries(pod: PatchedPod) -> str:
    """Return the libraries as a clause, with what keeps NCCL off RDMA.

    "" for NCCL alone, and if none is visible.
    """
    libraries = libraries_of(pod)
    plugin = _PLUGIN_CLAUSES[pod.transport]
    if libraries in ((), ("NCCL",)) and not plugin:
        return ""
    names = [plugin if plugin and name == "NCCL" else name for name in libraries]
    return f"{enumerated(names)}{_switched_off(pod)}"


def _switched_off(pod: PatchedPod) -> str:
    """Return a clause on NCCL where another library moves the data, and NCCL has no RDMA; or ""."""
    for patched in pod.decisive_targets:
        setting = nccl_switched_off_by(pod, patched)
        if setting and "NCCL" not in patched.carriers:
            return f"; NCCL's RDMA is switched off by {setting}"
    return ""
