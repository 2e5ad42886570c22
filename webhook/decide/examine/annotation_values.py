"""Check the annotations of a pod against the pod and the configuration.

All mistakes are in one denial: each round of correcting a manifest takes a user minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webhook.model.annotations import (
    CONTAINERS_ANNOTATION,
    FABRIC_ANNOTATION,
    INVALID_ANNOTATION,
    UserAnnotations,
)
from webhook.model.decision import Denial
from webhook.model.fabric import CompiledConfiguration
from webhook.model.pod import Pod
from webhook.model.quoting import quoted


def check_annotations(
    pod: Pod, annotations: UserAnnotations, configuration: CompiledConfiguration
) -> None:
    """Deny a pod whose annotations have invalid values, or name what does not exist.

    A wrong name of a fabric counts even if the pod needs none.
    """
    problems = problems_of(pod, annotations, configuration)
    if problems:
        raise denial_of(problems)


def denial_of(problems: Iterable[str]) -> Denial:
    """Return the denial of a pod with all these mistakes."""
    return Denial(INVALID_ANNOTATION, "; ".join(problems))


def problems_of(
    pod: Pod, annotations: UserAnnotations, configuration: CompiledConfiguration
) -> list[str]:
    """Return a sentence for each wrong annotation, with what would do."""
    return [
        *annotations.problems,
        *_unknown_fabric(annotations, configuration),
        *_unknown_containers(pod, annotations),
    ]


def _unknown_fabric(
    annotations: UserAnnotations, configuration: CompiledConfiguration
) -> Iterator[str]:
    if annotations.fabric is not None and annotations.fabric not in configuration.fabrics:
        have = ", ".join(configuration.fabrics) or "none"
        name = quoted(annotations.fabric)
        yield f"annotation {FABRIC_ANNOTATION} names {name}, but the fabrics are: {have}"


def _unknown_containers(pod: Pod, annotations: UserAnnotations) -> Iterator[str]:
    if annotations.containers is None:
        return
    names = [container.name for container in pod.containers if container.kind != "ephemeral"]
    name_set = frozenset(names)
    unknown = [name for name in annotations.containers if name not in name_set]
    if unknown:
        have = ", ".join(names) or "none"
        listed = f"{' and '.join(map(quoted, unknown)):.80}"
        yield (
            f"annotation {CONTAINERS_ANNOTATION} names {listed}, but the pod's containers are: "
            f"{have}"
        )
