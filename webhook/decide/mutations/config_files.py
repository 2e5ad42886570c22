"""`config-files`: mount NCCL's settings as /etc/nccl.conf, which sshd's children read as well.

On a fabric with AMD's GPUs, the file is /etc/rccl.conf, with the same variables.

A process that sshd starts does not inherit the container's environment. NCCL reads this file
last and never overrides the environment with it (nccl, src/misc/param.cc). `configFiles: auto`
mounts it in MPI workers, in containers whose command names sshd (a mount is harmless if sshd does
not run) or clears the environment, as `su -` does, and where `envFrom` keeps `env` from setting
variables.
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.decide.analysis import Mutation, PodAnalysis, RdmaAccess, Target
from webhook.decide.draft import Draft
from webhook.decide.fabric_variables import desired_env
from webhook.decide.launchers.roles import may_lack_env
from webhook.decide.settings.written_files import changes_files
from webhook.decide.shell.argv import basename
from webhook.model.annotations import NCCL_CONF_ANNOTATION, has_room, size_of
from webhook.model.decision import Reason
from webhook.model.fabric import GLOO_SOCKET, NCCL_SOCKET, Fabric
from webhook.model.pod import Container, Pod
from webhook.model.pod.environment import may_expand
from webhook.model.pod.hooks import hook_commands
from webhook.model.pod.volumes import VOLUMES

# The text of /etc/nccl.conf, for all containers of a pod at once.
#
# NCCL reads lines `NAME=VALUE` without trimming them, takes `#` as a comment only in the first
# column, and cuts names and values at 1023 bytes (nccl/src/misc/param.cc). A value may begin with
# `=`, as in `NCCL_IB_HCA==mlx5_0`.

MAX_VALUE_BYTES = 1023


def nccl_conf(
    containers: Iterable[Container], fabric: Fabric, *, host_network: bool
) -> tuple[str, list[str]]:
    """Return the text for some containers of a pod, and the names of the omitted variables.

    A variable in a container's `env` keeps its value there. It is left out if the containers
    differ in it, if only the kubelet knows its value, or if the value does not fit on a line.
    """
    of_fabric = _nccl(fabric, host_network=host_network)
    settings = [_values(of_fabric, fabric, container.env) for container in containers]
    lines: list[str] = []
    left_out: list[str] = []
    for name in dict.fromkeys(name for values in settings for name in values):
        value, *different = {values.get(name) for values in settings}
        if different or value is None or not _fits(value):
            left_out.append(name)
        else:
            lines.append(f"{name}={value}\n")
    return "".join(lines), left_out


def _nccl(fabric: Fabric, *, host_network: bool) -> dict[str, str | None]:
    variables = desired_env(fabric, {}, host_network=host_network)
    return {
        name: None if may_expand(value) else value
        for name, value in variables
        if name.startswith("NCCL_")
    }


def _values(
    of_fabric: dict[str, str | None], fabric: Fabric, user_env: dict[str, str | None]
) -> dict[str, str | None]:
    """Return the values for one container; its `env` wins, before and after the mutation `env`."""
    values = {name: user_env.get(name, value) for name, value in of_fabric.items()}
    if NCCL_SOCKET in user_env:
        if "nccl" in fabric.libraries:
            values[NCCL_SOCKET] = user_env[NCCL_SOCKET]
    elif GLOO_SOCKET in user_env:
        values.pop(NCCL_SOCKET, None)
    return values


def _fits(value: str) -> bool:
    """Return whether a value fits on a line; a `$(NAME)` that stays would help no process."""
    return size_of(value) <= MAX_VALUE_BYTES and "\n" not in value and "$(" not in value


# Carry /etc/nccl.conf in the pod: its text in an annotation, mounted by a downwardAPI volume.
#
# Thus no namespace needs a ConfigMap from us.

KEY = "nccl.conf"
VOLUME_NAME = "rdma-lab-nccl-conf"
ANNOTATION = ("metadata", "annotations", NCCL_CONF_ANNOTATION)

_FIELD = {"fieldPath": f"metadata.annotations['{NCCL_CONF_ANNOTATION}']"}
_VOLUME = {"name": VOLUME_NAME, "downwardAPI": {"items": [{"path": KEY, "fieldRef": _FIELD}]}}


def is_name_taken(pod: Pod) -> bool:
    """Return whether the pod has a volume with our name that does not contain the annotation."""
    volume = pod.volume(VOLUME_NAME)
    return volume is not None and (KEY, _FIELD["fieldPath"]) not in volume.downward_api_files


def user_mount(container: Container, file: str) -> str | None:
    """Return the path where the user mounts a file or a directory above it; None if nowhere."""
    above, mount = container.mounted_parent(file), container.mount_at(file)
    if above is None and mount is not None and mount.get("name") != VOLUME_NAME:
        return file
    return above


def add_file_to_pod(draft: Draft, conf: str) -> bool:
    """Add the annotation and the volume if missing; return whether either was missing."""
    carried = True
    if draft.get(ANNOTATION) is None:
        draft.set(ANNOTATION, conf)
        carried = False
    if draft.view.volume(VOLUME_NAME) is None:
        draft.append(VOLUMES, _VOLUME)
        carried = False
    return not carried


def mount(draft: Draft, target: Target, file: str) -> bool:
    """Mount the file into a target; return False if it was mounted already."""
    mounted = draft.container(target.path).mount_at(file) is not None
    if not mounted:
        # With a subPath, so that the rest of /etc stays the image's.
        item = {"name": VOLUME_NAME, "mountPath": file, "subPath": KEY, "readOnly": True}
        draft.append((*target.path, "volumeMounts"), item)
    return not mounted


MOUNTED = Reason(
    "Mounted",
    "The fabric's /etc/nccl.conf (/etc/rccl.conf for AMD GPUs) is mounted; it hides the image's "
    "file, if there is one.",
    remedy="",
)
PRESENT = Reason("Present", "The container already mounts the fabric's /etc/nccl.conf.", remedy="")
NOT_NEEDED = Reason(
    "NotNeeded",
    "The command neither mentions sshd nor clears the environment, and the container has no "
    "envFrom, so variables in env are enough and no file is mounted.",
    remedy="",
    reportable=False,
)
NOT_CONFIGURED = Reason(
    "NotConfigured",
    "The configuration sets `configFiles: never`, or the fabric sets no NCCL variables.",
    remedy="",
    reportable=False,
)
USER_MOUNT = Reason(
    "UserMount",
    "The pod mounts its own /etc/nccl.conf, or a directory above it, so the webhook did not mount "
    "the fabric's file.",
    remedy="Remove your own mount, or add the fabric's NCCL variables to your /etc/nccl.conf.",
)
MENTIONED = Reason(
    "MentionedInCommand",
    "The command mentions nccl.conf (rccl.conf for AMD GPUs), or a hook of the container writes "
    "that file, so the webhook did not mount the fabric's file.",
    remedy="Add the fabric's NCCL variables to the file that the command or hook uses.",
)
NAME_TAKEN = Reason(
    "VolumeNameTaken",
    f"The pod has its own volume named {VOLUME_NAME}, so the webhook did not mount the fabric's "
    "/etc/nccl.conf (/etc/rccl.conf for AMD GPUs).",
    remedy="Give the pod's own volume a different name.",
)
NO_ROOM = Reason(
    "AnnotationsTooLarge",
    "The pod's annotations (at most 256 KiB in total) leave no room for the annotation "
    "rdma.lab/nccl-conf.",
    remedy="Shorten the pod's annotations: Kubernetes allows 256 KiB in total.",
)
LEFT_OUT = Reason(
    "LeftOut",
    "The webhook's /etc/nccl.conf omits a variable: the containers set it to different values, or "
    "its value is not a literal.",
    remedy=(
        "Set the variable to the same literal value in all containers where sshd starts processes."
    ),
)
ANNOTATION_DIFFERS = Reason(
    "AnnotationDiffers",
    f"The pod's own annotation {NCCL_CONF_ANNOTATION} differs from what the webhook would write, "
    "so the webhook denies the pod.",
    remedy="Remove the annotation rdma.lab/nccl-conf; the webhook then adds its own.",
)
ANNOTATION_KEPT = Reason(
    "AnnotationKept",
    f"The pod has the annotation {NCCL_CONF_ANNOTATION} from an earlier call of the webhook, and "
    "the webhook keeps it.",
    remedy=(
        "If the pod was created from the manifest of an older pod, remove the annotation "
        "rdma.lab/nccl-conf from that manifest. Otherwise, no action is needed."
    ),
)
ENV_DROPPED = Reason(
    "EnvDropped",
    "The command clears the environment, and with it variables that /etc/nccl.conf cannot set.",
    remedy=(
        "Let the command keep the environment (su without -, sudo -E). If it must clear the "
        "environment, set the variables afterwards in the same command."
    ),
)
UNUSED = Reason(
    "AnnotationUnused",
    f"The pod has the annotation {NCCL_CONF_ANNOTATION}, but no container mounts it as a file.",
    remedy="Remove the annotation rdma.lab/nccl-conf.",
)


def mutate(draft: Draft, analysis: PodAnalysis) -> None:
    """Mount the file into every target that needs it."""
    targets: list[Target] = []
    for target in analysis.targets:
        _warn_dropped(draft, analysis, target)
        skip_reason = _skip_reason(draft, analysis, target)
        if skip_reason is None:
            targets.append(target)
        else:
            draft.skipped(target.name, *skip_reason)
    if not targets or not _add_file(draft, analysis, targets):
        if draft.get(ANNOTATION) is not None:
            draft.warned(
                "",
                UNUSED,
                f"annotation {NCCL_CONF_ANNOTATION} has no effect, since nothing mounts it",
            )
        return
    file = _file(analysis)
    for target in targets:
        if mount(draft, target, file):
            draft.applied(
                target.name, MOUNTED, f"mounted {file}; it hides the image's file, if there is one"
            )
        else:
            draft.already(target.name, PRESENT, f"{file} is already mounted")


def _file(analysis: PodAnalysis) -> str:
    assert analysis.fabric is not None
    return analysis.fabric.nccl_file


def _warn_dropped(draft: Draft, analysis: PodAnalysis, target: Target) -> None:
    """Warn about variables that a target's command drops, and that no file replaces."""
    settings = analysis.settings_reader.settings(target.path)
    if not settings.drops_env:
        return
    env, fabric = draft.container(target.path).env, analysis.fabric
    assert fabric is not None
    dropped = [
        name
        for name, _ in desired_env(fabric, {}, host_network=analysis.original.host_network)
        if name in env and name not in settings.certain and not name.startswith("NCCL_")
    ]
    if dropped:
        message = f"{settings.env_dropped_by} drops {', '.join(dropped)}; set them after it"
        draft.warned(target.name, ENV_DROPPED, message)


