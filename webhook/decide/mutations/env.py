"""`env`: set the variables that point NCCL, UCX, Gloo and other libraries at the fabric.

An existing variable of the container is never overwritten. NCCL_SOCKET_IFNAME and
GLOO_SOCKET_IFNAME are one group: if the user set either, neither is added, and UCX gets the
user's interface if it is a plain name. With `envFrom`, a ConfigMap that we do not see may set any
of these names. In that case NCCL's variables go into the file of `config-files`, which never
overrides the environment, and the rest is reported.
"""

from __future__ import annotations

from collections.abc import Mapping

from webhook.decide.analysis import Launcher, Mutation, PodAnalysis, RdmaAccess, Target
from webhook.decide.draft import Draft
from webhook.decide.fabric_variables import (
    CHECK_ENV_FROM,
    desired_env,
    fabric_by_setting,
    own_variables_like_evidence,
    plan_for,
)
from webhook.decide.launchers.launches import forwards_by_ssh
from webhook.decide.settings.effective import effective_env
from webhook.model import transport_variables
from webhook.model.decision import Reason
from webhook.model.fabric import EnvPairs
from webhook.model.libraries import LIBRARIES
from webhook.model.pod.container import env_item
from webhook.model.traffic_libraries import libraries_in
from webhook.model.transport_variables import IB_HCA

# Warn about the user's variables that stay, and that keep traffic off the fabric.

USER_VALUE = Reason(
    "UserValue",
    "The container sets a variable to a value other than the fabric's; the container's value is "
    "kept.",
    remedy=(
        "Remove the variable from the container, unless its value is meant to differ from the "
        "fabric's."
    ),
)
OTHER_FABRIC = Reason(
    "OtherFabricsValue",
    "A variable has the value that the webhook sets for a different fabric, or for pods with a "
    "different hostNetwork setting; the value is kept.",
    remedy="Remove the variable; the webhook then sets the right value.",
)
HCA_NOT_OF_FABRIC = Reason(
    "NcclIbHcaElsewhere",
    "NCCL_IB_HCA selects no device of the fabric, so NCCL's traffic uses TCP sockets.",
    remedy=(
        "Remove NCCL_IB_HCA from the container's env and command; the webhook then sets it to the "
        "fabric's devices."
    ),
    rdma="no",
)
IB_DISABLED = Reason(
    "NcclIbDisabled",
    "The container's NCCL_IB_DISABLE=1 turns off RDMA for NCCL, so NCCL's traffic uses TCP "
    "sockets.",
    remedy=(
        "If the job uses NCCL between nodes, remove NCCL_IB_DISABLE from the container's env and "
        "command, or set it to 0."
    ),
    rdma="no",
)
NET_SOCKET = Reason(
    "NcclNetSocket",
    "The container's NCCL_NET=Socket turns off RDMA for NCCL, so NCCL's traffic uses TCP sockets.",
    remedy=(
        "If the job uses NCCL between nodes, remove NCCL_NET=Socket from the container's env and "
        "command."
    ),
    rdma="no",
)
UCX_TLS = Reason(
    "UcxTlsWithoutRdma",
    "The container's UCX_TLS includes no RDMA transport.",
    remedy="Make UCX_TLS include rc, or remove the variable.",
)
NIXL = Reason(
    "NixlWithoutRdma",
    "NIXL uses UCX, and the container's UCX_TLS includes no RDMA transport.",
    remedy="Make UCX_TLS include rc, or remove the variable.",
    rdma="no",
)
#: The names that the functions below read, besides the fabric's.
_SWITCHES = frozenset({"NCCL_IB_DISABLE", "NCCL_NET", "UCX_TLS"})
USER_VALUE_REASONS = (
    USER_VALUE,
    OTHER_FABRIC,
    HCA_NOT_OF_FABRIC,
    IB_DISABLED,
    NET_SOCKET,
    UCX_TLS,
    NIXL,
)


