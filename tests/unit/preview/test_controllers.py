"""A template is decided on as its controller creates the pods, and edited where it can be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.preview.workloads.controllers.workloads import (
    GPU,
    MPI_JOB,
    MPIRUN,
    OLD_MPI_JOB,
    RAY,
    WORKLOADS,
    replicas,
    template,
    workload,
)
from webhook.errors import DocumentError
from webhook.model.fabric import (
    ClaimTemplateReference,
    CompiledConfiguration,
    Fabric,
    FabricEnv,
    RdmaResource,
    build_configuration,
)
from webhook.model.pod import at
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.patches import patches, rewrite
from webhook.preview.report.json import report_form
from webhook.preview.report.record import Report, remarks_of
from webhook.preview.report.text import report_text
from webhook.preview.workloads.controllers import CONTROLLERS
from webhook.text.yaml.documents import Document, read_documents

CONFIGURATION = build_configuration(
    (
        Fabric(
            name="v100-ib",
            gpu_resources=frozenset({"nvidia.com/v100"}),
            resources=(RdmaResource(name="rdma/v100"),),
            env=FabricEnv(library_variables=(("NCCL_IB_HCA", "=mlx5_0"),), ucx_devices="mlx5_0:1"),
            socket_interface="eth0",
        ),
    ),
    config_hash="0123456789ab",
)
each_workload = pytest.mark.parametrize("value", WORKLOADS.values(), ids=WORKLOADS)


def previewed(
    value: dict[str, Any], configuration: CompiledConfiguration = CONFIGURATION
) -> tuple[Document, Report]:
    """Preview an object."""
    (document,) = read_documents(json.dumps(value))
    return document, preview_documents([document], PreviewOptions(configuration=configuration))


def outcomes(report: Report) -> list[dict[str, list[str]]]:
    """List the mutations of each pod by their status."""
    by_pod: list[dict[str, list[str]]] = []
    for preview in report.previews:
        by_status: dict[str, list[str]] = {}
        for outcome in preview.decision.outcomes:
            by_status.setdefault(outcome.status, []).append(outcome.mutation)
        by_pod.append(by_status)
    return by_pod


def test_every_controller_has_a_workload_here() -> None:
    """The laws below hold for each row of the table."""
    kinds = {f"{manifest['apiVersion']} {manifest['kind']}" for manifest in WORKLOADS.values()}
    assert all(controller.kinds & kinds for controller in CONTROLLERS)


@each_workload
def test_the_document_is_not_edited(value: dict[str, Any]) -> None:
    """A controller's pod is a copy wherever it differs from the template."""
    document, _ = previewed(value)
    assert document.value == value


@each_workload
def test_what_is_written_adds_only_what_the_webhook_adds(value: dict[str, Any]) -> None:
    """Nothing of the controller gets into the document: no role, no variable, no volume."""
    document, report = previewed(value)
    (rewritten,) = rewrite([document], report)
    for name in ("K_MPI_JOB_ROLE", "LWS_", "RAY_", "MASTER_", "OMPI_MCA_plm", "COMPLETION", "ssh"):
        assert name not in rewritten.text
    assert "rdma/v100" in rewritten.text


@each_workload
def test_a_document_that_was_written_once_is_not_written_again(value: dict[str, Any]) -> None:
    """The controller makes the same pods of it, and they have everything that can be written."""
    document, report = previewed(value)
    (rewritten,) = rewrite([document], report)
    (document_again,) = read_documents(rewritten.text)
    second = preview_documents([document_again], PreviewOptions(configuration=CONFIGURATION))
    assert patches([document_again], second) == [[]]


def test_a_worker_is_decided_on_with_its_role_and_sshd() -> None:
    """Without them, nothing would show that sshd starts its processes: the file is mounted."""
    _, report = previewed(MPI_JOB)
    first, second = outcomes(report)
    assert first == {"applied": ["env", "hcoll"], "skipped": ["request"], "warned": ["env"]}
    assert "config-files" in second["applied"]
    assert [preview.controller for preview in report.previews] == ["mpi-operator"] * 2


def test_the_object_is_the_live_pod() -> None:
    """The JSON form has the pod as the API server would store it, separate from the patch."""
    _, report = previewed(MPI_JOB)
    _, worker = report_form(report)["decisions"]
    container = worker["object"]["spec"]["containers"][0]
    assert container["command"] == ["/usr/sbin/sshd", "-De"]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == [
        "/root/.ssh",
        "/etc/nccl.conf",
    ]
    assert (worker["controller"], worker["role"]) == ("mpi-operator", "")


