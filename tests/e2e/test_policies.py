"""The API server's own part: it calls the webhook, warns users, and restricts the webhook."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.install import called
from tests.e2e.documents import (
    ENABLE,
    WORKLOADS,
    Document,
    apply,
    ask,
    make_namespaces,
    namespace,
    pod,
    policy_messages,
    template,
    workload,
)
from tests.e2e.renderings import with_namespace
from tests.e2e.rights import is_allowed, service_account, wait_for_right
from tests.e2e.wire import send
from tests.waiting import until
from webhook.admission.match import predict_call as previewed
from webhook.admission.registration import EXCLUDED_NAMESPACES
from webhook.decide.mutations import MUTATIONS
from webhook.model.annotations import (
    MEMORY_LIMIT_ANNOTATION,
    NVLINK_ANNOTATION,
    opted_in,
    parse_annotations,
)
from webhook.model.decision import Denial
from webhook.model.facts import NamespaceFacts

MANIFESTS = Path(__file__).parents[2] / "manifests"
CONFIGURATION = "mutatingwebhookconfiguration/zz-rdma-webhook"
VALIDATION = "validatingwebhookconfiguration/rdma-webhook"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CONFIGURATIONS = f"{_ADMISSION}/mutatingwebhookconfigurations"
VALIDATIONS = f"{_ADMISSION}/validatingwebhookconfigurations"
#: The two objects whose `caBundle` our ServiceAccount may change.
GUARDED = {
    "mutating": f"{CONFIGURATIONS}/zz-rdma-webhook",
    "validating": f"{VALIDATIONS}/rdma-webhook",
}
each_guarded = pytest.mark.parametrize("kind", GUARDED)
ACCOUNT = "system:serviceaccount:rdma-webhook:rdma-webhook"
#: Namespaces, with the value of their label.
LABELS = {
    "policies-on": "true",
    "policies-true": "True",
    "policies-yes": "yes",
    "policies-plain": None,
}
Installation = dict[tuple[str, str], Document]
Deaf = Callable[[str], None]


each_kind = pytest.mark.parametrize("kind", WORKLOADS)


# Fixtures.


@pytest.fixture(scope="module")
def shipped(cluster: Cluster) -> Installation:
    """Return the objects of the installation, by kind and name."""
    text = cluster.kubectl("kustomize", str(MANIFESTS / "overlays/self-managed"))
    return {
        (document["kind"], document["metadata"]["name"]): document
        for document in yaml.safe_load_all(text)
    }


@pytest.fixture(scope="module", autouse=True)
def namespaces(cluster: Cluster, shipped: Installation) -> Iterator[None]:
    """Install everything except the webhook, and make namespaces with different labels."""
    parts = [
        document
        for document in shipped.values()
        if not document["kind"].endswith(("WebhookConfiguration", "Deployment"))
    ]
    apply(cluster, *parts)
    make_namespaces(cluster, *(namespace(name, value) for name, value in LABELS.items()))
    # Wait until the API server has the policies.
    until(lambda: bool(ask(cluster, pod("policies-plain", {ENABLE: "true"})).advice))
    wait_for_right(cluster, ACCOUNT, "watch", "nodes")
    yield
    cluster.kubectl("delete", "--wait=false", "namespace", *LABELS)


@pytest.fixture(scope="module")
def deaf(cluster: Cluster, shipped: Installation) -> Iterator[Deaf]:
    """Have the API server call a Service that does not exist: the failure shows the call.

    Afterwards the webhook configuration is restored.
    """
    installed = cluster.kubectl("get", CONFIGURATION, "--ignore-not-found", "--output=json")

    def deafen(failure_policy: str) -> None:
        document = json.loads(
            json.dumps(shipped["MutatingWebhookConfiguration", "zz-rdma-webhook"])
        )
        (hook,) = document["webhooks"]
        hook["clientConfig"]["service"]["name"] = "nowhere"
        hook["failurePolicy"] = failure_policy
        apply(cluster, document)
        probe = pod("policies-on", {ENABLE: "true"})
        # Under Ignore the pod is created unchanged, which the detector sees.
        expected = (True, [UNCHANGED]) if failure_policy == "Ignore" else (False, [])

        def has_come() -> bool:
            answer = ask(cluster, probe)
            return (answer.created, answer.detector) == expected

        until(has_come, lambda: ask(cluster, probe))

    yield deafen
    cluster.kubectl("delete", CONFIGURATION)
    if installed:
        document = json.loads(installed)
        metadata = {key: document["metadata"].get(key) for key in ("name", "labels", "annotations")}
        # Not by `kubectl create`, which would put `caBundle` into the last-applied annotation.
        assert send(cluster, "POST", CONFIGURATIONS, {**document, "metadata": metadata}).code == 201
        called(cluster)


# For which pods the API server calls the webhook.


def test_the_api_server_calls_as_preview_predicts(cluster: Cluster, deaf: Deaf) -> None:
    """Selector and conditions of the real API server agree with the preview."""
    deaf("Fail")
    mirror = {ENABLE: "true", "kubernetes.io/config.mirror": "x"}
    choices: list[Document | None] = [None, {}, {"other": "x"}]
    choices += [{ENABLE: value} for value in ("true", "false", "True", "yes", "")]
    pods = [pod(name, annotations) for name in LABELS for annotations in choices]
    windows = pod("policies-on", {ENABLE: "true"})
    windows["spec"]["os"] = {"name": "windows"}
    linux = pod("policies-on", {ENABLE: "true"})
    linux["spec"]["os"] = {"name": "linux"}
    static = pod("policies-on", mirror)
    static["spec"]["nodeName"] = "nobody"
    pods += [windows, linux, static]
    expected, actual = [], []
    for manifest in pods:
        space = manifest["metadata"]["namespace"]
        value = LABELS[space]
        labels = {} if value is None else {ENABLE: value}
        expected.append(previewed(manifest, NamespaceFacts(name=space, labels=labels))[0])
        answer = ask(cluster, manifest)
        failed = "failed calling webhook" in answer.refusal
        assert failed != answer.created, answer.refusal
        actual.append(failed)
    assert actual == expected
    assert True in actual
    assert False in actual


def test_namespaces_left_out_are_never_called_for(cluster: Cluster, deaf: Deaf) -> None:
    """A pod in kube-system or in our own namespace causes no call, even with the label.

    The API server sees labels in the order of their writing: once it has the last namespace's, it
    has them all.
    """
    deaf("Fail")
    for name in (*sorted(EXCLUDED_NAMESPACES), "policies-plain"):
        cluster.kubectl("label", "--overwrite", "namespace", name, f"{ENABLE}=true")
    try:
        until(lambda: not ask(cluster, pod("policies-plain", {ENABLE: "true"})).created)
        for name in sorted(EXCLUDED_NAMESPACES):
            answer = ask(cluster, pod(name, {ENABLE: "true"}))
            assert "failed calling webhook" not in answer.refusal
            assert answer.advice == answer.detector == []
    finally:
        for name in (*sorted(EXCLUDED_NAMESPACES), "policies-plain"):
            cluster.kubectl("label", "namespace", name, f"{ENABLE}-")
        until(lambda: ask(cluster, pod("policies-plain", {ENABLE: "true"})).created)


# The detector.


def test_the_detector_finds_pods_that_ignore_let_through(cluster: Cluster, deaf: Deaf) -> None:
    """A pod that opted in but was not changed is created with a warning; other pods get none."""
    deaf("Ignore")
    for status in ({}, {"rdma.lab/status": "{}"}, {"rdma.lab/status": '{"rdma":"yes"}'}):
        answer = ask(cluster, pod("policies-on", {ENABLE: "true", **status}))
        assert answer.created
        assert answer.detector == [UNCHANGED]
    for manifest in (
        pod("policies-on"),
        pod("policies-on", {ENABLE: "false"}),
        pod("policies-on", with_status()),
        pod("policies-plain", {ENABLE: "true"}),
    ):
        answer = ask(cluster, manifest)
        assert (answer.created, answer.detector) == (True, [])


UNCHANGED = (
    "this pod requests RDMA, but rdma-webhook was not called, did not answer, or has no fabrics, "
    "so nothing was added: create it again once the webhook works"
)
_MOUNTED = {"name": "rdma-lab-nccl-conf", "mountPath": "/etc/nccl.conf", "subPath": "nccl.conf"}
_SHARED_MEMORY = {"name": "rdma-lab-shm", "mountPath": "/dev/shm"}
#: Mutation → its name in the warning, and a container and annotations on which it was applied.
TRACES: dict[str, tuple[str, Document, Document]] = {
    "ipc-lock": (
        "the capability IPC_LOCK",
        {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}},
        {},
    ),
    "rdma-resources": (
        "the RDMA resource",
        {"resources": {"limits": {"rdma/hca": "1"}, "requests": {"rdma/hca": "1"}}},
        {},
    ),
    "claims": ("the claim", {"resources": {"claims": [{"name": "nic"}]}}, {}),
    "networks": ("the networks", {}, {"k8s.v1.cni.cncf.io/networks": "lab/roce"}),
    "env": ("the variables", {"env": [{"name": "NCCL_IB_HCA", "value": "=mlx5_0"}]}, {}),
    "config-files": ("/etc/nccl.conf", {"volumeMounts": [_MOUNTED]}, {}),
    "shared-memory": ("/dev/shm", {"volumeMounts": [_SHARED_MEMORY]}, {}),
}


def with_status(*mutations: str) -> Document:
    """Return the annotations of a pod on which these mutations were applied."""
    applied = json.dumps(mutations, separators=(",", ":"))
    head = '{"rdma":"yes","because":"Equipped","fabric":"v100-ib","applied":'
    return {ENABLE: "true", "rdma.lab/status": f'{head}{applied},"config":"0123456789ab"}}'}


@pytest.mark.parametrize("mutation", TRACES)
def test_the_detector_looks_for_the_patch(cluster: Cluster, deaf: Deaf, mutation: str) -> None:
    """A status is believed as far as the pod shows what it names: here nothing, then all."""
    deaf("Ignore")
    name, container, annotations = TRACES[mutation]
    bare = pod("policies-on", with_status(mutation))
    answer = ask(cluster, bare)
    assert answer.created
    assert answer.detector == [
        (
            f"rdma.lab/status says that rdma-webhook added {name}, but this is missing from the "
            "pod: another webhook or a policy removed it, or the status was copied from another pod"
        )
    ]
    changed = pod("policies-on", {**with_status(mutation), **annotations})
    changed["spec"]["containers"][0].update(container)
    changed["spec"]["resourceClaims"] = [{"name": "nic", "resourceClaimName": "nic"}]
    changed["spec"]["volumes"] = [
        {"name": mount["name"], "emptyDir": {}} for mount in (_MOUNTED, _SHARED_MEMORY)
    ]
    answer = ask(cluster, changed)
    assert (answer.refusal, answer.detector) == ("", [])


@pytest.mark.parametrize(
    "name", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "amd.com/gpu"]
)
def test_a_gpu_is_no_trace_of_an_rdma_resource(cluster: Cluster, deaf: Deaf, name: str) -> None:
    """Nearly every pod with an RDMA resource has a GPU, too."""
    deaf("Ignore")
    bare = pod("policies-on", with_status("rdma-resources"))
    bare["spec"]["containers"][0]["resources"] = {"limits": {name: "1"}}
    (warning,) = ask(cluster, bare).detector
    assert "added the RDMA resource, but" in warning


def test_the_detector_names_all_that_is_missing(cluster: Cluster, deaf: Deaf) -> None:
    """A pod whose container is privileged, or in an init container, has the capability."""
    deaf("Ignore")
    (warning,) = ask(cluster, pod("policies-on", with_status("ipc-lock", "env"))).detector
    assert "added the capability IPC_LOCK, the variables, but" in warning
    privileged = pod("policies-on", with_status("ipc-lock"))
    privileged["spec"]["initContainers"] = [
        {"name": "first", "image": "example.com/none", "securityContext": {"privileged": True}}
    ]
    assert ask(cluster, privileged).detector == []
    raised = pod("policies-on", with_status("ipc-lock"))
    raised["metadata"]["annotations"]["ulimits.noderesource.dev/container.main"] = "- {}"
    assert ask(cluster, raised).detector == []


# The advice.

UNLABELED = (
    "annotation rdma.lab/enable does nothing here: namespace policies-plain has no label"
    ' rdma.lab/enable: "true"; ask a platform engineer to set it'
)


def test_correct_use_gets_no_advice(cluster: Cluster) -> None:
    """Pods and workloads that do not opt in, or do so correctly, get no advice."""
    asks = {
        ENABLE: "true",
        "rdma.lab/devices": "2",
        MEMORY_LIMIT_ANNOTATION: "keep",
        NVLINK_ANNOTATION: "share",
    }
    for space in LABELS:
        assert ask(cluster, pod(space)).advice == []
        assert ask(cluster, pod(space, {ENABLE: "false"})).advice == []
    for kind in WORKLOADS:
        for choice in (None, {ENABLE: "false"}, asks):
            assert ask(cluster, workload(kind, "policies-on", template(choice))).advice == []


def test_a_pod_in_an_unlabeled_namespace(cluster: Cluster) -> None:
    """The annotation alone does nothing; the pod's author gets advice about the missing label."""
    answer = ask(cluster, pod("policies-plain", {ENABLE: "true"}))
    assert (answer.created, answer.advice) == (True, [UNLABELED])


