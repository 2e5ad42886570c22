"""Mistakes in opting in. Only a preview can find them: no webhook is called for such pods.

The annotation counts only on the pod, and so in the metadata of its template: a controller copies
neither the workload's metadata to the pods, nor the metadata of an outer template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from itertools import islice

from webhook.kube.records import LenientObject, Text
from webhook.model.annotations import ENABLE_ANNOTATION, USER_ANNOTATIONS, WEBHOOK_ANNOTATIONS
from webhook.model.names import first_names
from webhook.model.pod import Path, dotted
from webhook.preview.workloads.objects import Header, below, fields_or_empty, values_along
from webhook.preview.workloads.templates import (
    NO_OBJECT,
    EnclosingObject,
    LocatedMapping,
    Template,
    mappings_of,
)

_METADATA = ("metadata",)
#: `rdma.lab/enable` and its misspellings: two parts with a separator between them.
_KEY_PARTS = re.compile(r"(.+)[/._-]([^/._-]+)")
_PREFIX, _NAME = ENABLE_ANNOTATION.split("/")
#: The minimum similarity of the parts. That of `rdma` and `rdma.lab` is .67, and that of `enabled`
#: and `enable` is .92.
_MIN_PREFIX_SIMILARITY, _MIN_NAME_SIMILARITY = 0.65, 0.8
_MAX_KEY_LENGTH = 80
#: The largest number of keys to compare in one metadata; each takes about ten microseconds.
_MAX_KEYS = 500


class OptInHints:
    """Hints for the pods of one document; each metadata is searched once for all of them."""

    def __init__(self, value: object) -> None:
        self._value = value
        self._keys: dict[int, str | None] = {}  # by the id of annotations or labels

    def of(self, template: Template) -> str:
        """Return why a template that seems to opt in does not; "" if nothing suggests an attempt.

        The pod's own metadata comes first, then the surrounding objects', nearest first.
        """
        pod_metadata = (*template.path, *_METADATA)
        if Header.of(template.pod).annotations.get(ENABLE_ANNOTATION) == "false":
            return f'{dotted((*pod_metadata, "annotations"))} sets {ENABLE_ANNOTATION}: "false"'
        for size, header in self._headers(template.path):
            for field, metadata in (("annotations", header.annotations), ("labels", header.labels)):
                key = self._opt_in_key(metadata)
                if key is None:
                    continue
                path = (*template.path[:size], *_METADATA, field)
                if size < len(template.path):
                    return _describe_misplaced(header, path, key, template)
                return _describe_misnamed(path, key)
        return ""

    def _headers(self, path: Path) -> Iterator[tuple[int, Header]]:
        """Yield the template and its surrounding mappings, each with the length of its path."""
        values = values_along(self._value, path)
        for size in range(len(path), -1, -1):
            yield size, Header.of(values[size])

    def _opt_in_key(self, metadata: Mapping[str, object]) -> str | None:
        """Return the annotation's key if it is there, else the first similar key, or None."""
        if not metadata:
            return None
        if id(metadata) not in self._keys:
            likely = (key for key in islice(metadata, _MAX_KEYS) if _resembles_enable(key))
            self._keys[id(metadata)] = (
                ENABLE_ANNOTATION if ENABLE_ANNOTATION in metadata else next(likely, None)
            )
        return self._keys[id(metadata)]


def _resembles_enable(key: str) -> bool:
    if key == ENABLE_ANNOTATION:
        return True
    parts = _KEY_PARTS.fullmatch(key.strip().lower()) if len(key) <= _MAX_KEY_LENGTH else None
    if parts is None or key in USER_ANNOTATIONS or key in WEBHOOK_ANNOTATIONS:
        return False
    return (
        _similarity(parts[1], _PREFIX) > _MIN_PREFIX_SIMILARITY
        and _similarity(parts[2], _NAME) > _MIN_NAME_SIMILARITY
    )


def _similarity(part: str, expected: str) -> float:
    return SequenceMatcher(None, part, expected, autojunk=False).ratio()


def _describe_misnamed(path: Path, key: str) -> str:
    if path[-1] == "labels":
        return (
            f"{key} is in {dotted(path)}, but on a pod it must be an annotation{_suggestion(key)}"
        )
    return f"{key!r} in {dotted(path)} has no effect{_suggestion(key)}"


def _describe_misplaced(header: Header, path: Path, key: str, template: Template) -> str:
    title = " ".join(str(part) for part in (header.kind, header.name) if part)
    statement = f"{key} is in {dotted(path)}{f' of {title}' if title else ''}"
    if template.spec_only:  # the pods' metadata is not in the document
        condition = "only if the controller copies it to the pods"
        return f"{statement}: it has an effect {condition}{_suggestion(key)}"
    destination = annotations_location(template)
    return f"{statement}, where it reaches no pod; move it to {destination}{_suggestion(key)}"


