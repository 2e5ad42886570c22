"""The cost of a decision, as a ratio to reading and writing the same review with stdlib json.

The decision is on a pod's common part, which is made first, as the server does for a pod whose
decision is not cached.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.figures import Row, figure_text
from tests.benchmarks.reviews import pod, review
from webhook.config.load import parse_fabrics
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.decide.common_part import common_part
from webhook.model.decision import Decision
from webhook.model.facts import Facts, NamespaceFacts
from webhook.model.pod import PodManifest

#: Enough variables for a review of 6 kB, the size for which the goals are set.
TYPICAL = 22
#: The goals of new pods, a little above what CPython 3.13 takes: see docs/benchmarks.md.
NEW, SIZES, SCRIPT_SEEN, SCRIPT_NEW = 3.5, 4.1, 5.6, 8.3
_ROUNDS = 15
_COPIES = 40
#: More than the caches of a core hold.
_SWEPT = bytes(4 << 20)

#: Work, and its inputs → the mean seconds for an input.
Timer = Callable[[Callable[[Any], object], list[Any]], float]


def run() -> list[Row]:
    """Measure the decision's rows of the table."""
    sizes = [
        pod(containers=containers, variables=variables)
        for containers in (1, 2, 3, 5)
        for variables in (0, 6, 12, 24, 48)
    ]
    return [
        _at_most("decide, typical pod", [pod(variables=TYPICAL)], NEW),
        _swept_caches(),
        _at_most("decide, median of 20 sizes", sizes, SIZES),
        _at_most("decide, launcher script", [pod(variables=TYPICAL, script=True)], SCRIPT_SEEN),
        _new_script(),
        _linear(),
        _flat("decide, 10,000 nodes / 10 nodes", pod()),
        _flat("decide, 10,000 nodes / 10 nodes, with a nodeSelector", _selecting()),
    ]


def _at_most(title: str, pods: list[dict[str, Any]], goal: float) -> Row:
    ratios = [_ratio(manifest, _mean) for manifest in pods]
    middle = statistics.median(ratios)
    spread = f" (worst {max(ratios):.2f})" if len(ratios) > 1 else ""
    sizes = sorted(len(_written(manifest)) for manifest in pods)
    range_ = " to ".join(f"{size / 1000:.1f}" for size in dict.fromkeys((sizes[0], sizes[-1])))
    return Row(
        f"{title}, {range_} kB", figure_text(middle, goal) + spread, f"<= {goal}", middle <= goal
    )


def _swept_caches() -> Row:
    """Measure a server that does other work between two requests."""
    ratio = _ratio(pod(variables=TYPICAL), _swept)
    title = f"decide, typical pod, after reading {len(_SWEPT) >> 20} MB of other memory"
    return Row(title, f"{ratio:.2f}")


def _new_script() -> Row:
    """Measure the first pod of a job, whose script has not been read before."""
    manifest, decision_input = pod(variables=TYPICAL, script=True), _decision_input()
    written = _written(manifest)
    deciding, json_only = [], []
    for turn in range(_ROUNDS):
        fresh = [json.loads(json.dumps(manifest)) for _ in range(_COPIES)]
        for number, copy in enumerate(fresh):
            copy["spec"]["containers"][0]["command"][2] += f"# {turn} {number}"
        deciding.append(_mean(lambda copy: _decide(copy, decision_input), fresh))
        json_only.append(_mean(_read_and_write, [written] * _COPIES))
    ratio = min(deciding) / min(json_only)
    title, met = "decide, a new launcher script each time", ratio <= SCRIPT_NEW
    return Row(title, figure_text(ratio, SCRIPT_NEW), f"<= {SCRIPT_NEW}", met)


def _linear() -> Row:
    """Compare the times per container of a pod with 50 containers and of a pod with one."""
    decision_input = _decision_input()
    ratio = _seconds(pod(containers=50), decision_input) / _seconds(pod(), decision_input) / 50
    title = "decide, time per container, 50 containers / 1 container"
    return Row(title, figure_text(ratio, 1.2), "<= 1.2", ratio <= 1.2)


