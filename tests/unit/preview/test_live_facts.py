"""The cluster facts that a preview reads, with all rights, with few, and without an answer."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.server_state import configured
from webhook.config import EXAMPLE
from webhook.config.findings import InvalidConfiguration
from webhook.decide import decide
from webhook.errors import ClusterError
from webhook.kube.api import Query, StatusError
from webhook.model.facts import Facts, key_of
from webhook.model.nodes import node_of
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.live import (
    MAX_NAMESPACES,
    LiveReading,
    config_maps_of,
    namespaces_of,
    read_live,
)
from webhook.text.yaml.documents import read_documents

LAB = "/api/v1/namespaces/lab"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
NODES = "/api/v1/nodes"
RESOURCE = "/apis/resource.k8s.io/v1/namespaces/lab"
TEMPLATES, CLAIMS = f"{RESOURCE}/resourceclaimtemplates", f"{RESOURCE}/resourceclaims"
FABRICS = "/apis/rdma.lab/v1alpha1/fabricconfigurations/default"
UNREAD_CLAUSE = "using the fabrics of mine.yaml"


class PreparedReads:
    """Answers with these objects, status codes or errors, and 404 for other paths.

    It replaces an API server over HTTP, which the integration tests and tests/e2e have.
    """

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    def get(self, path: str, query: Query) -> dict[str, Any]:
        """Return an object."""
        path += query.get("continue", "")
        self.asked.append(path)
        answer = self._answers.get(path, 404)
        if isinstance(answer, int):
            raise StatusError(answer, "no")
        if isinstance(answer, ClusterError):
            raise answer
        return dict(answer)


def hook(**client: Any) -> dict[str, Any]:
    """Return a list of configurations with the webhook's."""
    service = {"service": {"namespace": "rdma-webhook"}, "caBundle": "Q0E=", **client}
    webhook = {"name": "pods.rdma.lab", "clientConfig": service}
    return {"items": [{"metadata": {"name": "zz"}, "webhooks": [webhook]}]}


def everything() -> dict[str, Any]:
    """Return the answers to a reader with all rights; lists do not contain the kinds of items."""
    limit = {"metadata": {"name": "limits", "namespace": "lab"}, "spec": {"limits": []}}
    quota = {"metadata": {"name": "quota", "namespace": "lab"}, "spec": {"hard": {}}}
    return {
        HOOKS: hook(),
        FABRICS: yaml.safe_load(EXAMPLE.read_text()),
        LAB: {"metadata": {"name": "lab", "labels": {"rdma.lab/enable": "true"}}},
        f"{LAB}/limitranges": {"items": [limit]},
        f"{LAB}/resourcequotas": {"items": [quota]},
        TEMPLATES: listed(),
        CLAIMS: listed(),
        NODES: listed(node("n1")),
    }


def node(name: str, **offered: str) -> dict[str, Any]:
    """Make a Node of the first fabric; by default it has all that its pods need."""
    labels = {"nvidia.com/gpu.product": "Tesla-V100-SXM2"}
    offered = offered or {"v100": "8", "rdma_v100": "63"}
    keys = {key: f"{'rdma' if key.startswith('rdma') else 'nvidia.com'}/{key}" for key in offered}
    amounts = {keys[key]: amount for key, amount in offered.items()}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}


def listed(*items: Any, after: str = "") -> dict[str, Any]:
    """Make a page of a list; `after` is the start of the next page."""
    return {"metadata": {"resourceVersion": "1", "continue": after}, "items": [*items]}


def read(
    answers: dict[str, Any], *namespaces: str, unread_clause: str = UNREAD_CLAUSE
) -> LiveReading:
    """Read the facts of the namespaces, by default of lab."""
    return read_live(
        PreparedReads(answers),
        namespaces or ("lab",),
        read_fabrics=True,
        unread_clause=unread_clause,
    )


def test_with_all_rights() -> None:
    """Everything is read once, and a note names the source of the fabrics."""
    api = PreparedReads(everything())
    reading = read_live(api, ["lab"], read_fabrics=True, unread_clause=UNREAD_CLAUSE)
    assert [manifest["kind"] for manifest in reading.live_facts.objects] == [
        "Namespace",
        "LimitRange",
        "ResourceQuota",
    ]
    assert [
        registration.webhook_configuration_name
        for registration in reading.live_facts.registrations or ()
    ] == ["zz"]
    assert reading.configuration is not None
    assert list(reading.configuration.compiled.fabrics) == ["v100-ib", "a100-ib"]
    assert reading.live_facts.notes == (
        ("fabrics from the cluster (fabricconfigurations.rdma.lab/default): v100-ib, a100-ib"),
    )
    assert dict(reading.live_facts.nodes) == {"n1": node_of(node("n1"))}
    assert api.asked == [HOOKS, FABRICS, LAB, f"{LAB}/limitranges", f"{LAB}/resourcequotas", NODES]