def annotations_location(template: Template) -> str:
    """Return the place where the annotation that opts in belongs.

    Users do not edit an object with a controller, such as a ReplicaSet: the annotation belongs in
    the template of the controller.
    """
    enclosing = template.enclosing
    if enclosing is not None and enclosing.kind != "Pod" and enclosing.controller:
        return f"metadata.annotations in the pod template of {enclosing.controller}"
    return dotted((*template.path, *_METADATA, "annotations"))


def _suggestion(key: str) -> str:
    return "" if key == ENABLE_ANNOTATION else f" (did you mean {ENABLE_ANNOTATION}?)"


# Sentences on the parts of a document that pods are made from without a pod template.
#
# The metadata of such pods is elsewhere, or a controller makes it, so the document does not show
# whether they opt in. KServe, for example, copies no annotation of ours from an
# LLMInferenceService to its pods (v0.16, pkg/controller/v1alpha1/llmisvc/workload_single_node.go,
# propagateDeploymentMetadata).

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


def notes_of(value: object) -> list[str]:
    """Return a sentence on each part of a JSON value that makes pods without a full template."""
    notes: list[str] = []
    enclosing_objects: dict[Path, EnclosingObject] = {}
    containers: dict[Path, dict[str, list[Path]]] = {}
    for mapping in mappings_of(value):
        path_in_object = mapping.path[len(mapping.enclosing.path) :]
        if mapping.is_spec_only:
            continue
        if mapping.is_pod:
            if _lacks_containers(mapping.node):
                notes.append(_note_on_missing_containers(mapping))
        elif misnamed := _misnamed_containers(mapping):
            notes.append(misnamed)
        elif mapping.enclosing.kind == "TrainJob" and not path_in_object:
            notes.append(_note_on_train_job(mapping))
        elif _is_container(mapping):
            enclosing_objects[mapping.enclosing.path] = mapping.enclosing
            labels = containers.setdefault(mapping.enclosing.path, {})
            labels.setdefault(_path_label(path_in_object), []).append(path_in_object)
        else:
            notes.extend(_notes_on_text(mapping))
    notes.extend(
        _note_on_containers(enclosing_objects[path], list(containers[path].values()))
        for path in containers
    )
    return notes


def _is_container(mapping: LocatedMapping) -> bool:
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


def _note_on_missing_containers(mapping: LocatedMapping) -> str:
    containers_path = dotted((*mapping.path[len(mapping.enclosing.path) :], *_CONTAINERS))
    return (
        f"{mapping.enclosing}: {containers_path} is missing, and the API server rejects a pod "
        "without containers"
    )


def _misnamed_containers(mapping: LocatedMapping) -> str:
    """Return a note on a pod template that seems to have its containers in another field."""
    spec = fields_or_empty(mapping.node.get("spec"))
    if mapping.path[-1:] != ("template",):
        return ""
    lists = (key for key in islice(spec, _MAX_KEYS) if isinstance(spec[key], list))
    key = next((key for key in lists if _similarity(key.lower(), "containers") > _NEAR), "")
    if not key:
        return ""
    place = dotted((*mapping.path[len(mapping.enclosing.path) :], "spec", key))
    return f"{mapping.enclosing}: {place} is not a field of a pod's spec (did you mean containers?)"


#: The least similarity: `container` has .95, `initContainers` .83.
_NEAR = 0.85


def _path_label(path: Path) -> str:
    """Return the label that similar paths share: their last keys."""
    return ".".join([step for step in path if isinstance(step, str)][-2:])


def _note_on_containers(enclosing: EnclosingObject, similar_paths: list[list[Path]]) -> str:
    """Return a sentence on containers, with one of each group of similar paths.

    The paths are before the colon, since `merge_sentences` combines sentences that are equal after
    the colon.
    """
    first = [dotted(paths[0]) for paths in similar_paths[:_MAX_PATHS]]
    unlisted = sum(map(len, similar_paths)) - len(first)
    suffix = f" and {unlisted} more" if unlisted else ""
    paths = f"{', '.join(first)}{suffix}"
    return f"{enclosing} ({paths}): containers outside any pod template are {_NOT_EDITED}"


class _TrainJob(LenientObject):
    runtime: Text = below("spec", "runtimeRef", "name", default="")


def _note_on_train_job(mapping: LocatedMapping) -> str:
    name = _TrainJob.model_validate(mapping.node).runtime
    runtime = f"runtime {name}" if name else "its runtime"
    return f"{mapping.enclosing}: the pods are made from {runtime}, and {_IF_OPTED_IN}"


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