def test_a_template_of_two_kinds_of_pods_has_two_decisions_and_a_single_edit() -> None:
    """The needs of the launcher and of the workers are written, and nothing twice."""
    document, report = previewed(OLD_MPI_JOB)
    assert [preview.role for preview in report.previews] == ["worker", "launcher"]
    worker, launching = outcomes(report)
    assert "rdma-resources" in worker["applied"]
    assert "rdma-resources" not in launching.get("applied", [])
    (ops,) = patches([document], report)
    (rewritten,) = rewrite([document], report)
    assert ops
    assert rewritten.text.count('"OMPI_MCA_coll_hcoll_enable"') == 1


@pytest.mark.parametrize(
    ("fields", "mutation", "path"),
    [
        (
            {"mode": "dra", "claim_templates": (ClaimTemplateReference(template="nics"),)},
            "claims",
            "resourceClaims",
        ),
        (
            {
                "mode": "sr-iov",
                "resources": (RdmaResource(name="rdma/vf", network="lab/vf"),),
            },
            "networks",
            "annotations",
        ),
        (
            {"resources": (RdmaResource(name="rdma/v100"),), "pin_selector": {"pool": "v100"}},
            "placement",
            "nodeSelector",
        ),
    ],
    ids=["claims", "networks", "placement"],
)
def test_a_launcher_gets_no_nic_from_the_template_that_it_shares(
    fields: dict[str, Any], mutation: str, path: str
) -> None:
    """A claim, a network or a nodeSelector of the workers is left to admission."""
    fabric = Fabric(name="v100", gpu_resources=frozenset({"nvidia.com/v100"}), **fields)
    configuration = build_configuration((fabric,), config_hash="0123456789ab")
    document, report = previewed(OLD_MPI_JOB, configuration)
    worker, launching = outcomes(report)
    assert mutation in worker["applied"]
    assert mutation not in launching.get("applied", [])
    (ops,) = patches([document], report)
    assert not [op for op in ops if path in op["path"] or "claims" in op["path"]]
    note = (
        f"MPIJob lab/job spec.template: only admission completes {mutation}, since mpi-operator "
        "makes several kinds of pods from the template"
    )
    assert ("note", note) in remarks_of(report)


def test_what_only_the_second_kind_of_pod_needs_is_written() -> None:
    """Workers without GPUs are not targets; the launcher still gets hcoll switched off."""
    kind = "kubeflow.org/v1alpha1 MPIJob"
    document, report = previewed(workload(kind, {"gpus": 8, "template": template(command=MPIRUN)}))
    (ops,) = patches([document], report)
    assert [op["path"].removeprefix("/spec/template/spec/containers/0/") for op in ops] == [
        "command/1",
        "command/2",
        "command/3",
        "env",
    ]


def test_the_document_gets_the_edits_for_both_kinds_of_pods() -> None:
    """A variable for the workers does not hide the flag that the launcher's command needs."""
    document, report = previewed(OLD_MPI_JOB)
    container = at(_edited(document, report), ("spec", "template", "spec", "containers", 0))
    assert container["command"] == ["mpirun", "-mca", "coll_hcoll_enable", "0", *MPIRUN[1:]]
    names = [item["name"] for item in container["env"]]
    assert len(names) == len(set(names))
    assert {"OMPI_MCA_coll_hcoll_enable", "NCCL_IB_HCA"} < set(names)
    edited, second = previewed(_edited(document, report))
    assert patches([edited], second) == [[]]


def _edited(document: Document, report: Report) -> Any:
    """Return the value of the rewritten document."""
    (rewritten,) = rewrite([document], report)
    (edited,) = read_documents(rewritten.text)
    return edited.value


def test_a_denied_pod_is_not_written_in_part() -> None:
    """Mutations before the one that denies the pod have operations, which are void."""
    worker = template(**GPU)
    worker["metadata"]["annotations"]["rdma.lab/nccl-conf"] = "mine"
    value = workload("kubeflow.org/v2beta1 MPIJob", {"mpiReplicaSpecs": replicas(Worker=worker)})
    document, report = previewed(value)
    (preview,) = report.previews
    assert preview.decision.reason.code == "MutationFailed"
    assert any(outcome.ops for outcome in preview.decision.outcomes)
    assert patches([document], report) == [[]]


def test_a_command_that_the_controller_writes_is_left_to_admission() -> None:
    """KubeRay moves the words into a script, so the live pod's flag has no place here."""
    document, report = previewed(RAY)
    container = at(report.previews[1].pod, ("spec", "containers", 0))
    assert "mpirun -mca coll_hcoll_enable 0" in container["args"][0]
    (ops,) = patches([document], report)
    assert not [op for op in ops if "/command" in op["path"] or "/args" in op["path"]]
    path = "spec.workerGroupSpecs[0].template"
    note = (
        f"RayCluster lab/job spec.headGroupSpec.template, RayCluster lab/job {path}: "
        "only admission completes hcoll, since KubeRay writes some of the fields"
    )
    assert ("note", note) in remarks_of(report)