def _skip_reason(draft: Draft, analysis: PodAnalysis, target: Target) -> tuple[Reason, str] | None:
    policy = analysis.configuration.defaults.config_files
    if policy == "never":
        return NOT_CONFIGURED, "the configuration has configFiles: never"
    if policy == "auto" and not _is_needed(analysis, target):
        return NOT_NEEDED, "the command does not mention sshd, and there is no envFrom"
    file = _file(analysis)
    mounted = user_mount(draft.container(target.path), file)
    if mounted is not None:
        return USER_MOUNT, f"your own mount at {mounted} is kept"
    base = basename(file)
    if base in analysis.commands.text(target.path):
        return MENTIONED, f"the command writes {base} itself"
    hooks = hook_commands(analysis.containers[target.path].manifest)
    writing = (hook.name for hook in hooks if base in hook.text and changes_files(hook.text))
    name = next(writing, "")  # it would fail: the file is mounted read-only
    return (MENTIONED, f"the {name} writes {base} itself") if name else None


def _is_needed(analysis: PodAnalysis, target: Target) -> bool:
    container = analysis.containers[target.path]
    return bool(
        container.env_from or analysis.settings_reader.settings(target.path).env_dropped_by
    ) or may_lack_env(analysis.original, target.path, analysis.commands, container.env)


