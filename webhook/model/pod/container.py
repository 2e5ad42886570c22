"""A view of a container, which reads each field once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Literal

from webhook.model.json import Json, JsonObject
from webhook.model.pod.environment import (
    Sources,
    derivation,
    may_expand,
    read_field,
    unexpanded,
    variables_of,
    words_of,
)
from webhook.model.pod.reading import (
    Field,
    Path,
    as_flag,
    as_mapping,
    as_mappings,
    as_sequence,
    as_strings,
    cached_field,
    read_mapping,
    read_sequence,
    read_string,
)
from webhook.model.pod.security import NO_CAPABILITIES, Capabilities, capabilities_of
from webhook.model.pod.volumes import clean, directories_above

Kind = Literal["app", "init", "sidecar", "ephemeral"]

_KINDS: dict[str | int, Kind] = {
    "initContainers": "init",
    "containers": "app",
    "ephemeralContainers": "ephemeral",
}
#: The fields of a pod's spec that list containers.
CONTAINER_FIELDS = tuple(map(str, _KINDS))


class Container:
    """One container of a pod, of any kind.

    A field is read on first access; a ShapeError then names its place in the pod.
    """

    def __init__(self, path: Path, manifest: JsonObject, metadata: Json = None) -> None:
        #: ("spec", "containers", 0)
        self.path = path
        #: The unparsed container, and the metadata of its pod.
        self.manifest = manifest
        self.metadata = metadata
        _, field, index = path
        self.kind = _KINDS[field]
        if self.kind == "init" and manifest.get("restartPolicy") == "Always":
            self.kind = "sidecar"
        name = manifest.get("name")
        if name.__class__ is not str:
            name = read_string(manifest, ("name",), path)
        self.name: str = name or f"{field}[{index}]"
        self._read_at_once()

    #: The unparsed items of `env`.
    env_items = Field(as_mappings, "env")
    #: The words of `command` and of `args`.
    command = Field(as_strings, "command")
    args = Field(as_strings, "args")
    #: `resources`, and its sections: resource → unparsed quantity.
    resources = Field(as_mapping, "resources")
    requests = Field(as_mapping, "resources", "requests")
    limits = Field(as_mapping, "resources", "limits")
    #: The entries of `resources.claims`; each names a claim of the pod.
    claims = Field(as_mappings, "resources", "claims")
    #: The entries of `volumeMounts`.
    mounts = Field(as_mappings, "volumeMounts")
    #: Whether it has every capability and sees all devices of the node.
    privileged = Field(as_flag, "securityContext", "privileged")
    #: The entries of `envFrom`; the names of their variables are not in the manifest.
    env_from = Field(as_sequence, "envFrom")

    def _read_at_once(self) -> None:
        """Read the fields that every decision reads, if they have their usual form."""
        if "securityContext" not in self.manifest:
            self.privileged, self.capabilities = False, NO_CAPABILITIES
        resources = self.manifest.get("resources")
        if resources.__class__ is dict:
            requests, limits = resources.get("requests"), resources.get("limits")
            if requests.__class__ is dict and limits.__class__ is dict:
                self.resources, self.requests, self.limits = resources, requests, limits
                self.quantities = _merge(requests, limits)

    @cached_field
    def capabilities(self) -> Capabilities:
        """The capabilities that its securityContext adds and drops."""
        return capabilities_of(self.manifest, self.path)

    @cached_field
    def env(self) -> dict[str, str | None]:
        """The variables in `env`: name → value, None if only the kubelet can determine it."""
        env = _plain(self.env_items)
        return variables_of(self.env_items, self.path, self.sources) if env is None else env

    @property
    def sources(self) -> Sources:
        """What its variables come from, as far as the pod itself shows it."""
        return Sources(
            known_from_env_from={},
            env_from_has_more=bool(self.env_from),
            read=partial(read_field, metadata=self.metadata),
        )

    def derivation(self, name: str) -> str:
        """Return how the value of a variable in `env` comes about.

        "" for a literal, and for a value that is not known.
        """
        return derivation(self.env_items, name) if self.env.get(name) is not None else ""

    def unexpanded(self, name: str) -> str:
        """Return why a `$(NAME)` in the value of a variable in `env` stays, or ""."""
        return unexpanded(self.env_items, name) if self.env.get(name) else ""

    @property
    def env_names(self) -> list[str]:
        """The names in `env`, including repeated ones."""
        names = [item.get("name") for item in self.env_items]
        return [name for name in names if isinstance(name, str)]

    @cached_field
    def expanded_words(self) -> list[str]:
        """The words of `command` and `args` as its program gets them."""
        words = self.command + self.args
        return words_of(words, self.env) if may_expand("\n".join(words)) else words

    @cached_field
    def command_text(self) -> str:
        """All words of its command as its program gets them, one per line."""
        return "\n".join(self.expanded_words)

    @cached_field
    def quantities(self) -> JsonObject:
        """The quantity of each resource that it requests or limits; the limit, if it has both."""
        if not self.resources:
            return self.resources
        return _merge(self.requests, self.limits)

    @property
    def image(self) -> str:
        """Its image, or ""."""
        written = self.manifest.get("image")
        return written if isinstance(written, str) else ""

    def mount_at(self, path: str) -> JsonObject | None:
        """Return the mount whose path is exactly `path`, a clean path; or None."""
        return self._mounts_by_path.get(path)

    @cached_field
    def _mounts_by_path(self) -> dict[str, JsonObject]:
        """Its mounts by their clean paths; no API server accepts two with the same."""
        return {clean(path): mount for path, mount in self._mount_paths()}

    def mounts_with(self, word: str) -> list[JsonObject]:
        """Return the mounts whose paths, not yet cleaned, contain a word."""
        return [mount for mount in self.mounts if word in str(mount.get("mountPath"))]

    def mounted_parent(self, path: str) -> str | None:
        """Return the mount point above `path` that hides the image's directory (/etc), or None."""
        above = set(directories_above(path))
        for mount_path, _ in self._mount_paths():
            if clean(mount_path) in above:
                return clean(mount_path)
        return None

    def mounted_volumes(self, volumes: Collection[str]) -> Iterator[str]:
        """Yield the names of the given volumes that it mounts."""
        names = (str(mount.get("name")) for mount in self.mounts)
        return (name for name in names if name in volumes)

    def _mount_paths(self) -> Iterator[tuple[str, JsonObject]]:
        for index, mount in enumerate(self.mounts):
            mount_path: Json = mount.get("mountPath")
            if not isinstance(mount_path, str):
                mount_path = read_string(mount, ("mountPath",), (*self.path, "volumeMounts", index))
            if mount_path:
                yield mount_path, mount