def test_with_no_rights() -> None:
    """One line names each missing right, with what is assumed."""
    api = PreparedReads(dict.fromkeys(everything(), 403))
    reading = read_live(api, ["lab"], read_fabrics=True, unread_clause=UNREAD_CLAUSE)
    assert (
        reading.live_facts.objects,
        reading.live_facts.registrations,
        reading.configuration,
    ) == (
        (),
        None,
        None,
    )
    assert reading.live_facts.notes == (
        (
            "mutatingwebhookconfigurations: not read, as you lack the right to list "
            "mutatingwebhookconfigurations; assumed to be as in the webhook's manifests"
        ),
        (
            "fabricconfigurations.rdma.lab/default: not read, as you lack the right to get "
            "fabricconfigurations; using the fabrics of mine.yaml"
        ),
        (
            "namespace lab: not read, as you lack the right to get namespaces; assumed to set no "
            "Pod Security level and no fabric; the labels remain unknown"
        ),
        (
            "limitranges of namespace lab: not read, as you lack the right to list limitranges; "
            "assumed to require no memory limit"
        ),
        (
            "resourcequotas of namespace lab: not read, as you lack the right to list "
            "resourcequotas; assumed to require no memory limit"
        ),
        (
            "nodes: not read, as you lack the right to list nodes; the nodes' resources and "
            "fabrics remain unknown"
        ),
    )
    assert reading.live_facts.nodes == {}


def test_missing_objects() -> None:
    """A namespace that will be created, and a cluster without fabrics, get their own notes."""
    empty_lists = {f"{LAB}/limitranges": {}, f"{LAB}/resourcequotas": {}, NODES: listed()}
    reading = read({HOOKS: {"items": []}, **empty_lists})
    assert reading.live_facts.registrations == ()
    assert reading.live_facts.notes == (
        "fabricconfigurations.rdma.lab/default: does not exist; using the fabrics of mine.yaml",
        (
            "namespace lab: does not exist; assumed to set no Pod Security level and no "
            "fabric; the labels remain unknown"
        ),
    )


def test_an_error_of_the_api_server() -> None:
    """A note has its message, and the other requests follow."""
    reading = read(everything() | {LAB: 500})
    (_, note) = reading.live_facts.notes
    assert note == (
        "namespace lab: not read (the API server answered 500: no); assumed to set no Pod "
        "Security level and no fabric; the labels remain unknown"
    )
    assert [manifest["kind"] for manifest in reading.live_facts.objects] == [
        "LimitRange",
        "ResourceQuota",
    ]


@pytest.mark.parametrize("silence", [ClusterError("it is silent"), 401], ids=str)
@pytest.mark.parametrize(
    "at",
    [
        *(HOOKS, FABRICS, LAB, f"{LAB}/limitranges", f"{LAB}/resourcequotas"),
        *(TEMPLATES, CLAIMS, NODES),
    ],
)
def test_no_request_follows_a_request_without_an_answer(at: str, silence: Any) -> None:
    """Waiting for many timeouts would not help, and neither would requests without credentials."""
    api = PreparedReads(everything() | {at: silence})
    reading = read_live(
        api, ["lab", "other"], read_fabrics=True, unread_clause=UNREAD_CLAUSE, claims=True
    )
    assert api.asked[-1] == at
    message = "the API server answered 401: no" if silence == 401 else "it is silent"
    expected = f"{message}; everything else is treated as if there were no cluster"
    assert [note for note in reading.live_facts.notes if message in note] == [expected]
    assert reading.live_facts.notes[-1] == expected


def test_fabrics_that_are_not_needed() -> None:
    """With -c, the cluster's fabrics are not read."""
    api = PreparedReads(everything())
    assert read_live(api, []).configuration is None
    assert api.asked == [HOOKS]


def test_a_configuration_without_fabrics() -> None:
    """It is the cluster's nevertheless: nothing is decided by other fabrics."""
    without = {**everything()[FABRICS], "spec": {"fabrics": []}}
    reading = read({**everything(), FABRICS: without})
    assert reading.configuration is not None
    assert dict(reading.configuration.compiled.fabrics) == {}
    assert reading.live_facts.notes[0] == (
        "fabrics from the cluster (fabricconfigurations.rdma.lab/default): none"
    )


def test_fabrics_that_cannot_be_used() -> None:
    """Every error is shown, with its place; nothing is decided by other fabrics."""
    with pytest.raises(InvalidConfiguration) as caught:
        read({**everything(), FABRICS: {"kind": "FabricConfiguration"}})
    assert str(caught.value).startswith("fabricconfigurations.rdma.lab/default: ")


