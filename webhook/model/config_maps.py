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

#: ConfigMap → its keys and values; a value of `binaryData` is None.
ConfigMaps = Mapping[str, Mapping[str, str | None]]


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

    variables: Mapping[str, str | None]
    #: The first source of envFrom that is not known; None if all are.
    unseen_source: EnvSource | None = None
    #: Variable → the key of a ConfigMap that its value comes from.
    keys: Mapping[str, DataKey] = MappingProxyType({})


def config_map_data(item: Mapping[str, object]) -> dict[str, str | None]:
    """Return the keys and values of a ConfigMap, without values that are no strings.

    The values of `binaryData` are not read, and None.
    """
    manifest = ClusterObject(item).manifest
    binary, data = (_texts(manifest.get(field)) for field in ("binaryData", "data"))
    return {**dict.fromkeys(binary), **data}


def _texts(written: object) -> dict[str, str]:
    pairs = written.items() if isinstance(written, dict) else ()
    return {key: value for key, value in pairs if isinstance(key, str) and isinstance(value, str)}


def config_maps_named_in(pod: PodManifest) -> Iterator[str]:
    """Yield the names of the ConfigMaps from which a pod's containers get variables.

    The pod may have any shape: a malformed part names none.
    """
    spec = fields_or_empty(fields_or_empty(pod).get("spec"))
    for field in CONTAINER_FIELDS:
        for container in _mappings(spec.get(field)):
            yield from filter(None, _named_in(container))


def _named_in(container: Mapping[str, object]) -> Iterator[str]:
    for item in _mappings(container.get("env")):
        yield _reference(fields_or_empty(item.get("valueFrom")), "configMapKeyRef")
    for source in _mappings(container.get("envFrom")):
        yield _reference(source, "configMapRef")


def read_env(container: Container, config_maps: ConfigMaps) -> ReadEnv:
    """Return the variables of a container, with the values in ConfigMaps.

    As in Kubernetes, `env` takes precedence over `envFrom`, whose last source wins.
    """
    if not config_maps and not container.env_from:
        return ReadEnv(container.env)
    from_sources = _read_sources(container, config_maps)
    sources = Sources(
        known_from_env_from=from_sources.variables,
        env_from_has_more=bool(from_sources.unseen_source),
        read=partial(_value_of, container, config_maps),
    )
    env = variables_of(container.env_items, container.path, sources)
    keys = {name: key for name, key in from_sources.keys.items() if name not in env}
    keys |= {name: key for name, key in keys_in_env(container).items() if env.get(name) is not None}
    return ReadEnv({**from_sources.variables, **env}, from_sources.unseen_source, keys)


def _read_sources(container: Container, config_maps: ConfigMaps) -> ReadEnv:
    """Return the variables of a container's `envFrom`, which has no binary data."""
    variables: dict[str, str | None] = {}
    keys: dict[str, DataKey] = {}
    unseen_source: EnvSource | None = None
    for source in map(fields_or_empty, container.env_from):
        name, prefix = _reference(source, "configMapRef"), source.get("prefix") or ""
        if name not in config_maps:
            unseen_source = unseen_source or _env_source(source)
        for key, value in config_maps.get(name, {}).items():
            if value is not None:
                variables[f"{prefix}{key}"], keys[f"{prefix}{key}"] = value, DataKey(name, key)
    return ReadEnv(variables, unseen_source, keys)


def _value_of(container: Container, config_maps: ConfigMaps, source: object) -> str | None:
    """Return the value of a `valueFrom` that reads a known ConfigMap, or the pod; or None."""
    reference = fields_or_empty(fields_or_empty(source).get("configMapKeyRef"))
    data = config_maps.get(str(reference.get("name")), {})
    value = data.get(str(reference.get("key")))
    return container.sources.read(source) if value is None else value


def keys_in_env(container: Container) -> dict[str, DataKey]:
    """Return the variables of `env` whose values are in ConfigMaps, each with its key.

    Of several items with the same name, the last one counts.
    """
    keys: dict[str, DataKey] = {}
    for item in container.env_items:
        source = fields_or_empty(item.get("valueFrom"))
        key = fields_or_empty(source.get("configMapKeyRef")).get("key")
        name = str(item.get("name"))
        keys.pop(name, None)
        if isinstance(key, str):
            keys[name] = DataKey(_reference(source, "configMapKeyRef"), key)
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
