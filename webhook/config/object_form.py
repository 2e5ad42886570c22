"""Where the configuration stands in its document: below `spec`, or as in the first version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from webhook.config.explain import instead_of, meant, shown
from webhook.config.model import API_VERSION, KIND, FabricConfigurationSpec
from webhook.pod.path import Path

#: Fields of every Kubernetes object, besides `spec`.
OF_OBJECTS = ("apiVersion", "kind", "metadata", "status")
_FIELDS_HERE = ": the fields here are apiVersion, kind, metadata and spec"
#: The only name that the webhook reads.
NAME = "default"
#: Fields of the configuration, which the first version had at the top level.
FIELDS = tuple(field.alias or name for name, field in FabricConfigurationSpec.model_fields.items())
#: The object, as kubectl names it.
OBJECT = f"fabricconfigurations.rdma.lab/{NAME}"
CONVERT = "rdma-webhook check-config --convert"


class Misplaced(NamedTuple):
    """What is wrong with the document around the configuration."""

    path: Path
    message: str


class ObjectForm(NamedTuple):
    """The configuration in a document."""

    #: The fields of the configuration; None if there is no mapping that has them.
    spec: dict[str, Any] | None
    #: The path of `spec`: empty in the form of the first version.
    home: Path
    errors: tuple[Misplaced, ...]


def is_flat(data: Mapping[str, Any]) -> bool:
    """Return whether a document has the configuration at the top level, as in the first version."""
    return "spec" not in data and any(field in data for field in FIELDS)


def object_form(data: Mapping[str, Any]) -> ObjectForm:
    """Find the configuration in a document that is a mapping."""
    if is_flat(data):
        flat = {key: value for key, value in data.items() if key not in OF_OBJECTS}
        return ObjectForm(flat, (), tuple(_of_metadata(data)))
    spec = data.get("spec")
    return ObjectForm(spec if isinstance(spec, dict) else None, ("spec",), tuple(_errors(data)))


def foreign(data: Mapping[str, Any]) -> Iterator[Misplaced]:
    """Report a document of another kind or version; its other fields are then not checked."""
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        found = data.get(key)
        if found == wanted:
            continue
        if found:
            said = f"must be {wanted}, not {shown(found)}{meant(found, (wanted,))}"
        else:
            said = f"is missing: write {key}: {wanted}{instead_of(key, data)}"
        yield Misplaced((key,), said)


def _errors(data: Mapping[str, Any]) -> Iterator[Misplaced]:
    yield from _of_metadata(data)
    others = [key for key in data if key not in (*OF_OBJECTS, "spec")]
    spec = data.get("spec")
    if spec is None:
        said = f"is missing: write spec{instead_of('spec', others)}, with fabrics below it"
        yield Misplaced(("spec",), said)
    elif not isinstance(spec, dict):
        yield Misplaced(("spec",), f"{shown(spec)} must be a mapping of its fields")
    yield from _beside_spec(others)


def _beside_spec(keys: Iterable[str]) -> Iterator[Misplaced]:
    for key in keys:
        if key in FIELDS:
            yield Misplaced((key,), "unknown field here: it belongs in spec")
        else:
            near = meant(key, (*OF_OBJECTS, "spec")) or _FIELDS_HERE
            yield Misplaced((key,), f"unknown field{near}")


def _of_metadata(data: Mapping[str, Any]) -> Iterator[Misplaced]:
    """Report a name that the webhook would not read; a file may leave it out."""
    metadata = data.get("metadata")
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        yield Misplaced(("metadata",), f"{shown(metadata)} must be a mapping of its fields")
    elif (name := metadata.get("name", NAME)) != NAME:
        said = f"must be {NAME}, not {shown(name)}: the webhook reads only the object of that name"
        yield Misplaced(("metadata", "name"), said)