@each_kind
def test_a_workload_in_an_unlabeled_namespace(cluster: Cluster, kind: str) -> None:
    """The same holds for every kind of workload, whose pods' warnings reach only a controller."""
    answer = ask(cluster, workload(kind, "policies-plain", template({ENABLE: "true"})))
    assert (answer.created, answer.advice) == (True, [UNLABELED])


@pytest.mark.parametrize("space", ["policies-true", "policies-yes"])
def test_a_label_that_is_not_true(cluster: Cluster, space: str) -> None:
    """A namespace labeled `True` or `yes` counts as unlabeled, and the message explains it."""
    answer = ask(cluster, pod(space, {ENABLE: "true"}))
    assert answer.advice == [
        (
            f"annotation rdma.lab/enable does nothing here: namespace {space} has the label"
            f' rdma.lab/enable: "{LABELS[space]}", which must be "true"'
        )
    ]


MISSPELLED = (
    "rdma.lab/enabled",
    "rdma.lab/enalbe",
    "rdma.lab/Enable",
    "rdma-lab/enable",
    "rdma.lab.enable",
    "rdma_lab_enable",
    "rmda.lab/enable",
    "rdma.io/enable",
    "my-rdma.example/enabled",
)


@pytest.mark.parametrize("key", MISSPELLED)
def test_a_misspelled_annotation(cluster: Cluster, key: str) -> None:
    """Where pods may opt in, the author learns that this one does not; the pod is created."""
    message = f"annotation {key} does not request RDMA: did you mean {ENABLE}?"
    other = {"app.kubernetes.io/managed-by": "me", key: "true"}
    answer = ask(cluster, pod("policies-on", other))
    assert (answer.created, answer.advice) == (True, [message])
    assert ask(cluster, workload("Deployment", "policies-on", template(other))).advice == [message]
    for space in ("policies-plain", "policies-yes"):
        assert ask(cluster, pod(space, other)).advice == []
    assert ask(cluster, pod("policies-on", {key: "false"})).advice == []
    assert ask(cluster, pod("policies-on", {key: "true", ENABLE: "false"})).advice == []


