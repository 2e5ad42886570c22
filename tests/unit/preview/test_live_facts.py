"""What a preview reads of a cluster, with all rights, with few, and without an answer."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.server_state import configured
from webhook.config import EXAMPLE
from webhook.config.findings import InvalidConfiguration
from webhook.decide import decide
from webhook.errors import ClusterError
from webhook.kube.api import Query, RefusedError
from webhook.model.facts import Facts, key_of
from webhook.model.nodes import node_of
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.live import MOST_NAMESPACES, LiveReading, namespaces_of, read_live
from webhook.text.yaml.documents import read_documents

LAB = "/api/v1/namespaces/lab"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
NODES = "/api/v1/nodes"
RESOURCE = "/apis/resource.k8s.io/v1/namespaces/lab"
TEMPLATES, CLAIMS = f"{RESOURCE}/resourceclaimtemplates", f"{RESOURCE}/resourceclaims"
FABRICS = "/apis/rdma.lab/v1alpha1/fabricconfigurations/default"
INSTEAD = "used: the fabrics of mine.yaml"


class PreparedReads:
    """Answers with these objects, status codes or errors, and 404 for all else.

    It stands for an API server over HTTP, which the integration tests and tests/e2e have.
    """

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    def get(self, path: str, query: Query) -> dict[str, Any]:
        """Return an object."""
        path += query.get("continue", "")
        self.asked.append(path)
        found = self._answers.get(path, 404)
        if isinstance(found, int):
            raise RefusedError(found, "no")
        if isinstance(found, ClusterError):
            raise found
        return dict(found)


def hook(**client: Any) -> dict[str, Any]:
    """Return a list of configurations, one of which is the webhook's."""
    service = {"service": {"namespace": "rdma-webhook"}, "caBundle": "Q0E=", **client}
    webhook = {"name": "pods.rdma.lab", "clientConfig": service}
    return {"items": [{"metadata": {"name": "zz"}, "webhooks": [webhook]}]}


def everything() -> dict[str, Any]:
    """Return the answers to a reader who may read all; lists are without the kinds of items."""
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
    amounts = {keys[key]: many for key, many in offered.items()}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}


def listed(*items: Any, after: str = "") -> dict[str, Any]:
    """Make a page of a list; `after`: where the next one begins."""
    return {"metadata": {"resourceVersion": "1", "continue": after}, "items": [*items]}


def read(answers: dict[str, Any], *namespaces: str, instead: str = INSTEAD) -> LiveReading:
    """Read the facts of the namespaces, by default those of lab."""
    return read_live(PreparedReads(answers), namespaces or ("lab",), fabrics_instead=instead)


def test_with_all_rights() -> None:
    """All is read, each thing once, and the fabrics' source is told."""
    api = PreparedReads(everything())
    found = read_live(api, ["lab"], fabrics_instead=INSTEAD)
    assert [one["kind"] for one in found.facts.objects] == [
        "Namespace",
        "LimitRange",
        "ResourceQuota",
    ]
    assert [one.name for one in found.facts.webhooks or ()] == ["zz"]
    assert found.configuration is not None
    assert list(found.configuration.fabrics.fabrics) == ["v100-ib", "a100-ib"]
    assert found.facts.notes == (
        ("fabrics from the cluster (fabricconfigurations.rdma.lab/default): v100-ib, a100-ib"),
    )
    assert dict(found.facts.nodes) == {"n1": node_of(node("n1"))}
    assert api.asked == [HOOKS, FABRICS, LAB, f"{LAB}/limitranges", f"{LAB}/resourcequotas", NODES]


def test_with_no_rights() -> None:
    """Each right is told, in one line, with what is assumed."""
    api = PreparedReads(dict.fromkeys(everything(), 403))
    found = read_live(api, ["lab"], fabrics_instead=INSTEAD)
    assert (found.facts.objects, found.facts.webhooks, found.configuration) == ((), None, None)
    assert found.facts.notes == (
        (
            "mutatingwebhookconfigurations: not read, as you lack the right to list "
            "mutatingwebhookconfigurations; assumed: the webhook is registered as in its "
            "manifests"
        ),
        (
            "fabricconfigurations.rdma.lab/default: not read, as you lack the right to get "
            "fabricconfigurations; used: the fabrics of mine.yaml"
        ),
        (
            "namespace lab: not read, as you lack the right to get namespaces; assumed: no Pod "
            "Security level and no fabric of its own; its labels remain unknown"
        ),
        (
            "limitranges of namespace lab: not read, as you lack the right to list limitranges; "
            "assumed: none of them requires a memory limit"
        ),
        (
            "resourcequotas of namespace lab: not read, as you lack the right to list "
            "resourcequotas; assumed: none of them requires a memory limit"
        ),
        (
            "nodes: not read, as you lack the right to list nodes; the nodes' resources and "
            "fabrics remain unknown"
        ),
    )
    assert found.facts.nodes == {}


