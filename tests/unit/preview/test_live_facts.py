"""What a preview reads of a cluster, with all rights, with few, and without an answer."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from webhook.config import EXAMPLE
from webhook.config.findings import InvalidConfiguration
from webhook.errors import ClusterError
from webhook.kube.requests import Query, RefusedError
from webhook.preview.live_facts import (
    MOST_NAMESPACES,
    LiveReading,
    namespaces_of,
    read_live,
)
from webhook.yamltext.documents import read_documents

LAB = "/api/v1/namespaces/lab"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/rdma-webhook/configmaps/"
SITE, SHIPPED = f"{MAPS}rdma-webhook-fabrics", f"{MAPS}rdma-webhook-fabrics-default"
FABRICS = "/apis/rdma.lab/v1alpha1/fabricconfigurations/default"
NO_FABRICS = "apiVersion: rdma.lab/v1alpha1\nkind: FabricConfiguration\nspec: {fabrics: []}\n"
INSTEAD = "used: the fabrics of mine.yaml"


class PreparedReads:
    """Answers with these objects, status codes or errors, and 404 for all else.

    It stands for an API server over HTTP, which the integration tests and tests/e2e have.
    """

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    def get(self, path: str, _: Query) -> dict[str, Any]:
        """Return an object."""
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
    }


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
    assert found.fabrics is not None
    assert list(found.fabrics.loaded.fabrics.fabrics) == ["v100-ib", "a100-ib"]
    assert found.facts.notes == (
        ("fabrics: those of the cluster, fabricconfigurations.rdma.lab/default: v100-ib, a100-ib"),
    )
    assert api.asked == [HOOKS, FABRICS, LAB, f"{LAB}/limitranges", f"{LAB}/resourcequotas"]


def test_with_no_rights() -> None:
    """Each right is told, in one line, with what is assumed; no ConfigMap takes its place."""
    api = PreparedReads(dict.fromkeys(everything(), 403))
    found = read_live(api, ["lab"], fabrics_instead=INSTEAD)
    assert (found.facts.objects, found.facts.webhooks, found.fabrics) == ((), None, None)
    assert found.facts.notes == (
        (
            "mutatingwebhookconfigurations: not read, as you lack the right to list "
            "mutatingwebhookconfigurations; assumed: the webhook is registered as its manifests do "
            "it"
        ),
        (
            "fabricconfigurations.rdma.lab/default: not read, as you lack the right to get "
            "fabricconfigurations; used: the fabrics of mine.yaml"
        ),
        (
            "namespace lab: not read, as you lack the right to get namespaces; assumed: no Pod "
            "Security level and no fabric of its own; its labels stay unknown"
        ),
        (
            "limitranges of namespace lab: not read, as you lack the right to list limitranges; "
            "assumed: none of them requires a memory limit"
        ),
        (
            "resourcequotas of namespace lab: not read, as you lack the right to list "
            "resourcequotas; assumed: none of them requires a memory limit"
        ),
    )
    assert not {SITE, SHIPPED} & {*api.asked}


def test_what_is_not_there() -> None:
    """A namespace that will be created, and a cluster without fabrics, are told as such."""
    found = read({HOOKS: {"items": []}, f"{LAB}/limitranges": {}, f"{LAB}/resourcequotas": {}})
    assert found.facts.webhooks == ()
    assert found.facts.notes == (
        "fabricconfigurations.rdma.lab/default: not there; used: the fabrics of mine.yaml",
        (
            "namespace lab: not there; assumed: no Pod Security level and no fabric of its own; "
            "its labels stay unknown"
        ),
    )


def test_an_error_of_the_api_server() -> None:
    """What it said is told, and the other requests follow."""
    found = read(everything() | {LAB: 500})
    (_, note) = found.facts.notes
    assert note == (
        "namespace lab: not read, as the API server answered 500: no; assumed: no Pod Security "
        "level and no fabric of its own; its labels stay unknown"
    )
    assert [one["kind"] for one in found.facts.objects] == ["LimitRange", "ResourceQuota"]


@pytest.mark.parametrize("silence", [ClusterError("it is silent"), 401], ids=str)
@pytest.mark.parametrize("at", [HOOKS, FABRICS, LAB, f"{LAB}/limitranges", f"{LAB}/resourcequotas"])
def test_no_request_follows_one_without_an_answer(at: str, silence: Any) -> None:
    """Waiting for each of many timeouts would help nobody; nor would asking as nobody."""
    api = PreparedReads(everything() | {at: silence})
    found = read_live(api, ["lab", "other"], fabrics_instead=INSTEAD)
    assert api.asked[-1] == at
    said = "the API server answered 401: no" if silence == 401 else "it is silent"
    told = f"{said}; what was not read by then is assumed as without a cluster"
    assert [note for note in found.facts.notes if not note.startswith("fabrics: ")] == [told]


def test_fabrics_that_are_not_wanted() -> None:
    """With -c, those of the cluster are not read."""
    api = PreparedReads(everything())
    assert read_live(api, []).fabrics is None
    assert api.asked == [HOOKS]


@pytest.mark.parametrize("site", [404, {}, {"data": {"other.yaml": "x"}}, {"data": None}], ids=str)
def test_the_fabrics_of_the_first_manifests(site: Any) -> None:
    """They count until the site has its own, as in the volume of the first version's Deployment."""
    shipped = {"data": {"fabrics.yaml": NO_FABRICS}}
    found = read({**everything(), FABRICS: 404, SITE: site, SHIPPED: shipped})
    assert found.fabrics is not None
    assert found.fabrics.source == "ConfigMap rdma-webhook/rdma-webhook-fabrics-default"
    assert found.facts.notes[0].endswith("rdma-webhook-fabrics-default: none")