@pytest.mark.parametrize(
    "key",
    [
        "rdma.lab/devices",
        "rdma.ome.io/auto-inject",
        "example.com/rdma-enabled",
        "example.com/enable",
        "rdma.io/enable-all",
        "istio.io/rdma.enable",
    ],
)
def test_another_annotation_is_no_misspelling(cluster: Cluster, key: str) -> None:
    """Those of this and of other projects, whose meaning the policy does not know."""
    assert ask(cluster, pod("policies-on", {key: "true"})).advice == []


def test_a_pod_with_many_annotations_is_not_searched(cluster: Cluster) -> None:
    """More than a hundred would delay it, and the API server accepts thousands of them."""
    message = f"annotation {MISSPELLED[0]} does not request RDMA: did you mean {ENABLE}?"
    hundred = {f"example.com/{number}": "" for number in range(99)} | {MISSPELLED[0]: "true"}
    assert ask(cluster, pod("policies-on", hundred)).advice == [message]
    answer = ask(cluster, pod("policies-on", {**hundred, "example.com/more": ""}))
    assert (answer.created, answer.advice) == (True, [])


@pytest.mark.parametrize("value", ["True", "yes", "1", ""])
def test_labeling_a_namespace_wrongly(cluster: Cluster, value: str) -> None:
    """A user who sets another value gets advice at once; "true" and "false" are fine."""
    answer = ask(cluster, namespace("policies-new", value))
    assert answer.advice == [
        f'label rdma.lab/enable: "{value}" on a namespace does nothing: it must be "true"'
    ]
    for valid in ("true", "false", None):
        assert ask(cluster, namespace("policies-new", valid)).advice == []


