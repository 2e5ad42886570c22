"""The evidence from a cluster, with all rights and with few."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import V100, fabrics
from tests.unit.diagnose.why.pods import (
    CONFIG,
    CREATED,
    LATER,
    OWNED,
    configuration,
    event,
    job,
    namespace,
    pod_in_cluster,
    pod_without_call,
    status,
)
from webhook.diagnose.tools.known_lines import TRANSPORTS
from webhook.diagnose.why.collector import (
    HEAD,
    CollectOptions,
    Collector,
    NoPodError,
)
from webhook.diagnose.why.evidence import (
    ContainerProcesses,
    MissingClaim,
    PodEvidence,
    RdmaProcess,
    UnfinishedPod,
    UnmountableClaim,
)
from webhook.diagnose.why.process_reads import PROCESS_SCRIPT
from webhook.errors import ClusterError
from webhook.kube.api import Query, StatusError
from webhook.kube.objects import KubernetesObject, PodRecord
from webhook.kube.watched_resources import CONFIGURATION_PATH
from webhook.model.claims import ClaimFacts
from webhook.model.fabric import ClaimTemplateReference

LAB = "/api/v1/namespaces/lab"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class FakeCluster:
    """A cluster that answers with these objects or status codes, and records requests.

    All other paths are 404. The integration tests and tests/e2e have an API server over HTTP.
    """

    def __init__(self, answers: dict[str, Any], output: Any = "hidden 0", log: Any = "") -> None:
        self.answers = answers
        self.asked: list[tuple[str, Query]] = []
        self.ran: list[tuple[str, str, str]] = []
        self._output, self._log = output, log

    def get(self, path: str, query: Query) -> dict[str, Any]:
        """Return an object."""
        self.asked.append((path, query))
        answer = self.answers.get(path, 404)
        if callable(answer):
            answer = answer(query)
        if isinstance(answer, int):
            raise StatusError(answer, "no")
        if isinstance(answer, ClusterError):
            raise answer
        return dict(answer)

    def log(self, path: str, query: Query, limit: int) -> str:
        """Return a log."""
        self.asked.append((path, query))
        assert limit == HEAD
        log = self._log(query) if callable(self._log) else self._log
        if isinstance(log, ClusterError):
            raise log
        return str(log)

    def run(self, namespace: str, pod: str, container: str, command: list[str]) -> str:
        """Return the output of the command."""
        self.ran.append((namespace, pod, container))
        assert command == ["/bin/sh", "-c", PROCESS_SCRIPT]
        if isinstance(self._output, ClusterError):
            raise self._output
        return str(self._output)


def listed(*items: Any, next_page: str = "") -> dict[str, Any]:
    """Return a page of a list as the API returns it: without the kinds of its items."""
    bare = [{key: manifest[key] for key in manifest if key != "kind"} for manifest in items]
    return {"metadata": {"resourceVersion": "1", "continue": next_page}, "items": bare}


BATCH = {
    "resources": [
        {"name": "jobs/status", "kind": "Job", "namespaced": True},
        {"name": "jobs", "kind": "Job", "namespaced": True},
    ]
}


def everything(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the answers to a reader with all rights."""
    return {
        f"{LAB}/pods/train-0": {key: pod[key] for key in pod if key != "kind"},
        LAB: namespace(),
        "/apis/batch/v1": BATCH,
        "/apis/batch/v1/namespaces/lab/jobs/train": job(),
        HOOKS: listed(configuration()),
        f"{LAB}/events": lambda query: listed(
            *(
                candidate
                for candidate in (event("A", "of pod"), event("B", "of job", "Job", "train"))
                if query["fieldSelector"].endswith(f".name={candidate['involvedObject']['name']}")
            )
        ),
        "/api/v1/nodes": listed(
            {"metadata": {"name": "n", "labels": {"a": "b"}, "uid": "u"}, "status": {"x": 1}}
        ),
    }


def collect(api: FakeCluster, **options: Any) -> PodEvidence:
    """Collect the evidence about the pod."""
    return Collector(api, api, CollectOptions(**options)).collect("lab", "train-0")


def test_with_all_rights() -> None:
    """Namespace, webhooks, owner and events are read, and nothing is missing."""
    pod = pod_without_call(metadata=OWNED)
    evidence = collect(FakeCluster(everything(pod)))
    assert evidence.unread_sentences == ()
    assert evidence.pod == PodRecord.read(pod)
    assert evidence.namespace == KubernetesObject.read(namespace())
    assert [owner.kind for owner in evidence.owners] == ["Job"]
    assert evidence.registrations is not None
    assert [registration.webhook_configuration_name for registration in evidence.registrations] == [
        "zz-rdma-webhook"
    ]
    assert evidence.events is not None
    assert [event.reason for event in evidence.events] == ["A", "B"]
    assert (evidence.nodes, evidence.processes, evidence.logs) == (None, None, None)