def test_what_is_not_there() -> None:
    """A namespace that will be created, and a cluster without fabrics, are told as such."""
    nothing = {f"{LAB}/limitranges": {}, f"{LAB}/resourcequotas": {}, NODES: listed()}
    found = read({HOOKS: {"items": []}, **nothing})
    assert found.facts.webhooks == ()
    assert found.facts.notes == (
        "fabricconfigurations.rdma.lab/default: does not exist; used: the fabrics of mine.yaml",
        (
            "namespace lab: does not exist; assumed: no Pod Security level and no fabric of its "
            "own; its labels remain unknown"
        ),
    )


def test_an_error_of_the_api_server() -> None:
    """What it said is told, and the other requests follow."""
    found = read(everything() | {LAB: 500})
    (_, note) = found.facts.notes
    assert note == (
        "namespace lab: not read: the API server answered 500: no; assumed: no Pod Security "
        "level and no fabric of its own; its labels remain unknown"
    )
    assert [one["kind"] for one in found.facts.objects] == ["LimitRange", "ResourceQuota"]


@pytest.mark.parametrize("silence", [ClusterError("it is silent"), 401], ids=str)
@pytest.mark.parametrize(
    "at",
    [
        *(HOOKS, FABRICS, LAB, f"{LAB}/limitranges", f"{LAB}/resourcequotas"),
        *(TEMPLATES, CLAIMS, NODES),
    ],
)
def test_no_request_follows_one_without_an_answer(at: str, silence: Any) -> None:
    """Waiting for each of many timeouts would help nobody; nor would asking as nobody."""
    api = PreparedReads(everything() | {at: silence})
    found = read_live(api, ["lab", "other"], fabrics_instead=INSTEAD, claims=True)
    assert api.asked[-1] == at
    said = "the API server answered 401: no" if silence == 401 else "it is silent"
    told = f"{said}; everything not read yet is assumed as without a cluster"
    assert [note for note in found.facts.notes if said in note] == [told]
    assert found.facts.notes[-1] == told


def test_fabrics_that_are_not_wanted() -> None:
    """With -c, those of the cluster are not read."""
    api = PreparedReads(everything())
    assert read_live(api, []).configuration is None
    assert api.asked == [HOOKS]


def test_a_configuration_without_fabrics() -> None:
    """It is the cluster's all the same: nothing is decided by other fabrics."""
    without = {**everything()[FABRICS], "spec": {"fabrics": []}}
    reading = read({**everything(), FABRICS: without})
    assert reading.configuration is not None
    assert dict(reading.configuration.fabrics.fabrics) == {}
    assert reading.facts.notes[0] == (
        "fabrics from the cluster (fabricconfigurations.rdma.lab/default): none"
    )


def test_fabrics_that_cannot_be_used() -> None:
    """Every error is told, with its place; nothing is decided by other fabrics."""
    with pytest.raises(InvalidConfiguration) as caught:
        read({**everything(), FABRICS: {"kind": "FabricConfiguration"}})
    assert str(caught.value).startswith("fabricconfigurations.rdma.lab/default: ")


def test_a_webhook_that_cannot_be_called() -> None:
    """Without a caBundle the API server trusts no certificate of it."""
    found = read({**everything(), HOOKS: hook(caBundle="")})
    assert found.facts.notes[0] == (
        "zz: the API server cannot call pods.rdma.lab, which has no caBundle; this report "
        "assumes that the cluster administrator will fix that (rdma-webhook certs status)"
    )


def test_an_object_that_no_cluster_has() -> None:
    """It is left out, and told."""
    odd = {"metadata": {"name": "odd", "namespace": "lab"}, "spec": {"limits": 7}}
    found = read(everything() | {f"{LAB}/limitranges": {"items": [odd]}})
    assert [one["kind"] for one in found.facts.objects] == ["Namespace", "ResourceQuota"]
    assert found.facts.notes[1] == (
        "LimitRange odd: not used as a fact about the cluster: spec.limits must be a list, but is "
        "a number (7)"
    )