def test_annotating_a_namespace(cluster: Cluster) -> None:
    """On a namespace, opting in is a label, not an annotation."""
    document = namespace("policies-new", "true")
    document["metadata"]["annotations"] = {ENABLE: "true"}
    assert ask(cluster, document).advice == [
        "rdma.lab/enable is a label on a namespace, not an annotation; this does nothing"
    ]


def test_the_label_on_a_pod(cluster: Cluster) -> None:
    """The label `rdma.lab/enable` belongs on namespaces; on a pod it does nothing."""
    answer = ask(cluster, pod("policies-on", labels={ENABLE: "true"}))
    assert answer.advice == [
        (
            "rdma.lab/enable is an annotation on pods, not a label: as a label of this pod it does"
            " nothing"
        )
    ]
    opted_out = pod("policies-plain", {ENABLE: "false"}, labels={ENABLE: "true"})
    assert ask(cluster, opted_out).advice == []


@each_kind
def test_the_label_on_a_template(cluster: Cluster, kind: str) -> None:
    """In a template, the label does nothing either."""
    document = workload(kind, "policies-on", template(labels={ENABLE: "true"}))
    assert ask(cluster, document).advice == [
        (
            "rdma.lab/enable is an annotation on pods, not a label: as a label of this"
            f" {kind}'s template it does nothing"
        )
    ]


@each_kind
def test_the_annotation_on_the_workload_itself(cluster: Cluster, kind: str) -> None:
    """The annotation belongs in the template; if it is there too, there is no advice."""
    metadata = {"annotations": {ENABLE: "true"}}
    assert ask(cluster, workload(kind, "policies-on", template(), **metadata)).advice == [
        (
            f"annotation rdma.lab/enable on the {kind} itself does nothing: set it as an"
            " annotation in the pod template's metadata instead"
        )
    ]
    right = workload(kind, "policies-on", template({ENABLE: "true"}), **metadata)
    assert ask(cluster, right).advice == []