def test_with_the_right_to_read_pods_only() -> None:
    """Each unreadable object has a sentence."""
    pod = pod_without_call(metadata=OWNED, phase="Pending")
    api = FakeCluster(dict.fromkeys(everything(pod), 403) | {f"{LAB}/pods/train-0": pod})
    evidence = collect(api, logs=True)
    assert evidence.unread_sentences == (
        "You do not have the right to read the kinds of batch/v1.",
        "You do not have the right to read namespace lab.",
        "You do not have the right to read mutatingwebhookconfigurations.",
        "You do not have the right to read the events of Pod train-0.",
        "You do not have the right to read nodes.",
    )
    assert (evidence.namespace, evidence.registrations, evidence.events, evidence.nodes) == (
        None,
    ) * 4
    assert evidence.owners == ()


def test_only_what_is_needed() -> None:
    """For a running pod that is as its status says, neither webhooks nor nodes are read."""
    api = FakeCluster(everything(pod_in_cluster()))
    assert collect(api).unread_sentences == ()
    paths = [f"{LAB}/pods/train-0", LAB, f"{LAB}/events", CONFIGURATION_PATH]
    assert [path for path, _ in api.asked] == paths


CHANGED = status(applied=["ipc-lock", "env"])
SPEC = {"containers": [{"name": "main", "env": [{"name": "NCCL_IB_HCA", "value": "=mlx5_0"}]}]}
POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"


def test_what_may_have_changed_the_pod() -> None:
    """The webhooks and policies are read if the pod is not as its status says."""
    later = configuration()
    later["metadata"]["name"] = "zzz-later"
    later["webhooks"] = [{"name": "mesh.example", "rules": [CREATION], "matchConditions": []}]
    policy = {
        "metadata": {"name": "drop"},
        "spec": {
            "matchConstraints": {"resourceRules": [CREATION]},
            "reinvocationPolicy": "IfNeeded",
        },
    }
    answers = everything(pod_in_cluster(CHANGED, spec=SPEC)) | {
        HOOKS: listed(configuration(), later)
    }
    evidence = collect(FakeCluster(answers))
    assert evidence.later_mutators == ("webhook mesh.example of zzz-later",)
    evidence = collect(FakeCluster(answers | {POLICIES: listed(policy)}))
    assert evidence.later_mutators is not None
    assert evidence.later_mutators[1:] == ("MutatingAdmissionPolicy drop",)
    assert evidence.unread_sentences == ()


def test_the_runtime_class_may_have_changed_the_pod() -> None:
    """The API server merges its scheduling into the pod's; without any, it adds nothing."""
    answers = everything(pod_in_cluster(CHANGED, spec={**SPEC, "runtimeClassName": "kata"}))
    path = "/apis/node.k8s.io/v1/runtimeclasses/kata"
    selecting = {"scheduling": {"nodeSelector": {"a": "b"}}}
    for answer, title in (
        (selecting, "RuntimeClass kata (scheduling.nodeSelector)"),
        ({"scheduling": {"tolerations": []}}, ""),
    ):
        evidence = collect(FakeCluster(answers | {path: answer}))
        assert (evidence.runtime_class, evidence.other_mutators) == (title, ())
    assert collect(FakeCluster(everything(pod_in_cluster(CHANGED)))).runtime_class == ""
    missing = collect(FakeCluster(answers | {path: 404}))
    assert missing.unread_sentences == ("Could not read RuntimeClass kata: not found.",)


def test_what_may_have_changed_the_pod_may_not_be_read() -> None:
    """Each missing right has a sentence, but no sentence is about a kind that does not exist."""
    answers = everything(pod_in_cluster(CHANGED, spec=SPEC)) | {HOOKS: 403, CONFIGURATION_PATH: 403}
    evidence = collect(FakeCluster(answers))
    assert evidence.later_mutators is None
    assert evidence.unread_sentences == (
        "You do not have the right to read fabricconfigurations.rdma.lab/default.",
        "You do not have the right to read mutatingwebhookconfigurations.",
    )
    evidence = collect(FakeCluster(answers | {HOOKS: listed(), POLICIES: 403, LAB: 403}))
    assert evidence.later_mutators == ()
    assert evidence.unread_sentences[-1] == (
        "You do not have the right to read mutatingadmissionpolicies."
    )


def test_the_configuration_of_the_admission() -> None:
    """The cluster's is read, unless the given one is that of the admission."""
    answers = everything(pod_in_cluster()) | {CONFIGURATION_PATH: FABRICS_OBJECT}
    evidence = collect(FakeCluster(answers))
    assert evidence.cluster_configuration is not None
    assert list(evidence.cluster_configuration.fabrics) == ["v100-ib"]
    given = fabrics(V100)
    of_given = pod_in_cluster(status())
    of_given["metadata"]["annotations"]["rdma.lab/status"] = of_given["metadata"]["annotations"][
        "rdma.lab/status"
    ].replace(CONFIG, given.config_hash)
    api = FakeCluster(everything(of_given) | {CONFIGURATION_PATH: FABRICS_OBJECT})
    assert collect(api, configuration=given).cluster_configuration is None
    broken = answers | {CONFIGURATION_PATH: {**FABRICS_OBJECT, "spec": {"fabrics": "x"}}}
    assert collect(FakeCluster(broken)).cluster_configuration is None


