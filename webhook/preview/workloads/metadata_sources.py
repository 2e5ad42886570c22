"""The fields whose annotations reach the pods of custom resources without a pod template.

The operators of these kinds make the pods' metadata themselves. Each row names the field that its
operator copies to the pods, with the source where that was read.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.model.pod import Path, at, fields_or_empty

#: Any key or index in a path.
_ANY = "*"


class MetadataSource(NamedTuple):
    """The kinds of an operator, and how their pods get annotations."""

    operator: str
    kinds: frozenset[str]  #: "nvidia.com DynamoGraphDeployment": API group and kind
    #: The fields whose annotations reach the pods; `*` is any name or index. The last wins.
    fields: tuple[str, ...]
    source: str
    #: What to do in addition or instead, as the end of a sentence; "" if the fields are enough.
    advice: str = ""

    @property
    def instruction(self) -> str:
        """How to get the annotation to the pods, as the end of a sentence."""
        copied = f"{self.operator} copies annotations to them from {' and '.join(self.fields)}"
        nothing = f"{self.operator} copies no annotations to the pods"
        statement = copied if self.fields else nothing
        return f"{statement}; {self.advice}" if self.advice else statement


def metadata_source_of(api_version: str, kind: str) -> MetadataSource | None:
    """Return the row of a kind; None for a kind that is not in the table."""
    return _BY_KIND.get(f"{api_version.partition('/')[0]} {kind}")


class PodAnnotations(NamedTuple):
    """The annotations that an object has for a pod, and the field for more of them."""

    values: dict[str, object]
    path: Path  #: in the object


def annotations_for(
    metadata_source: MetadataSource, value: object, path: Path
) -> PodAnnotations | None:
    """Return the annotations that reach the pod at `path` of an object; None if none ever do."""
    paths = [bound for field in metadata_source.fields if (bound := _bind(field, path)) is not None]
    if not paths:
        return None
    written = [bound for bound in paths if isinstance(at(value, bound), dict)]
    values: dict[str, object] = {}
    for bound in written:
        values |= fields_or_empty(at(value, bound))
    return PodAnnotations(values, (written or paths)[-1])


def _bind(field: str, path: Path) -> Path | None:
    """Replace each `*` by the step of `path` at its place; None for another part of the object."""
    steps = field.split(".")
    stars = [index for index, step in enumerate(steps) if step == _ANY]
    end = stars[-1] + 1 if stars else 0
    prefix = path[:end]
    if len(prefix) < end or any(
        step not in (_ANY, at_path) for step, at_path in zip(steps, prefix, strict=False)
    ):
        return None
    return (*prefix, *steps[end:])


def _kinds(group: str, *kinds: str) -> frozenset[str]:
    return frozenset(f"{group} {kind}" for kind in kinds)


_JOB = "trainingRuntimeSpec.template.spec.replicatedJobs.*.template.spec.template"

METADATA_SOURCES: tuple[MetadataSource, ...] = (
    MetadataSource(
        "Dynamo",
        _kinds("nvidia.com", "DynamoGraphDeployment"),
        ("spec.services.*.annotations", "spec.services.*.extraPodMetadata.annotations"),
        "ai-dynamo/dynamo, commit 00686d6, "
        "deploy/operator/api/v1alpha1/dynamocomponentdeployment_types.go "
        "(DynamoComponentDeploymentSharedSpec)",
    ),
    MetadataSource(
        "Dynamo",
        _kinds("nvidia.com", "DynamoComponentDeployment"),
        ("spec.annotations", "spec.extraPodMetadata.annotations"),
        "the same file",
    ),
    MetadataSource(
        "KServe",
        _kinds("serving.kserve.io", "ServingRuntime", "ClusterServingRuntime"),
        ("spec.annotations",),
        "kserve/kserve, commit 0187b46, pkg/controller/v1beta1/inferenceservice/components/"
        "predictor.go (buildPredictorResources)",
    ),
    MetadataSource(
        "KServe",
        _kinds("serving.kserve.io", "InferenceService"),
        ("metadata.annotations", "spec.*.annotations"),
        "the same file",
    ),
    MetadataSource(
        "KServe",
        _kinds("serving.kserve.io", "LLMInferenceService", "LLMInferenceServiceConfig"),
        (),
        "kserve/kserve v0.16, pkg/controller/v1alpha1/llmisvc/workload_single_node.go "
        "(propagateDeploymentMetadata)",
        "have a mutating policy of the cluster set rdma.lab/enable on the pods",
    ),
    MetadataSource(
        "Argo",
        _kinds("argoproj.io", "Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate"),
        ("spec.podMetadata.annotations", "spec.templates.*.metadata.annotations"),
        "argoproj/argo-workflows, commit 0043210, workflow/controller/workflowpod.go (addMetadata)",
    ),
    MetadataSource(
        "Argo",
        _kinds("argoproj.io", "CronWorkflow"),
        (
            "spec.workflowSpec.podMetadata.annotations",
            "spec.workflowSpec.templates.*.metadata.annotations",
        ),
        "the same file",
    ),
    MetadataSource(
        "Kubeflow Trainer",
        _kinds("trainer.kubeflow.org", "TrainJob"),
        (f"spec.runtimePatches.*.{_JOB}.metadata.annotations",),
        "kubeflow/trainer, commit 0015772, pkg/apis/trainer/v1alpha1/trainjob_types.go "
        "(PodTemplatePatch)",
        "you can also set it in the pod template of the runtime",
    ),
    MetadataSource(
        "OME",
        _kinds("ome.io", "ServingRuntime", "ClusterServingRuntime"),
        ("spec.*.annotations",),
        "OME v1.3, docs/reference/labels-and-annotations (prometheus.io/port of the pods)",
    ),
    MetadataSource(
        "NIM Operator",
        _kinds("apps.nvidia.com", "NIMService"),
        ("spec.annotations",),
        "NVIDIA/k8s-nim-operator, commit d7030c1, api/apps/v1alpha1/nimservice_types.go "
        "(PodAnnotations)",
    ),
    MetadataSource(
        "Spark Operator",
        _kinds("sparkoperator.k8s.io", "SparkApplication"),
        ("spec.*.annotations",),
        "kubeflow/spark-operator, commit 05d6061, internal/controller/sparkapplication/"
        "submission.go (executorConfOption)",
    ),
    MetadataSource(
        "Flux Operator",
        _kinds("flux-framework.org", "MiniCluster"),
        ("spec.pod.annotations",),
        "flux-framework/flux-operator, commit 06b5e43, controllers/flux/job.go (newMiniClusterJob)",
    ),
    MetadataSource(
        "Dask",
        _kinds("kubernetes.dask.org", "DaskCluster", "DaskWorkerGroup"),
        ("metadata.annotations",),
        "dask/dask-kubernetes, commit 0045124, dask_kubernetes/operator/controller/controller.py "
        "(build_worker_pod_spec)",
    ),
    MetadataSource(
        "Dask",
        _kinds("kubernetes.dask.org", "DaskJob"),
        (),
        "the same file (build_cluster_spec)",
        "create a DaskCluster instead, whose metadata.annotations reach its pods",
    ),
    MetadataSource(
        "Grove",
        _kinds("grove.io", "PodCliqueSet"),
        ("spec.template.cliques.*.annotations",),
        "ai-dynamo/grove, commit 02989c1, operator/internal/controller/podclique/components/pod/"
        "pod.go",
    ),
)
_BY_KIND = {kind: row for row in METADATA_SOURCES for kind in row.kinds}
