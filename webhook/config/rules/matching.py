"""Rules for telling fabrics apart, for their labels, and for pinning pods to their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from webhook.config.gpu_products import intended_product
from webhook.config.messages import brief, listed, quoted
from webhook.config.model import FabricEntry
from webhook.config.names import is_label_glob, is_label_value
from webhook.config.rules.alike import MOST_WILD, Alike, Wildcards
from webhook.config.rules.rule import Parts, Problem, per_fabric
from webhook.model.path import Path

PRODUCT_LABEL = "nvidia.com/gpu.product"


def labels_of(fabric: FabricEntry) -> dict[str, tuple[str, ...]]:
    """Return the node labels of a fabric, `gpuProducts` included."""
    labels = {key: tuple(globs) for key, globs in fabric.match.node_labels.items()}
    if fabric.match.gpu_products:
        labels.setdefault(PRODUCT_LABEL, tuple(fabric.match.gpu_products))
    return labels


def same_gpus(parts: Parts) -> Iterator[Problem]:
    """Warn of two fabrics with the same GPU resource or device class that no label tells apart.

    A warning: a pod that requests those GPUs and says no more is ambiguous, but that may be
    intended. Two fabrics of which one is `defaults.fabric` are not reported.
    """
    default = parts.model.defaults.fabric
    if parts.default_unsure or (default is not None and default not in parts.names):
        return  # one of the two may be the default that is meant
    fabrics = list(parts.fabrics())
    alike = Alike([labels_of(fabric) for _, fabric in fabrics], _wildcards(parts))
    claiming: dict[
        str, int
    ] = {}  # GPU resource or device class → earlier fabrics but the default, as bits
    for place, (path, fabric) in enumerate(fabrics):
        if fabric.name == default:
            continue
        gpus = sorted({*fabric.match.gpu_resources, *fabric.match.device_classes})
        claimed = reduce(or_, (claiming.get(gpu, 0) for gpu in gpus), 0)
        rivals = claimed and claimed & alike.to(labels_of(fabric))
        if rivals:
            first = rivals & -rivals
            gpu = next(gpu for gpu in gpus if claiming.get(gpu, 0) & first)
            earlier = fabrics[first.bit_length() - 1][1].name
            others = f" and {rivals.bit_count() - 1:,} more" * (rivals != first)
            yield Problem(
                (*path, "match"),
                f"{brief(gpu)} is claimed by fabric {quoted(earlier)}{others} too: to tell them "
                "apart, give each gpuProducts, or nodeLabels with the same key and different "
                "values; or set defaults.fabric",
            )
        for gpu in gpus:
            claiming[gpu] = claiming.get(gpu, 0) | 1 << place


def many_wildcards(parts: Parts) -> Iterator[Problem]:
    """Warn of more than 50 different globs with wildcards.

    A warning: further globs work as well, but are not compared with those of other fabrics or with
    `nodeSelector`.
    """
    left_out = _wildcards(parts).left_out
    if left_out:
        yield Problem(
            ("fabrics",),
            f"{MOST_WILD + left_out:,} different globs with wildcards, of which only {MOST_WILD} "
            "are compared with other fabrics: write plain values where you can",
        )


def aliases_of_two(parts: Parts) -> Iterator[Problem]:
    """Reject an alias that stands for two resources of the same fabric.

    An error: it cannot be renamed to both. Two fabrics may share an alias: the pod's fabric decides
    which resource it becomes.
    """
    for path, fabric in parts.fabrics():
        owners: dict[str, str] = {}
        for place, resource in enumerate(fabric.resources):
            for position, alias in enumerate(resource.aliases):
                owner = owners.setdefault(alias, resource.name)
                if owner != resource.name:
                    yield Problem(
                        (*path, "resources", place, "aliases", position),
                        f"{quoted(alias)} is already an alias of {brief(owner)}: remove one of "
                        "the two",
                    )


def alias_is_resource(parts: Parts) -> Iterator[Problem]:
    """Reject an alias that is the real resource of a fabric.

    An error: a pod that requests the real resource would get another one.
    """
    real = {item.name: f for _, f in parts.fabrics() for item in f.resources}
    for path, fabric in parts.fabrics():
        for place, resource in enumerate(fabric.resources):
            for position, alias in enumerate(resource.aliases):
                if alias in real:
                    yield Problem(
                        (*path, "resources", place, "aliases", position),
                        f"{quoted(alias)} is a resource of fabric {quoted(real[alias].name)}: "
                        "remove it",
                    )


@per_fabric
def repeated_resources(fabric: FabricEntry) -> Iterator[Problem]:
    """Reject an RDMA resource that is listed twice.

    An error: the counts would contradict each other.
    """
    seen: set[str] = set()
    for place, resource in enumerate(fabric.resources):
        if resource.name in seen:
            yield Problem(
                ("resources", place, "name"),
                f"{quoted(resource.name)} is already listed: list each RDMA resource once, with "
                "its count",
            )
        seen.add(resource.name)


@per_fabric
def products_twice(fabric: FabricEntry) -> Iterator[Problem]:
    """Reject GPU products both in `gpuProducts` and in `nodeLabels`.

    An error: it is not clear which of the two to use.
    """
    if fabric.match.gpu_products and PRODUCT_LABEL in fabric.match.node_labels:
        yield Problem(
            ("match", "gpuProducts"), f"nodeLabels has {PRODUCT_LABEL} too: keep one of the two"
        )


@per_fabric
def unknown_products(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of a GPU product that no known GPU has, and that resembles one: `V100`, `h100*`.

    A warning: the glob must match the whole label, which for a V100 is `Tesla-V100-SXM2-32GB`, and
    case matters; a pod's nodeSelector, or a node, then never shows the fabric.
    """
    for path, glob in _products(fabric):
        if intended := intended_product(glob):
            yield Problem(
                path,
                f"{quoted(glob)} matches no known product: did you mean {intended}? (the glob "
                f"must match the whole label {PRODUCT_LABEL})",
            )