CREATION = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
}
FABRICS_OBJECT: dict[str, Any] = {
    "apiVersion": "rdma.lab/v1alpha1",
    "kind": "FabricConfiguration",
    "metadata": {"name": "default"},
    "spec": {
        "fabrics": [
            {
                "name": "v100-ib",
                "match": {"gpuResources": ["nvidia.com/v100"]},
                "mode": "shared-device",
                "resources": [{"name": "rdma/rdma_v100"}],
                "linkLayer": "InfiniBand",
                "hcas": ["mlx5_0"],
            }
        ]
    },
}


def test_for_what_would_be_decided() -> None:
    """With a fabrics file, all facts for a decision are read, as for a preview."""
    answers = everything(pod_in_cluster()) | {
        "/api/v1/nodes/node-1": {"metadata": {"name": "node-1"}},
        f"{LAB}/limitranges": listed(),
        f"{LAB}/resourcequotas": listed(
            {"metadata": {"name": "q", "namespace": "lab"}, "spec": {"hard": {"limits.memory": 1}}}
        ),
    }
    evidence = collect(FakeCluster(answers), configuration=fabrics(V100))
    assert evidence.unread_sentences == ()
    assert evidence.nodes is None
    assert list(evidence.facts.nodes) == ["n"]
    required = evidence.facts.namespace("lab").memory_limit_rejection
    assert required == "ResourceQuota q counts limits.memory"
    assert "node" not in str(evidence.facts.namespace("lab").claim_facts)


def test_claims_count_where_a_fabric_has_them() -> None:
    """The namespace's templates and claims are read; nodes once, however many pods."""
    resource = "/apis/resource.k8s.io/v1/namespaces/lab"
    template = {"metadata": {"name": "nics", "namespace": "lab"}, "spec": {"spec": {}}}
    answers = everything(pod_in_cluster(phase="Pending")) | {
        f"{resource}/resourceclaimtemplates": listed(template),
        f"{resource}/resourceclaims": listed(),
    }
    api = FakeCluster(answers)
    claimed = replace(V100, claim_templates=(ClaimTemplateReference(template="nics"),))
    collector = Collector(api, api, CollectOptions(configuration=fabrics(claimed)))
    first, second = (collector.collect("lab", "train-0") for _ in range(2))
    assert first.facts.namespace("lab").claim_facts == ClaimFacts(
        templates={"nics": {}}, has_all_templates=True
    )
    assert [path for path, _ in api.asked].count("/api/v1/nodes") == 1
    assert first.nodes == second.nodes != ()


def test_the_namespace_is_read_once() -> None:
    """This is a pod without a status, with a fabrics file."""
    api = FakeCluster(everything(pod_without_call()))
    evidence = collect(api, configuration=fabrics(V100))
    assert evidence.namespace == KubernetesObject.read({**namespace(), "kind": "Namespace"})
    assert [path for path, _ in api.asked].count(LAB) == 1


VARIABLES: dict[str, Any] = {
    "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "s"}}],
    "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "b", "key": "k"}}}],
}


def config_maps_read(api: FakeCluster) -> list[str]:
    """Return the names of the ConfigMaps and Secrets that were read."""
    paths = (path.removeprefix(f"{LAB}/") for path, _ in api.asked)
    return [path for path in paths if path.startswith(("configmaps", "secrets"))]


def test_config_maps_of_an_unsure_pod() -> None:
    """They are read once, and what may not be read has a sentence; Secrets are never read."""
    containers = [{"name": "main", **VARIABLES}, {"name": "more", **VARIABLES}]
    unsure = pod_in_cluster(status("unsure", "EnvUnseen"), spec={"containers": containers})
    metadata = {"name": "a", "namespace": "lab"}
    answers = everything(unsure) | {
        f"{LAB}/configmaps/a": {"metadata": metadata, "data": {"NCCL_NET": "IB"}},
        f"{LAB}/configmaps/b": 403,
    }
    api = FakeCluster(answers)
    evidence = collect(api)
    assert config_maps_read(api) == ["configmaps/b", "configmaps/a"]
    assert evidence.config_maps == {"a": {"NCCL_NET": "IB"}}
    assert evidence.unread_sentences == ("You do not have the right to read ConfigMap lab/b.",)
    sure = FakeCluster(everything(pod_in_cluster(spec={"containers": containers})))
    assert collect(sure).config_maps == {}
    assert config_maps_read(sure) == []


def test_config_maps_that_a_pod_mounts() -> None:
    """That of NCCL's file for an unsure pod, that of a script also for another, unless it is no."""
    mounts = [
        {"name": "c", "mountPath": "/etc/nccl.conf", "subPath": "x"},
        {"name": "s", "mountPath": "/scripts"},
    ]
    volumes = [{"name": name, "configMap": {"name": name}} for name in "cs"]
    for rdma, names in (("unsure", "cs"), ("yes", "s"), ("none", "s"), ("no", "")):
        mounted = mounts if rdma == "unsure" else mounts[1:]
        container = {"name": "main", "command": ["/scripts/a"], "volumeMounts": mounted}
        pod = pod_in_cluster(status(rdma), spec={"containers": [container], "volumes": volumes})
        late = {"name": "s", "namespace": "lab", "creationTimestamp": "2027-01-01T00:00:00Z"}
        api = FakeCluster(everything(pod) | {f"{LAB}/configmaps/s": {"metadata": late}})
        evidence = collect(api)
        assert config_maps_read(api) == [f"configmaps/{name}" for name in names]
        assert evidence.changed_config_maps == (
            {"s": "2027-01-01T00:00:00Z"} if "s" in names else {}
        )


