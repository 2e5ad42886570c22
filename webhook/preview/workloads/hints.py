"""Mistakes in opting in. Only a preview can find them: no webhook is called for such pods.

The annotation counts only on the pod, and so in the metadata of its template: a controller copies
neither the workload's metadata to the pods, nor the metadata of an outer template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from itertools import islice

from webhook.kube.records import Record, Text
from webhook.model.annotations import ENABLE, REQUESTED, WRITTEN
from webhook.model.names import first_names
from webhook.model.pod import Path, dotted
from webhook.preview.workloads.objects import Header, below, nodes_on
from webhook.preview.workloads.templates import NOBODY, Owner, Place, Template, places_of

_METADATA = ("metadata",)
#: `rdma.lab/enable` and its misspellings: two words with a separator between them.
_WORDS = re.compile(r"(.+)[/._-]([^/._-]+)")
_PREFIX, _NAME = ENABLE.split("/")
#: The least similarity of the words: `rdma` and `rdma.lab` have .67, `enabled` and `enable` .92.
_ALIKE_PREFIX, _ALIKE_NAME = 0.65, 0.8
_LONGEST = 80
#: The largest number of keys to compare in one metadata; each takes about ten microseconds.
_MOST_KEYS = 500


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
        if Header.of(template.pod).annotations.get(ENABLE) == "false":
            return f'{dotted((*pod_metadata, "annotations"))} sets {ENABLE}: "false"'
        for size, header in self._headers(template.path):
            for field, words in (("annotations", header.annotations), ("labels", header.labels)):
                key = self._key(words)
                if key is None:
                    continue
                place = (*template.path[:size], *_METADATA, field)
                if size < len(template.path):
                    return _elsewhere(header, place, key, template)
                return _misnamed(place, key)
        return ""

    def _headers(self, path: Path) -> Iterator[tuple[int, Header]]:
        """Yield the template and its surrounding mappings, each with the length of its path."""
        nodes = nodes_on(self._value, path)
        for size in range(len(path), -1, -1):
            yield size, Header.of(nodes[size])

    def _key(self, words: Mapping[str, object]) -> str | None:
        """Return the annotation's key if it is there, else the first similar key, or None."""
        if not words:
            return None
        if id(words) not in self._keys:
            likely = (key for key in islice(words, _MOST_KEYS) if _meant(key))
            self._keys[id(words)] = ENABLE if ENABLE in words else next(likely, None)
        return self._keys[id(words)]


def _meant(key: str) -> bool:
    if key == ENABLE:
        return True
    words = _WORDS.fullmatch(key.strip().lower()) if len(key) <= _LONGEST else None
    if words is None or key in REQUESTED or key in WRITTEN:
        return False
    return _alike(words[1], _PREFIX) > _ALIKE_PREFIX and _alike(words[2], _NAME) > _ALIKE_NAME


def _alike(word: str, expected: str) -> float:
    return SequenceMatcher(None, word, expected, autojunk=False).ratio()


def _misnamed(place: Path, key: str) -> str:
    if place[-1] == "labels":
        return f"{key} is in {dotted(place)}: on a pod, it must be an annotation{_instead(key)}"
    return f"{key!r} in {dotted(place)} has no effect{_instead(key)}"


def _elsewhere(header: Header, place: Path, key: str, template: Template) -> str:
    owner = " ".join(str(word) for word in (header.kind, header.name) if word)
    owner_suffix = f" of {owner}" if owner else ""
    statement = f"{key} is in {dotted(place)}{owner_suffix}"
    if template.bare:  # the pods' metadata is not in the document
        condition = "only if the controller copies it to the pods"
        return f"{statement}: it has an effect {condition}{_instead(key)}"
    destination = annotations_location(template)
    return f"{statement}, where it reaches no pod; move it to {destination}{_instead(key)}"


def annotations_location(template: Template) -> str:
    """Return where the annotation belongs.

    A controlled object, such as a ReplicaSet, is not for editing: its controller has the template.
    """
    owner = template.owner
    if owner is not None and owner.kind != "Pod" and owner.controller:
        return f"metadata.annotations in the pod template of {owner.controller}"
    return dotted((*template.path, *_METADATA, "annotations"))


def _instead(key: str) -> str:
    return "" if key == ENABLE else f" (did you mean {ENABLE}?)"


