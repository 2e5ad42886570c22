"""Put together all that is known of one node: what tools printed, and what the API server says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from webhook.diagnose.discover.ports import join_ports
from webhook.diagnose.discover.site import (
    GpuCount,
    KubeNode,
    Reconciled,
    SiteFinding,
    SiteNode,
    SourcedObservation,
    Statement,
    natural,
    reconcile,
)
from webhook.diagnose.tools.observations import (
    CableObservation,
    CardObservation,
    CounterObservation,
    DistanceObservation,
    GidObservation,
    GpuObservation,
    InterfaceObservation,
    Observation,
    Setting,
    SettingObservation,
)
from webhook.diagnose.tools.products import machine_of

_Kind = TypeVar("_Kind", bound=Observation)
#: What GPU feature discovery takes out of a product's name (k8s-device-plugin, internal/lm).
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9\-_. ]")
_COLLECT = "Collect both again at the same time; until they agree, neither is used."
_OTHER_NODE = "Check that the output is of this node, and restart GPU feature discovery there."
_GPU_COLUMN = re.compile(r"GPU\d{1,4}")


def merge_node(
    name: str, sighted: Sequence[SourcedObservation], kube: KubeNode | None = None
) -> SiteNode:
    """Put together one node; the order of what was seen has no influence."""
    ports, findings = join_ports(name, sighted)
    settings, differing = _settings(name, sighted)
    gpus, gpu_findings = _gpus(name, sighted, kube)
    node = SiteNode(
        name=name,
        gpus=gpus,
        ports=ports,
        findings=(*findings, *differing, *gpu_findings),
        settings=settings,
        interfaces=_all(sighted, InterfaceObservation),
        distances=_all(sighted, DistanceObservation),
        counters=_all(sighted, CounterObservation),
        gids=_all(sighted, GidObservation),
        cables=_all(sighted, CableObservation),
        cards=_all(sighted, CardObservation),
        kube=kube,
    )
    return node._replace(machine=machine_of([one.sighting for one in sighted]))


def _all(sighted: Iterable[SourcedObservation], kind: type[_Kind]) -> tuple[_Kind, ...]:
    found = {one.sighting for one in sighted if isinstance(one.sighting, kind)}
    return tuple(sorted(found, key=lambda one: (natural(str(one[1:])), one.origin)))


def _settings(
    node: str, sighted: Iterable[SourcedObservation]
) -> tuple[dict[Setting, str], list[SiteFinding]]:
    said: dict[Setting, list[Statement[str | None]]] = {}
    for file, one in sighted:
        if isinstance(one, SettingObservation):
            told = Statement[str | None](one.value, one.origin.tool, file, one.origin.line)
            said.setdefault(one.setting, []).append(told)
    found: dict[Setting, str] = {}
    findings: list[SiteFinding] = []
    for setting, statements in said.items():
        result: Reconciled[str] = reconcile(statements)
        if result.value is not None:
            found[setting] = result.value
        findings += _differ(node, f"the setting {setting!r}", result)
    return found, findings


def _differ(node: str, what: str, result: Reconciled[str]) -> Iterator[SiteFinding]:
    if result.conflict is not None:
        one, other = result.conflict
        yield SiteFinding(
            "warning",
            (node,),
            f"tools differ on {what}: {one.says(one.value)}, {other.says(other.value)}",
            _COLLECT,
        )


def product_label(product: str) -> str:
    """Return a GPU's name as GPU feature discovery spells it in nvidia.com/gpu.product."""
    return "-".join(_NOT_IN_LABELS.sub("", product).split())


_Counted = tuple[GpuCount, ...]


def _gpus(
    node: str, sighted: Sequence[SourcedObservation], kube: KubeNode | None
) -> tuple[_Counted, list[SiteFinding]]:
    """Count the GPUs by product: as nvidia-smi and others list them, else as labels say."""
    listed: Reconciled[_Counted] = reconcile(_counted(sighted))
    if listed.conflict is not None:
        one, other = listed.conflict
        words = (
            f"tools differ on the GPUs: {one.says(_gpu_words(one.value))}, "
            f"{other.says(_gpu_words(other.value))}"
        )
        return (), [SiteFinding("warning", (node,), words, _COLLECT)]
    if listed.value is None:
        return _by_label_or_topology(sighted, kube), []
    label = kube.gpu_product if kube else None
    if label and label not in {gpu.product for gpu in listed.value}:
        words = (
            f"nvidia-smi shows {_gpu_words(listed.value)}, the label nvidia.com/gpu.product of "
            f"the node says {label}"
        )
        return (), [SiteFinding("warning", (node,), words, _OTHER_NODE)]
    return listed.value, []


def _counted(sighted: Iterable[SourcedObservation]) -> Iterator[Statement[_Counted | None]]:
    """Yield what each tool lists; a tool that was run twice lists each GPU once.

    A tool that shows one GPU with two products contradicts itself: that makes two statements.
    """
    listed: dict[tuple[str, str], dict[tuple[object, ...], set[str]]] = {}
    lines: dict[tuple[str, str], int] = {}
    for file, one in sighted:
        if isinstance(one, GpuObservation) and one.product is not None:
            key = (one.origin.tool, file)
            identity = (one.number, one.uuid, one.pci)
            if identity == (None, None, None):
                identity = (one.origin.line, None, None)
            products = listed.setdefault(key, {}).setdefault(identity, set())
            products.add(product_label(one.product))
            lines[key] = min(one.origin.line, lines.get(key, one.origin.line))
    for key, gpus in listed.items():
        for counted in {_by_product(map(min, gpus.values())), _by_product(map(max, gpus.values()))}:
            yield Statement(counted, key[0], key[1], lines[key])


def _by_product(products: Iterable[str]) -> _Counted:
    counts = Counter(products)
    return tuple(GpuCount(name, counts[name]) for name in sorted(counts))


def _gpu_words(gpus: _Counted) -> str:
    return ", ".join(f"{gpu.number} {gpu.product}" for gpu in gpus)


def _by_label_or_topology(
    sighted: Sequence[SourcedObservation], kube: KubeNode | None
) -> tuple[GpuCount, ...]:
    if kube is not None and kube.gpu_product:
        count = kube.labels.get("nvidia.com/gpu.count", "")
        return (GpuCount(kube.gpu_product, int(count) if _whole(count) else None),)
    numbers = {one.number for one in _all(sighted, GpuObservation) if one.number is not None}
    columns = {
        one.gpu for one in _all(sighted, DistanceObservation) if _GPU_COLUMN.fullmatch(one.gpu)
    }
    many = max(len(numbers), len(columns))
    return (GpuCount(None, many),) if many else ()


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5  # noqa: PLR2004 - 9999 GPUs
