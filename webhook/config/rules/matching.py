"""Rules for telling fabrics apart, for their labels, and for pinning pods to their nodes."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.config.model import FabricEntry
from webhook.config.rules.parts import Parts, Problem, per_fabric
from webhook.core.fabric import matches

PRODUCT_LABEL = "nvidia.com/gpu.product"


def labels_of(fabric: FabricEntry) -> dict[str, tuple[str, ...]]:
    """Return the node labels of a fabric, `gpuProducts` included."""
    labels = {key: tuple(globs) for key, globs in fabric.match.node_labels.items()}
    if fabric.match.gpu_products:
        labels.setdefault(PRODUCT_LABEL, tuple(fabric.match.gpu_products))
    return labels


def same_gpus(parts: Parts) -> Iterator[Problem]:
    """Warn of two fabrics that claim the same GPU resource and no labels tell apart.

    A warning: a pod that asks for those GPUs and says no more is ambiguous, which may be
    meant. Where `defaults.fabric` is one of the two, it is.
    """
    for earlier, path, fabric in parts.pairs():
        same = sorted(set(fabric.match.gpu_resources) & set(earlier.match.gpu_resources))
        told_apart = _apart(labels_of(earlier), labels_of(fabric))
        if (
            same
            and not told_apart
            and parts.model.defaults.fabric not in (earlier.name, fabric.name)
        ):
            yield Problem(
                (*path, "match"),
                f"{same[0]} is claimed by fabric {earlier.name!r} too: give both gpuProducts or "
                "nodeLabels with one key and different values, or set defaults.fabric",
            )


def aliases_of_two(parts: Parts) -> Iterator[Problem]:
    """Refuse an alias that stands for two resources of one fabric.

    An error: it could not be renamed to two. Two fabrics may share one, as two
    clusters' manifests do: the fabric of the pod decides what it becomes.
    """
    for path, fabric in parts.fabrics():
        owners: dict[str, str] = {}
        for place, resource in enumerate(fabric.resources):
            for position, alias in enumerate(resource.aliases):
                owner = owners.setdefault(alias, resource.name)
                if owner != resource.name:
                    yield Problem(
                        (*path, "resources", place, "aliases", position),
                        f"{alias!r:.80} stands for {owner} already: one of the two must go",
                    )


def alias_is_resource(parts: Parts) -> Iterator[Problem]:
    """Refuse an alias that is a fabric's real resource.

    An error: a pod that asks for the real one would get another.
    """
    real = {item.name: f for _, f in parts.fabrics() for item in f.resources}
    for path, fabric in parts.fabrics():
        for place, resource in enumerate(fabric.resources):
            for position, alias in enumerate(resource.aliases):
                if alias in real:
                    yield Problem(
                        (*path, "resources", place, "aliases", position),
                        f"{alias!r:.80} is a resource of fabric {real[alias].name!r}: remove it",
                    )


@per_fabric
def repeated_resources(fabric: FabricEntry) -> Iterator[Problem]:
    """Refuse an RDMA resource that is listed twice.

    An error: the counts would contradict each other.
    """
    seen: set[str] = set()
    for place, resource in enumerate(fabric.resources):
        if resource.name in seen:
            yield Problem(
                ("resources", place, "name"),
                f"{resource.name!r:.80} is listed already: list each RDMA resource once, with its "
                "count",
            )
        seen.add(resource.name)


@per_fabric
def products_twice(fabric: FabricEntry) -> Iterator[Problem]:
    """Refuse GPU products both in `gpuProducts` and in `nodeLabels`.

    An error: which of the two should hold?
    """
    if fabric.match.gpu_products and PRODUCT_LABEL in fabric.match.node_labels:
        yield Problem(
            ("match", "gpuProducts"), f"nodeLabels has {PRODUCT_LABEL} too: write it in one of them"
        )


@per_fabric
def stripped_suffixes(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of GPU products with `-SHARED` or `-MIG-...`.

    A warning: both are cut off the node's value first, so such a glob may never match.
    """
    for place, glob in enumerate(fabric.match.gpu_products):
        if glob.endswith("-SHARED") or "-MIG-" in glob:
            yield Problem(
                ("match", "gpuProducts", place),
                f"{glob!r:.80}: -SHARED and -MIG-... are cut off before comparing: leave it out",
            )


@per_fabric
def pin_without_labels(fabric: FabricEntry) -> Iterator[Problem]:
    """Refuse `pin: always` without a `nodeSelector`.

    An error: there is nothing to pin to.
    """
    if fabric.pin == "always" and not fabric.node_selector:
        yield Problem(("pin",), "always needs a nodeSelector: write one, or pin: never")


@per_fabric
def selector_without_pin(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of a `nodeSelector` without `pin: always`.

    A warning: without it it has no effect.
    """
    if fabric.pin == "never" and fabric.node_selector:
        yield Problem(("nodeSelector",), "has no effect with pin: never: write pin: always")


@per_fabric
def selector_against_match(fabric: FabricEntry) -> Iterator[Problem]:
    """Refuse a `nodeSelector` that contradicts `match`.

    An error: pods would be pinned to nodes that are not the fabric's.
    """
    labels = labels_of(fabric)
    for key, value in fabric.node_selector.items():
        if key in labels and not matches(labels[key], value):
            yield Problem(
                ("nodeSelector", key),
                f"{value!r:.80} matches none of {', '.join(labels[key])} in match: make them agree",
            )


def _apart(left: dict[str, tuple[str, ...]], right: dict[str, tuple[str, ...]]) -> bool:
    """Whether some label has values for one fabric that it has not for the other."""
    return any(not _overlap(globs, right[key]) for key, globs in left.items() if key in right)


def _overlap(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    """Whether two globs can match one value, tried on the values that they spell themselves.

    `*A100*` and `*H100*` do not overlap by that measure, though some value has both in it.
    """
    return any(matches(left, glob.replace("*", "")) for glob in right) or any(
        matches(right, glob.replace("*", "")) for glob in left
    )