# Sentences on the parts of a document that pods are made from without a pod template.
#
# The metadata of such pods is elsewhere, or a controller makes it, so the document does not show
# whether they opt in. KServe, for example, copies no annotation of ours from an
# LLMInferenceService to its pods (v0.16, pkg/controller/v1alpha1/llmisvc/workload_single_node.go,
# propagateDeploymentMetadata).

_IF_ASKED = f'patched at admission if they have the annotation {ENABLE}: "true"'
_NOT_EDITED = f"not edited here; the pods are {_IF_ASKED}"
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
#: The largest numbers of kinds and of places in one sentence.
_MOST_KINDS, _MOST_PLACES = 3, 3


def notes_of(value: object) -> list[str]:
    """Return a sentence for each part of a JSON value that resembles a pod without being one."""
    notes: list[str] = []
    owners: dict[Path, Owner] = {}
    containers: dict[Path, dict[str, list[Path]]] = {}
    for place in places_of(value):
        path_in_owner = place.path[len(place.owner.path) :]
        if place.is_bare:
            continue
        if place.is_pod:
            if _lacks_containers(place.node):
                notes.append(_without_containers(place))
        elif place.owner.kind == "TrainJob" and not path_in_owner:
            notes.append(_train_job(place))
        elif _is_container(place):
            owners[place.owner.path] = place.owner
            labels = containers.setdefault(place.owner.path, {})
            labels.setdefault(_label(path_in_owner), []).append(path_in_owner)
        else:
            notes.extend(_embedded(place))
    notes.extend(_outside(owners[path], list(containers[path].values())) for path in containers)
    return notes


def _is_container(place: Place) -> bool:
    """Return whether a mapping is a container outside any pod.

    It has an image and another field of containers; or it has a name and is in a list
    `containers`, since some kinds leave the image to another object.
    """
    if place.owner is NOBODY or place.path[-1:] in ((), ("spec",)):
        return False
    if place.path[-2:-1] == ("containers",) and isinstance(place.node.get("name"), str):
        return True
    return isinstance(place.node.get("image"), str) and not _CONTAINER_FIELDS.isdisjoint(place.node)


def _lacks_containers(pod: Mapping[str, object]) -> bool:
    spec = {} if pod.get("spec") is None else pod["spec"]
    return isinstance(spec, dict) and spec.get("containers") is None


def _without_containers(place: Place) -> str:
    containers_path = dotted((*place.path[len(place.owner.path) :], *_CONTAINERS))
    return (
        f"{place.owner}: {containers_path} is missing, and the API server rejects a pod "
        "without containers"
    )


def _label(path: Path) -> str:
    """Return the label that similar places share: the last keys of the path."""
    return ".".join([step for step in path if isinstance(step, str)][-2:])


def _outside(owner: Owner, alike: list[list[Path]]) -> str:
    """Return a sentence with the first container of each kind of place, and a count of the others.

    The places are part of the subject, so that many objects can share the predicate.
    """
    first = [dotted(paths[0]) for paths in alike[:_MOST_PLACES]]
    unlisted = sum(map(len, alike)) - len(first)
    suffix = f" and {unlisted} more" if unlisted else ""
    paths = f"{', '.join(first)}{suffix}"
    return f"{owner} ({paths}): containers outside any pod template are {_NOT_EDITED}"


class _TrainJob(Record):
    runtime: Text = below("spec", "runtimeRef", "name", default="")


def _train_job(place: Place) -> str:
    name = _TrainJob.model_validate(place.node).runtime
    runtime = f"runtime {name}" if name else "its runtime"
    return f"{place.owner}: the pods are made from {runtime}, and {_IF_ASKED}"


def _embedded(place: Place) -> Iterator[str]:
    """Yield a sentence for each manifest with containers stored as text (ConfigMaps)."""
    for key, text in place.node.items():
        if isinstance(text, str) and "containers:" in text and "apiVersion:" in text:
            kinds = _kinds_with_containers(text)
            if kinds:
                text_path = dotted((*place.path[len(place.owner.path) :], key))
                named = first_names(kinds, max_names=_MOST_KINDS)
                yield (
                    f"{place.owner} ({text_path}): a manifest stored as text ({named}) is "
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
