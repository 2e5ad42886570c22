"""A setting that a command makes, and all settings of a container's command."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from webhook.model.config_maps import DataKey
from webhook.model.transport_variables import NIXL_BACKENDS

#: The prefixes of the variables that libraries read to choose and configure their transport. Others
#: are not recorded.
PREFIXES = (
    *("NCCL_", "UCX_", "OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "DMLC_", "NVSHMEM_", "NIXL_"),
    *("MC_", "MOONCAKE_", "MORI_", "VLLM_NIXL_", "FI_PROVIDER", "GLOO_SOCKET_IFNAME"),
    *("I_MPI_OFI_PROVIDER", "I_MPI_FABRICS"),
    *NIXL_BACKENDS,
)
#: The end of the source of most settings.
IN_COMMAND = "in its command"
#: Characters of an expansion: the value is known only when the container runs.
_EXPANDING = frozenset("$`")
#: A value that is known only when the container runs: `literal` of it is None.
UNKNOWN_VALUE = "$"


class Setting(NamedTuple):
    """A variable that a command sets or removes."""

    name: str
    value: str | None  #: None if it is known only when the container runs, or if it is removed
    source: str  #: the kind of words that set it, such as "export in its command"
    removed: bool = False
    #: Whether the container's own value wins, as in `${X:-1}`.
    yields_to_env: bool = False
    key: DataKey | None = None  #: the key of a ConfigMap that has the words or the file

    def moved(self, place: str, key: DataKey | None = None) -> Setting:
        """Return the same setting of words that are not in the command, but in `place`."""
        return self._replace(source=self.source.replace(IN_COMMAND, place), key=self.key or key)


class OtherUser(NamedTuple):
    """A change to a user other than root, or to a root without IPC_LOCK."""

    source: str  #: such as "gosu 1000 in its command"
    certain: bool  #: whether the process that carries the traffic certainly is that user's


class Memlock(NamedTuple):
    """A limit on locked memory that the command sets."""

    limit: str  #: as written, in KiB; "unlimited" too
    source: str


class CommandSettings(NamedTuple):
    """The settings of a container's command, as the process that carries the traffic gets them."""

    #: The certain settings by name; a None as value is unknown, not unset.
    certain: Mapping[str, Setting] = MappingProxyType({})
    #: Settings that apply if a branch is taken, or that only some processes get.
    possible: tuple[Setting, ...] = ()
    #: What keeps `env` from the process, or may do so: "su - in its command"; "" if nothing.
    env_dropped_by: str = ""
    #: Whether that is certain.
    drops_env: bool = False
    user: OtherUser | None = None
    memlock: Memlock | None = None
    #: The certain and the possible settings of ranks that the command starts over ssh.
    rank_settings: Mapping[str, Setting] = MappingProxyType({})
    possible_rank_settings: tuple[Setting, ...] = ()
    #: The scripts in ConfigMaps that the command runs, and whose text is not known.
    unread_scripts: tuple[DataKey, ...] = ()

    @property
    def changes_env(self) -> bool:
        """Whether it certainly changes the variables."""
        return bool(self.certain) or self.drops_env


#: The settings of most commands.
NO_SETTINGS = CommandSettings()


def with_possible(settings: CommandSettings, added: tuple[Setting, ...]) -> CommandSettings:
    """Return a container's settings with more that are possible."""
    return settings._replace(possible=settings.possible + added) if added else settings


def is_recorded(name: str) -> bool:
    """Return whether a variable may choose or configure a library's transport."""
    return name.startswith(PREFIXES)


def literal(value: str) -> str | None:
    """Return a value as the process gets it; None if the shell or the kubelet expands it."""
    return value if _EXPANDING.isdisjoint(value) else None


def setting_by_assignment(name: str, value: str, source: str) -> Setting | None:
    """Return the setting for `NAME=VALUE`; None if it leaves the variable as it is, as `A=$A`.

    In `A=${A:-1}`, the value is only the default.
    """
    if value in (f"${name}", f"${{{name}}}"):
        return None
    for operator in (":-", "-", ":=", "="):
        prefix = f"${{{name}{operator}"
        if value.startswith(prefix) and value.endswith("}"):
            return Setting(name, literal(value[len(prefix) : -1]), source, yields_to_env=True)
    return Setting(name, literal(value), source)
