"""`rdma-webhook why` names the cause that was planted in each live pod, and its missing rights.

The pods are made by real controllers, where a controller makes such pods.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.cluster.install import CONFIGURATION, Webhook, end_replicas, install
from tests.cluster.node import NAME as REAL
from tests.command_line import Answer, run_command
from tests.e2e.documents import ENABLE, Document, make_namespaces, namespace, once, workload
from tests.e2e.installed.identity import allow, kubeconfig_of
from tests.e2e.installed.space import Space
from tests.waiting import until
from webhook.diagnose.why.output import why_schema

VALIDATOR = Draft202012Validator(json.loads(why_schema()))
V100 = "nvidia.com/v100"
PRODUCT = "nvidia.com/gpu.product"
#: What NCCL writes; no GPU is here, so the containers write it themselves.
WROTE = """\
echo 'n:1:1 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA'
exec sleep infinity"""
FELL_BACK = """\
echo 'n:1:1 [0] NCCL INFO NET/IB : No device found.'
echo 'n:1:1 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0'
exec sleep infinity"""


def run_why(space: Space, *arguments: str, kubeconfig: Path | None = None) -> Answer:
    """Run the command in this process, as the administrator or with another kubeconfig."""
    access = ("--kubeconfig", kubeconfig or space.cluster.kubeconfig, "-n", space.name)
    return run_command("why", *access, *arguments)


def explained(space: Space, *arguments: str, **how: Any) -> Document:
    """Return the explanation of one pod, as JSON."""
    answer = run_why(space, "-o", "json", *arguments, **how)
    form = json.loads(answer.out)
    VALIDATOR.validate(form)
    (explanation,) = form["pods"]
    assert answer.code == (0 if explanation["well"] else 1)
    assert isinstance(explanation, dict)
    return explanation


def texts(explanation: Document, chapter: str = "") -> str:
    """Return the answer and all findings, or the findings of a chapter."""
    lines = [
        f"{finding['code']}: {finding['text']} > {finding['remedy']}"
        for section in explanation["chapters"]
        if not chapter or section["name"] == chapter
        for finding in section["findings"]
    ]
    return "\n".join(lines if chapter else [explanation["answer"]["text"], *lines])


def job(space: Space, name: str, pod: Document, **metadata: Any) -> Document:
    """Return a Job that makes such a pod."""
    template = {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}
    document = workload("Job", space.name, once(template), **{"name": name, **metadata})
    document["spec"]["backoffLimit"] = 0
    return document


def _restart(document: Document) -> None:
    """Let a Job restart its container in the same pod.

    containerd can report the end of a container before its OOM event: the kubelet then keeps the
    reason Error for that end, but not for each later one.
    """
    document["spec"]["backoffLimit"] = 20
    document["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"


def pod_of(space: Space, name: str) -> str:
    """Wait for the pod of a Job, and return its name."""
    pods: list[str] = []

    def exists() -> bool:
        names = space.kubectl("get", "pods", f"--selector=job-name={name}", "--output=name")
        pods[:] = names.split()
        return bool(pods)

    until(exists)
    return pods[0].removeprefix("pod/")


def other_space(space: Space, suffix: str, **labels: str) -> Space:
    """Make another namespace with these labels."""
    other = Space(space.cluster, f"{space.name}-{suffix}", space.image)
    document = namespace(other.name, None)
    document["metadata"]["labels"] = labels
    make_namespaces(other.cluster, document)
    return other


@pytest.fixture(scope="module")
def planted(space: Space) -> Iterator[dict[str, str]]:
    """Let Jobs make a pod for each cause; return the pods' names."""
    gpu = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    products = {"key": PRODUCT, "operator": "In", "values": ["Tesla-V100-X", "NVIDIA-A100-X"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [products]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    none = {"resources": {"limits": {V100: "1", "rdma/none": "1"}}}
    pods = {
        "misspelled": space.pod("x", V100, {"rdma.lab/enabled": "true"}),
        "no-fabric": space.pod("x", container=gpu),
        "ambiguous": space.pod("x", container=gpu, affinity=affinity),
        "non-root": space.pod("x", V100, container={"securityContext": {"runAsUser": 1000}}),
        "disabled": space.pod(
            "x", V100, container={"env": [{"name": "NCCL_IB_DISABLE", "value": "1"}]}
        ),
        "nowhere": space.pod("x", container=none),
        "too-many": space.pod("x", V100, {ENABLE: "true", "rdma.lab/devices": "64"}),
        "oom": space.pod(
            "x",
            container={
                "command": ["tail", "/dev/zero"],
                "resources": {"limits": {V100: "1", "memory": "128Mi"}},
            },
            annotations={ENABLE: "true", "rdma.lab/memory-limit": "keep"},
        ),
        "no-image": space.pod("x", V100, container={"image": "lab.invalid/none:1"}),
        "well": space.pod("x", V100, container={"command": ["/bin/sh", "-c", WROTE]}),
        "fell-back": space.pod("x", V100, container={"command": ["/bin/sh", "-c", FELL_BACK]}),
    }
    jobs = {name: job(space, name, pod) for name, pod in pods.items()}
    _restart(jobs["oom"])
    elsewhere = space.pod("x", V100, {})
    jobs["elsewhere"] = job(space, "elsewhere", elsewhere, annotations={ENABLE: "true"})
    space.create(*jobs.values())
    yield {name: pod_of(space, name) for name in jobs}
    space.kubectl("delete", "jobs", "--all", "--wait=false")


@pytest.mark.parametrize(
    ("cause", "rdma", "says"),
    [
        (
            "misspelled",
            "no",
            [
                (
                    "No RDMA, since the webhook was not called: 'rdma.lab/enabled' in "
                    "metadata.annotations has no effect (did you mean rdma.lab/enable?)"
                ),
                "under metadata.annotations of the pod template of Job misspelled",
            ],
        ),
        (
            "elsewhere",
            "no",
            [
                "rdma.lab/enable is in metadata.annotations of Job elsewhere",
                "A Job's template cannot be changed, so delete Job elsewhere and create it again.",
            ],
        ),
        (
            "no-fabric",
            "no",
            [
                "No RDMA: container main requests nvidia.com/gpu, which no fabric lists; request ",
                "Neither the pod nor its namespace determines the fabric.",
            ],
        ),
        (
            "ambiguous",
            "no",
            [
                "No RDMA: the required node affinity matches a100-ib and v100-ib; set rdma.lab/",
                "The pod matches several fabrics",
            ],
        ),
        (
            "non-root",
            "unsure",
            [
                "RDMA over v100-ib is not certain: container main does not run as root; it needs",
                "A container lacks IPC_LOCK, or IPC_LOCK has no effect in it",
                "The container runs as a user other than root",
            ],
        ),
        (
            "disabled",
            "no",
            [
                (
                    "No RDMA: container main sets NCCL_IB_DISABLE=1; remove the variable. The "
                    "container's NCCL_IB_DISABLE=1 turns off RDMA for NCCL"
                )
            ],
        ),
    ],
)
def test_decisions(
    space: Space, planted: dict[str, str], cause: str, rdma: str, says: list[str]
) -> None:
    """Why the webhook could not equip a pod, or was not called for it."""
    explanation = explained(space, planted[cause])
    assert explanation["rdma"] == rdma
    assert explanation["owners"] == [f"Job {cause}"]
    for sentence in says:
        assert sentence in texts(explanation)


def test_the_event_of_the_owner(space: Space, planted: dict[str, str]) -> None:
    """The answer about the pod has the webhook's event at its Job."""
    pod = planted["ambiguous"]
    until(lambda: "Event NoRDMA about Job ambiguous: " in texts(explained(space, pod), "podStatus"))


def test_a_resource_that_no_node_has(space: Space, planted: dict[str, str]) -> None:
    """The pod is pending, and no node offers what it requests."""
    pod = planted["nowhere"]
    until(lambda: "rdma/none" in texts(explained(space, pod), "podStatus"))
    explanation = explained(space, pod)
    assert explanation["rdma"] == "unsure"
    assert "ResourceUnknown" in explanation["answer"]["code"]
    sentence = "The pod is waiting for rdma/none: no node of the cluster offers it."
    assert sentence in texts(explanation, "podStatus")


def test_more_devices_than_a_node_has(space: Space, planted: dict[str, str]) -> None:
    """The pod is pending, and the largest node has fewer devices in total."""
    pod = planted["too-many"]
    until(lambda: "rdma/rdma_v100" in texts(explained(space, pod), "podStatus"))
    explanation = explained(space, pod)
    assert (explanation["rdma"], explanation["well"]) == ("unsure", False)
    assert "ResourceExceedsNodes" in explanation["answer"]["code"]
    sentence = f"it requests rdma/rdma_v100: 64, and the largest node ({REAL}) has"
    assert sentence in texts(explanation, "podStatus")


def test_a_container_that_exceeds_its_memory(space: Space, planted: dict[str, str]) -> None:
    """The text names the limit, and that registered memory counts."""
    pod = planted["oom"]
    explanation: Document = {}

    def is_named() -> bool:
        explanation.update(explained(space, pod))
        return "OOMKilled" in texts(explanation, "podStatus")

    until(is_named, lambda: texts(explanation))
    assert explanation["well"] is False
    assert "used more memory than its limit of 128Mi" in texts(explanation, "podStatus")


def test_a_missing_image(space: Space, planted: dict[str, str]) -> None:
    """The text names the container that waits, and the reason."""
    pod = planted["no-image"]
    until(lambda: "ErrImageNeverPull: Container main" in texts(explained(space, pod), "podStatus"))


def test_a_namespace_without_the_label(space: Space) -> None:
    """The remedy is to label it."""
    other = other_space(space, "plain")
    other.create(job(other, "train", other.pod("x", V100)))
    explanation = explained(other, pod_of(other, "train"))
    assert explanation["rdma"] == "no"
    assert explanation["answer"]["text"] == (
        f"No RDMA, since the webhook was not called: namespace {other.name} lacks the label "
        f'{ENABLE}: "true".'
    )
    assert f"namespace {other.name} {ENABLE}=true" in explanation["answer"]["remedy"]
    other.cluster.kubectl("delete", "namespace", other.name, "--wait=false")


def test_a_pod_created_before_the_label(space: Space) -> None:
    """The answer has the times of both."""
    other = other_space(space, "late")
    other.create(job(other, "train", other.pod("x", V100)))
    pod = pod_of(other, "train")
    time.sleep(1.1)  # times of the API server have whole seconds
    other.cluster.kubectl("label", "namespace", other.name, f"{ENABLE}=true")
    explanation = explained(other, pod)
    created = other.get(pod)["metadata"]["creationTimestamp"]
    assert explanation["answer"]["code"] == "CreatedBeforeLabel"
    assert f"was created at {created}, before namespace {other.name} got" in texts(explanation)
    other.cluster.kubectl("delete", "namespace", other.name, "--wait=false")


def test_pod_security_that_refuses_the_capability(space: Space) -> None:
    """The namespace's level is the reason."""
    level = {"pod-security.kubernetes.io/enforce": "baseline"}
    other = other_space(space, "baseline", **{ENABLE: "true"}, **level)
    other.create(job(other, "train", other.pod("x", V100)))
    explanation = explained(other, pod_of(other, "train"))
    assert explanation["rdma"] == "unsure"
    assert explanation["answer"]["code"] == "PodSecurity"
    sentence = (
        "The namespace enforces a Pod Security level that forbids IPC_LOCK; without IPC_LOCK, the "
        "memlock limit must be raised."
    )
    assert sentence in explanation["answer"]["text"]
    other.cluster.kubectl("delete", "namespace", other.name, "--wait=false")


def test_a_denied_pod(space: Space) -> None:
    """A pod that was never created: its controller's event has the reason."""
    annotations = {ENABLE: "true", "rdma.lab/fabric": "nowhere"}
    space.create(job(space, "denied", space.pod("x", V100, annotations)))
    space.event("denied", "FailedCreate")
    answer = run_why(space, "denied-abcde")
    assert answer.code == 2
    assert f"there is no pod denied-abcde in namespace {space.name}; Job denied could" in answer.err
    assert "nowhere" in answer.err


def has_written(space: Space, pod: str) -> None:
    """Wait until the last line of what NCCL writes is in the log of a pod."""
    space.wait_until_started(pod)
    until(lambda: "NCCL INFO Channel" in space.kubectl("logs", pod))


def test_a_healthy_pod(space: Space, planted: dict[str, str]) -> None:
    """The log shows RDMA, and a shell in the container finds no device, since there is none."""
    has_written(space, planted["well"])
    explanation = explained(space, planted["well"], "--logs", "--exec")
    assert (explanation["rdma"], explanation["well"]) == ("yes", True)
    assert "The pod is equipped for RDMA over v100-ib" in texts(explanation)
    assert "The log of container main shows RDMA, with GPUDirect RDMA." in texts(explanation, "log")
    assert "In container main, no process has an RDMA device open." in texts(
        explanation, "processes"
    )


def test_a_job_that_fell_back(space: Space, planted: dict[str, str]) -> None:
    """Admission could not know; the log does, and names the cause."""
    has_written(space, planted["fell-back"])
    assert explained(space, planted["fell-back"])["rdma"] == "yes"
    explanation = explained(space, planted["fell-back"], "--logs")
    assert explanation["rdma"] == "no"
    assert "RDMA is not in use: the log shows TCP sockets" in texts(explanation)
    assert "NoDeviceFound: NCCL found no RDMA device" in texts(explanation, "log")


def test_the_decision_of_today(webhook: Webhook, space: Space, planted: dict[str, str]) -> None:
    """On the Job's template, with the fabrics of the installation, the decision is the same."""
    explanation = explained(space, planted["well"], "-c", str(webhook.fabrics))
    redecision = texts(explanation, "redecision")
    assert "SameToday: As at admission, a pod from the template of Job well would be" in redecision


@pytest.fixture(scope="module")
def researcher(space: Space, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the kubeconfig of an account that may only read pods."""
    file = kubeconfig_of(space, "researcher", tmp_path_factory.mktemp("researcher"))
    allow(space, "researcher", "get", "pods")
    return file


def test_with_the_right_to_read_pods_only(
    space: Space, planted: dict[str, str], researcher: Path
) -> None:
    """The answer is the same; each missing right has a line."""
    flags = ("--logs", "--exec")
    explanation = explained(space, planted["disabled"], *flags, kubeconfig=researcher)
    assert "The container's NCCL_IB_DISABLE=1 turns off RDMA for NCCL" in texts(explanation)
    unread = texts(explanation, "unread")
    assert f"You do not have the right to read the events of Pod {planted['disabled']}." in unread
    assert "You do not have the right to read Job disabled." in unread
    unseen = explained(space, planted["misspelled"], kubeconfig=researcher)
    assert unseen["answer"]["code"] == "AnnotationMisspelled"
    assert "You do not have the right to read mutatingwebhookconfigurations." in texts(
        unseen, "unread"
    )


def test_forbidden_exec(space: Space, planted: dict[str, str], researcher: Path) -> None:
    """The answer has the reason why a container could not be inspected."""
    space.wait_until_started(planted["well"])
    explanation = explained(space, planted["well"], "--exec", "--logs", kubeconfig=researcher)
    assert "The processes of container main could not be inspected: " in texts(
        explanation, "processes"
    )
    assert "pods/exec" in texts(explanation, "processes")
    assert "You do not have the right to read the log of container main." in texts(
        explanation, "unread"
    )


def test_a_pod_that_may_not_be_read(space: Space, researcher: Path) -> None:
    """Without that right, the command cannot answer."""
    answer = run_why(Space(space.cluster, "default", ""), "train", kubeconfig=researcher)
    assert (answer.code, answer.out) == (2, "")
    assert "you do not have the right to read pod train in namespace default" in answer.err


def test_a_webhook_that_did_not_answer(webhook: Webhook, space: Space) -> None:
    """Under failurePolicy Ignore the pod is created unchanged; this is the file's last test."""
    patch = '[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"%s"}]'
    cluster = space.cluster
    cluster.kubectl("patch", CONFIGURATION, "--type=json", f"--patch={patch % 'Ignore'}")
    end_replicas(cluster)
    try:
        created: list[str] = []

        def unpatched() -> bool:
            # The API server may take a moment to read the new policy.
            name = f"missed-{len(created)}"
            created.append(name)
            space.create(job(space, name, space.pod("x", V100)))
            return "rdma.lab/status" not in str(space.get(pod_of(space, name)))

        until(unpatched)
        explanation = explained(space, pod_of(space, created[-1]))
        assert explanation["rdma"] == "no"
        assert explanation["answer"]["code"] == "DidNotAnswer"
        assert "the webhook did not respond when the pod was created" in texts(explanation)
    finally:
        cluster.kubectl("patch", CONFIGURATION, "--type=json", f"--patch={patch % 'Fail'}")
        install(cluster, webhook.fabrics)
