"""Rules for distinguishing fabrics: by their GPUs and by the labels of their nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from functools import reduce
from operator import or_

from webhook.config.messages import shortened
from webhook.config.model import FabricEntry
from webhook.config.names import is_label_glob
from webhook.config.rules.rule import ParsedSpec, Violation, file_rule
from webhook.model.names import counted
from webhook.model.quoting import quoted

PRODUCT_LABEL = "nvidia.com/gpu.product"


def labels_of(fabric: FabricEntry) -> dict[str, tuple[str, ...]]:
    """Return the node labels of a fabric, `gpuProducts` included."""
    labels = {key: tuple(globs) for key, globs in fabric.match.node_labels.items()}
    if fabric.match.gpu_products:
        labels.setdefault(PRODUCT_LABEL, tuple(fabric.match.gpu_products))
    return labels


@file_rule(
    "warning",
    "In the two fabrics, set gpuProducts or the same key of nodeLabels to different values; or, "
    "if their nodes have the same labels, set defaults.fabric to one of the two fabrics.",
)
def same_gpus(spec: ParsedSpec) -> Iterator[Violation]:
    """Warn about two fabrics that share a GPU resource or device class but differ in no node label.

    A warning: the fabric of a pod that requests only those GPUs is ambiguous, but a site may intend
    this overlap. Pairs that include `defaults.fabric` are not reported.
    """
    default = spec.model.defaults.fabric
    if spec.default_unsure or (default is not None and default not in spec.names):
        return  # one of the two may be the default that is meant
    fabrics = list(spec.fabrics())
    similar = SimilarFabricsIndex([labels_of(fabric) for _, fabric in fabrics], wildcards_of(spec))
    # GPU resource or device class → earlier fabrics but the default, as bits
    fabrics_by_gpu: dict[str, int] = {}
    for index, (path, fabric) in enumerate(fabrics):
        if fabric.name == default:
            continue
        gpus = sorted({*fabric.match.gpu_resources, *fabric.match.device_classes})
        sharing = reduce(or_, (fabrics_by_gpu.get(gpu, 0) for gpu in gpus), 0)
        rivals = sharing and sharing & similar.fabrics_like(labels_of(fabric))
        if rivals:
            first = rivals & -rivals
            gpu = next(gpu for gpu in gpus if fabrics_by_gpu.get(gpu, 0) & first)
            earlier = fabrics[first.bit_length() - 1][1].name
            others = counted(rivals.bit_count() - 1, "more fabric")
            suffix = f" and to {others}" if rivals != first else ""
            yield Violation(
                (*path, "match"),
                f"{shortened(gpu)} also belongs to fabric {quoted(earlier)}{suffix}",
            )
        for gpu in gpus:
            fabrics_by_gpu[gpu] = fabrics_by_gpu.get(gpu, 0) | 1 << index


@file_rule("warning", "Where possible, write label values without wildcards.")
def many_wildcards(spec: ParsedSpec) -> Iterator[Violation]:
    """Warn about a configuration that has over 50 label globs with wildcards, too many to compare.

    A warning: further globs work as well, but are not compared with those of other fabrics or with
    `nodeSelector`.
    """
    left_out = wildcards_of(spec).left_out
    if left_out:
        yield Violation(
            ("fabrics",),
            f"only {MAX_WILDCARDS} of {MAX_WILDCARDS + left_out:,} wildcard globs are compared "
            "with other fabrics",
        )


def wildcards_of(spec: ParsedSpec) -> Wildcards:
    """Return the globs of all fabrics' labels, to match values with."""
    return Wildcards(
        glob
        for _, fabric in spec.fabrics()
        for globs in labels_of(fabric).values()
        for glob in filter(is_label_glob, globs)
    )


# Find fabrics that no node label distinguishes, without comparing every pair of them.
#
# A set of fabrics is an integer with one bit for each fabric, so a single `&` compares a fabric
# with all others.