def test_a_webhook_that_cannot_be_called() -> None:
    """Without a caBundle the API server trusts no certificate of it."""
    reading = read({**everything(), HOOKS: hook(caBundle="")})
    assert reading.live_facts.notes[0] == (
        "zz: the API server cannot call pods.rdma.lab, which has no caBundle; this report "
        "assumes that the cluster administrator will fix that (rdma-webhook certs status)"
    )


def test_an_object_that_no_cluster_has() -> None:
    """It is left out, with a note."""
    odd = {"metadata": {"name": "odd", "namespace": "lab"}, "spec": {"limits": 7}}
    reading = read(everything() | {f"{LAB}/limitranges": {"items": [odd]}})
    assert [manifest["kind"] for manifest in reading.live_facts.objects] == [
        "Namespace",
        "ResourceQuota",
    ]
    assert reading.live_facts.notes[1] == (
        "LimitRange odd: not taken into account, since spec.limits must be a list, "
        "but is a number (7)"
    )


def test_a_bound() -> None:
    """A dump of a whole cluster does not lead to thousands of requests."""
    names = [f"team-{number}" for number in range(MAX_NAMESPACES + 2)]
    api = PreparedReads({HOOKS: hook(), NODES: listed()})
    reading = read_live(api, names)
    assert len(api.asked) == 2 + 3 * MAX_NAMESPACES
    assert reading.live_facts.notes[-1] == (
        "2 more namespaces: not read, since the limit is 100; assumed to set no Pod Security level "
        "and no fabric; the labels remain unknown"
    )
    assert "1 more namespace: not" in read_live(api, names[:-1]).live_facts.notes[-1]
    assert "more namespace" not in str(read_live(api, names[:MAX_NAMESPACES]).live_facts.notes)


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s, annotations: %s}
spec: {containers: [{name: main}]}
"""
ON, OFF = '{rdma.lab/enable: "true"}', '{rdma.lab/enable: "false"}'


def test_the_namespaces_that_matter() -> None:
    """The namespaces of pods that opted in, each once, in the order of the input."""
    pods = [
        ("a", "lab", ON),
        ("b", "web", "{}"),
        ("c", '""', ON),
        ("d", "idle", OFF),
        ("e", "lab", ON),
    ]
    documents = read_documents("---\n".join(POD % pod for pod in pods).encode())
    assert namespaces_of(documents, "mine") == ["lab", "mine"]
    assert namespaces_of(documents, "mine", enable=True) == ["lab", "web", "mine", "idle"]


SITE = f"{LAB}/configmaps/site"
SOURCE = """
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: lab, annotations: %s}
spec: {containers: [{name: main, envFrom: [{configMapRef: {name: site}}]}]}
"""


def test_the_config_maps_that_matter() -> None:
    """Those of pods that opted in; a pod without a namespace is in the default one."""
    documents = read_documents((SOURCE % OFF).encode())
    assert config_maps_of(documents, "mine") == set()
    assert config_maps_of(documents, "mine", enable=True) == {("lab", "site")}
    here = (SOURCE % ON).replace(", namespace: lab", "").encode()
    assert config_maps_of(read_documents(here), "mine") == {("mine", "site")}


def test_config_maps_are_read() -> None:
    """Each by its name; one that cannot be read is noted."""
    config_map = {"metadata": {"name": "site", "namespace": "lab"}, "data": {"A": "1"}}
    names = {("lab", "site"), ("lab", "other")}
    api = PreparedReads(everything() | {SITE: config_map})
    facts = read_live(api, ["lab"], config_maps=names).live_facts
    assert facts.objects[-1] == {**config_map, "kind": "ConfigMap"}
    assumed = "its variables remain unknown, and its scripts are assumed to be harmless"
    assert facts.notes == (f"ConfigMap lab/other: does not exist; {assumed}",)
    refused = read_live(PreparedReads(everything() | {SITE: 403}), ["lab"], config_maps=names)
    assert refused.live_facts.notes[-1] == (
        f"ConfigMap lab/site: not read, as you lack the right to get configmaps; {assumed}"
    )
    silent = PreparedReads({LAB: ClusterError("no answer")})
    read_live(silent, ["lab"], config_maps=names)
    assert SITE not in silent.asked


def test_config_maps_are_bounded() -> None:
    """No more are read than namespaces."""
    names = {("lab", f"m{number}") for number in range(MAX_NAMESPACES + 3)}
    api = PreparedReads(everything())
    read_live(api, ["lab"], config_maps=names)
    assert sum("configmaps" in path for path in api.asked) == MAX_NAMESPACES


def claim(name: str, **metadata: Any) -> dict[str, Any]:
    """Make a ResourceClaim or a template of the namespace lab that requests nothing."""
    return {"metadata": {"name": name, "namespace": "lab", **metadata}, "spec": {}}


def test_templates_and_claims_are_read_where_a_fabric_has_claims() -> None:
    """The fabrics come from the caller's file, or from the cluster."""
    answers = everything() | {TEMPLATES: listed(claim("nics")), CLAIMS: listed(claim("mine"))}
    reading = read_live(PreparedReads(answers), ["lab"], claims=True)
    assert reading.live_facts.objects[-2:] == (
        {**claim("nics"), "kind": "ResourceClaimTemplate"},
        {**claim("mine"), "kind": "ResourceClaim"},
    )
    assert reading.live_facts.namespaces_with_complete_templates == ("lab",)
    text = (
        "apiVersion: rdma.lab/v1alpha1\nkind: FabricConfiguration\nmetadata: {name: default}\n"
        "spec:\n  fabrics:\n"
        "  - {name: ib, mode: dra, claims: [{template: nics}]}\n"
    )
    reading_by_cluster = read(answers | {FABRICS: yaml.safe_load(text)})
    assert reading_by_cluster.live_facts.namespaces_with_complete_templates == ("lab",)
    assert read(answers).live_facts.namespaces_with_complete_templates == ()