@pytest.mark.parametrize("kind", ["example.com/v1 Job", "kubeflow.org/v3 MPIJob"])
def test_an_unknown_kind_is_noted(kind: str) -> None:
    """Its controller may add anything; two templates of one object get one note."""
    tasks = [{"template": template(**GPU)}, {"template": template(**GPU)}]
    _, report = previewed(workload(kind, {"tasks": tasks}))
    word = kind.rpartition(" ")[2]
    note = (
        f"{word} job: judged as written; if a controller adds a command, labels or "
        "variables, the actual pods may get different decisions"
    )
    assert report.notes == (note,)


def test_a_runtime_gets_its_gpus_from_a_trainjob() -> None:
    """Its templates have none, so a decision on them does not apply to the pods."""
    kind = "trainer.kubeflow.org/v1alpha1 ClusterTrainingRuntime"
    _, report = previewed(workload(kind, {"template": template()}))
    note = (
        "ClusterTrainingRuntime job: judged as written; a TrainJob may add GPUs, a command and"
        " variables, so the actual pods may get different decisions"
    )
    assert report.notes == (note,)


@pytest.mark.parametrize(
    "value",
    [
        workload("example.com/v1 Job", {"template": {"spec": template()["spec"]}}),
        workload("apps/v1 Deployment", {"template": template(**GPU)}),
        template(**GPU),
    ],
    ids=["not opted in", "known", "no object"],
)
def test_there_is_no_note_without_need(value: dict[str, Any]) -> None:
    """A pod that has not opted in gets no outcome that could differ."""
    assert previewed(value)[1].notes == ()


def test_a_malformed_template_is_decided_on_unchanged() -> None:
    """The decision explains what is wrong with it."""
    malformed = template()
    malformed["metadata"]["labels"] = ["x"]
    _, report = previewed(
        workload("kubeflow.org/v1 TFJob", {"tfReplicaSpecs": replicas(W=malformed)})
    )
    (preview,) = report.previews
    assert (preview.controller, preview.decision.reason.code) == ("", "InvalidPod")


def test_the_text_names_the_controller() -> None:
    """The heading names the controller, and the role of the pod."""
    lines = report_text(previewed(OLD_MPI_JOB)[1], width=200).splitlines()
    headings = [line for line in lines if line.startswith("MPIJob lab/job")]
    assert [heading.rpartition("  ")[2] for heading in headings] == [
        "(worker, as mpi-operator creates it)",
        "(launcher, as mpi-operator creates it)",
    ]


BARE = {
    "containers": [
        {"name": "main", "command": ["/usr/sbin/sshd", "-D"], **GPU},
    ]
}
LLM = workload("serving.kserve.io/v1alpha1 LLMInferenceService", {"template": BARE, "worker": BARE})


def enabled(value: dict[str, Any]) -> tuple[Document, Report]:
    """Preview an object as if its pods had opted in."""
    (document,) = read_documents(json.dumps(value))
    return document, preview_documents(
        [document], PreviewOptions(configuration=CONFIGURATION, enable=True)
    )


def test_a_pod_spec_without_metadata_opts_in_by_its_controller() -> None:
    """Nothing in the document opts in, so the text names no place for the annotation."""
    text = report_text(previewed(LLM)[1], width=200)
    start = "not opted in: KServe copies no annotations to the pods; have a mutating policy"
    assert text.count(start) == 2
    unknown = workload("example.com/v1 Engine", {"template": BARE})
    text = report_text(previewed(unknown)[1], width=200)
    assert text.count("not opted in: the controller writes the pods' metadata") == 1
    assert "spec.template.metadata" not in text


def test_an_annotation_around_a_pod_spec_may_reach_the_pods() -> None:
    """That depends on the controller: KServe's does not copy it."""
    value = {**LLM, "metadata": {**LLM["metadata"], "annotations": {"rdma.lab/enable": "true"}}}
    hints = {preview.hint for preview in previewed(value)[1].previews}
    place = "metadata.annotations of LLMInferenceService job"
    effect = "has an effect only if the controller copies it to the pods"
    assert hints == {f"rdma.lab/enable is in {place}, and {effect}"}