Labels = Mapping[str, tuple[str, ...]]
#: The maximum number of different globs with wildcards that are compared with values: compiling
#: a glob takes as long as a thousand comparisons, and there are fewer kinds of GPUs.
MAX_WILDCARDS = 50
_WILD = re.compile(r"[*?\[]")


class Wildcards:
    """The first globs with wildcards, compiled; `left_out` counts the others."""

    def __init__(self, globs: Iterable[str]) -> None:
        wild = list(dict.fromkeys(glob for glob in globs if is_wild(glob)))
        self.compiled = {glob: re.compile(translate(glob)) for glob in wild[:MAX_WILDCARDS]}
        self.left_out = len(wild) - len(self.compiled)

    def match(self, globs: Sequence[str], value: str) -> bool:
        """Return whether a glob matches the value, or may match it since it was left out."""
        return value in globs or any(self._matches(glob, value) for glob in filter(is_wild, globs))

    def _matches(self, glob: str, value: str) -> bool:
        compiled = self.compiled.get(glob)
        return compiled is None or bool(compiled.match(value))


class SimilarFabricsIndex:
    """An index to find all fabrics that no label distinguishes from a given fabric."""

    def __init__(self, fabrics: Sequence[Labels], wildcards: Wildcards) -> None:
        self._all = (1 << len(fabrics)) - 1
        self._values: dict[str, _Values] = {}
        for index, labels in enumerate(fabrics):
            for key, globs in labels.items():
                values = self._values.setdefault(key, _Values(wildcards))
                values.add(globs, 1 << index)

    def fabrics_like(self, labels: Labels) -> int:
        """Return the fabrics that no label distinguishes from a fabric with these labels."""
        similar = self._all
        for key, globs in labels.items():
            values = self._values[key]
            similar &= (self._all ^ values.fabric_bits) | values.overlapping(globs)
        return similar


class _Values:
    """The globs of all fabrics for one label.

    Two globs count as overlapping if one matches the other without its asterisks. By that measure
    `*A100*` and `*H100*` do not overlap, although some value contains both.
    """

    def __init__(self, wildcards: Wildcards) -> None:
        self.fabric_bits = 0  #: the fabrics that have the label
        self._wildcards = wildcards
        self._by_glob: dict[str, int] = {}
        self._by_literal: dict[str, int] = {}
        self._overlaps: dict[str, int] = {}

    def add(self, globs: Iterable[str], fabric_bit: int) -> None:
        self.fabric_bits |= fabric_bit
        for glob in filter(is_label_glob, globs):
            self._by_glob[glob] = self._by_glob.get(glob, 0) | fabric_bit
            literal = _literal(glob)
            self._by_literal[literal] = self._by_literal.get(literal, 0) | fabric_bit

    def overlapping(self, globs: Iterable[str]) -> int:
        """Return the fabrics with a glob that overlaps one of `globs`, which were added before."""
        fabric_bits = 0
        for glob in filter(is_label_glob, globs):
            if glob not in self._overlaps:
                self._overlaps[glob] = self._matching(_literal(glob)) | self._matched_by(glob)
            fabric_bits |= self._overlaps[glob]
        return fabric_bits

    def _matching(self, value: str) -> int:
        """Return the fabrics with a glob that matches the value."""
        fabric_bits = 0 if is_wild(value) else self._by_glob.get(value, 0)
        for glob, compiled in self._wildcards.compiled.items():
            if glob in self._by_glob and compiled.match(value):
                fabric_bits |= self._by_glob[glob]
        return fabric_bits

    def _matched_by(self, glob: str) -> int:
        """Return the fabrics with a glob that, without its asterisks, is matched by this one."""
        if not is_wild(glob):
            return self._by_literal.get(glob, 0)
        compiled = self._wildcards.compiled.get(glob)
        if compiled is None:
            return self._by_glob[glob]
        matched = 0
        for value, fabric_bits in self._by_literal.items():
            if compiled.match(value):
                matched |= fabric_bits
        return matched


def is_wild(glob: str) -> bool:
    """Return whether a glob may match a value other than itself."""
    return _WILD.search(glob) is not None


def _literal(glob: str) -> str:
    return glob.replace("*", "")
