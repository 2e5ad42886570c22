"""Files for a preview: pods in every kind of workload, in YAML and JSON, and invalid texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from tests.fuzz.dice import Dice
from tests.fuzz.laws.previews import WORKLOAD_LAWS, Previewed
from tests.fuzz.many import fill_with_copies
from tests.fuzz.pods import pod_of, review_of
from tests.fuzz.spoil import grown, spoilt
from tests.fuzz.target import Parts, Target
from tests.fuzz.targets.mutate import world_of
from tests.fuzz.worlds import FABRICS
from tests.fuzz.yamls import noisy, swollen, yaml_of
from webhook.decide.examine import MIRROR_POD
from webhook.decide.reasons import DECISION_REASONS
from webhook.model.pod import at as value_at

_SIZES = (8_000, 16_000, 32_000)
#: Values of NCCL_NET in the runtime environment of Ray.
_NETWORKS: tuple[object, ...] = ("IB", "Socket", "${X}", 1, None, [])


def build(dice: Dice, *, large: bool) -> Parts:
    """Make one to three documents as one text."""
    documents = [_document(dice, large=large) for _ in range(1 if large else 1 + dice.small(2))]
    kind = dice.below(10)
    text = "\n---\n".join(documents)
    if kind > 7:
        text = noisy(dice, text)
    if large and kind < 4:
        text = swollen(dice, text, dice.pick(_SIZES))
    data = text.encode(errors="surrogatepass")
    if kind == 0 and data:
        at = dice.below(len(data))
        data = data[:at] + bytes([dice.below(256)]) + data[at + 1 :]
    return {"fabrics": dice.pick(FABRICS), "enable": dice.one_in(8), "text": data}


def _document(dice: Dice, *, large: bool) -> str:
    pod = orjson.loads(orjson.dumps(pod_of(dice, admissible=large or dice.one_in(3))))
    if large:
        (grown if dice.one_in(4) else fill_with_copies)(dice, pod, dice.pick(_SIZES))
    workload: Any = dice.pick(_KINDS)(dice, pod)
    if not large and dice.one_in(4):
        workload = spoilt(dice, orjson.loads(orjson.dumps(workload)))
    return yaml_of(dice, workload)


def _object(kind: str, version: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": "train", "namespace": "lab"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def _template(pod: dict[str, Any]) -> dict[str, Any]:
    return {key: pod[key] for key in ("metadata", "spec") if key in pod}


def _job(_: Dice, pod: Any) -> Any:
    return _object("Job", "batch/v1", spec={"template": _template(pod)})


def _deployment(_: Dice, pod: Any) -> Any:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": _template(pod)}
    return _object("Deployment", "apps/v1", spec=spec)


def _cron_job(dice: Dice, pod: Any) -> Any:
    spec = {"schedule": "@daily", "jobTemplate": {"spec": _job(dice, pod)["spec"]}}
    return _object("CronJob", "batch/v1", spec=spec)


def _mpi_job(dice: Dice, pod: Any) -> Any:
    launcher = _template(pod_of(dice, admissible=True))
    specs = {"Launcher": {"template": launcher}, "Worker": {"template": _template(pod)}}
    return _object("MPIJob", "kubeflow.org/v2beta1", spec={"mpiReplicaSpecs": specs})


def _operated(dice: Dice, pod: Any) -> Any:
    """Make a workload whose controller adds to its pods, or makes their metadata."""
    template = {"template": _template(pod)}
    specs: dict[str, dict[str, Any]] = {
        "kubeflow.org/v1alpha1 MPIJob": {"replicas": 2, **template},
        "kubeflow.org/v1 MPIJob": {"mpiReplicaSpecs": {"Launcher": template}},
        "kubeflow.org/v1 PyTorchJob": {"pytorchReplicaSpecs": {"Worker": template}},
        "kai.alibabacloud.com/v1alpha1 TrainingJob": {"etReplicaSpecs": {"worker": template}},
        "ray.io/v1 RayCluster": {"headGroupSpec": template, "workerGroupSpecs": [template]},
        "ray.io/v1 RayJob": {
            "runtimeEnvYAML": yaml_of(dice, {"env_vars": {"NCCL_NET": dice.pick(_NETWORKS)}}),
            "rayClusterSpec": {"workerGroupSpecs": [template]},
        },
        "jobset.x-k8s.io/v1alpha2 JobSet": {"replicatedJobs": [{"template": {"spec": template}}]},
        "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet": {
            "leaderWorkerTemplate": {"workerTemplate": _template(pod)}
        },
        "batch/v1 Job": {"completionMode": "Indexed", **template},
        "serving.kserve.io/v1alpha1 LLMInferenceService": {"template": pod.get("spec")},
        "kubeflow.org/v1alpha2 MPIJob": {"mpiReplicaSpecs": {"Worker": template}},
        "kubernetes.dask.org/v1 DaskCluster": {"worker": _template(pod)},
        "argoproj.io/v1alpha1 Workflow": {
            "podMetadata": pod.get("metadata"),
            "templates": [{"name": "a", "container": value_at(pod, ("spec", "containers", 0))}],
        },
        "example.com/v1 Thing": {
            "engine": pod.get("spec"),
            "templates": [{"name": "a", **template}],
            "podTemplate": "a",
        },
    }
    kind = dice.pick(tuple(specs))
    version, _, word = kind.rpartition(" ")
    return _object(word, version, spec=specs[kind])


def _list(dice: Dice, pod: Any) -> Any:
    return {"apiVersion": "v1", "kind": "List", "items": [pod, _job(dice, pod)]}


def _config_map(dice: Dice, pod: Any) -> Any:
    return _object("ConfigMap", "v1", data={"job.yaml": yaml_of(dice, pod)})


_KINDS = (
    lambda _, pod: pod,
    lambda _, pod: pod,
    *(_job, _deployment, _cron_job, _mpi_job, _operated, _operated, _list, review_of, _config_map),
)


def observe(parts: Parts) -> Previewed:
    """Preview the text in every form."""
    world = world_of(parts["fabrics"], b"null")
    return Previewed(parts["text"], world, enable=parts["enable"])


def codes(observed: Previewed) -> Iterable[str]:
    """Yield the result of reading the text, and the decision on each pod."""
    if observed.report is None:
        yield "refused"
        return
    yield f"{min(len(observed.documents), 3)} documents"
    for preview in observed.report.previews:
        yield preview.decision.reason.code
    if observed.report.notes:
        yield "notes"
    for rewritten in observed.rewritten:
        yield "written anew" if rewritten.warning else "edited"


TARGET = Target(
    name="workloads",
    build=build,
    observe=observe,
    laws=WORKLOAD_LAWS,
    codes=codes,
    expected=frozenset(
        {"refused", "1 documents", "2 documents", "3 documents", "notes", "edited", "written anew"}
        | {reason.code for reason in DECISION_REASONS if reason is not MIRROR_POD}
    ),
    weight=2,
)
