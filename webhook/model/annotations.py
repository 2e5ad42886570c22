"""The `rdma.lab/*` annotations of a pod, read and checked.

Opting in (the namespace also needs the label, which the API server checks):

    rdma.lab/enable   meaning
    ---------------   -------------------------------------------------------
    absent, "false"   not opted in: no patch, no warning
    "true"            opted in
    anything else     denied with a message, so that `yes` is not silently ignored
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

from webhook.model.decision import Denial, Reason
from webhook.model.names import counted
from webhook.model.nearest import suggestion
from webhook.model.pod import PodManifest, at, read_string
from webhook.model.quantity import is_unexpanded
from webhook.model.quoting import describe, quoted

PREFIX = "rdma.lab/"
ENABLE_ANNOTATION = "rdma.lab/enable"
FABRIC_ANNOTATION = "rdma.lab/fabric"
CONTAINERS_ANNOTATION = "rdma.lab/containers"
DEVICES_ANNOTATION = "rdma.lab/devices"
MEMORY_LIMIT_ANNOTATION = "rdma.lab/memory-limit"
SKIP_ANNOTATION = "rdma.lab/skip"
NVLINK_ANNOTATION = "rdma.lab/nvlink"
STATUS_ANNOTATION = "rdma.lab/status"
NCCL_CONF_ANNOTATION = "rdma.lab/nccl-conf"

#: The annotation that Multus reads.
NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks"
#: If the value contains one of these characters, Multus parses it as JSON (pkg/k8sclient,
#: parsePodNetworkAnnotation).
JSON_CHARACTERS = frozenset('[{"')

#: Annotations that request RDMA from other webhooks: sgl-project/ome.
OTHER_INJECTORS = ("rdma.ome.io/auto-inject",)

USER_ANNOTATIONS = (
    ENABLE_ANNOTATION,
    FABRIC_ANNOTATION,
    CONTAINERS_ANNOTATION,
    DEVICES_ANNOTATION,
    MEMORY_LIMIT_ANNOTATION,
    SKIP_ANNOTATION,
    NVLINK_ANNOTATION,
)
WEBHOOK_ANNOTATIONS = (STATUS_ANNOTATION, NCCL_CONF_ANNOTATION)

#: The maximum size of a status in bytes: people read it, and all annotations share 256 KiB.
MAX_STATUS_LENGTH = 4096

#: The maximum size of an object's annotations in bytes (apimachinery, TotalAnnotationSizeLimitB).
MAX_ANNOTATIONS_SIZE = 256 * 1024

INVALID_ANNOTATION = Reason(
    "InvalidAnnotation",
    "An rdma.lab/* annotation has an invalid value, or names something that does not exist.",
    remedy=(
        "Correct the annotation that the denial names; docs/annotations.md lists the valid values."
    ),
    rdma="no",
)

MemoryLimit = Literal["drop", "keep"]


def size_of(written: str) -> int:
    """Return the size of a text in bytes, which the API server limits."""
    return len(written) if written.isascii() else len(written.encode("utf-8", "surrogatepass"))


def has_room(annotations: Mapping[str, object], added: Mapping[str, str]) -> bool:
    """Return whether all annotations fit into 256 KiB with `added` and the longest status.

    Raise ShapeError if the value of an annotation is not a string.
    """
    unchanged = [key for key in annotations if key != STATUS_ANNOTATION and key not in added]
    total = sum(size_of(key) + size_of(read_string(annotations, (key,)) or "") for key in unchanged)
    ours = sum(size_of(key) + size_of(value) for key, value in added.items())
    return total + ours + size_of(STATUS_ANNOTATION) + MAX_STATUS_LENGTH <= MAX_ANNOTATIONS_SIZE


class UserAnnotations(NamedTuple):
    """The values of a user's annotations on a pod; None leaves the choice to the webhook."""

    fabric: str | None = None
    containers: tuple[str, ...] | None = None
    devices: int | None = None
    memory_limit: MemoryLimit | None = None
    skip: frozenset[str] = frozenset()
    nvlink: bool = False
    #: A sentence for each unknown `rdma.lab/*` key, with a suggestion.
    unknown_key_messages: tuple[str, ...] = ()
    #: A sentence for each invalid value, which is left out.
    problems: tuple[str, ...] = ()


def opted_in(annotations: Mapping[str, object]) -> bool:
    """Return whether the pod opted in; raise Denial for a value other than "true" and "false"."""
    value = annotations.get(ENABLE_ANNOTATION)
    if value == "true" and isinstance(value, str):
        return True
    if value is None or value == "false":
        return False
    raise Denial(INVALID_ANNOTATION, _malformed(ENABLE_ANNOTATION, value, '"true" or "false"'))


def asks_for_rdma(pod: PodManifest) -> bool:
    """Return whether a pod opted in, or tried to with a wrong value; other pods are left alone."""
    return at(pod, ("metadata", "annotations", ENABLE_ANNOTATION)) not in (None, "false")