def test_claims_of_pods_do_not_count() -> None:
    """Kubernetes made them from a template for one pod; no other pod names them."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "controller": True}
    of_pod = claim("train-nic-x7", ownerReferences=[owner])
    of_jobset = claim("mine", ownerReferences=[{**owner, "kind": "JobSet"}])
    answers = everything() | {TEMPLATES: listed(), CLAIMS: listed(of_pod, of_jobset)}
    reading = read_live(PreparedReads(answers), ["lab"], claims=True)
    assert [key_of(manifest)[1] for manifest in reading.live_facts.objects[-2:]] == [
        "quota",
        "mine",
    ]


def test_templates_and_claims_that_are_not_readable_stay_unknown() -> None:
    """There is a note; an API server without an answer gets no more requests."""
    refused = everything() | {TEMPLATES: 403, CLAIMS: 403}
    reading = read_live(PreparedReads(refused), ["lab"], claims=True)
    assert reading.live_facts.namespaces_with_complete_templates == ()
    assert reading.live_facts.notes == (
        (
            "resourceclaimtemplates of namespace lab: not read, as you lack the right to list "
            "resourceclaimtemplates; whether the fabrics' templates exist remains unknown"
        ),
        (
            "resourceclaims of namespace lab: not read, as you lack the right to list "
            "resourceclaims; their requests are guessed from the names in the pod"
        ),
    )
    silent = PreparedReads(everything() | {LAB: 0})
    assert (
        read_live(silent, ["lab"], claims=True).live_facts.namespaces_with_complete_templates == ()
    )
    assert TEMPLATES not in silent.asked


def test_nodes_come_in_pages() -> None:
    """They are read once, and only if a pod opted in."""
    answers = everything() | {
        NODES: listed(node("n1"), after="2"),
        f"{NODES}2": listed(node("n2")),
    }
    api = PreparedReads(answers)
    assert list(read_live(api, ["lab", "web"]).live_facts.nodes) == ["n1", "n2"]
    assert api.asked[-2:] == [NODES, f"{NODES}2"]
    assert api.asked.count(NODES) == 1
    assert read_live(PreparedReads(answers), ()).live_facts.nodes == {}


GPU = """\
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: lab, annotations: {rdma.lab/enable: "true"}}
spec: {containers: [{name: main, resources: {limits: {%s: 1}}}]}
"""


@pytest.mark.parametrize(
    ("gpu", "nodes", "because"),
    [
        ("nvidia.com/v100", [node("n1")], "Equipped"),
        ("nvidia.com/v100", [node("n1", v100="8")], "ResourceNotOffered"),
        ("nvidia.com/a100", [node("n1")], "FabricWithoutNodes"),
        ("nvidia.com/v100", [], "Equipped"),
    ],
    ids=["all that is needed", "no RDMA resource", "no node of the fabric", "no nodes"],
)
def test_a_preview_decides_as_the_webhook(gpu: str, nodes: list[Any], because: str) -> None:
    """Both see the same cluster, so the whole decision is equal."""
    document = (GPU % gpu).encode()
    reading = read(everything() | {NODES: listed(*nodes)})
    assert reading.configuration is not None
    configuration = reading.configuration.compiled
    options = PreviewOptions(configuration=configuration, live_facts=reading.live_facts)
    (previewed,) = preview_documents(read_documents(document), options).previews

    space = {**everything()[LAB], "kind": "Namespace"}
    facts = Facts.from_objects([space, *({**manifest, "kind": "Node"} for manifest in nodes)])
    state = configured(configuration, facts)
    pod = yaml.safe_load(document)
    decision_input = state.decision_input_for("lab", pod)
    assert decision_input is not None
    assert previewed.decision == decide(pod, decision_input)
    assert previewed.decision.verdict is not None
    assert previewed.decision.verdict.because.code == because
