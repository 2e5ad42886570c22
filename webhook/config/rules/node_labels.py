"""Rules for the labels of a fabric's nodes, and for pinning pods to these nodes."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.config.messages import shortened
from webhook.config.model import FabricEntry
from webhook.config.names import intended_product, is_label_value
from webhook.config.rules.matching import PRODUCT_LABEL, labels_of, wildcards_of
from webhook.config.rules.rule import ParsedSpec, Violation, file_rule, rule
from webhook.model.names import shortened_list
from webhook.model.pod import Path
from webhook.model.quoting import quoted

#: More globs of a label are only counted in a message.
_MAX_GLOBS = 20


@rule("error", "Remove gpuProducts, or remove nvidia.com/gpu.product from nodeLabels.")
def products_twice(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that lists GPU products both in `gpuProducts` and in `nodeLabels`.

    An error: it is not clear which of the two fields is meant.
    """
    if fabric.match.gpu_products and PRODUCT_LABEL in fabric.match.node_labels:
        yield Violation(
            ("match", "gpuProducts"),
            f"nodeLabels also has {PRODUCT_LABEL}",
        )


@rule(
    "warning",
    "Write a glob that matches the whole value of the node label nvidia.com/gpu.product.",
    tolerates_other_errors=True,
)
def unknown_products(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that lists a product, such as `V100`, that only resembles a label value.

    A warning: the glob must match the whole label, which for a V100 is `Tesla-V100-SXM2-32GB`, and
    case matters. Otherwise no node, and no pod's nodeSelector, ever fits the fabric.
    """
    for path, glob in _products(fabric):
        if intended := intended_product(glob):
            yield Violation(
                path, f"{quoted(glob)} matches no known product (did you mean {intended}?)"
            )


def _products(fabric: FabricEntry) -> Iterator[tuple[Path, str]]:
    for index, glob in enumerate(fabric.match.gpu_products):
        yield ("match", "gpuProducts", index), glob
    for glob in fabric.match.node_labels.get(PRODUCT_LABEL, ()):
        yield ("match", "nodeLabels", PRODUCT_LABEL), glob


@rule(
    "warning",
    "Remove -SHARED and -MIG-... from the product, since the webhook removes these suffixes from "
    "the value of a node label before it compares that value with gpuProducts.",
    tolerates_other_errors=True,
)
def stripped_suffixes(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that lists a GPU product with `-SHARED` or `-MIG-...` in `gpuProducts`.

    A warning: both suffixes are removed from the node's value before the comparison, so such a glob
    may never match.
    """
    for index, glob in enumerate(fabric.match.gpu_products):
        if glob.endswith("-SHARED") or "-MIG-" in glob:
            yield Violation(
                ("match", "gpuProducts", index),
                f"{quoted(glob)} has a suffix that is removed from the label before it is compared",
            )


@rule(
    "error",
    "To pin pods to nodes, add a nodeSelector to the fabric; otherwise, set its `pin` to never.",
)
def pin_without_labels(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets `pin: always` without a `nodeSelector`.

    An error: there is nothing to pin to.
    """
    if fabric.pin == "always" and not fabric.node_selector:
        yield Violation(("pin",), "'always' needs a nodeSelector")


@rule(
    "warning",
    "To pin pods to the selected nodes, set the fabric's `pin` to always; otherwise, remove its "
    "nodeSelector.",
)
def selector_without_pin(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that has a `nodeSelector`, which has no effect without `pin: always`.

    A warning: pods are placed as if the fabric had no `nodeSelector`.
    """
    if fabric.pin == "never" and fabric.node_selector:
        yield Violation(("nodeSelector",), "nodeSelector has no effect if pin is never")


@file_rule(
    "error", "Correct nodeSelector or `match`, so that the selected nodes are in the fabric."
)
def selector_against_match(spec: ParsedSpec) -> Iterator[Violation]:
    """Reject a fabric that has a `nodeSelector` that contradicts its `match`.

    An error: pods would be pinned to nodes that are not in the fabric.
    """
    wildcards = wildcards_of(spec)
    for path, fabric in spec.fabrics():
        labels = labels_of(fabric) if fabric.node_selector else {}
        for key, value in fabric.node_selector.items():
            if key in labels and is_label_value(value) and not wildcards.match(labels[key], value):
                globs = shortened_list([shortened(glob) for glob in labels[key]], _MAX_GLOBS)
                yield Violation(
                    (*path, "nodeSelector", key), f"{quoted(value)} contradicts {globs} in match"
                )