def _products(fabric: FabricEntry) -> Iterator[tuple[Path, str]]:
    for place, glob in enumerate(fabric.match.gpu_products):
        yield ("match", "gpuProducts", place), glob
    for glob in fabric.match.node_labels.get(PRODUCT_LABEL, ()):
        yield ("match", "nodeLabels", PRODUCT_LABEL), glob


@per_fabric
def stripped_suffixes(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of GPU products with `-SHARED` or `-MIG-...`.

    A warning: both suffixes are removed from the node's value first, so such a glob may never
    match.
    """
    for place, glob in enumerate(fabric.match.gpu_products):
        if glob.endswith("-SHARED") or "-MIG-" in glob:
            yield Problem(
                ("match", "gpuProducts", place),
                f"{quoted(glob)}: -SHARED and -MIG-... are removed from the label before it "
                "is compared: leave them out",
            )


@per_fabric
def pin_without_labels(fabric: FabricEntry) -> Iterator[Problem]:
    """Reject `pin: always` without a `nodeSelector`.

    An error: there is nothing to pin to.
    """
    if fabric.pin == "always" and not fabric.node_selector:
        yield Problem(("pin",), "always needs a nodeSelector: add one, or write never")


@per_fabric
def selector_without_pin(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of a `nodeSelector` without `pin: always`.

    A warning: it has no effect without the pin.
    """
    if fabric.pin == "never" and fabric.node_selector:
        yield Problem(("nodeSelector",), "has no effect with pin: never: write pin: always")


def selector_against_match(parts: Parts) -> Iterator[Problem]:
    """Reject a `nodeSelector` that contradicts `match`.

    An error: pods would be pinned to nodes that are not in the fabric.
    """
    wildcards = _wildcards(parts)
    for path, fabric in parts.fabrics():
        labels = labels_of(fabric) if fabric.node_selector else {}
        for key, value in fabric.node_selector.items():
            if key in labels and is_label_value(value) and not wildcards.match(labels[key], value):
                yield Problem(
                    (*path, "nodeSelector", key),
                    f"{quoted(value)} contradicts {listed(labels[key])} in match: make the two "
                    "agree",
                )


def _wildcards(parts: Parts) -> Wildcards:
    return Wildcards(
        glob
        for _, fabric in parts.fabrics()
        for globs in labels_of(fabric).values()
        for glob in filter(is_label_glob, globs)
    )
