"""The document around the configuration: a Kubernetes object, which has it in `spec`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from webhook.config.messages import instead_of, meant, shown
from webhook.config.model import API_VERSION, KIND, FabricConfigurationSpec
from webhook.model.path import Path

#: Fields of every Kubernetes object, besides `spec`.
_OF_OBJECTS = ("apiVersion", "kind", "metadata", "status")
_FIELDS_HERE = ": the fields here are apiVersion, kind, metadata and spec"
#: The only name that the webhook reads.
NAME = "default"
#: Fields of the configuration.
FIELDS = tuple(field.alias or name for name, field in FabricConfigurationSpec.model_fields.items())
#: The object, as kubectl names it.
OBJECT = f"fabricconfigurations.rdma.lab/{NAME}"


class Misplaced(NamedTuple):
    """What is wrong with the document around the configuration."""

    path: Path
    message: str


def foreign(data: Mapping[str, Any]) -> Iterator[Misplaced]:
    """Report a document of another kind or version; its other fields are then not checked."""
    for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        actual = data.get(key)
        if actual == expected:
            continue
        if actual:
            message = f"must be {expected}, not {shown(actual)}{meant(actual, (expected,))}"
        else:
            message = f"is missing: write {key}: {expected}{instead_of(key, data)}"
        yield Misplaced((key,), message)


def object_errors(data: Mapping[str, Any]) -> Iterator[Misplaced]:
    """Report what is wrong outside `spec`; a document whose `spec` is no mapping has an error."""
    yield from _of_metadata(data)
    others = [key for key in data if key not in (*_OF_OBJECTS, "spec")]
    spec = data.get("spec")
    if spec is not None and not isinstance(spec, dict):
        yield Misplaced(("spec",), f"{shown(spec)} must be a mapping of its fields")
    elif spec is None and not any(key in FIELDS for key in others):
        message = f"is missing: write spec{instead_of('spec', others)}, with fabrics below it"
        yield Misplaced(("spec",), message)
    yield from _beside_spec(others)


def _beside_spec(keys: Iterable[str]) -> Iterator[Misplaced]:
    for key in keys:
        if key in FIELDS:
            yield Misplaced((key,), "is a field of spec: put it below `spec:`, indented")
        else:
            near = meant(key, (*_OF_OBJECTS, "spec")) or _FIELDS_HERE
            yield Misplaced((key,), f"unknown field{near}")


def _of_metadata(data: Mapping[str, Any]) -> Iterator[Misplaced]:
    """Report a name that the webhook would not read; a file may leave it out."""
    metadata = data.get("metadata")
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        yield Misplaced(("metadata",), f"{shown(metadata)} must be a mapping of its fields")
    elif (name := metadata.get("name", NAME)) != NAME:
        message = (
            f"must be {NAME}, not {shown(name)}: the webhook reads only the object of that name"
        )
        yield Misplaced(("metadata", "name"), message)