def warn_user_values(
    draft: Draft,
    analysis: PodAnalysis,
    container: Target | Launcher,
    user_env: Mapping[str, str | None],
    fabric_env: EnvPairs,
) -> None:
    """Warn about a container's `user_env` where it conflicts with `fabric_env`."""
    _warn_kept(draft, analysis, container.name, user_env, fabric_env)
    if not _SWITCHES.isdisjoint(user_env):
        _warn_switches(draft, analysis, container.name, user_env)
        _warn_transports(draft, analysis, container, user_env)


def _warn_kept(
    draft: Draft,
    analysis: PodAnalysis,
    name: str,
    user_env: Mapping[str, str | None],
    fabric_env: EnvPairs,
) -> None:
    """Warn about each user's value that stays and differs from the fabric's.

    A mere preference of the site, such as NCCL_DEBUG, is left out: users may differ.
    """
    assert analysis.fabric is not None
    fabric = f"fabric {analysis.fabric.name}"
    for variable, value in fabric_env:
        if variable not in user_env or user_env[variable] == value:
            continue
        origin, reason = _origin(analysis, variable, user_env[variable])
        if variable == IB_HCA and transport_variables.nccl_ib_hca_not_of_fabric(user_env, value):
            message = f"{origin} selects no device of {fabric}, whose value is {variable}={value}"
            draft.warned(name, HCA_NOT_OF_FABRIC, message)
        elif (variable, value) not in analysis.fabric.env.site_variables:
            draft.warned(name, reason, f"kept {origin}; the value of {fabric} is {value}")


def _warn_switches(
    draft: Draft, analysis: PodAnalysis, name: str, user_env: Mapping[str, str | None]
) -> None:
    assert analysis.fabric is not None
    disabled, socket = (
        transport_variables.nccl_ib_disabled(user_env),
        transport_variables.nccl_net_socket(user_env),
    )
    if disabled and analysis.fabric.transport != "libfabric":
        draft.warned(name, IB_DISABLED, f"your NCCL_IB_DISABLE={disabled} turns NCCL's RDMA off")
    if socket:
        draft.warned(name, NET_SOCKET, f"your NCCL_NET={socket} turns NCCL's RDMA off")


def _warn_transports(
    draft: Draft,
    analysis: PodAnalysis,
    container: Target | Launcher,
    user_env: Mapping[str, str | None],
) -> None:
    tls = transport_variables.ucx_tls_without_rdma(user_env)
    command = analysis.commands.text(container.path)
    if tls and "NIXL" in libraries_in(command, user_env):
        message = f"NIXL uses UCX, and your UCX_TLS={tls} includes no RDMA transport"
        draft.warned(container.name, NIXL, message)
    elif tls:
        message = f"your UCX_TLS={tls} includes no RDMA transport"
        draft.warned(container.name, UCX_TLS, message)


def _origin(analysis: PodAnalysis, name: str, value: str | None) -> tuple[str, Reason]:
    """Describe a value and its origin: the user, or a fabric, if an earlier preview was applied."""
    if value is None:
        return f"your {name}", USER_VALUE
    fabric = fabric_by_setting(analysis.configuration).get((name, value))
    if fabric is None:
        return f"your {name}={value}", USER_VALUE
    return f"{name}={value} (from fabric {fabric})", OTHER_FABRIC


ADDED = Reason("Added", "The fabric's variables were added to env.", remedy="")
PRESENT = Reason("Present", "The container already has all of the fabric's variables.", remedy="")
NOT_CONFIGURED = Reason(
    "NotConfigured", "The fabric has no variables to set.", remedy="", reportable=False
)
ENV_FROM = Reason(
    "EnvFrom",
    "envFrom may set the fabric's variables, so the webhook added none of them to env; if the "
    "mutation config-files applies, the variables for NCCL go into /etc/nccl.conf instead.",
    remedy=CHECK_ENV_FROM,
)
NOT_FORWARDED = Reason(
    "NotForwarded",
    "Open MPI does not pass UCX settings on to ranks that it starts over ssh.",
    remedy=(
        "Add -x to mpirun for each UCX variable in the launcher's env, such as -x UCX_NET_DEVICES."
    ),
)