@each_kind
def test_the_label_on_the_workload_itself(cluster: Cluster, kind: str) -> None:
    """A label on the workload makes two mistakes, and the advice names both."""
    document = workload(kind, "policies-on", template(), labels={ENABLE: "true"})
    assert ask(cluster, document).advice == [
        (
            f"label rdma.lab/enable on the {kind} does nothing: set it as an annotation in the"
            " pod template's metadata instead"
        )
    ]


@each_kind
@pytest.mark.parametrize("value", ["True", "yes", ""])
def test_a_value_that_will_be_denied(cluster: Cluster, kind: str, value: str) -> None:
    """A template whose pods the webhook would deny gets advice now, not in controllers' events."""
    answer = ask(cluster, workload(kind, "policies-on", template({ENABLE: value})))
    assert answer.created
    assert answer.advice == [
        (
            f'annotation rdma.lab/enable: "{value}" makes the webhook deny the pod: it must be '
            '"true" or "false"'
        )
    ]


@pytest.mark.parametrize("key", ["rdma.lab/devices", MEMORY_LIMIT_ANNOTATION, NVLINK_ANNOTATION])
@pytest.mark.parametrize(
    "value", ["0", "4", " 4 ", "-1", "1.5", "two", "12345", "", "drop", "keep", "Keep", "share"]
)
def test_advice_and_webhook_agree_on_values(cluster: Cluster, key: str, value: str) -> None:
    """There is advice about a value exactly if the webhook would deny it."""
    annotations = {ENABLE: "true", key: value}
    try:
        assert opted_in(annotations)
        names = frozenset(mutation.name for mutation in MUTATIONS)
        denied = bool(parse_annotations(annotations, names).problems)
    except Denial:
        denied = True
    answer = ask(cluster, workload("Job", "policies-on", template(annotations)))
    assert bool(answer.advice) is denied, answer.refusal


def test_annotating_a_pod_that_runs(cluster: Cluster) -> None:
    """An annotation on an existing pod comes too late, and kubectl shows a warning."""
    before = pod("policies-on", name="running")
    before["spec"]["nodeName"] = "nobody"  # it is never scheduled or run
    cluster.kubectl("create", "--filename=-", input=json.dumps(before))
    printed = cluster.kubectl(
        *("annotate", "--namespace=policies-on", "--dry-run=server", "pod/running"),
        *(f"{ENABLE}=true",),
        check=False,
    )
    assert policy_messages(printed, "advice") == [
        (
            "annotation rdma.lab/enable on an existing pod does nothing: delete the pod and create "
            "it again with the annotation"
        )
    ]
    other = cluster.kubectl(
        *("annotate", "--namespace=policies-on", "--dry-run=server", "pod/running", "other=x"),
        check=False,
    )
    assert policy_messages(other, "advice") == []


def test_pods_of_controllers_are_passed_over(cluster: Cluster) -> None:
    """Controllers read no warnings, so their pods cost no more than one condition."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}
    owned = pod("policies-plain", {ENABLE: "true"}, ownerReferences=[owner])
    assert ask(cluster, owned).advice == []
    owner["controller"] = False
    assert ask(cluster, owned).advice == [UNLABELED]


# RBAC, before the guard is tested with more rights.


def test_the_account_may_do_what_it_needs_and_no_more(cluster: Cluster) -> None:
    """The API server's answers match what the ServiceAccount should be granted."""
    cases = {
        ("get", CONFIGURATION): True,
        ("patch", CONFIGURATION): True,
        ("get", VALIDATION): True,
        ("patch", VALIDATION): True,
        ("watch", CONFIGURATION): True,
        ("watch", VALIDATION): True,
        ("watch", "secret/rdma-webhook-ca"): True,
        ("update", VALIDATION): False,
        ("patch", "validatingwebhookconfiguration/other"): False,
        ("update", CONFIGURATION): False,
        ("delete", CONFIGURATION): False,
        ("patch", "mutatingwebhookconfiguration/other"): False,
        ("list", "mutatingwebhookconfigurations"): False,
        ("create", "mutatingwebhookconfigurations"): False,
        ("create", "secrets"): True,
        ("get", "secret/rdma-webhook-ca"): True,
        ("get", "secret/other"): False,
        ("list", "secrets"): False,
        ("delete", "secret/rdma-webhook-ca"): False,
        ("list", "fabricconfigurations.rdma.lab"): True,
        ("watch", "fabricconfigurations.rdma.lab"): True,
        ("update", "fabricconfigurations.rdma.lab"): False,
        ("list", "resourceclaims.resource.k8s.io"): True,
        ("watch", "resourceclaims.resource.k8s.io"): True,
        ("get", "resourceclaims.resource.k8s.io"): False,
        ("create", "resourceclaims.resource.k8s.io"): False,
        ("watch", "resourceclaimtemplates.resource.k8s.io"): True,
        ("create", "resourceclaimtemplates.resource.k8s.io"): False,
        ("list", "nodes"): True,
        ("watch", "nodes"): True,
        ("get", "nodes"): False,
        ("get", "pods"): False,
        ("get", "services/proxy"): False,
    }
    actual = {case: may(cluster, ACCOUNT, *case) for case in cases}
    assert actual == cases


