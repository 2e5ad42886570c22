"""Sentences on the parts of a document that pods are made from without a full pod template.

The metadata of such pods is elsewhere, or an operator makes it (`metadata_sources`), so the
document does not show whether they opt in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from webhook.admission.review import KIND as REVIEW_KIND
from webhook.kube.records import LenientObject, Text
from webhook.model.annotations import ENABLE_ANNOTATION
from webhook.model.names import first_names
from webhook.model.pod import Path, at, dotted, fields_or_empty
from webhook.preview.workloads.metadata_sources import MetadataSource, metadata_source_of
from webhook.preview.workloads.objects import ObjectMetadata, below
from webhook.preview.workloads.templates import (
    NO_OBJECT,
    EnclosingObject,
    LocatedMapping,
    Template,
    mappings_of,
)

_IF_OPTED_IN = f'patched at admission if they have the annotation {ENABLE_ANNOTATION}: "true"'
_NOT_EDITED = f"not edited here; the pods are {_IF_OPTED_IN}"
_CONTAINER_FIELDS = frozenset(
    (
        "name", "command", "args", "env", "envFrom", "resources", "ports", "volumeMounts",
        "securityContext", "workingDir", "imagePullPolicy", "startupProbe", "readinessProbe",
        "livenessProbe",
    )
)  # fmt: skip
_CONTAINERS: Path = ("spec", "containers")
_DOCUMENT = re.compile(r"^---", re.MULTILINE)
_KIND_LINE = re.compile(r"^[ \t-]*kind:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)
#: The largest numbers of kinds and of paths in one sentence.
_MAX_KINDS, _MAX_PATHS = 3, 3


def notes_of(value: object, decided: Collection[Path] = ()) -> list[str]:
    """Return a sentence on each part of a JSON value that makes pods without a full template.

    `decided`: the paths of the parts that pods were derived from; they get no sentence.
    """
    notes = _Notes(decided)
    for mapping in mappings_of(value):
        if not mapping.is_spec_only and not _is_below(mapping.path, decided):
            notes.add(mapping)
    return notes.sentences()


class _Notes:
    """The notes on one value; those on containers are combined for each object."""

    def __init__(self, decided: Collection[Path]) -> None:
        self._decided = decided
        self._sentences: list[str] = []
        self._objects: dict[Path, EnclosingObject] = {}
        #: Path of the object → label → paths of containers in the object.
        self._containers: dict[Path, dict[str, list[Path]]] = {}
        #: The paths in the value of all containers.
        self._container_paths: set[Path] = set()
        #: Path of the object → a sentence if it has no containers.
        self._of_operators: dict[Path, str] = {}
        #: Path of the object → the first device that it requests outside its containers.
        self._devices: dict[Path, _Device] = {}

    def add(self, mapping: LocatedMapping) -> None:
        object_path = mapping.enclosing.path
        path = mapping.path[len(object_path) :]
        if mapping.is_pod:
            self._sentences += _notes_on_pod(mapping)
        elif is_container(mapping):
            self._objects[object_path] = mapping.enclosing
            labels = self._containers.setdefault(object_path, {})
            labels.setdefault(_path_label(path), []).append(path)
            self._container_paths.add(mapping.path)
        elif not path and (metadata_source := _metadata_source_of(mapping.enclosing)) is not None:
            self._of_operators[object_path] = _note_on_operator(mapping, metadata_source)
            self._add_device(
                mapping.enclosing, _PER_NODE if mapping.enclosing.kind == _TRAIN_JOB else path
            )
        else:
            self._sentences += [*_misnamed_containers(mapping), *_notes_on_text(mapping)]
            self._add_device(mapping.enclosing, path)

    def _add_device(self, enclosing: EnclosingObject, path: Path) -> None:
        """Keep the first device of an object, if a mapping at `path` in it requests one."""
        name = _device_in(fields_or_empty(at(enclosing.value, path)))
        if name and not _is_below((*enclosing.path, *path), self._container_paths):
            self._devices.setdefault(enclosing.path, _Device(enclosing, path, name))

    def sentences(self) -> list[str]:
        on_containers = [
            _note_on_containers(self._objects[path], list(labels.values()))
            for path, labels in self._containers.items()
        ]
        if self._decided:
            return [*self._sentences, *on_containers]
        on_operators = [
            sentence
            for path, sentence in self._of_operators.items()
            if path not in self._containers
        ]
        on_devices = [
            _note_on_device(device, is_only=path not in self._containers)
            for path, device in self._devices.items()
        ]
        return [*self._sentences, *on_containers, *on_operators, *on_devices]


def _is_below(path: Path, decided: Collection[Path]) -> bool:
    """Return whether a path is one of these, or below one of them."""
    return any(path[:size] in decided for size in range(len(path) + 1)) if decided else False


def _metadata_source_of(enclosing: EnclosingObject) -> MetadataSource | None:
    return metadata_source_of(enclosing.api_version, enclosing.kind)


def _note_on_operator(mapping: LocatedMapping, metadata_source: MetadataSource) -> str:
    """Return a sentence on an object whose pods an operator makes."""
    runtime = _TrainJob.model_validate(mapping.node).runtime
    origin = f"made from runtime {runtime}, and " if runtime else ""
    return (
        f"{mapping.enclosing}: the pods are {origin}{_IF_OPTED_IN}; {metadata_source.instruction}"
    )


class _Device(NamedTuple):
    """A device that an object requests outside its containers."""

    enclosing: EnclosingObject
    path: Path  #: of the mapping with `limits` or `requests`, in the object
    name: str  #: the resource


def _device_in(resources: Mapping[str, object]) -> str:
    """Return the first device in a mapping's `limits` and `requests`, or "".

    It may be one level deeper, as in `limits.custom` of Dynamo.
    """
    for section in (fields_or_empty(resources.get(name)) for name in ("limits", "requests")):
        for name in chain(section, *map(fields_or_empty, section.values())):
            if "/" in name:
                return name
    return ""


def _note_on_device(device: _Device, *, is_only: bool) -> str:
    """Return a sentence on a device; `is_only`: whether its object has no note on containers."""
    enclosing, path, name = device
    place = f" ({dotted(path)})" if path else ""
    metadata_source = _metadata_source_of(enclosing)
    operator = metadata_source.operator if metadata_source else "an operator that is not known here"
    fate = (
        f"and they are {_IF_OPTED_IN}"
        if is_only and not metadata_source
        else "and only admission judges them"
    )
    return (
        f"{enclosing}{place}: {name:.80} is requested outside any container; {operator} makes the "
        f"pods, {fate}"
    )


def is_container(mapping: LocatedMapping) -> bool:
    """Return whether a mapping is a container outside any pod.

    It has an image and another field of containers; or it has a name and is in a list
    `containers`, since some kinds leave the image to another object.
    """
    if mapping.enclosing is NO_OBJECT or mapping.path[-1:] in ((), ("spec",)):
        return False
    if mapping.path[-2:-1] == ("containers",) and isinstance(mapping.node.get("name"), str):
        return True
    return isinstance(mapping.node.get("image"), str) and not _CONTAINER_FIELDS.isdisjoint(
        mapping.node
    )


def _lacks_containers(pod: Mapping[str, object]) -> bool:
    spec = {} if pod.get("spec") is None else pod["spec"]
    return isinstance(spec, dict) and spec.get("containers") is None


def _notes_on_pod(mapping: LocatedMapping) -> Iterator[str]:
    """Yield a sentence on a pod without containers."""
    if _lacks_containers(mapping.node):
        containers_path = dotted((*mapping.path[len(mapping.enclosing.path) :], *_CONTAINERS))
        yield (
            f"{mapping.enclosing}: {containers_path} is missing, and the API server rejects a pod "
            "without containers"
        )


def _misnamed_containers(mapping: LocatedMapping) -> Iterator[str]:
    """Yield a note on a pod template that seems to have its containers in another field."""
    spec = fields_or_empty(mapping.node.get("spec"))
    if mapping.path[-1:] == ("template",):
        lists = (key for key in islice(spec, _MAX_KEYS) if isinstance(spec[key], list))
        for key in islice(filter(_resembles_containers, lists), 1):
            place = dotted((*mapping.path[len(mapping.enclosing.path) :], "spec", key))
            yield (
                f"{mapping.enclosing}: {place} is not a field of a pod's spec (did you mean "
                "containers?)"
            )


def _resembles_containers(key: str) -> bool:
    return len(key) <= _MAX_KEY_LENGTH and (
        SequenceMatcher(None, key.lower(), "containers", autojunk=False).ratio() > _NEAR
    )


#: Longer keys, and more of them in one spec, are not compared.
_MAX_KEY_LENGTH, _MAX_KEYS = 80, 500
#: The least similarity: `container` has .95, `initContainers` .83.
_NEAR = 0.85


def _path_label(path: Path) -> str:
    """Return the label that similar paths share: their last keys."""
    return ".".join([step for step in path if isinstance(step, str)][-2:])


def _note_on_containers(enclosing: EnclosingObject, similar_paths: list[list[Path]]) -> str:
    """Return a sentence on containers: first one of each group of similar paths, then others.

    The paths are before the colon, since `merge_sentences` combines sentences that are equal after
    the colon.
    """
    rounds = chain.from_iterable(zip_longest(*similar_paths))
    in_order = (path for path in rounds if path is not None)
    first = [dotted(path) for path in islice(in_order, _MAX_PATHS)]
    unlisted = sum(map(len, similar_paths)) - len(first)
    suffix = f" and {unlisted} more" if unlisted else ""
    paths = f"{', '.join(first)}{suffix}"
    metadata_source = _metadata_source_of(enclosing)
    instruction = f"; {metadata_source.instruction}" if metadata_source else ""
    outside = f"containers outside any pod template are {_NOT_EDITED}{instruction}"
    return f"{enclosing} ({paths}): {outside}"


_TRAIN_JOB = "TrainJob"
#: The resources of a TrainJob's nodes; its parts are not searched. Source: kubeflow/trainer,
#: commit 0015772, pkg/apis/trainer/v1alpha1/trainjob_types.go (Trainer.ResourcesPerNode).
_PER_NODE: Path = ("spec", "trainer", "resourcesPerNode")


class _TrainJob(LenientObject):
    runtime: Text = below("spec", "runtimeRef", "name", default="")


def _notes_on_text(mapping: LocatedMapping) -> Iterator[str]:
    """Yield a sentence for each manifest with containers stored as text (ConfigMaps)."""
    for key, text in mapping.node.items():
        if isinstance(text, str) and "containers:" in text and "apiVersion:" in text:
            kinds = _kinds_with_containers(text)
            if kinds:
                text_path = dotted((*mapping.path[len(mapping.enclosing.path) :], key))
                named = first_names(kinds, max_names=_MAX_KINDS)
                yield (
                    f"{mapping.enclosing} ({text_path}): a manifest stored as text ({named}) is "
                    f"{_NOT_EDITED}"
                )


def _kinds_with_containers(text: str) -> list[str]:
    """List the kinds of the objects in a text that have containers, each once."""
    matches = [
        _KIND_LINE.search(document)
        for document in _DOCUMENT.split(text)
        if "containers:" in document
    ]
    return list(dict.fromkeys(match[1] for match in matches if match))


def unknown_controller_note(template: Template) -> str:
    """Return a note for a kind without a known controller, whose pods may differ; "" for others."""
    if template.enclosing is None or template.kind == REVIEW_KIND:
        return ""
    if template.kind.endswith(_RUNTIME):
        condition = "a TrainJob may add GPUs, a command and variables, so"
    else:
        condition = "if a controller adds a command, labels or variables,"
    return (
        f"{template.kind} {template.name}: judged as written; {condition} the actual pods may get "
        "different decisions"
    )


#: The end of TrainingRuntime and ClusterTrainingRuntime (kubeflow/trainer), merged with a TrainJob.
_RUNTIME = "TrainingRuntime"


def no_template_note(value: object) -> str:
    """Return a sentence on a document without pods."""
    metadata = ObjectMetadata.of(value)
    return f"{metadata.kind} {metadata.full_name}".rstrip() + f": {NO_TEMPLATE}"


#: The end of a note about a document without pods.
NO_TEMPLATE = "no pod template"