def test_the_fabrics_of_the_first_version() -> None:
    """A ConfigMap counts where there is no object, with the commands that make it one."""
    site = {"data": {"fabrics.yaml": EXAMPLE.read_text()}}
    found = read({**everything(), FABRICS: 404, SITE: site})
    assert found.fabrics is not None
    assert list(found.fabrics.loaded.fabrics.fabrics) == ["v100-ib", "a100-ib"]
    assert found.facts.notes == (
        (
            "fabrics: those of the cluster, ConfigMap rdma-webhook/rdma-webhook-fabrics: v100-ib, "
            "a100-ib"
        ),
        (
            "ConfigMap rdma-webhook/rdma-webhook-fabrics: this version of the webhook reads "
            "fabricconfigurations.rdma.lab/default instead: kubectl -n rdma-webhook get configmap "
            "rdma-webhook-fabrics -o yaml | rdma-webhook check-config --convert - | kubectl apply "
            "-f -"
        ),
    )
    assert "ConfigMap" not in str(read({**everything(), SITE: site}).facts.notes)


@pytest.mark.parametrize(
    ("answers", "name"),
    [
        ({FABRICS: {"kind": "FabricConfiguration"}}, "fabricconfigurations.rdma.lab/default: "),
        (
            {FABRICS: 404, SITE: {"data": {"fabrics.yaml": "kind: FabricConfiguration"}}},
            'ConfigMap rdma-webhook/rdma-webhook-fabrics data["fabrics.yaml"]:',
        ),
    ],
    ids=["object", "ConfigMap"],
)
def test_fabrics_that_cannot_be_used(answers: dict[str, Any], name: str) -> None:
    """Every error is told, with its place; nothing is decided by other fabrics."""
    with pytest.raises(InvalidConfiguration) as caught:
        read({**everything(), **answers})
    assert str(caught.value).startswith(name)


@pytest.mark.parametrize(
    ("client", "home"),
    [
        ({"service": {"namespace": "platform"}}, "platform"),
        ({"service": None, "url": "https://host.lab/mutate"}, "rdma-webhook"),
        ({"service": {"namespace": 7}}, "rdma-webhook"),
    ],
    ids=["another namespace", "no Service", "nonsense"],
)
def test_the_namespace_of_the_webhook(client: dict[str, Any], home: str) -> None:
    """It is that of the Service which the API server calls, if there is one."""
    api = PreparedReads({HOOKS: hook(**client)})
    read_live(api, [], fabrics_instead=INSTEAD)
    assert api.asked[2] == f"/api/v1/namespaces/{home}/configmaps/rdma-webhook-fabrics"


def test_a_webhook_that_cannot_be_called() -> None:
    """Without a caBundle the API server trusts no certificate of it."""
    found = read({**everything(), HOOKS: hook(caBundle="")})
    assert found.facts.notes[0] == (
        "zz: the API server cannot call pods.rdma.lab, which has no caBundle; assumed: whoever "
        "runs the cluster will see to it (rdma-webhook certs status)"
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
    api = PreparedReads({HOOKS: hook()})
    found = read_live(api, names)
    assert len(api.asked) == 1 + 3 * MOST_NAMESPACES
    assert found.facts.notes[-1] == (
        "2 more namespaces: not read, as they are too many; assumed: no Pod Security level and no "
        "fabric of its own; its labels stay unknown"
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


TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaimtemplates"


def test_templates_are_read_where_a_fabric_has_claims() -> None:
    """By the file that the caller has, or by the fabrics of the cluster."""
    item = {"metadata": {"name": "nics", "namespace": "lab"}, "spec": {"spec": {}}}
    answers = everything() | {TEMPLATES: {"items": [item]}}
    found = read_live(PreparedReads(answers), ["lab"], templates=True)
    assert found.facts.objects[-1] == {**item, "kind": "ResourceClaimTemplate"}
    assert found.facts.listed == ("lab",)
    text = (
        "apiVersion: rdma.lab/v1alpha1\nkind: FabricConfiguration\nmetadata: {name: default}\n"
        "spec:\n  fabrics:\n"
        "  - {name: ib, mode: dra, claims: [{template: nics}]}\n"
    )
    own = read(answers | {FABRICS: yaml.safe_load(text)})
    assert own.facts.listed == ("lab",)
    assert read(answers).facts.listed == ()


def test_templates_that_are_not_readable_stay_unknown() -> None:
    """A note says so; nothing is asked of an API server that is silent."""
    found = read_live(PreparedReads(everything() | {TEMPLATES: 403}), ["lab"], templates=True)
    assert found.facts.listed == ()
    assert found.facts.notes[-1] == (
        "resourceclaimtemplates of namespace lab: not read, as you lack the right to list "
        "resourceclaimtemplates; whether the fabrics' templates exist stays unknown"
    )
    silent = PreparedReads(everything() | {LAB: 0})
    assert read_live(silent, ["lab"], templates=True).facts.listed == ()
    assert TEMPLATES not in silent.asked