def test_secrets_of_others_are_out_of_reach(cluster: Cluster) -> None:
    """The right to create Secrets, which cannot be limited by name, holds only in our namespace."""
    for verb in ("create", "get"):
        assert not may(cluster, ACCOUNT, verb, "secret/rdma-webhook-ca", "kube-system")


def may(cluster: Cluster, user: str, verb: str, target: str, space: str = "rdma-webhook") -> bool:
    """Ask the API server whether a user has a permission; the kind need not exist.

    `target`: RESOURCE or RESOURCE.GROUP, and /NAME for one object.
    """
    resource, _, name = target.partition("/")
    resource, _, group = resource.partition(".")
    group = group or ("admissionregistration.k8s.io" if "configuration" in resource else "")
    kind = f"{resource.rstrip('s')}s{f'.{group}' if group else ''}"
    cluster_scoped = resource == "nodes" or "configuration" in resource
    return is_allowed(cluster, user, verb, kind, space="" if cluster_scoped else space, name=name)


# The guard.


@pytest.fixture(scope="module")
def validation(cluster: Cluster, shipped: Installation) -> Iterator[None]:
    """Install the ValidatingWebhookConfiguration, if no installation has done so."""
    installed = cluster.kubectl("get", VALIDATION, "--ignore-not-found", "--output=name")
    if not installed:
        apply(cluster, shipped["ValidatingWebhookConfiguration", "rdma-webhook"])
    yield
    if not installed:
        cluster.kubectl("delete", VALIDATION)


@pytest.fixture(scope="module")
def mighty(cluster: Cluster, deaf: Deaf, validation: None) -> Iterator[Cluster]:
    """Grant our ServiceAccount everything by RBAC, so that only the guard can reject a request."""
    assert validation is None
    deaf("Ignore")
    accounts = ("rdma-webhook:rdma-webhook", "elsewhere:rdma-webhook")
    role = ("--clusterrole=cluster-admin", *(f"--serviceaccount={account}" for account in accounts))
    cluster.kubectl("create", "clusterrolebinding", "policies-mighty", *role)
    for account in accounts:
        wait_for_right(cluster, service_account(*account.split(":")), "delete", "secrets")
    yield cluster
    cluster.kubectl("delete", "clusterrolebinding", "policies-mighty")


FORBIDDEN = "rdma-webhook may change only caBundle of its own two webhook configurations"
BUNDLE = "Y2VydGlmaWNhdGU="


def patch(cluster: Cluster, kind: str, operations: object, token: str = "") -> str:
    """Dry-run a patch of a webhook configuration as our ServiceAccount; return the rejection."""
    identity = {"token": token} if token else {"user": ACCOUNT}
    path = f"{GUARDED[kind]}?dryRun=All&fieldManager=rdma-webhook"
    content_type = "application/json-patch+json"
    return send(cluster, "PATCH", path, operations, content_type, **identity).refusal


@each_guarded
def test_the_account_may_publish_the_ca(mighty: Cluster, shipped: Installation, kind: str) -> None:
    """It may change `caBundle`, by server-side apply of that field like `serve`, or by a patch."""
    name = GUARDED[kind].rpartition("/")[2]
    (shipped_hook,) = shipped[f"{kind.capitalize()}WebhookConfiguration", name]["webhooks"]
    document = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind.capitalize()}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{"name": shipped_hook["name"], "clientConfig": {"caBundle": BUNDLE}}],
    }
    applied = mighty.kubectl(
        *("apply", "--server-side", "--force-conflicts", "--field-manager=rdma-webhook"),
        *(f"--as={ACCOUNT}", "--dry-run=server", "--output=json", "--filename=-"),
        input=json.dumps(document),
    )
    (hook,) = json.loads(applied)["webhooks"]
    assert hook["clientConfig"]["caBundle"] == BUNDLE
    path = shipped_hook["clientConfig"]["service"]["path"]
    assert hook["clientConfig"]["service"]["path"] == path
    add = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": BUNDLE}]
    assert not patch(mighty, kind, add)


