"""The search terms of commands that may make a setting, and texts that mention one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from webhook.decide.settings.engine_options import ENGINE_OPTIONS
from webhook.decide.settings.setting import PREFIXES, Setting, literal
from webhook.model.traffic_libraries import TrafficLibrary
from webhook.model.transport_variables import NIXL_BACKENDS

#: The texts that a script is searched for: names of variables, options, programs and builtins.
TERMS = (
    *PREFIXES,
    *ENGINE_OPTIONS,
    *("su ", "su\t", "sudo", "runuser", "doas ", "gosu", "su-exec", "setuidgid", "setpriv"),
    *("chroot", "capsh"),
    *("env -", "exec -c", "ulimit ", "set -", "set -o", "--export"),
)
#: The same in a list of words, as `Container.command_text` joins them.
_JOINED = (*TERMS, "su\n", "env\n-", "doas\n")

#: Library → the variables that can keep it off RDMA, each with a value that does so. NVSHMEM also
#: reads those of UCX if it uses UCX (`verdict.libraries`).
SWITCHES: dict[TrafficLibrary, dict[str, str]] = {
    "NCCL": {
        "NCCL_IB_DISABLE": "1",
        "NCCL_NET": "Socket",
        "NCCL_NET_PLUGIN": "unknown",
        "NCCL_IB_HCA": "=none",
    },
    "NIXL": {
        "UCX_TLS": "tcp",
        "UCX_NET_DEVICES": "none",
        **dict.fromkeys(NIXL_BACKENDS, "LIBFABRIC"),
    },
    "Mooncake": {
        "MOONCAKE_PROTOCOL": "tcp",
        "MOONCAKE_DEVICE": "none",
        "MC_FORCE_TCP": "1",
        "MC_TE_FILTERS": "none",
        "MC_MS_FILTERS": "none",
    },
    "MoRI": {"MORI_RDMA_DEVICES": "none"},
    "NVSHMEM": {"NVSHMEM_REMOTE_TRANSPORT": "ucx", "NVSHMEM_HCA_LIST": "none"},
    "MPI": {
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "tcp,self",
        "UCX_TLS": "tcp",
        "UCX_NET_DEVICES": "none",
        "FI_PROVIDER": "tcp",
        "I_MPI_OFI_PROVIDER": "tcp",
        "I_MPI_FABRICS": "shm:tcp",
    },
    "ps-lite": {"DMLC_ENABLE_RDMA": "0", "DMLC_ENABLE_UCX": "0", "DMLC_PS_VAN_TYPE": "zmq"},
    "Gloo": {},
}
#: The same without the libraries.
OFF_VALUE_BY_VARIABLE = {
    name: value for switches in SWITCHES.values() for name, value in switches.items()
}
_NAMES = "|".join(OFF_VALUE_BY_VARIABLE)
#: Characters that separate the parts of sed's `s/A=0/A=1/g`. Such a character ends a value only
#: before another NAME= or sed's flags, and is part of the value elsewhere.
_PARTING = "/#@,:"
#: NAME=VALUE, as in a shell or a file, also in quotes or after an escape such as `printf`'s `\n`,
#: and "NAME": "VALUE", as in JSON or Python.
_MENTION = re.compile(
    rf"(?:(?<![\w${{-])|(?<=\\[nrt]))(?P<name>{_NAMES})"
    rf"(?:=\\?+[\"']?+(?P<plain>(?:[^\s\"';&|\\){_PARTING}]"
    rf"|[{_PARTING}](?!(?:{_NAMES})=|[gI]{{0,2}}(?:[\s\"';&|]|\Z)))++)"
    r"|\\?[\"']\]?[ ]?[:=](?!=)[ ]?\\?[\"']?(?P<quoted>[^\s\"',}\]\\]++))"
)
_COMMENT = re.compile(r"^[ \t]*+#[^\n]*+", re.MULTILINE)


def may_set(text: str) -> bool:
    """Return whether a command may make a setting; runs on every command, so it parses nothing."""
    return any(map(text.__contains__, _JOINED))


def mentions(text: str, known_names: Collection[str]) -> Iterator[Setting]:
    """Yield settings that a text seems to make, except those of variables in `known_names`.

    Examples are the words of `eval`, `ssh`, `srun` or `python -c`, and a file that the command
    writes.
    """
    if not any(name in text for name in OFF_VALUE_BY_VARIABLE if name not in known_names):
        return
    uncommented = _COMMENT.sub("", text)
    skipped_end = -1
    for match in _MENTION.finditer(uncommented):
        name, value = match["name"], match["plain"] or match["quoted"]
        if name in known_names or uncommented.startswith(f",{name}=", skipped_end):
            skipped_end = match.end()  # `-x A=B,C=D` sets A alone
        elif uncommented.startswith(f"{name}=", match.end() + 1):
            continue  # sed replaces it by the next mention
        elif not value.startswith(("$" + name, "${" + name)):
            known = None if "%" in value else literal(value)  # `printf 'A=%s'`
            yield Setting(name, known, "text in its command")