def _add_file(draft: Draft, analysis: PodAnalysis, targets: list[Target]) -> bool:
    """Add the text and the volume to the pod; return False and record any obstacle."""
    assert analysis.fabric is not None
    file = _file(analysis)
    conf, left_out = nccl_conf(
        [draft.container(target.path) for target in targets],
        analysis.fabric,
        host_network=analysis.original.host_network,
    )
    present, obstacle = draft.view.annotation(NCCL_CONF_ANNOTATION), _obstacle(draft.view, conf)
    for target in targets if obstacle else ():
        draft.skipped(target.name, *obstacle)
    if not obstacle and present not in (None, conf) and analysis.called_before:
        draft.skipped(
            "", ANNOTATION_KEPT, f"annotation {NCCL_CONF_ANNOTATION} from an earlier call is kept"
        )
    elif not obstacle and present not in (None, conf):
        message = f"annotation {NCCL_CONF_ANNOTATION} differs from the webhook's text; remove it"
        draft.failed("", ANNOTATION_DIFFERS, message)
    elif not obstacle and add_file_to_pod(draft, conf):
        draft.applied("", MOUNTED, f"added {file} to the pod, as an annotation and a volume")
    elif not obstacle:
        draft.already("", PRESENT, f"the pod already has {file}")
    if left_out:
        message = (
            f"{file} omits {', '.join(left_out)}, since the containers do not all set the same "
            "literal value"
        )
        draft.warned("", LEFT_OUT, message)
    return not obstacle


def _obstacle(pod: Pod, conf: str) -> tuple[Reason, str] | tuple[()]:
    if is_name_taken(pod):
        return NAME_TAKEN, f"rename your volume {VOLUME_NAME}, since the webhook uses that name"
    if not conf:
        return NOT_CONFIGURED, "there are no NCCL variables to write"
    if not has_room(pod.annotations, {NCCL_CONF_ANNOTATION: conf}):
        return NO_ROOM, "the annotations would exceed 256 KiB in total"
    return ()


MUTATION = Mutation(
    name="config-files",
    summary="mounts the NCCL settings as /etc/nccl.conf for processes that sshd starts",
    needs=RdmaAccess.FABRIC,
    reasons=(
        *(MOUNTED, PRESENT, NOT_NEEDED, NOT_CONFIGURED, USER_MOUNT, MENTIONED),
        *(NAME_TAKEN, NO_ROOM, LEFT_OUT, ANNOTATION_DIFFERS, ANNOTATION_KEPT, ENV_DROPPED, UNUSED),
    ),
    mutate=mutate,
)