def test_a_pod_spec_is_edited_except_for_annotations() -> None:
    """The file for NCCL needs an annotation of the pod, so no part of it is written."""
    document, report = enabled(LLM)
    (ops,) = patches([document], report)
    (rewritten,) = rewrite([document], report)
    assert outcomes(report)[0]["applied"].count("config-files") == 2
    assert all(op["path"].startswith(("/spec/template/", "/spec/worker/")) for op in ops)
    assert "nccl.conf" not in rewritten.text
    assert "NCCL_IB_HCA" in rewritten.text
    places = "LLMInferenceService lab/job spec.template, LLMInferenceService lab/job spec.worker"
    note = "only admission applies config-files, since the document has no place for the pods' "
    assert ("note", f"{places}: {note}annotations") in remarks_of(report)


def test_a_denied_pod_spec_is_not_edited() -> None:
    """This holds for any denied pod."""
    bare = {"containers": [{"name": "main", "env": "none", **GPU}]}
    value = workload("serving.kserve.io/v1alpha1 LLMInferenceService", {"template": bare})
    document, report = enabled(value)
    assert report.denied
    assert patches([document], report) == [[]]


def _verdicts(script: str) -> list[tuple[str, str]]:
    """Preview an MPIJob whose launcher runs a script; return both verdicts in order."""
    job = json.loads(json.dumps(MPI_JOB))
    (launcher,) = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    launcher.update(command=["bash", "-c", script], args=[])
    verdicts = [preview.decision.verdict for preview in previewed(job)[1].previews]
    return [(verdict.rdma, verdict.because.code) for verdict in verdicts if verdict is not None]


def test_a_launchers_command_decides_about_the_workers() -> None:
    """What it sets for its ranks is as in the workers' env."""
    assert _verdicts("mpirun -x NCCL_IB_DISABLE=1 train") == [
        ("no", "RanksWithoutRdma"),
        ("no", "NcclIbDisabled"),
    ]
    assert _verdicts("mpirun -x NCCL_NET=$X train")[1] == ("unsure", "SettingComputed")
    assert _verdicts("mpirun train") == [("none", "Launcher"), ("yes", "Equipped")]


def _rdma_with_script(name: str, namespace: str) -> list[str]:
    """Preview a List of an MPIJob whose launcher runs a script of the ConfigMap.

    Return the verdict of each pod. The ConfigMap is in the namespace `lab`, another MPIJob in `x`.
    """
    job = json.loads(json.dumps(MPI_JOB))
    job["metadata"]["namespace"] = namespace
    pod_spec = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    pod_spec["volumes"] = [{"name": "scripts", "configMap": {"name": "site"}}]
    mounts = [{"name": "scripts", "mountPath": "/scripts"}]
    command = ["bash", f"/scripts/{name}"]
    pod_spec["containers"][0].update(command=command, args=[], volumeMounts=mounts)
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "site", "namespace": "lab"},
        "data": {"run.sh": "mpirun -x NCCL_IB_DISABLE=1 train"},
    }
    items = [job, {**MPI_JOB, "metadata": {"name": "other", "namespace": "x"}}, config_map]
    previews = previewed({"apiVersion": "v1", "kind": "List", "items": items})[1].previews
    return [preview.verdict.rdma if preview.verdict else "" for preview in previews]


def test_a_launchers_script_in_a_config_map_decides_about_the_workers() -> None:
    """It reaches the pods of the launcher's namespace; a ConfigMap of another is not the same."""
    assert _rdma_with_script("run.sh", "lab") == ["no", "no", "none", "yes"]
    assert _rdma_with_script("run.sh", "y") == ["none", "yes", "none", "yes"]
    assert _rdma_with_script("absent.sh", "lab") == ["none", "yes", "none", "yes"]


def _ray_job(environment: str) -> dict[str, Any]:
    return workload(
        "ray.io/v1 RayJob", {"runtimeEnvYAML": environment, "rayClusterSpec": RAY["spec"]}
    )


def test_the_environment_of_a_ray_job_decides_about_its_pods() -> None:
    """It is as in the workers' env, and reaches no other object of the document."""
    job = _ray_job("env_vars: {NCCL_IB_DISABLE: '1'}")
    listed = {"apiVersion": "v1", "kind": "List", "items": [job, _ray_job(""), RAY]}
    worker, *remaining = [
        preview.decision.verdict
        for preview in previewed(listed)[1].previews
        if "worker" in preview.path
    ]
    assert worker is not None
    assert worker.message == (
        "container main sets NCCL_IB_DISABLE=1 (spec.runtimeEnvYAML); remove that setting"
    )
    assert [verdict and verdict.rdma for verdict in remaining] == ["yes", "yes"]