def _flat(title: str, manifest: dict[str, Any]) -> Row:
    """Compare a decision with facts of 10,000 nodes with one with facts of ten."""
    small, large = _decision_input(nodes=10), _decision_input(nodes=10_000)
    ratio = _seconds(manifest, large) / _seconds(manifest, small)
    return Row(title, figure_text(ratio, 1.1), "<= 1.1", ratio <= 1.1)


def _selecting() -> dict[str, Any]:
    """Return a pod that selects one of six pools."""
    manifest = pod()
    manifest["spec"]["nodeSelector"] = {"pool": "p5"}
    return manifest


def _ratio(manifest: dict[str, Any], timer: Timer) -> float:
    """Alternate the two in one run, so that noise on the machine affects both."""
    written, decision_input = _written(manifest), _decision_input()
    assert _decide(manifest, decision_input).patch
    deciding, json_only = [], []
    for _ in range(_ROUNDS):
        deciding.append(timer(lambda copy: _decide(copy, decision_input), _copies(manifest)))
        json_only.append(timer(_read_and_write, [written] * _COPIES))
    return min(deciding) / min(json_only)


def _seconds(manifest: dict[str, Any], decision_input: DecisionInput) -> float:
    return min(
        _mean(lambda copy: _decide(copy, decision_input), _copies(manifest)) for _ in range(_ROUNDS)
    )


def _decide(manifest: PodManifest, decision_input: DecisionInput) -> Decision:
    """Decide as the server does on a pod whose decision is not cached."""
    return decide(common_part(manifest, decision_input.configuration), decision_input)


def _read_and_write(written: str) -> str:
    return json.dumps(json.loads(written))


def _copies(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Return equal but distinct pods, so that nothing can be cached by identity."""
    written = json.dumps(manifest)
    return [json.loads(written) for _ in range(_COPIES)]


def _mean(work: Callable[[Any], object], inputs: list[Any]) -> float:
    start = time.perf_counter()
    for argument in inputs:
        work(argument)
    return (time.perf_counter() - start) / len(inputs)


def _swept(work: Callable[[Any], object], inputs: list[Any]) -> float:
    """Do as `_mean`, but fill the processor's caches with other memory before each input."""
    seconds = 0.0
    for argument in inputs:
        _SWEPT.count(1)
        start = time.perf_counter()
        work(argument)
        seconds += time.perf_counter() - start
    return seconds / len(inputs)


def _written(manifest: dict[str, Any]) -> str:
    return json.dumps(review(manifest), separators=(",", ":"))


def _decision_input(nodes: int = 0) -> DecisionInput:
    configuration = parse_fabrics(FABRICS, "benchmark").compiled
    facts = Facts.from_objects(_node(number) for number in range(nodes))
    return DecisionInput(
        configuration=configuration,
        namespace=NamespaceFacts(name="lab", labels={"rdma.lab/enable": "true"}),
        fabric_index=facts.fabric_index(configuration),
    )


def _node(number: int) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {
            "name": f"gpu-{number}",
            "labels": {
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "kubernetes.io/hostname": f"gpu-{number}",
                "rack": f"r{number // 32}",
                "pool": f"p{number % 6}",
            },
        },
        "status": {"allocatable": {"nvidia.com/gpu": "8", "rdma/hca": "64"}},
    }


#: The configuration of all rows: eight rails, and two fabrics distinguished by product labels.
FABRICS = """
apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration
spec:
  fabrics:
  - name: h100-ib
    match: {gpuProducts: ["NVIDIA-H100-*"]}
    resources: [{name: rdma/hca}]
    hcas: [mlx5_0, mlx5_1, mlx5_2, mlx5_3, mlx5_4, mlx5_5, mlx5_6, mlx5_7]
    socketInterface: eth0
    env: {NCCL_DEBUG: WARN}
  - name: a100-ib
    match: {gpuProducts: ["NVIDIA-A100-*", "A100-*"]}
    resources: [{name: rdma/hca_a100}]
    hcas: [mlx5_0, mlx5_1, mlx5_2, mlx5_3, mlx5_4, mlx5_5, mlx5_6, mlx5_7]
    socketInterface: eth0
    env: {NCCL_DEBUG: WARN}
"""