def test_a_bound() -> None:
    """A dump of a whole cluster does not lead to thousands of requests."""
    names = [f"team-{number}" for number in range(MOST_NAMESPACES + 2)]
    api = PreparedReads({HOOKS: hook(), NODES: listed()})
    found = read_live(api, names)
    assert len(api.asked) == 2 + 3 * MOST_NAMESPACES
    assert found.facts.notes[-1] == (
        "2 more namespaces: not read, as there are too many; assumed: no Pod Security level and no "
        "fabric of its own; its labels remain unknown"
    )
    assert "more namespaces" not in str(read_live(api, names[:MOST_NAMESPACES]).facts.notes)


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s, annotations: %s}
spec: {containers: [{name: main}]}
"""
ON, OFF = '{rdma.lab/enable: "true"}', '{rdma.lab/enable: "false"}'


def test_the_namespaces_that_matter() -> None:
    """Those of the pods that ask, each once, in the order of the input."""
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


def claim(name: str, **metadata: Any) -> dict[str, Any]:
    """Make a ResourceClaim or a template of the namespace lab that requests nothing."""
    return {"metadata": {"name": name, "namespace": "lab", **metadata}, "spec": {}}


def test_templates_and_claims_are_read_where_a_fabric_has_claims() -> None:
    """By the file that the caller has, or by the fabrics of the cluster."""
    answers = everything() | {TEMPLATES: listed(claim("nics")), CLAIMS: listed(claim("mine"))}
    found = read_live(PreparedReads(answers), ["lab"], claims=True)
    assert found.facts.objects[-2:] == (
        {**claim("nics"), "kind": "ResourceClaimTemplate"},
        {**claim("mine"), "kind": "ResourceClaim"},
    )
    assert found.facts.listed == ("lab",)
    text = (
        "apiVersion: rdma.lab/v1alpha1\nkind: FabricConfiguration\nmetadata: {name: default}\n"
        "spec:\n  fabrics:\n"
        "  - {name: ib, mode: dra, claims: [{template: nics}]}\n"
    )
    own = read(answers | {FABRICS: yaml.safe_load(text)})
    assert own.facts.listed == ("lab",)
    assert read(answers).facts.listed == ()


def test_claims_of_pods_do_not_count() -> None:
    """Kubernetes made them from a template for one pod; no other pod names them."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "controller": True}
    made = claim("train-nic-x7", ownerReferences=[owner])
    kept = claim("mine", ownerReferences=[{**owner, "kind": "JobSet"}])
    answers = everything() | {TEMPLATES: listed(), CLAIMS: listed(made, kept)}
    found = read_live(PreparedReads(answers), ["lab"], claims=True)
    assert [key_of(one)[1] for one in found.facts.objects[-2:]] == ["quota", "mine"]


def test_templates_and_claims_that_are_not_readable_stay_unknown() -> None:
    """A note says so; nothing is asked of an API server that is silent."""
    refused = everything() | {TEMPLATES: 403, CLAIMS: 403}
    found = read_live(PreparedReads(refused), ["lab"], claims=True)
    assert found.facts.listed == ()
    assert found.facts.notes == (
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
    assert read_live(silent, ["lab"], claims=True).facts.listed == ()
    assert TEMPLATES not in silent.asked


def test_nodes_come_in_pages() -> None:
    """They are read once, and only if a pod asks."""
    answers = everything() | {
        NODES: listed(node("n1"), after="2"),
        f"{NODES}2": listed(node("n2")),
    }
    api = PreparedReads(answers)
    assert list(read_live(api, ["lab", "web"]).facts.nodes) == ["n1", "n2"]
    assert api.asked[-2:] == [NODES, f"{NODES}2"]
    assert api.asked.count(NODES) == 1
    assert read_live(PreparedReads(answers), ()).facts.nodes == {}


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
    """What the cluster has is the same to both, so the whole decision is."""
    document = (GPU % gpu).encode()
    reading = read(everything() | {NODES: listed(*nodes)})
    assert reading.configuration is not None
    fabrics = reading.configuration.fabrics
    options = PreviewOptions(fabrics=fabrics, live=reading.facts)
    (previewed,) = preview_documents(read_documents(document), options).previews

    space = {**everything()[LAB], "kind": "Namespace"}
    facts = Facts.from_objects([space, *({**one, "kind": "Node"} for one in nodes)])
    state = configured(fabrics, facts)
    pod = yaml.safe_load(document)
    context = state.context_for("lab", pod)
    assert context is not None
    assert previewed.decision == decide(pod, context)
    assert previewed.decision.verdict is not None
    assert previewed.decision.verdict.because.code == because