WORKFLOW = workload(
    "argoproj.io/v1alpha1 Workflow",
    {
        "podMetadata": {"annotations": {"rdma.lab/enable": "true"}},
        "templates": [
            {"name": "train", "container": {"image": "x", **GPU}},
            {"name": "plot", "container": {"image": "x", "command": ["plot"]}},
        ],
    },
)


def test_a_derived_pod_is_decided_on_and_marked() -> None:
    """Its operator may add more, and the document is not edited."""
    document, report = previewed(WORKFLOW)
    (preview,) = report.previews
    assert (preview.path, preview.derived) == ("spec.templates[0].container", True)
    assert preview.verdict is not None
    assert preview.verdict.rdma == "yes"
    (form,) = report_form(report)["decisions"]
    assert form["derived"] is True
    text = report_text(report, width=200)
    assert "spec.templates[0].container  <stdin>:1  (derived; an operator makes it)" in text
    assert patches([document], report) == [[]]
    assert rewrite([document], report)[0].text == document.text
    note = (
        "Workflow lab/job spec.templates[0].container: derived pods are patched only at admission"
    )
    assert ("note", note) in remarks_of(report)
    assert any("(spec.templates[1].container)" in note for note in report.notes)


def test_a_derived_pod_that_did_not_opt_in_names_the_field() -> None:
    """The operator's, and not one of the container."""
    spec = {"templates": [{"container": {"image": "x", **GPU}}]}
    _, report = previewed(workload("argoproj.io/v1alpha1 Workflow", spec))
    text = report_text(report, width=200)
    assert 'add rdma.lab/enable: "true" to spec.templates[0].metadata.annotations' in text
    assert [label for label, _ in remarks_of(report)] == ["warning"]
    spec["templates"][0]["metadata"] = {"annotations": {"rdma.lab/enable": "false"}}
    _, report = previewed(workload("argoproj.io/v1alpha1 Workflow", spec))
    (preview,) = report.previews
    place = "spec.templates[0].metadata.annotations"
    assert preview.hint == f'{place} sets rdma.lab/enable: "false"'


@pytest.mark.parametrize(
    "container",
    [
        {"image": "x", "command": "mpirun", **GPU},
        {"image": "x", "resources": {"limits": {"example.com/disk": 1}}},
    ],
    ids=["another shape", "no target"],
)
def test_a_derived_pod_without_a_verdict_is_only_noted(container: dict[str, Any]) -> None:
    """The operator has fields of its own, or adds the devices."""
    spec = {"podMetadata": WORKFLOW["spec"]["podMetadata"], "templates": [{"container": container}]}
    _, report = previewed(workload("argoproj.io/v1alpha1 Workflow", spec))
    assert report.previews == ()
    (note,) = report.notes
    assert note.startswith("Workflow lab/job (spec.templates[0].container): containers outside")


def test_derived_pods_count_towards_the_limit() -> None:
    """Each of them is decided on."""
    (document,) = read_documents(json.dumps(WORKFLOW))
    options = PreviewOptions(configuration=CONFIGURATION, max_pods=0)
    with pytest.raises(DocumentError, match="more than 0 pods"):
        preview_documents([document], options)


def test_a_fragment_without_a_device_has_no_verdict() -> None:
    """With a device, it has: each pod made from it gets the device."""
    bases = [{"name": "base", **template()}, {"name": "gpu", **template(**GPU)}]
    spec = {"podTemplates": bases, "groups": [{"templateName": "base"}, {"templateName": "gpu"}]}
    _, report = previewed(workload("example.com/v1 Job", spec))
    assert [preview.path for preview in report.previews] == ["spec.podTemplates[1]"]
    assert report.notes[0] == (
        "Job lab/job (spec.podTemplates[0]): no pod is made from this named template alone, so it "
        "has no verdict"
    )


def test_mistakes_are_shown_once() -> None:
    """Not those of a derived pod, and no second remedy for the same variable."""
    wrong = template(resource={}, resources={"limits": {"nvidia.com/v100": "${N}"}})
    _, report = previewed(workload("batch/v1 Job", {"template": wrong}))
    (preview,) = report.previews
    assert preview.mistakes == (
        (
            "spec.template.spec.containers[0].resource is not a field of a container (did you mean "
            "resources?)"
        ),
    )
    assert preview.mistakes[0] in report_text(report, width=200)
    assert ("warning", f"Job lab/job spec.template: {preview.mistakes[0]}") in remarks_of(report)
    container = {"image": "x", "resource": {}, **GPU}
    _, report = previewed(workload("x.io/v1 Thing", {"main": container}))
    assert report.previews[0].mistakes == ()