def test_config_maps_for_what_would_be_decided() -> None:
    """Those of the template count, also if they were changed since the pod was created."""
    late = {"name": "a", "namespace": "lab", "creationTimestamp": "2027-01-01T00:00:00Z"}
    answers = everything(pod_in_cluster(metadata=OWNED)) | {
        "/apis/batch/v1/namespaces/lab/jobs/train": job(**VARIABLES),
        f"{LAB}/configmaps/a": {"metadata": late, "data": {"NCCL_NET": "IB"}},
    }
    evidence = collect(FakeCluster(answers), configuration=fabrics(V100))
    assert evidence.config_maps == {}
    assert evidence.facts.namespace("lab").config_maps == {"a": {"NCCL_NET": "IB"}}
    assert "Could not read ConfigMap lab/b: not found." in evidence.unread_sentences


def test_many_config_maps() -> None:
    """No more than a hundred are read."""
    sources = [{"configMapRef": {"name": f"c{number}"}} for number in range(101)]
    spec = {"containers": [{"name": "main", "envFrom": sources}]}
    api = FakeCluster(everything(pod_in_cluster(status("unsure", "EnvUnseen"), spec=spec)))
    collect(api)
    assert len(config_maps_read(api)) == 100


def test_an_amount_that_cannot_be_counted() -> None:
    """A kubelet may report 1e30, which the API server accepts: the pod is explained."""
    offered = {"rdma/x": "1", "nvidia.com/z": "1e30"}
    node = {"metadata": {"name": "node-1"}, "status": {"allocatable": offered}}
    answers = everything(pod_in_cluster(phase="Pending")) | {"/api/v1/nodes": listed(node)}
    (view,) = collect(FakeCluster(answers)).nodes or ()
    assert view.status.allocatable == offered
    answers = everything(pod_in_cluster(IN_DOUBT)) | {"/api/v1/nodes/node-1": node}
    facts = collect(FakeCluster(answers)).placement_nodes
    assert facts["node-1"].resources == {"rdma/x": 1}


def test_nodes_of_a_pending_pod() -> None:
    """Only the few fields of nodes that describe their resources are kept."""
    node = {"metadata": {"name": "n", "uid": "u"}, "status": {"allocatable": {"rdma/x": "1"}}}
    answers = everything(pod_in_cluster(phase="Pending")) | {"/api/v1/nodes": listed(node)}
    (view,) = collect(FakeCluster(answers)).nodes or ()
    assert view.model_dump() == {
        "metadata": {"name": "n"},
        "spec": {"unschedulable": False},
        "status": {"allocatable": {"rdma/x": "1"}, "conditions": ()},
    }


