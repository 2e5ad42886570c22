"""The cost of a decision, as a ratio to reading and writing the same review with stdlib json."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.benchmarks.reviews import pod, review
from webhook.config.load import parse_fabrics
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.model.facts import Facts, NamespaceFacts


class Row(NamedTuple):
    """One line of the table."""

    title: str
    measured: str
    goal: str
    met: bool


#: Enough variables for a review of 6 kB, the size for which the goals are set.
TYPICAL = 22
_ROUNDS = 15
_COPIES = 40


def run() -> list[Row]:
    """Measure the decision's rows of the table."""
    sizes = [
        pod(containers=containers, variables=variables)
        for containers in (1, 2, 3, 5)
        for variables in (0, 6, 12, 24, 48)
    ]
    return [
        _at_most("decide, typical pod", [pod(variables=TYPICAL)], 1.4),
        _at_most("decide, median of 20 sizes", sizes, 1.6),
        _at_most("decide, launcher script", [pod(variables=TYPICAL, script=True)], 2.0),
        _new_script(),
        _linear(),
        _flat("10,000 nodes / 10 nodes", pod()),
        _flat("10,000 nodes / 10 nodes, with a nodeSelector", _selecting()),
    ]


def _at_most(title: str, pods: list[dict[str, Any]], goal: float) -> Row:
    ratios = [_ratio(manifest) for manifest in pods]
    middle = statistics.median(ratios)
    spread = f" (worst {max(ratios):.2f})" if len(ratios) > 1 else ""
    sizes = sorted(len(_written(manifest)) for manifest in pods)
    range_ = " to ".join(f"{size / 1000:.1f}" for size in dict.fromkeys((sizes[0], sizes[-1])))
    return Row(f"{title}, {range_} kB", f"{middle:.2f}{spread}", f"<= {goal}", middle <= goal)


def _new_script() -> Row:
    """Measure the first pod of a job, whose script has not been read before."""
    manifest, decision_input = pod(variables=TYPICAL, script=True), _decision_input()
    written = _written(manifest)
    deciding, json_only = [], []
    for turn in range(_ROUNDS):
        fresh = [json.loads(json.dumps(manifest)) for _ in range(_COPIES)]
        for number, copy in enumerate(fresh):
            copy["spec"]["containers"][0]["command"][2] += f"# {turn} {number}"
        deciding.append(_once(lambda copy: decide(copy, decision_input), fresh))
        json_only.append(_once(lambda: json.dumps(json.loads(written)), [None] * _COPIES))
    ratio = min(deciding) / min(json_only)
    return Row("decide, a new launcher script each time", f"{ratio:.2f}", "<= 2.0", ratio <= 2.0)


def _linear() -> Row:
    """Compare the times per container of a pod with 50 containers and of a pod with one."""
    decision_input = _decision_input()
    ratio = _seconds(pod(containers=50), decision_input) / _seconds(pod(), decision_input) / 50
    return Row("50 containers, each, / 1 container", f"{ratio:.2f}", "<= 1.2", ratio <= 1.2)


def _flat(title: str, manifest: dict[str, Any]) -> Row:
    """Compare a decision with facts of 10,000 nodes with one with facts of ten."""
    small, large = _decision_input(nodes=10), _decision_input(nodes=10_000)
    ratio = _seconds(manifest, large) / _seconds(manifest, small)
    return Row(title, f"{ratio:.2f}", "<= 1.1", ratio <= 1.1)


def _selecting() -> dict[str, Any]:
    """Return a pod that selects one of six pools."""
    manifest = pod()
    manifest["spec"]["nodeSelector"] = {"pool": "p5"}
    return manifest


def _ratio(manifest: dict[str, Any]) -> float:
    """Alternate the two in one run, so that noise on the machine affects both."""
    written, decision_input = _written(manifest), _decision_input()
    assert decide(manifest, decision_input).patch
    deciding, json_only = [], []
    for _ in range(_ROUNDS):
        deciding.append(_decide_once(manifest, decision_input))
        json_only.append(_once(lambda: json.dumps(json.loads(written)), [None] * _COPIES))
    return min(deciding) / min(json_only)


def _seconds(manifest: dict[str, Any], decision_input: DecisionInput) -> float:
    return min(_decide_once(manifest, decision_input) for _ in range(_ROUNDS))


def _decide_once(manifest: dict[str, Any], decision_input: DecisionInput) -> float:
    """Decide on equal but distinct pods, so that nothing can be cached by identity."""
    written = json.dumps(manifest)
    return _once(
        lambda copy: decide(copy, decision_input), [json.loads(written) for _ in range(_COPIES)]
    )


def _once(work: Callable[..., object], inputs: list[Any]) -> float:
    start = time.perf_counter()
    for argument in inputs:
        work(argument) if argument is not None else work()
    return (time.perf_counter() - start) / len(inputs)


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
