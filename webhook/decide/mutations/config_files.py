"""`config-files`: mount NCCL's settings as /etc/nccl.conf, which sshd's children read as well.

A process that sshd starts does not inherit the container's environment. NCCL reads this file
last and never overrides the environment with it (nccl, src/misc/param.cc). `configFiles: auto`
mounts it in MPI workers, where a command names sshd (a mount does no harm where it does not run),
and where `envFrom` keeps `env` from setting variables.
"""

from __future__ import annotations

from webhook.decide.draft import Draft
from webhook.decide.launchers.roles import starts_without_env
from webhook.decide.mutations.nccl_conf import nccl_conf
from webhook.decide.mutations.volume import (
    ANNOTATION,
    FILE,
    KEY,
    VOLUME_NAME,
    carry,
    is_name_taken,
    mount,
    own_mount,
)
from webhook.decide.scope import Mutation, Needs, Scope, Target
from webhook.model.annotations import NCCL_CONF, has_room
from webhook.model.decision import Reason
from webhook.model.pod import mapping, text

MOUNTED = Reason(
    "Mounted", "The fabric's /etc/nccl.conf is mounted; it hides a file of the image there."
)
PRESENT = Reason("Present", "The container already mounts the fabric's /etc/nccl.conf.")
NOT_NEEDED = Reason(
    "NotNeeded", "The command names no sshd, and there is no envFrom: env is enough.", quiet=True
)
NOTHING = Reason("NotConfigured", "configFiles is never, or the fabric sets no NCCL_*.", quiet=True)
USER_MOUNT = Reason("UserMount", "The user mounts /etc/nccl.conf, or a directory above it.")
MENTIONED = Reason("MentionedInCommand", "The command writes nccl.conf itself.")
NAME_TAKEN = Reason("VolumeNameTaken", f"Another volume of the pod is named {VOLUME_NAME}.")
NO_ROOM = Reason(
    "AnnotationsTooLarge",
    "The pod's annotations leave no room for the text: their limit is 256 KiB.",
)
LEFT_OUT = Reason("LeftOut", "Containers differ in a variable, or its value is not a literal.")
DIFFERS = Reason(
    "AnnotationDiffers", f"The pod's own {NCCL_CONF} differs from what the webhook writes."
)
KEPT = Reason("AnnotationKept", f"The pod has {NCCL_CONF} from an earlier call, which is kept.")
UNUSED = Reason("AnnotationUnused", f"The pod has {NCCL_CONF}, but nothing mounts it.")


def mutate(draft: Draft, scope: Scope) -> None:
    """Mount the file into every target that needs it."""
    targets: list[Target] = []
    for target in scope.targets:
        left_alone = _left_alone(draft, scope, target)
        if left_alone is None:
            targets.append(target)
        else:
            draft.skipped(target.name, *left_alone)
    if not targets or not _provide(draft, scope, targets):
        if draft.get(ANNOTATION) is not None:
            draft.warned("", UNUSED, f"annotation {NCCL_CONF} has no effect: nothing mounts it")
        return
    for target in targets:
        if mount(draft, target.path):
            draft.applied(
                target.name, MOUNTED, f"mounted {FILE}, which hides a file of the image there"
            )
        else:
            draft.already(target.name, PRESENT, f"{FILE} is already mounted")


def _left_alone(draft: Draft, scope: Scope, target: Target) -> tuple[Reason, str] | None:
    pod, path, policy = draft.pod, target.path, scope.fabrics.defaults.config_files
    if policy == "never":
        return NOTHING, "the configuration says configFiles: never"
    env, commands = scope.env, scope.commands
    needed = env.has_env_from(path) or starts_without_env(pod, path, commands, env.of(path))
    if policy == "auto" and not needed:
        return NOT_NEEDED, "the command names no sshd, and there is no envFrom"
    own = own_mount(pod, path)
    if own is not None:
        return USER_MOUNT, f"your own mount at {own} stays"
    if KEY in scope.commands.text(path):
        return MENTIONED, f"the command writes {KEY} itself"
    return None


def _provide(draft: Draft, scope: Scope, targets: list[Target]) -> bool:
    """Add the text and the volume to the pod, or record why not; return whether they are there."""
    assert scope.fabric is not None
    paths = [target.path for target in targets]
    conf, left_out = nccl_conf(draft.pod, paths, scope.fabric, host_network=scope.host_network)
    own, obstacle = text(draft.pod, ANNOTATION), _obstacle(draft, conf)
    for target in targets if obstacle else ():
        draft.skipped(target.name, *obstacle)
    if not obstacle and own not in (None, conf) and scope.called_before:
        draft.skipped("", KEPT, f"annotation {NCCL_CONF} is kept as an earlier call left it")
    elif not obstacle and own not in (None, conf):
        must = f"must be absent or {conf!r}, as the webhook writes it"
        draft.failed("", DIFFERS, f"annotation {NCCL_CONF} {must}")
    elif not obstacle and carry(draft, conf):
        draft.applied("", MOUNTED, f"the pod carries {FILE} in an annotation and a volume")
    elif not obstacle:
        draft.already("", PRESENT, f"the pod already carries {FILE}")
    if left_out:
        message = (
            f"{FILE} leaves out {', '.join(left_out)}: not one literal value in all containers"
        )
        draft.warned("", LEFT_OUT, message)
    return not obstacle


def _obstacle(draft: Draft, conf: str) -> tuple[Reason, str] | tuple[()]:
    if is_name_taken(draft.pod):
        return NAME_TAKEN, f"rename your volume {VOLUME_NAME}: the webhook uses that name"
    if not conf:
        return NOTHING, "there is no NCCL variable to write"
    annotations = mapping(draft.pod, ANNOTATION[:-1])
    if not has_room(annotations, {NCCL_CONF: conf}):
        return NO_ROOM, "all annotations together would exceed 256 KiB"
    return ()


MUTATION = Mutation(
    name="config-files",
    summary="mounts the NCCL settings as /etc/nccl.conf, for what sshd starts",
    needs=Needs.FABRIC,
    reasons=(
        *(MOUNTED, PRESENT, NOT_NEEDED, NOTHING, USER_MOUNT, MENTIONED),
        *(NAME_TAKEN, NO_ROOM, LEFT_OUT, DIFFERS, KEPT, UNUSED),
    ),
    mutate=mutate,
)
