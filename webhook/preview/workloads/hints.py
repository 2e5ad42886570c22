"""Mistakes in opting in. Only a preview can find them: no webhook is called for such pods.

The annotation counts only on the pod, and so in the metadata of its template: a controller copies
neither the workload's metadata to the pods, nor the metadata of an outer template.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice

from webhook.model.annotations import ENABLE_ANNOTATION, USER_ANNOTATIONS, WEBHOOK_ANNOTATIONS
from webhook.model.names import enumerated
from webhook.model.pod import Path, dotted
from webhook.preview.workloads.metadata_sources import metadata_source_of
from webhook.preview.workloads.objects import ObjectMetadata, values_along
from webhook.preview.workloads.templates import Template

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

    def of(self, template: Template, siblings: Iterable[Template] = ()) -> str:
        """Return why a template that seems to opt in does not; "" if nothing suggests an attempt.

        The pod's own metadata comes first, then the surrounding objects', nearest first. A hint
        about an object that surrounds `siblings`, too, names the places of all of them.
        """
        if ObjectMetadata.of(template.pod).annotations.get(ENABLE_ANNOTATION) == "false":
            return f'{dotted(_annotations_path(template))} sets {ENABLE_ANNOTATION}: "false"'
        for size, metadata in self._metadata_along(template.path):
            for field, mapping in (
                ("annotations", metadata.annotations),
                ("labels", metadata.labels),
            ):
                key = self._opt_in_key(mapping)
                if key is None:
                    continue
                path = (*template.path[:size], *_METADATA, field)
                if size < len(template.path):
                    inside = [other for other in siblings if _surrounds(path, other)]
                    return _describe_misplaced(metadata, path, key, [template, *inside])
                return _describe_misnamed(path, key)
        return ""

    def _metadata_along(self, path: Path) -> Iterator[tuple[int, ObjectMetadata]]:
        """Yield the template and its surrounding mappings, each with the length of its path."""
        values = values_along(self._value, path)
        for size in range(len(path), -1, -1):
            yield size, ObjectMetadata.of(values[size])

    def _opt_in_key(self, metadata: Mapping[str, object]) -> str | None:
        """Return the annotation's key if it is there, else the first similar key, or None."""
        if not metadata:
            return None
        if id(metadata) not in self._keys:
            likely = (key for key in islice(metadata, _MAX_KEYS) if resembles_enable(key))
            self._keys[id(metadata)] = (
                ENABLE_ANNOTATION if ENABLE_ANNOTATION in metadata else next(likely, None)
            )
        return self._keys[id(metadata)]


def resembles_enable(key: str) -> bool:
    """Return whether a key is that of the annotation, or a misspelling of it."""
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


def _surrounds(path: Path, template: Template) -> bool:
    """Return whether the object with a metadata field surrounds a template."""
    outer = path[: -len((*_METADATA, "annotations"))]
    return template.path[: len(outer)] == outer


def _describe_misplaced(
    metadata: ObjectMetadata, path: Path, key: str, templates: Sequence[Template]
) -> str:
    template = templates[0]
    title = " ".join(str(part) for part in (metadata.kind, metadata.name) if part)
    statement = f"{key} is in {dotted(path)}{f' of {title}' if title else ''}"
    if template.spec_only and template.annotations_path is None:  # metadata is not in the document
        condition = "only if the controller copies it to the pods"
        return f"{statement}, and has an effect {condition}{_suggestion(key)}"
    destinations = enumerated([*dict.fromkeys(map(annotations_location, templates))])
    return f"{statement}, where it reaches no pod; move it to {destinations}{_suggestion(key)}"


def annotations_location(template: Template) -> str:
    """Return the place where the annotation that opts in belongs; "" if it is unknown.

    For an operator that copies no annotations, it is a clause on what to do instead.

    Users do not edit an object with a controller, such as a ReplicaSet: the annotation belongs in
    the template of the controller.
    """
    enclosing = template.enclosing
    if enclosing is not None and enclosing.kind != "Pod" and enclosing.controller:
        return f"metadata.annotations in the pod template of {enclosing.controller}"
    if template.spec_only and template.annotations_path is None:
        metadata_source = enclosing and metadata_source_of(enclosing.api_version, enclosing.kind)
        return metadata_source.instruction if metadata_source else ""
    return dotted(_annotations_path(template))


def _annotations_path(template: Template) -> Path:
    return template.annotations_path or (*template.path, *_METADATA, "annotations")


def _suggestion(key: str) -> str:
    return "" if key == ENABLE_ANNOTATION else f" (did you mean {ENABLE_ANNOTATION}?)"