@pytest.mark.parametrize(
    ("node", "phase", "is_asked"),
    [("", "Pending", True), ("node-1", "Pending", False), ("", "Failed", False)],
)
def test_claims_of_a_pod_without_a_node(node: str, phase: str, is_asked: bool) -> None:
    """Claims by name are read; claims from a template, and unreadable claims, count as present.

    An API server without the version of the kind also answers 404, which proves nothing about a
    claim; nor does the name in an answer with another code.
    """
    names = ("mine", "ending", "there", "of-others", "of-another-version", "mine")
    claims = [{"name": f"claim-{name}", "resourceClaimName": name} for name in names]
    created = {"name": "made", "resourceClaimTemplateName": "nics"}
    pod = pod_in_cluster(phase=phase, spec={"nodeName": node, "resourceClaims": [*claims, created]})
    answers = {
        "mine": StatusError(404, 'resourceclaims.resource.k8s.io "mine" not found'),
        "ending": {"metadata": {"name": "ending", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        "there": {"metadata": {"name": "there"}},
        "of-others": StatusError(403, 'forbidden: RBAC: role "of-others" not found'),
        "of-another-version": StatusError(404, "the server could not find the requested resource"),
    }
    path = "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims"
    api = FakeCluster({**everything(pod), **{f"{path}/{key}": answers[key] for key in answers}})
    evidence = collect(api)
    paths = [asked_path for asked_path, _ in api.asked if asked_path.startswith(path)]
    missing = (MissingClaim("mine"), MissingClaim("ending", is_ending=True))
    assert evidence.missing_claims == (missing if is_asked else ())
    assert len(paths) == (5 if is_asked else 0)
    sentences = [sentence for sentence in evidence.unread_sentences if "ResourceClaim" in sentence]
    forbidden = ["You do not have the right to read ResourceClaim of-others."]
    assert sentences == (forbidden if is_asked else [])


def test_pages() -> None:
    """A list is read to its end."""

    def page(query: Query) -> dict[str, Any]:
        assert query["limit"] == "500"
        if "continue" in query:
            return listed({"metadata": {"name": "b"}})
        return listed({"metadata": {"name": "a"}}, next_page="more")

    answers = everything(pod_in_cluster(phase="Pending")) | {"/api/v1/nodes": page}
    evidence = collect(FakeCluster(answers))
    assert evidence.nodes is not None
    assert [node.metadata.name for node in evidence.nodes] == ["a", "b"]


def test_owners_of_owners() -> None:
    """The owner of the owner is read as well; a deleted owner ends the chain, with a sentence."""
    above = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "set"}
    owned = job()
    owned["metadata"]["ownerReferences"] = [{**above, "controller": True}]
    answers = everything(pod_in_cluster(metadata=OWNED)) | {
        "/apis/batch/v1/namespaces/lab/jobs/train": owned,
        "/apis/jobset.x-k8s.io/v1alpha2": {
            "resources": [{"name": "jobsets", "kind": "JobSet", "namespaced": True}]
        },
    }
    evidence = collect(FakeCluster(answers))
    assert [owner.kind for owner in evidence.owners] == ["Job"]
    assert evidence.unread_sentences == ("Could not read JobSet set: not found.",)
    answers["/apis/jobset.x-k8s.io/v1alpha2/namespaces/lab/jobsets/set"] = {
        "metadata": {"name": "set"}
    }
    assert [owner.kind for owner in collect(FakeCluster(answers)).owners] == ["Job", "JobSet"]


def test_events_in_order() -> None:
    """The newest is last, whatever the API server's order and the form of their times."""
    events = [
        event("C", "", lastTimestamp="2026-11-22T10:00:03Z"),
        event("A", "", lastTimestamp=None, eventTime="2026-11-22T10:00:01.5Z"),
        event("B", "", lastTimestamp=None, metadata={"creationTimestamp": "2026-11-22T10:00:02Z"}),
    ]
    evidence = collect(
        FakeCluster(everything(pod_in_cluster()) | {f"{LAB}/events": listed(*events)})
    )
    assert [event.reason for event in evidence.events or ()] == ["A", "B", "C"]


def test_events_of_an_earlier_object() -> None:
    """An Event about another pod with the same name, as of a StatefulSet, does not count."""
    involved = {"kind": "Pod", "name": "train-0"}
    events = [
        event("A", "", involvedObject={**involved, "uid": "earlier"}),
        event("B", "", involvedObject={**involved, "uid": "u"}),
        event("C", ""),
    ]
    evidence = collect(
        FakeCluster(everything(pod_in_cluster()) | {f"{LAB}/events": listed(*events)})
    )
    assert [event.reason for event in evidence.events or ()] == ["B", "C"]


def test_a_node_is_no_owner() -> None:
    """The mirror pod of a static pod is owned by its node, which has no template."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "controller": True}
    pod = pod_in_cluster(metadata={"ownerReferences": [owner]})
    answers = everything(pod) | {
        "/api/v1": {"resources": [{"name": "nodes", "kind": "Node", "namespaced": False}]}
    }
    evidence = collect(FakeCluster(answers))
    assert (evidence.owners, evidence.unread_sentences) == ((), ())


def test_a_pod_that_is_not_there() -> None:
    """The error has the command that lists pods."""
    with pytest.raises(NoPodError) as caught:
        collect(FakeCluster({}))
    assert str(caught.value) == (
        "there is no pod train-0 in namespace lab; to list the pods: kubectl get pods -n lab"
    )


def test_a_pod_that_could_not_be_created() -> None:
    """The error has the message of its controller's event."""
    failed = event("FailedCreate", "denied: no fabric", "Job", "train")
    other = event("FailedCreate", "another Job's", "Job", "other")
    with pytest.raises(NoPodError) as caught:
        collect(FakeCluster({f"{LAB}/events": listed(failed, other)}))
    assert str(caught.value) == (
        "there is no pod train-0 in namespace lab; Job train could not create a pod: denied: no "
        "fabric"
    )


def test_a_pod_that_was_stopped() -> None:
    """Its Events stay for an hour; the newest counts, and an eviction may be canceled."""
    evicted = event("TaintManagerEviction", "Marking for deletion Pod lab/train-0")
    canceled = event("TaintManagerEviction", "Cancelling deletion of Pod lab/train-0")
    preempted = event("Preempted", "by pod x on node n", lastTimestamp=LATER)
    absent = "there is no pod train-0 in namespace lab; "
    by_taint = f"a NoExecute taint of its node evicted it at {CREATED}: Marking for deletion"
    by_priority = (
        f"the scheduler stopped it for a pod of higher priority at {LATER}: by pod x on node n"
    )
    for events, cause in (
        ([evicted], by_taint),
        ([event("Killing", "x"), evicted], by_taint),
        ([preempted, evicted], by_priority),
        ([canceled, event("x", "y")], "Pod train-0 could not create a pod: y"),
    ):
        with pytest.raises(NoPodError) as caught:
            collect(FakeCluster({f"{LAB}/events": listed(*events)}))
        assert str(caught.value).startswith(f"{absent}{cause}")


def test_a_pod_that_may_not_be_read() -> None:
    """The right to read the pod is required."""
    with pytest.raises(NoPodError) as caught:
        collect(FakeCluster({f"{LAB}/pods/train-0": 403}))
    assert str(caught.value) == "you do not have the right to read pod train-0 in namespace lab"


def test_other_refusals() -> None:
    """An error of the API server does not count as a missing pod, and later reads continue."""
    with pytest.raises(StatusError):
        collect(FakeCluster({f"{LAB}/pods/train-0": 500}))
    answers = everything(pod_in_cluster()) | {f"{LAB}/events": ClusterError("it is silent")}
    assert collect(FakeCluster(answers)).unread_sentences == (
        "Could not read the events of Pod train-0: it is silent.",
    )


def running(**fields: Any) -> dict[str, Any]:
    """Return a pod with a running container and an ended container."""
    states = [
        {"name": "main", "state": {"running": {}}, "restartCount": fields.pop("restarts", 0)},
        {"name": "done", "state": {"terminated": {"exitCode": 0}}},
    ]
    return pod_in_cluster(containerStatuses=states, **fields)


def test_processes_of_running_containers() -> None:
    """The script runs in each running container."""
    api = FakeCluster(everything(running()), output="process 7 2048 python3\nhidden 0\n")
    evidence = collect(api, processes=True)
    assert api.ran == [("lab", "train-0", "main")]
    assert evidence.processes == (ContainerProcesses("main", (RdmaProcess(7, "python3", 2048),)),)


def test_processes_that_may_not_be_read() -> None:
    """The container has the reason as its problem."""
    api = FakeCluster(everything(running()), output=ClusterError("Handshake status 403 Forbidden"))
    (inspection,) = collect(api, processes=True).processes or ()
    assert inspection.problem == (
        "Handshake status 403 Forbidden (this requires the right to create pods/exec, and a shell "
        "in the image)"
    )


def test_processes_of_the_node() -> None:
    """With hostPID, nothing runs: the processes of other pods would count."""
    api = FakeCluster(everything(running(spec={"hostPID": True})))
    (inspection,) = collect(api, processes=True).processes or ()
    assert "hostPID" in inspection.problem
    assert api.ran == []


def test_logs() -> None:
    """The log of each container is read, and also the log from before a restart."""
    api = FakeCluster(
        everything(running(restarts=1)),
        log=lambda query: TRANSPORTS[1 if "previous" in query else 0].example,
    )
    logs = collect(api, logs=True).logs or ()
    assert [(log.container, log.previous, log.report.rdma_use) for log in logs] == [
        ("main", False, "yes"),
        ("main", True, "no"),
        ("done", False, "yes"),
    ]


def test_logs_of_init_containers() -> None:
    """That of a failed one has the fault; the pod's containers have none yet."""
    pod = running()
    failed = {"terminated": {"exitCode": 6, "reason": "Error"}}
    completed = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    pod["status"]["initContainerStatuses"] = [
        {"name": "fetch", "state": failed},
        {"name": "again", "state": {"running": {}}, "lastState": failed},
        {"name": "prepare", "state": completed},
    ]
    for waiting in pod["status"]["containerStatuses"]:
        waiting["state"] = {"waiting": {"reason": "PodInitializing"}}
    evidence = collect(FakeCluster(everything(pod), log=lambda _: "x"), logs=True)
    assert [log.container for log in evidence.logs or ()] == ["fetch", "again"]
    assert evidence.unread_sentences == ()


def test_long_logs() -> None:
    """The end of a log is read as well if the log is longer than the limit."""

    def long(query: Query) -> str:
        return TRANSPORTS[1].example if "tailLines" in query else "x\n" * (HEAD // 2)

    (log, _) = collect(FakeCluster(everything(running()), log=long), logs=True).logs or ()
    assert log.report.rdma_use == "no"


def test_logs_that_may_not_be_read() -> None:
    """There is a single sentence for each container."""
    api = FakeCluster(everything(running(restarts=1)), log=StatusError(403, "no"))
    evidence = collect(api, logs=True)
    assert evidence.logs == ()
    assert evidence.unread_sentences == (
        "You do not have the right to read the log of container main.",
        "You do not have the right to read the log of container done.",
    )


def test_a_log_that_the_node_has_removed() -> None:
    """The kubelet then answers with the status 200: its text is no line of the container."""

    def removed(query: Query) -> str:
        gone = "unable to retrieve container logs for containerd://0123"
        return gone if "previous" in query else "x"

    evidence = collect(FakeCluster(everything(running(restarts=1)), log=removed), logs=True)
    assert [(log.container, log.previous) for log in evidence.logs or ()] == [
        ("main", False),
        ("done", False),
    ]
    assert evidence.unread_sentences == (
        "Could not read the log of container main: the node no longer has it.",
    )


CLAIMS_PATH = f"{LAB}/persistentvolumeclaims"
MOUNT = [{"persistentVolumeClaim": {"claimName": "data"}}, {"emptyDir": {}}]


def unplaced(message: str = "", scheduler: str = "", **spec: Any) -> dict[str, Any]:
    """Return a pod without a node, with this message of its scheduler, if it has looked."""
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    conditions = [condition] if message else []
    fields = {"nodeName": "", "schedulerName": scheduler, **spec}
    return pod_in_cluster(phase="Pending", spec=fields, conditions=conditions)


@pytest.mark.parametrize(
    ("claim", "storage_class", "problem"),
    [
        (StatusError(404, 'persistentvolumeclaims "data" not found'), 404, ("missing", "", False)),
        ({"metadata": {"deletionTimestamp": "x"}}, 404, ("ending", "", False)),
        ({"status": {"phase": "Bound"}}, 404, None),
        ({"status": {"phase": "Pending"}}, 404, ("unbound", "", False)),
        (
            {"spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}},
            StatusError(404, 'storageclasses "fast" not found'),
            ("unbound", "fast", True),
        ),
        (
            {"spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}},
            {},
            ("unbound", "fast", False),
        ),
        (
            {"spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}},
            {"provisioner": "a.example"},
            ("unbound", "fast", False, "a.example"),
        ),
        (404, 404, None),
    ],
    ids=str,
)
def test_volume_claims(claim: Any, storage_class: Any, problem: Any) -> None:
    """Those of a pod without a node are read, and the StorageClass of an unbound one."""
    answers = everything(unplaced(volumes=MOUNT)) | {
        f"{CLAIMS_PATH}/data": claim,
        "/apis/storage.k8s.io/v1/storageclasses/fast": storage_class,
    }
    expected = () if problem is None else (UnmountableClaim("data", *problem),)
    assert collect(FakeCluster(answers)).unmountable_claims == expected
    started = FakeCluster(answers | everything(pod_in_cluster(spec={"volumes": MOUNT})))
    assert collect(started).unmountable_claims == ()


def test_volume_claims_that_may_not_be_read() -> None:
    """They are reported as unread, not as missing."""
    answers = everything(unplaced(volumes=MOUNT)) | {f"{CLAIMS_PATH}/data": 403}
    evidence = collect(FakeCluster(answers))
    assert evidence.unmountable_claims == ()
    assert (
        "You do not have the right to read PersistentVolumeClaim data." in evidence.unread_sentences
    )


def placed(name: str, node: str = "n", phase: str = "Running", **spec: Any) -> dict[str, Any]:
    """Return a pod that holds a GPU."""
    limits = {"nvidia.com/v100": "2", "cpu": "1"}
    containers = [{"name": "main", "resources": {"limits": limits}}]
    metadata = {"name": name, "namespace": "other", "uid": f"uid-{name}"}
    fields = {"nodeName": node, "schedulerName": "s", "containers": containers, **spec}
    return {"metadata": metadata, "spec": fields, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("pod", "is_needed"),
    [
        (unplaced("0/1 nodes are available: 1 Insufficient nvidia.com/v100."), True),
        (unplaced("0/1 nodes are available: 1 node(s) were unschedulable."), False),
        (unplaced(scheduler="volcano"), True),
        (unplaced(scheduler="default-scheduler"), False),
        (unplaced(), False),
        (pod_in_cluster(), False),
    ],
)
def test_the_pods_on_nodes(pod: dict[str, Any], is_needed: bool) -> None:
    """They are read only if they may explain what the pod waits for."""
    broken = placed("broken", containers="x")
    broken["metadata"].update(OWNED)
    api = FakeCluster(
        everything(pod)
        | {"/api/v1/pods": listed(placed("a"), placed("b", phase="Succeeded"), broken)}
    )
    expected = (
        UnfinishedPod("other/a", "uid-a", "n", "s", {"nvidia.com/v100": 2}),
        UnfinishedPod("other/broken", "uid-broken", "n", "s", {}, "Job train"),
    )
    assert collect(api).unfinished_pods == (expected if is_needed else None)


def test_the_pod_that_it_was_preempted_for() -> None:
    """The Event has only the UID, so the pods are read for its name."""
    uid = "8b8f5a46-8f4d-4a0e-9e5c-0123456789ab"
    message = f"Preempted by pod {uid} on node n"
    answers = everything(pod_in_cluster()) | {
        f"{LAB}/events": listed(event("Preempted", message)),
        "/api/v1/pods": listed(placed("a")),
    }
    unfinished_pods = collect(FakeCluster(answers)).unfinished_pods
    assert unfinished_pods is not None
    assert [pod.name for pod in unfinished_pods] == ["other/a"]


def test_pods_without_the_right_to_list_them() -> None:
    """Those of the namespace are listed instead; each missing right has a line."""
    pod = unplaced("0/1 nodes are available: 1 Insufficient nvidia.com/v100.")
    answers = everything(pod) | {"/api/v1/pods": 403, f"{LAB}/pods": listed(placed("a"))}
    evidence = collect(FakeCluster(answers))
    assert evidence.unfinished_pods is not None
    assert len(evidence.unfinished_pods) == 1
    assert evidence.unread_sentences == (
        "You do not have the right to read pods of all namespaces.",
    )
    evidence = collect(FakeCluster(answers | {f"{LAB}/pods": 403}))
    assert evidence.unfinished_pods is None
    assert "You do not have the right to read pods of namespace lab." in evidence.unread_sentences
    evidence = collect(FakeCluster(answers | {"/api/v1/pods": 500}))
    assert evidence.unfinished_pods is None


def test_the_facts_of_nodes() -> None:
    """A pod without a node is compared with their labels."""
    assert collect(FakeCluster(everything(unplaced()))).placement_nodes["n"].labels == {"a": "b"}
    assert collect(FakeCluster(everything(pod_in_cluster()))).placement_nodes == {}


IN_DOUBT = status("unsure", "NodesUnavailable")


def test_the_node_that_settles_a_doubt() -> None:
    """It is read for a verdict about nodes or fabrics, and no other node; others need none."""
    node = f"/api/v1/nodes/{pod_in_cluster()['spec']['nodeName']}"
    manifest = {"metadata": {"name": "node-1", "labels": {"a": "b"}}}
    answers = everything(pod_in_cluster(IN_DOUBT)) | {node: manifest}
    api = FakeCluster(answers)
    evidence = collect(api)
    assert evidence.placement_nodes["node-1"].labels == {"a": "b"}
    assert evidence.unread_sentences == ()
    assert [path for path, _ in api.asked if "/nodes" in path] == [node]
    without_fabric = FakeCluster(
        answers | everything(pod_in_cluster(status("no", "FabricUnknown")))
    )
    assert collect(without_fabric).placement_nodes.keys() == {"node-1"}
    for other in (status("unsure", "MemlockUnknown"), status("no", "FabricAmbiguous")):
        api = FakeCluster(answers | everything(pod_in_cluster(other)))
        assert collect(api).placement_nodes == {}
        assert node not in [path for path, _ in api.asked]


@pytest.mark.parametrize(
    ("annotations", "is_read"),
    [
        (status(), True),
        (status("unsure", "MemlockUnknown"), True),
        (status(fabric=""), False),
        (status("no", "NonRoot"), False),
        (status("none", "Launcher"), False),
    ],
    ids=str,
)
def test_the_node_of_an_equipped_pod(annotations: dict[str, str], is_read: bool) -> None:
    """It is read if the configuration of the admission shows whether it belongs to the fabric."""
    answers = everything(pod_in_cluster(annotations)) | {
        "/api/v1/nodes/node-1": {"metadata": {"name": "node-1"}},
        f"{LAB}/limitranges": listed(),
        f"{LAB}/resourcequotas": listed(),
    }
    evidence = collect(FakeCluster(answers), configuration=fabrics(V100))
    assert ("node-1" in evidence.placement_nodes) is is_read
    assert collect(FakeCluster(answers)).placement_nodes == {}


@pytest.mark.parametrize(
    ("answer", "unread"),
    [
        (403, ("You do not have the right to read node node-1.",)),
        (404, ("Could not read node node-1: not found.",)),
        ({"metadata": {"labels": 5}}, ()),
    ],
    ids=str,
)
def test_a_node_that_cannot_be_read(answer: Any, unread: tuple[str, ...]) -> None:
    """The node then settles nothing."""
    answers = everything(pod_in_cluster(IN_DOUBT)) | {"/api/v1/nodes/node-1": answer}
    evidence = collect(FakeCluster(answers))
    assert (evidence.placement_nodes, evidence.unread_sentences) == ({}, unread)


def test_the_limit_range_of_a_limit() -> None:
    """It is read if the verdict is about the limit that it set, and names itself then."""
    path = f"{LAB}/limitranges"
    limits = [{"type": "Container", "max": {"memory": "8Gi"}}]
    limit_range = {"metadata": {"name": "lr", "namespace": "lab"}, "spec": {"limits": limits}}
    answers = everything(pod_in_cluster(status("unsure", "DefaultMemoryLimit")))
    answers |= {path: listed(limit_range), f"{LAB}/resourcequotas": listed()}
    evidence = collect(FakeCluster(answers))
    assert evidence.facts.namespace("lab").memory_limit_rejection == "LimitRange lr sets max.memory"
    assert evidence.unread_sentences == ()
    api = FakeCluster(answers | everything(pod_in_cluster()))
    assert collect(api).facts.namespace("lab").memory_limit_rejection == ""
    assert path not in [asked for asked, _ in api.asked]


def test_the_node_of_a_running_pod_is_read_if_the_pod_is_not_ready() -> None:
    """It may be gone or silent; only a missing node is known not to exist.

    The same holds for a pod that is being deleted: its kubelet must end that.
    """
    path, node = "/api/v1/nodes/node-1", {"metadata": {"name": "node-1"}}
    gone = StatusError(404, 'nodes "node-1" not found')
    state: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "False"}]}
    for answer, nodes, unread in (
        (node, ["node-1"], ()),
        (gone, (), ()),
        (403, None, ("You do not have the right to read node node-1.",)),
    ):
        evidence = collect(FakeCluster(everything(pod_in_cluster(**state)) | {path: answer}))
        records = evidence.nodes
        assert (records and [record.metadata.name for record in records]) == nodes
        assert evidence.unread_sentences == unread
    deleted = pod_in_cluster(metadata={"deletionTimestamp": LATER})
    evidence = collect(FakeCluster(everything(deleted) | {path: node}))
    assert [record.metadata.name for record in evidence.nodes or ()] == ["node-1"]
    for pod in (pod_in_cluster(), pod_in_cluster(phase="Succeeded", **state)):
        assert collect(FakeCluster(everything(pod) | {path: node})).nodes is None