def _merge(requests: JsonObject, limits: JsonObject) -> JsonObject:
    values = requests.values()
    if requests == limits and True not in values and False not in values:  # 1 == True, in Python
        return limits
    return {**requests, **limits}


# The variables that `env` spells out.


def _plain(env_items: list[JsonObject]) -> dict[str, str | None] | None:
    """Read items if each is a unique name with a literal string, as usual; else return None."""
    try:
        env = {item["name"]: item["value"] for item in env_items}
        complete = len(env_items) == len(env) and sum(map(len, env_items)) == 2 * len(env)
        return env if complete and "$" not in "".join((*env, *env.values())) else None
    except (KeyError, TypeError):  # a key is missing, or something is not a string
        return None


def env_item(name: str, value: str) -> dict[str, str]:
    """Return a variable as an item of `env`."""
    return {"name": name, "value": value}


def count_entries(manifest: JsonObject, path: Path) -> int:
    """Count the entries of all lists and maps that are read from a container.

    The count comes before anything reads the entries, which may be too many. Raise ShapeError for
    a field that cannot be counted.
    """
    get = manifest.get
    try:
        count = len(get("env") or ()) + len(get("volumeMounts") or ())
        count += len(get("command") or ()) + len(get("args") or ())
        resources = get("resources") or {}
        count += len(resources.get("limits") or ()) + len(resources.get("requests") or ())
        count += len(resources.get("claims") or ())
        if "securityContext" in manifest:
            capabilities = (manifest["securityContext"] or {}).get("capabilities") or {}
            count += len(capabilities.get("add") or ()) + len(capabilities.get("drop") or ())
    except (AttributeError, TypeError):  # not a list or map; these readers name it
        lists = sum(len(read_sequence(manifest, field, path)) for field in _LISTS)
        return lists + sum(len(read_mapping(manifest, field, path)) for field in _MAPS)
    return count


_LISTS: tuple[Path, ...] = (
    *(("env",), ("volumeMounts",), ("command",), ("args",), ("resources", "claims")),
    *(("securityContext", "capabilities", "add"), ("securityContext", "capabilities", "drop")),
)
_MAPS: tuple[Path, ...] = (
    *(("resources",), ("resources", "limits"), ("resources", "requests")),
    *(("securityContext",), ("securityContext", "capabilities")),
)