def mutate(draft: Draft, analysis: PodAnalysis) -> None:
    """Add the missing variables to every target and launcher."""
    for target in analysis.targets:
        _add(draft, analysis, target)
    for launcher in analysis.launchers:
        variables = _add(draft, analysis, launcher)
        if any(name.startswith("UCX_") for name, _ in variables):
            _warn_not_forwarded(draft, analysis, launcher)


def _add(draft: Draft, analysis: PodAnalysis, container: Target | Launcher) -> EnvPairs:
    fabric = analysis.fabric
    assert fabric is not None
    original = analysis.containers[container.path]
    user_env: Mapping[str, str | None] = original.env
    host_network = analysis.original.host_network
    plan = plan_for(fabric, host_network=host_network)
    variables, missing, names_text = plan.settings, plan.env_items, plan.names_text
    excludes = "openmpi" in fabric.libraries and "if_exclude" in original.command_text
    if excludes or not plan.names_that_change_it.isdisjoint(user_env):
        variables = desired_env(
            fabric, user_env, host_network=host_network, excludes_interfaces=excludes
        )
        missing = tuple(env_item(name, value) for name, value in variables if name not in user_env)
        names_text = ", ".join(item["name"] for item in missing)
    if not plan.settings:
        draft.skipped(container.name, NOT_CONFIGURED, f"fabric {fabric.name} sets no variables")
    elif not missing:
        draft.already(container.name, PRESENT, "the container already has all variables")
    elif original.env_from:
        _leave_to_files(draft, analysis, container, [item["name"] for item in missing])
    else:
        draft.append((*container.path, "env"), *missing)
        draft.applied(container.name, ADDED, f"set {names_text}")
    settings = analysis.settings_reader.settings(container.path)
    if settings.changes_env:
        present = draft.container(container.path).env
        user_env = effective_env(user_env, settings, present=present)
    if user_env:
        warn_user_values(draft, analysis, container, user_env, variables)
    return variables


def _leave_to_files(
    draft: Draft, analysis: PodAnalysis, container: Target | Launcher, names: list[str]
) -> None:
    message, unset = "variables not set here, since envFrom may set them", names
    if isinstance(container, Target) and _files_allowed(analysis):
        message = f"{message}; NCCL_* go into /etc/nccl.conf"
        unset = [name for name in names if not name.startswith("NCCL_")]
    draft.skipped(container.name, ENV_FROM, message)
    if unset:
        message = f"{unset[0]} was not set, since envFrom may set it; add it to env"
        if len(unset) > 1:
            names_text = ", ".join(unset)
            message = f"variables not set, since envFrom may set them; add to env: {names_text}"
        draft.warned(container.name, ENV_FROM, message)


def _files_allowed(analysis: PodAnalysis) -> bool:
    return (
        analysis.configuration.defaults.config_files != "never"
        and "config-files" not in analysis.annotations.skip
    )


def _warn_not_forwarded(draft: Draft, analysis: PodAnalysis, launcher: Launcher) -> None:
    assert analysis.fabric is not None
    path, ignored = launcher.path, own_variables_like_evidence(analysis.fabric)
    names = [name for name in analysis.containers[path].env if name not in ignored]
    forwarded = "UCX_NET_DEVICES" in analysis.commands.text(path)
    if not forwarded and forwards_by_ssh(analysis.commands, path, names):
        message = "UCX settings do not reach ranks over ssh; add -x UCX_NET_DEVICES to mpirun"
        draft.warned(launcher.name, NOT_FORWARDED, message)


*_LIBRARIES, _LAST = LIBRARIES.values()
MUTATION = Mutation(
    name="env",
    summary=f"sets the fabric's variables, such as those for {', '.join(_LIBRARIES)} and {_LAST}",
    needs=RdmaAccess.FABRIC,
    reasons=(ADDED, PRESENT, NOT_CONFIGURED, ENV_FROM, *USER_VALUE_REASONS, NOT_FORWARDED),
    mutate=mutate,
    on_launchers=True,
)