SECOND = {
    "name": "second.rdma.lab",
    "clientConfig": {"url": "https://example.com/"},
    "sideEffects": "NoneOnDryRun",
    "admissionReviewVersions": ["v1"],
}
#: A change of every field of a webhook, and of the metadata that users may set.
CHANGES: dict[str, list[Document]] = {
    "name": [{"op": "replace", "path": "/webhooks/0/name", "value": "other.rdma.lab"}],
    "clientConfig.service": [
        {"op": "replace", "path": "/webhooks/0/clientConfig/service/name", "value": "thief"}
    ],
    "clientConfig.url": [
        {"op": "replace", "path": "/webhooks/0/clientConfig", "value": SECOND["clientConfig"]}
    ],
    "rules": [{"op": "add", "path": "/webhooks/0/rules/0/resources/-", "value": "secrets"}],
    "failurePolicy": [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}],
    "matchPolicy": [{"op": "replace", "path": "/webhooks/0/matchPolicy", "value": "Exact"}],
    "namespaceSelector": [{"op": "remove", "path": "/webhooks/0/namespaceSelector/matchLabels"}],
    "objectSelector": [
        {"op": "add", "path": "/webhooks/0/objectSelector", "value": {"matchLabels": {"a": "b"}}}
    ],
    "sideEffects": [{"op": "replace", "path": "/webhooks/0/sideEffects", "value": "None"}],
    "timeoutSeconds": [{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 30}],
    "admissionReviewVersions": [
        {"op": "add", "path": "/webhooks/0/admissionReviewVersions/-", "value": "v1beta1"}
    ],
    "matchConditions": [{"op": "remove", "path": "/webhooks/0/matchConditions/0"}],
    "reinvocationPolicy": [
        {"op": "replace", "path": "/webhooks/0/reinvocationPolicy", "value": "Never"}
    ],
    "one more": [{"op": "add", "path": "/webhooks/-", "value": SECOND}],
    "one less": [{"op": "remove", "path": "/webhooks/0"}],
    "labels": [{"op": "add", "path": "/metadata/labels/new", "value": "x"}],
    "annotations": [{"op": "add", "path": "/metadata/annotations/new", "value": "x"}],
    "finalizers": [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/x"]}],
    "ownerReferences": [
        {
            "op": "add",
            "path": "/metadata/ownerReferences",
            "value": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}],
        }
    ],
}


#: The same for the validating configuration, where it differs: other values, missing fields.
VALIDATING_CHANGES: dict[str, list[Document]] = {
    "failurePolicy": [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}],
    "namespaceSelector": [
        {"op": "add", "path": "/webhooks/0/namespaceSelector", "value": {"matchLabels": {"a": "b"}}}
    ],
    "sideEffects": [{"op": "replace", "path": "/webhooks/0/sideEffects", "value": "NoneOnDryRun"}],
    "matchConditions": [
        {
            "op": "add",
            "path": "/webhooks/0/matchConditions",
            "value": [{"name": "never", "expression": "false"}],
        }
    ],
    "reinvocationPolicy": [],
}


@each_guarded
@pytest.mark.parametrize("field", CHANGES)
def test_the_account_may_change_nothing_else(mighty: Cluster, field: str, kind: str) -> None:
    """The guard denies every other change, with `caBundle` or without."""
    changes = (
        CHANGES[field] if kind == "mutating" else VALIDATING_CHANGES.get(field, CHANGES[field])
    )
    if not changes:
        return  # it has no such field
    bundle = {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": BUNDLE}
    assert FORBIDDEN in patch(mighty, kind, changes)
    if field != "one less":
        assert FORBIDDEN in patch(mighty, kind, [bundle, *changes])


def test_the_account_may_not_make_or_remove_configurations(mighty: Cluster) -> None:
    """It may not delete our configurations, create one, or write another."""
    options = (f"--as={ACCOUNT}", "--dry-run=server")
    for ours in (CONFIGURATION, VALIDATION):
        assert FORBIDDEN in mighty.kubectl("delete", ours, *options, check=False)
    other = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "aa-other"},
        "webhooks": [SECOND],
    }
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        text = json.dumps({**other, "kind": kind})
        assert FORBIDDEN in mighty.kubectl(
            "create", *options, "--filename=-", input=text, check=False
        )


