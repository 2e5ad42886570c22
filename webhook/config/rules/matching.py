"""Rules for telling fabrics apart, for their labels, and for pinning pods to their nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from functools import reduce
from operator import or_

from webhook.config.messages import brief, listed, quoted
from webhook.config.model import FabricEntry
from webhook.config.names import intended_product, is_label_glob, is_label_value
from webhook.config.rules.rule import Parts, Problem, per_fabric
from webhook.model.pod import Path

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


# Find fabrics that no node label tells apart, without comparing every pair of them.
#
# A set of fabrics is an integer with one bit for each fabric, so a single `&` compares a fabric
# with all others.

Labels = Mapping[str, tuple[str, ...]]
#: The most different globs with wildcards that are compared with values: compiling one takes as
#: long as a thousand comparisons, and there are fewer kinds of GPUs.
MOST_WILD = 50
_WILD = re.compile(r"[*?\[]")


class Wildcards:
    """The first of the globs with wildcards, compiled; `left_out` counts the others."""

    def __init__(self, globs: Iterable[str]) -> None:
        wild = list(dict.fromkeys(glob for glob in globs if is_wild(glob)))
        self.compiled = {glob: re.compile(translate(glob)) for glob in wild[:MOST_WILD]}
        self.left_out = len(wild) - len(self.compiled)

    def match(self, globs: Sequence[str], value: str) -> bool:
        """Return whether a glob matches the value, or may match it since it was left out."""
        return value in globs or any(self._matches(glob, value) for glob in filter(is_wild, globs))

    def _matches(self, glob: str, value: str) -> bool:
        compiled = self.compiled.get(glob)
        return compiled is None or bool(compiled.match(value))


class Alike:
    """Finds the fabrics that no label tells apart from a given one."""

    def __init__(self, fabrics: Sequence[Labels], wildcards: Wildcards) -> None:
        self._all = (1 << len(fabrics)) - 1
        self._values: dict[str, _Values] = {}
        for place, labels in enumerate(fabrics):
            for key, globs in labels.items():
                values = self._values.setdefault(key, _Values(wildcards))
                values.add(globs, 1 << place)

    def to(self, labels: Labels) -> int:
        """Return the fabrics that no label tells apart from a fabric with these labels."""
        alike = self._all
        for key, globs in labels.items():
            values = self._values[key]
            alike &= (self._all ^ values.fabrics) | values.overlapping(globs)
        return alike


class _Values:
    """The globs of all fabrics for one label.

    Two globs count as overlapping if one matches the other without its wildcards. By that measure
    `*A100*` and `*H100*` do not overlap, although some value contains both.
    """

    def __init__(self, wildcards: Wildcards) -> None:
        self.fabrics = 0  #: the fabrics that have the label
        self._wildcards = wildcards
        self._with: dict[str, int] = {}
        self._spelling: dict[str, int] = {}
        self._found: dict[str, int] = {}

    def add(self, globs: Iterable[str], fabric: int) -> None:
        self.fabrics |= fabric
        for glob in filter(is_label_glob, globs):
            self._with[glob] = self._with.get(glob, 0) | fabric
            spelt = _spelt(glob)
            self._spelling[spelt] = self._spelling.get(spelt, 0) | fabric

    def overlapping(self, globs: Iterable[str]) -> int:
        """Return the fabrics with a glob that overlaps one of `globs`, which were added before."""
        found = 0
        for glob in filter(is_label_glob, globs):
            if glob not in self._found:
                self._found[glob] = self._matching(_spelt(glob)) | self._matched(glob)
            found |= self._found[glob]
        return found

    def _matching(self, value: str) -> int:
        """Return the fabrics with a glob that matches the value."""
        found = 0 if is_wild(value) else self._with.get(value, 0)
        for glob, compiled in self._wildcards.compiled.items():
            if glob in self._with and compiled.match(value):
                found |= self._with[glob]
        return found

    def _matched(self, glob: str) -> int:
        """Return the fabrics with a glob that, without its wildcards, is matched by this one."""
        if not is_wild(glob):
            return self._spelling.get(glob, 0)
        compiled = self._wildcards.compiled.get(glob)
        if compiled is None:
            return self._with[glob]
        found = 0
        for value, fabrics in self._spelling.items():
            if compiled.match(value):
                found |= fabrics
        return found


def is_wild(glob: str) -> bool:
    """Return whether a glob may match a value other than itself."""
    return _WILD.search(glob) is not None


def _spelt(glob: str) -> str:
    return glob.replace("*", "")
