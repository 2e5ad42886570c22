"""ConfigMaps whose values become variables: `valueFrom` and `envFrom` of containers.

The webhook reads no ConfigMaps; a preview may have some in its input, or read them from a cluster.
Secrets are never read. Kubernetes expands no `$(NAME)` in the values of a ConfigMap, but a value in
`env` may refer to such a variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from webhook.model.objects import ClusterObject
from webhook.model.pod import CONTAINER_FIELDS, Container, PodManifest, fields_or_empty
from webhook.model.pod.environment import Sources, variables_of

#: ConfigMap → its keys and values.
ConfigMaps = Mapping[str, Mapping[str, str]]
UserEnv = Mapping[str, str | None]


class DataKey(NamedTuple):
    """A key in the data of a ConfigMap."""

    config_map: str
    key: str

    @property
    def title(self) -> str:
        """Its place, for messages."""
        return f"key {self.key} of ConfigMap {self.config_map}"


class EnvSource(NamedTuple):
    """A source of envFrom."""

    #: Such as "ConfigMap site"; the name may be missing.
    title: str
    #: All keys of a ConfigMap; None for a Secret.
    key: DataKey | None = None


class ReadEnv(NamedTuple):
    """A container's variables, with those from ConfigMaps."""

    variables: dict[str, str | None]
    #: The first source of envFrom that is not known; None if all are.
    unseen: EnvSource | None = None
    #: Variable → the key of a ConfigMap that its value comes from.
    keys: Mapping[str, DataKey] = MappingProxyType({})


def config_map_data(item: Mapping[str, object]) -> dict[str, str]:
    """Return the keys and values of a ConfigMap, without values that are no strings."""
    data = ClusterObject(item).manifest.get("data")
    pairs = data.items() if isinstance(data, dict) else ()
    return {key: value for key, value in pairs if isinstance(key, str) and isinstance(value, str)}


def config_maps_named_in(pod: PodManifest) -> Iterator[str]:
    """Yield the names of the ConfigMaps from which a pod's containers get variables, and "".

    The pod may have any shape: a malformed part names none.
    """
    spec = fields_or_empty(pod).get("spec")
    for field in CONTAINER_FIELDS:
        for container in _mappings(fields_or_empty(spec).get(field)):
            for item in _mappings(container.get("env")):
                yield _reference(fields_or_empty(item.get("valueFrom")), "configMapKeyRef")
            for source in _mappings(container.get("envFrom")):
                yield _reference(source, "configMapRef")


def read_env(container: Container, user_env: UserEnv, config_maps: ConfigMaps) -> ReadEnv:
    """Return `user_env`, a container's variables, with the values in ConfigMaps.

    As in Kubernetes, `env` comes before `envFrom`, and the last source of `envFrom` wins.
    """
    variables: dict[str, str | None] = {}
    keys: dict[str, DataKey] = {}
    unseen: EnvSource | None = None
    for source in map(fields_or_empty, container.env_from):
        name, prefix = _reference(source, "configMapRef"), source.get("prefix") or ""
        if name not in config_maps:
            unseen = unseen or _env_source(source)
        for written, value in config_maps.get(name, {}).items():
            variable = f"{prefix}{written}"
            variables[variable], keys[variable] = value, DataKey(name, written)
    sources = Sources(variables, bool(unseen), partial(_value_of, container, config_maps))
    resolved = variables_of(container.env_items, container.path, sources)
    unknown = {name for name, value in container.env.items() if value is None}
    of_env = {
        name: resolved[name] if value is None and name in unknown else value
        for name, value in user_env.items()
    }
    keys = {name: key for name, key in keys.items() if name not in user_env}
    for name, key in keys_in_env(container).items():
        if name in unknown and user_env.get(name, "") is None and of_env[name] is not None:
            keys[name] = key
    return ReadEnv(variables | of_env, unseen, keys)


def _value_of(container: Container, config_maps: ConfigMaps, source: object) -> str | None:
    """Return the value of a `valueFrom` that reads a known ConfigMap, or the pod; or None."""
    reference = fields_or_empty(fields_or_empty(source).get("configMapKeyRef"))
    data = config_maps.get(str(reference.get("name")), {})
    value = data.get(str(reference.get("key")))
    return container.sources.read(source) if value is None else value


def keys_in_env(container: Container) -> dict[str, DataKey]:
    """Return the variables of `env` whose values are in ConfigMaps, each with its key."""
    keys: dict[str, DataKey] = {}
    for item in container.env_items:
        source = fields_or_empty(item.get("valueFrom"))
        key = fields_or_empty(source.get("configMapKeyRef")).get("key")
        if isinstance(key, str):
            keys[str(item.get("name"))] = DataKey(_reference(source, "configMapKeyRef"), key)
    return keys


def _env_source(source: Mapping[str, object]) -> EnvSource:
    name = _reference(source, "configMapRef")
    if name:
        return EnvSource(f"ConfigMap {name}", DataKey(name, ""))
    return EnvSource(f"Secret {_reference(source, 'secretRef')}".rstrip())


def _reference(source: Mapping[str, object], field: str) -> str:
    """Return the name of the object in a field of a source, or ""."""
    name = fields_or_empty(source.get(field)).get("name")
    return name if isinstance(name, str) else ""


def _mappings(written: object) -> list[Mapping[str, object]]:
    items = written if isinstance(written, list) else ()
    return [item for item in items if isinstance(item, dict)]