def parse_annotations(
    annotations: Mapping[str, object], mutations: frozenset[str]
) -> UserAnnotations:
    """Read the user's annotations; `problems` has a sentence with a remedy for each invalid value.

    Whether the pod opted in is not read: see `opted_in`.
    """
    ours = {key: value for key, value in annotations.items() if key.startswith(PREFIX)}
    if len(ours) <= 1 and ENABLE_ANNOTATION in ours:
        return _NO_ANNOTATIONS
    reader = _Reader(ours)
    return UserAnnotations(
        fabric=reader.word(FABRIC_ANNOTATION, "the name of a fabric"),
        containers=reader.names(CONTAINERS_ANNOTATION, "container names separated by commas"),
        devices=reader.count(DEVICES_ANNOTATION),
        memory_limit=reader.choice(MEMORY_LIMIT_ANNOTATION, ("drop", "keep")),
        skip=reader.mutations(SKIP_ANNOTATION, mutations),
        nvlink=reader.choice(NVLINK_ANNOTATION, ("share",)) is not None,
        unknown_key_messages=tuple(_unknown_key_messages(ours)),
        problems=tuple(reader.problems),
    )


_NO_ANNOTATIONS = UserAnnotations()
_Choice = TypeVar("_Choice", bound=str)


class _Reader:
    """Reads annotations by their keys; an invalid value counts as absent, and is a problem."""

    def __init__(self, ours: Mapping[str, object]) -> None:
        self._ours = ours
        self.problems: list[str] = []

    def word(self, key: str, expected: str) -> str | None:
        value = self._ours.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip() or is_unexpanded(value):
            self.problems.append(_malformed(key, value, expected))
            return None
        return value.strip()

    def names(self, key: str, expected: str) -> tuple[str, ...] | None:
        value = self.word(key, expected)
        if value is None:
            return None
        names = tuple(dict.fromkeys(name.strip() for name in value.split(",")))
        if not all(names):
            self.problems.append(_malformed(key, value, expected))
            return None
        return names

    def count(self, key: str) -> int | None:
        expected = "a whole number of RDMA devices for each container, 0 for none"
        value = self.word(key, expected)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and len(value) <= _DIGITS):
            self.problems.append(_malformed(key, value, expected))
            return None
        return int(value)

    def choice(self, key: str, choices: tuple[_Choice, ...]) -> _Choice | None:
        expected = " or ".join(f'"{choice}"' for choice in choices)
        value = self.word(key, expected)
        for choice in choices:
            if value == choice:
                return choice
        if value is not None:
            self.problems.append(_malformed(key, value, expected))
        return None

    def mutations(self, key: str, mutations: frozenset[str]) -> frozenset[str]:
        names = self.names(key, "mutation names separated by commas") or ()
        unknown = [name for name in names if name not in mutations]
        if unknown:
            self.problems.append(_unknown_mutations(key, unknown, mutations))
        return mutations.intersection(names)


#: Characters of an invalid value that are quoted.
_MAX_QUOTED = 200
_DIGITS = 4  # no node has ten thousand devices


def _malformed(key: str, value: object, expected: str) -> str:
    if isinstance(value, str) and is_unexpanded(value):
        return f"annotation {key} is {quoted(value)}, an unexpanded variable (run envsubst first)"
    written = quoted(value, _MAX_QUOTED) if isinstance(value, str) else describe(value)
    if isinstance(value, (int, float)):  # YAML reads unquoted `yes`, `True` and `2` as these
        written, expected = written.lower(), f"{expected}, in quotes"
    return f"annotation {key} is {written}, but it must be {expected}"


def _unknown_mutations(key: str, unknown: Sequence[str], mutations: frozenset[str]) -> str:
    valid = ", ".join(sorted(mutations))
    meant = "".join(suggestion(name, mutations) for name in unknown[:_MAX_LISTED])
    listed = " and ".join(map(quoted, unknown))
    return f"annotation {key} names {listed:.200}, but the mutations are: {valid}{meant}"


def _unknown_key_messages(ours: Iterable[str]) -> Iterable[str]:
    unknown = [
        key for key in ours if key not in USER_ANNOTATIONS and key not in WEBHOOK_ANNOTATIONS
    ]
    for key in unknown[:_MAX_LISTED]:
        known = [annotation.removeprefix(PREFIX) for annotation in USER_ANNOTATIONS]
        meant = suggestion(key.removeprefix(PREFIX), known, PREFIX)
        yield f"unknown annotation {quoted(key)}{meant}"
    if len(unknown) > _MAX_LISTED:
        unlisted = counted(len(unknown) - _MAX_LISTED, "more unknown annotation")
        yield f"{unlisted} {PREFIX}*"


#: The number of unknown keys that are listed: the search for a suggestion takes 0.2 ms for each,
#: and more for longer words.
_MAX_LISTED = 8
