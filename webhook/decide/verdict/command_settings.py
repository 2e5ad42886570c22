"""Uncertain settings: what a command may set when it runs, and what that would do to RDMA."""

from __future__ import annotations

from webhook.decide.settings.setting import Setting
from webhook.decide.settings.terms import OFF_VALUE_BY_VARIABLE
from webhook.decide.verdict.libraries import judge_libraries
from webhook.decide.verdict.libraries.usage import with_libraries_shown_by
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.decision import Reason, Verdict

COMPUTED = Reason(
    "SettingComputed",
    "The command sets a variable that may turn RDMA off, and the value is known only when the "
    "command runs.",
    remedy=(
        "Write the value itself into the command, or remove the setting there and set the variable "
        "in the container's env."
    ),
    rdma="unsure",
)
POSSIBLE = Reason(
    "SettingPossible",
    "A setting in the command turns RDMA off only if a condition holds, or only for some of the "
    "command's processes; or a hook or probe of the container writes to a file a setting that "
    "turns RDMA off.",
    remedy=(
        "If the setting is not needed, remove it from the command, hook or probe. If the setting "
        "affects only processes that need no RDMA, no action is needed."
    ),
    rdma="unsure",
)
UNCERTAIN_REASONS = (COMPUTED, POSSIBLE)


def judge_uncertain_settings(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the first uncertain setting with which RDMA would be off, or None.

    Each is judged as if it were certain, together with those before it; an unknown value is judged
    as one that turns RDMA off.
    """
    for setting in patched.uncertain_settings():
        value = OFF_VALUE_BY_VARIABLE[setting.name] if setting.value is None else setting.value
        patched = with_libraries_shown_by(
            pod, patched, {**patched.effective_env, setting.name: value}
        )
        if judge_libraries(pod, patched):
            return _verdict(patched.target.name, setting)
    return None


def _verdict(container: str, setting: Setting) -> Verdict:
    name, source = setting.name, setting.source
    if setting.value is None:
        message = f"container {container} sets a computed {name} ({source})"
        verdict = Verdict.of(COMPUTED, f"{message}; write a literal value")
    else:
        message = f"container {container} may set {name}={setting.value:.40} ({source})"
        verdict = Verdict.of(POSSIBLE, f"{message}; remove that setting if it is not needed")
    return verdict.with_key(setting.key, overrides_env=not setting.yields_to_env)