@pytest.fixture(scope="module")
def stolen(mighty: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Install account and policies in another namespace, by `namespace:` alone; steal a token.

    This is how Argo CD (kustomize.namespace) and Flux (targetNamespace) do it.
    """
    folder = with_namespace("overlays/self-managed", tmp_path_factory.mktemp("elsewhere"))
    rendered = list(yaml.safe_load_all(mighty.kubectl("kustomize", str(folder))))
    kinds = ("Namespace", "ServiceAccount", "Policy", "PolicyBinding")
    apply(mighty, *(document for document in rendered if document["kind"].endswith(kinds)))
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = "/api/v1/namespaces/elsewhere/serviceaccounts/rdma-webhook/token"
    yield str(send(mighty, "POST", path, request).object["status"]["token"])
    mighty.kubectl("delete", "namespace", "elsewhere", "--wait=false")


@each_guarded
def test_another_namespace_keeps_the_guard(mighty: Cluster, stolen: str, kind: str) -> None:
    """If a site installs us in another namespace, the guard applies to our account there."""
    assert FORBIDDEN in patch(mighty, kind, CHANGES["rules"], stolen)
    add = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": BUNDLE}]
    assert not patch(mighty, kind, add, stolen)


def test_another_namespace_keeps_the_guard_of_secrets(mighty: Cluster, stolen: str) -> None:
    """There the account may write its Secret, and none in the namespace of another installation."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "rdma-webhook-ca"}}
    message = "rdma-webhook may write only the Secret rdma-webhook-ca in its namespace"
    for space, refused in (("elsewhere", False), ("default", True)):
        path = f"/api/v1/namespaces/{space}/secrets?dryRun=All"
        response = send(mighty, "POST", path, {**secret, "type": "Opaque"}, token=stolen)
        assert (message in response.refusal) == refused, response.refusal


def test_the_account_may_write_no_event_by_the_core_api(mighty: Cluster) -> None:
    """The core API restricts events less; whatever RBAC grants, it may change or delete none."""
    message = "rdma-webhook may create Events only about the FabricConfiguration"
    place = {
        "apiVersion": "rdma.lab/v1alpha1",
        "kind": "FabricConfiguration",
        "name": "default",
    }
    event = {
        "metadata": {"name": "default.f55", "namespace": "default"},
        "eventTime": "2026-11-21T12:00:00.000005Z",
        "type": "Warning",
        "reason": "NotUsable",
        "action": "Check",
        "reportingInstance": "probe",
    }
    old = {**event, "involvedObject": place, "reportingComponent": "rdma.lab/webhook"}
    new = {**event, "regarding": place, "reportingController": "rdma.lab/webhook"}
    path, dry_run = "/api/v1/namespaces/default/events", "?dryRun=All"
    identity = {"user": ACCOUNT, "pod": "probe"}
    assert message in send(mighty, "POST", f"{path}{dry_run}", old, **identity).refusal
    elsewhere = path.replace("/api/v1", "/apis/events.k8s.io/v1")
    assert not send(mighty, "POST", f"{elsewhere}{dry_run}", new, **identity).refusal
    assert not send(mighty, "POST", path, old).refusal
    stored = f"{path}/default.f55"
    assert message in send(mighty, "DELETE", f"{stored}{dry_run}", user=ACCOUNT).refusal
    send(mighty, "DELETE", stored)


def test_the_account_may_write_no_other_secret(mighty: Cluster) -> None:
    """Whatever RBAC grants, it may not write other Secrets or other namespaces, or delete any."""
    message = "rdma-webhook may write only the Secret rdma-webhook-ca in its namespace"
    for space, name in (("default", "rdma-webhook-ca"), ("rdma-webhook", "other")):
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        path = f"/api/v1/namespaces/{space}/secrets?dryRun=All"
        assert message in send(mighty, "POST", path, secret, user=ACCOUNT).refusal
    mighty.kubectl("create", "secret", "generic", "--namespace=default", "policies-kept")
    try:
        path = "/api/v1/namespaces/default/secrets/policies-kept?dryRun=All"
        assert message in send(mighty, "DELETE", path, user=ACCOUNT).refusal
    finally:
        mighty.kubectl("delete", "secret", "--namespace=default", "policies-kept")


def test_the_guard_applies_to_nobody_else(mighty: Cluster) -> None:
    """An administrator may change what the account may not."""
    printed = mighty.kubectl(
        *("patch", CONFIGURATION, "--dry-run=server", "--type=json"),
        f"--patch={json.dumps(CHANGES['timeoutSeconds'])}",
    )
    assert "patched" in printed


def test_the_guard_knows_every_field(cluster: Cluster, shipped: Installation) -> None:
    """If a later Kubernetes adds a field to webhooks, this fails until the guard compares it."""
    raw = cluster.kubectl("get", "--raw", "/openapi/v3/apis/admissionregistration.k8s.io/v1")
    schemas = json.loads(raw)["components"]["schemas"]
    prefix = "io.k8s.api.admissionregistration.v1."
    fields = {
        field
        for kind in ("MutatingWebhook", "ValidatingWebhook")
        for field in schemas[prefix + kind]["properties"]
    } - {"clientConfig"}
    client = set(schemas[f"{prefix}WebhookClientConfig"]["properties"]) - {"caBundle"}
    fields |= {f"clientConfig.{name}" for name in client}
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        assert set(schemas[prefix + kind]["properties"]) == {
            *("apiVersion", "kind", "metadata", "webhooks")
        }
    assert fields <= set(CHANGES)
    guard = shipped["ValidatingAdmissionPolicy", "rdma-webhook-guard"]
    expression = guard["spec"]["variables"][0]["expression"]
    missing = {
        field for field in fields - {"name"} if f"w.?{field.replace('.', '.?')}" not in expression
    }
    assert missing == set()
