"""The power of a thief with a replica's token, stolen from its file system."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from http import HTTPStatus
from typing import Any

import pytest

from tests.cluster.fabrics import PATH
from tests.cluster.install import LAB, NAME, Webhook
from tests.e2e.documents import Document
from tests.e2e.wire import JSON, Response, send
from tests.waiting import until
from webhook.kube.client import MAX_UPDATES
from webhook.serve.status.events import TYPES

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
SECRETS = f"/api/v1/namespaces/{NAME}/secrets"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAME}/leases/{NAME}"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
ATTEMPTS = 20
_NODE = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}


class Thief:
    """Calls the API server with the token of a replica; nothing is stored."""

    def __init__(self, webhook: Webhook) -> None:
        self.webhook = webhook
        self.pod = webhook.replicas()[0]
        program = f"print(open('{TOKEN}').read(), end='')"
        self._token = webhook.kubectl("exec", self.pod, "--", "/app/bin/python", "-c", program)

    def send(self, method: str, path: str, document: object = None, kind: str = JSON) -> Response:
        """Dry-run a request, under the field manager of the replicas."""
        dry = "" if method == "GET" else f"?dryRun=All&fieldManager={NAME}"
        return self.request(method, path + dry, document, kind)

    def request(self, method: str, path: str, document: object, kind: str) -> Response:
        """Send a request as it is."""
        return send(self.webhook.cluster, method, path, document, kind, token=self._token)

    def secret(self) -> Document:
        """Read the Secret of the CA, as every replica may."""
        response = self.send("GET", f"{SECRETS}/{NAME}-ca")
        assert response.code == 200, response.refusal
        return response.object


#: The message on entries in managedFields.
_MANAGERS = "may write into managedFields only its own entries, of at most 16 KiB"


@pytest.fixture(scope="module")
def thief(webhook: Webhook) -> Thief:
    """Steal a token."""
    return Thief(webhook)


#: Ways to call another server, or for more objects.
REDIRECTED = [
    {"op": "replace", "path": "/webhooks/0/clientConfig/service/name", "value": "thief"},
    {"op": "add", "path": "/webhooks/0/rules/0/resources/-", "value": "secrets"},
    {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"},
]


@pytest.mark.parametrize("configuration", ["mutating/zz-rdma-webhook", "validating/rdma-webhook"])
def test_no_call_can_be_redirected(thief: Thief, configuration: str) -> None:
    """RBAC allows patches of both webhook configurations; the policy denies all but `caBundle`."""
    kind, _, name = configuration.partition("/")
    path = f"{ADMISSION}/{kind}webhookconfigurations/{name}"
    message = "rdma-webhook may change only caBundle of its own two webhook configurations"
    for change in REDIRECTED:
        response = thief.send("PATCH", path, [change], "application/json-patch+json")
        assert (response.code, message in response.refusal) == (403, True), response.refusal
    bundle = {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "eA=="}
    response = thief.send("PATCH", path, [bundle], "application/json-patch+json")
    assert message not in response.refusal


def test_it_lists_only_its_own_objects(thief: Thief) -> None:
    """A list or a watch needs the field selector of the only name that RBAC grants."""
    for path, name in (
        (SECRETS, f"{NAME}-ca"),
        (f"{ADMISSION}/mutatingwebhookconfigurations", f"zz-{NAME}"),
        (f"{ADMISSION}/validatingwebhookconfigurations", NAME),
    ):
        codes = [
            thief.send("GET", f"{path}{selector}").code
            for selector in (f"?fieldSelector=metadata.name={name}", "?limit=1", f"/{name}-other")
        ]
        assert codes == [200, 403, 403], path


def test_replicas_prove_their_guard(thief: Thief) -> None:
    """Each has tried as itself, by dry runs, and reports the result."""
    webhook = thief.webhook
    proven = "[+] guard: this account may change at most caBundle of "
    for replica in webhook.replicas():
        until(lambda replica=replica: proven in webhook.ask(replica, "/readyz"))  # type: ignore[misc]
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    expected = dict.fromkeys(((kind,) for kind in kinds), len(webhook.replicas()))
    until(lambda: webhook.counted("rdma_webhook_guarded", "kind") == expected)


def _secret(name: str, **fields: object) -> Document:
    secret: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    return {**secret, "type": "Opaque", **fields}


def test_no_other_secret_can_be_made(thief: Thief) -> None:
    """RBAC allows any number of Secrets; the policy denies them."""
    for number in range(ATTEMPTS):
        response = thief.send("POST", SECRETS, _secret(f"flood-{number}"))
        assert response.code == 403
        assert f"rdma-webhook may write only the Secret {NAME}-ca" in response.refusal
    nameless = _secret("", metadata={"generateName": "flood-"})
    assert thief.send("POST", SECRETS, nameless).code == 403
    other_secret = f"/api/v1/namespaces/default/secrets/{NAME}-ca"
    assert thief.send("PUT", other_secret, _secret(f"{NAME}-ca")).code == 403


def _put(*path: str, value: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        for step in path[:-1]:
            document = document.setdefault(step, {})
        document[path[-1]] = value

    return change


#: Changes of the Secret, and the message that rejects each.
REFUSED: dict[str, tuple[Callable[[Document], None], str]] = {
    "immutable": (_put("immutable", value=True), "without immutable: true"),
    "another key": (_put("data", "other", value="eA=="), "may write only CAs"),
    "a large CA": (_put("data", "next.crt", value="eHh4" * (1 << 15)), "CAs (at most 16 KiB each)"),
    "a large key": (
        _put("data", "next.key", value="eHh4" * (1 << 11)),
        "keys (at most 4 KiB each)",
    ),
    "a label": (
        _put("metadata", "labels", value={"a": "b"}),
        "only its own annotations in its Secret's metadata",
    ),
    "a finalizer": (
        _put("metadata", "finalizers", value=["example.com/never"]),
        "only its own annotations in its Secret's metadata",
    ),
    "an owner": (
        _put(
            "metadata",
            "ownerReferences",
            value=[_NODE],
        ),
        "only its own annotations in its Secret's metadata",
    ),
    "an annotation": (
        _put("metadata", "annotations", "other", value="x"),
        "only its own annotations in its Secret's metadata",
    ),
    "a long annotation": (
        _put("metadata", "annotations", "rdma.lab/rotate", value="x" * 65),
        "only its own annotations in its Secret's metadata",
    ),
}


@pytest.mark.parametrize("change", REFUSED)
def test_the_secret_stays_writable(thief: Thief, change: str) -> None:
    """Neither an update nor a create can make it immutable, too large, or kept by a finalizer."""
    do, message = REFUSED[change]
    stored = thief.secret()
    do(stored)
    response = thief.send("PUT", f"{SECRETS}/{NAME}-ca", stored)
    assert (response.code, message in response.refusal) == (403, True), response.refusal
    secret = _secret(f"{NAME}-ca")
    do(secret)
    response = thief.send("POST", SECRETS, secret)
    assert (response.code, message in response.refusal) == (403, True), response.refusal


def test_no_secret_of_another_type(thief: Thief) -> None:
    """A Secret of another type, such as one that a controller would fill, is rejected."""
    response = thief.send("POST", SECRETS, {**_secret(f"{NAME}-ca"), "type": "example.com/other"})
    assert (response.code, "only a Secret of type Opaque" in response.refusal) == (403, True)


def test_requests_of_the_replicas_are_allowed(thief: Thief) -> None:
    """One more CA and its annotations are accepted; other annotations may stay or be removed."""
    stored = thief.secret()
    stored["data"] |= {"next.crt": "eA==", "next.key": "eA==", "previous.crt": "eA=="}
    annotations = {"rdma.lab/rotate": "rotate", "rdma.lab/retire-after": "2026-11-22T15:04:05Z"}
    stored["metadata"]["annotations"] = annotations
    response = thief.send("PUT", f"{SECRETS}/{NAME}-ca", stored)
    assert (response.code, response.refusal) == (200, "")


def test_the_secret_cannot_be_filled(thief: Thief) -> None:
    """Neither an update nor a create can write large managedFields, which RBAC does not limit."""
    for method, path, secret in (
        ("PUT", f"{SECRETS}/{NAME}-ca", thief.secret()),
        ("POST", SECRETS, _secret(f"{NAME}-ca")),
    ):
        for entry in (_filled("v1"), _odd_entry("v1")):
            secret["metadata"]["managedFields"] = [entry]
            response = thief.send(method, path, secret)
            assert (response.code, _MANAGERS in response.refusal) == (403, True), response.refusal


def test_it_deletes_no_secret(thief: Thief) -> None:
    """RBAC does not grant deletion."""
    assert thief.send("DELETE", f"{SECRETS}/{NAME}-ca").code == 403


def _event(thief: Thief, mark: str = "f55") -> Document:
    """Write the Event that the replica itself would write."""
    regarding = {
        "apiVersion": "rdma.lab/v1alpha1",
        "kind": "FabricConfiguration",
        "name": "default",
    }
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"default.{mark}", "namespace": "default"},
        "eventTime": "2026-11-21T12:00:00.000005Z",
        "type": "Warning",
        "reason": "NotUsable",
        "action": "Check",
        "note": "anything",
        "reportingController": "rdma.lab/webhook",
        "reportingInstance": thief.pod,
        "regarding": {**regarding, "uid": "7e57"},
    }


_MANAGED = {
    "manager": "thief",
    "operation": "Update",
    "apiVersion": "events.k8s.io/v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:note": {f"f:{number}": {} for number in range(1000)}},
}


def _fields(count: int, length: int, letter: str = "x") -> Document:
    fields: Document = {f"f:{letter * length}{number}": {} for number in range(count)}
    return {**_MANAGED, "fieldsV1": fields}


def _filled(version: str) -> Document:
    """Return an entry of managedFields larger than the guards allow, in bytes alone."""
    return {**_fields(500, 10, "\N{GRINNING FACE}"), "apiVersion": version}


#: Times that the API server stores and clients cannot read.
_ODD_TIMES = ("9999-12-31T23:59:59.000000-23:00", "0000-01-01T00:00:00.000000Z")


def _odd_entry(version: str) -> Document:
    """Return an entry of managedFields with which the API server cannot read its object again.

    Its subresource keeps the API server from merging it with the entry of the same request.
    """
    identity = {"manager": NAME, "apiVersion": version, "subresource": "x"}
    return {**_fields(1, 10), **identity, "time": _ODD_TIMES[0]}


_ABOUT = "only about the FabricConfiguration and about missing RDMA"
_AT = "only about its FabricConfiguration, each with one of 4096 names"
_SAYS = "only the fields of an Event that the policy lists"
_OWNERS = "only to owners of pods, in namespaces that opted in"
_VISIBLE = "only visible characters"
FALSE: dict[str, tuple[Callable[[Document], None], str]] = {
    "another reason": (_put("reason", value="Killing"), _ABOUT),
    "by another": (_put("reportingInstance", value="somebody"), _ABOUT),
    "of any name": (_put("metadata", "name", value="flood-1"), _AT),
    "of more names": (_put("metadata", "name", value="default.f55f"), _AT),
    "without a name": (
        _put("metadata", value={"generateName": "flood-", "namespace": "default"}),
        _AT,
    ),
    "about another object": (_put("regarding", "name", value="another"), _AT),
    "about another kind": (_put("regarding", "kind", value="Deployment"), _AT),
    "another version": (_put("regarding", "apiVersion", value="v2"), _AT),
    "elsewhere": (_put("regarding", "namespace", value="x" * 1000), _AT),
    "of another controller": (_put("reportingController", value="example.com/other"), _SAYS),
    "a large place": (_put("regarding", "fieldPath", value="x" * 1000), _SAYS),
    "hidden characters": (_put("note", value="a\u202eb"), _VISIBLE),
    "a filler": (_put("note", value="a\u3164b"), _VISIBLE),
    "a line separator": (_put("note", value="a\u2028b"), _VISIBLE),
    "hidden characters in an action": (_put("action", value="a\x1b[2Jb"), _VISIBLE),
    "hidden characters in a uid": (_put("regarding", "uid", value="a\u202eb"), _VISIBLE),
    "a version of it": (_put("regarding", "resourceVersion", value="x" * 1000), _SAYS),
    "a series": (
        _put("series", value={"count": 2, "lastObservedTime": "2026-11-21T12:00:00.000005Z"}),
        _SAYS,
    ),
    "an owner": (_put("metadata", "ownerReferences", value=[_NODE]), _SAYS),
    "many fields": (_put("metadata", "managedFields", value=[_fields(100, 1)]), "managedFields"),
    "a field of bytes that take more in JSON": (
        _put("metadata", "managedFields", value=[{**_MANAGED, "fieldsV1": {"f:\x01": {}}}]),
        "managedFields",
    ),
    "a long field": (_put("metadata", "managedFields", value=[_fields(1, 100)]), "managedFields"),
    "a large uid": (_put("regarding", "uid", value="x" * 1000), _SAYS),
    "a relative": (_put("related", value={"kind": "Pod", "name": "x" * 1000}), _SAYS),
    "labels": (_put("metadata", "labels", value={"a": "b"}), _SAYS),
    "annotations": (_put("metadata", "annotations", value={"a": "x" * 1000}), _SAYS),
    "finalizers": (_put("metadata", "finalizers", value=["example.com/never"]), _SAYS),
    "a year of five digits": (_put("eventTime", value=_ODD_TIMES[0]), _SAYS),
    "the year 0": (_put("eventTime", value=_ODD_TIMES[1]), _SAYS),
    "an odd time of fields": (
        _put("metadata", "managedFields", value=[_odd_entry("events.k8s.io/v1")]),
        "managedFields",
    ),
    "managed fields": (_put("metadata", "managedFields", value=[_MANAGED]), "managedFields"),
    "many managers": (
        _put(
            "metadata",
            "managedFields",
            value=[{**_MANAGED, "manager": f"m{n}", "fieldsV1": {"f:x": {}}} for n in range(9)],
        ),
        "managedFields",
    ),
}


def test_a_true_event_is_taken(thief: Thief) -> None:
    """An event as the process writes it is accepted, with any of its names and reasons."""
    for mark in ("000", "f55", "fff"):
        response = thief.send("POST", EVENTS, _event(thief, mark))
        assert (response.code, response.refusal) == (201, ""), mark
    for reason, kind in TYPES.items():
        event = {**_event(thief), "reason": reason, "type": kind}
        response = thief.send("POST", EVENTS, event)
        assert (response.code, response.refusal) == (201, ""), reason
    event = _event(thief)
    del event["regarding"]["uid"]  # of an object that does not exist
    assert thief.send("POST", EVENTS, event).code == 201


@pytest.mark.parametrize("how", FALSE)
def test_other_events_are_refused(thief: Thief, how: str) -> None:
    """Events of another form, place or size are rejected: their number would have no limit."""
    event = deepcopy(_event(thief))
    do, message = FALSE[how]
    do(event)
    response = thief.send("POST", EVENTS, event)
    assert (response.code, message in response.refusal) == (403, True), response.refusal


def _at_owner(thief: Thief) -> Document:
    """Write the Event that the replica would write about the owner of a pod."""
    regarding = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "namespace": LAB}
    return {
        **_event(thief),
        "metadata": {"name": "rdma-webhook.0ab", "namespace": LAB},
        "reason": "NoRDMA",
        "action": "Admit",
        "regarding": {**regarding, "uid": "7e57"},
    }


FALSE_AT_OWNER: dict[str, Callable[[Document], None]] = {
    "of any name": _put("metadata", "name", value="flood-1"),
    "of more names": _put("metadata", "name", value="rdma-webhook.0abc"),
    "at a pod": _put("regarding", "kind", value="Pod"),
    "at a node": _put("regarding", "kind", value="Node"),
    "at nothing": _put("regarding", "kind", value=""),
    "of a long kind": _put("regarding", "kind", value="x" * 65),
    "of a kind in another case": _put("regarding", "kind", value="pod"),
    "of a kind that looks like a pod": _put("regarding", "kind", value="Pod\u200b"),
    "of a long name": _put("regarding", "name", value="train" * 60),
    "elsewhere": _put("regarding", "namespace", value="default"),
}


def test_a_true_event_at_an_owner_is_taken(thief: Thief) -> None:
    """In a namespace that opted in, an event as the process writes it is accepted."""
    event = _at_owner(thief)
    response = thief.send("POST", EVENTS.replace("/default/", f"/{LAB}/"), event)
    assert (response.code, response.refusal) == (201, "")
    del event["regarding"]["uid"]
    assert thief.send("POST", EVENTS.replace("/default/", f"/{LAB}/"), event).code == 201
    event["regarding"]["name"] = "train" * 50
    assert thief.send("POST", EVENTS.replace("/default/", f"/{LAB}/"), event).code == 201


@pytest.mark.parametrize("how", FALSE_AT_OWNER)
def test_other_events_at_owners_are_refused(thief: Thief, how: str) -> None:
    """An event must be about a controller in its own namespace, and by the pod that sends it."""
    event = _at_owner(thief)
    FALSE_AT_OWNER[how](event)
    response = thief.send("POST", EVENTS.replace("/default/", f"/{LAB}/"), event)
    assert (response.code, _OWNERS in response.refusal) == (403, True), response.refusal


@pytest.mark.parametrize("field", ["apiVersion", "name"])
def test_an_owner_has_visible_names(thief: Thief, field: str) -> None:
    """`kubectl get events` prints them on a terminal."""
    event = _at_owner(thief)
    event["regarding"][field] = "a\x1b[2J\u202eb"
    response = thief.send("POST", EVENTS.replace("/default/", f"/{LAB}/"), event)
    assert (response.code, _VISIBLE in response.refusal) == (403, True), response.refusal


def test_a_namespace_that_did_not_opt_in_gets_no_event(thief: Thief) -> None:
    """The webhook never writes events there."""
    event = _at_owner(thief)
    event["metadata"]["namespace"] = event["regarding"]["namespace"] = "default"
    response = thief.send("POST", EVENTS, event)
    assert (response.code, _OWNERS in response.refusal) == (403, True), response.refusal


def test_an_event_at_an_owner_has_its_reporter(thief: Thief) -> None:
    """The reporter is the pod of the token, so that people find the thief's pod."""
    event = {**_at_owner(thief), "reportingInstance": "somebody"}
    response = thief.send("POST", EVENTS.replace("/default/", f"/{LAB}/"), event)
    assert (response.code, _ABOUT in response.refusal) == (403, True), response.refusal


def test_an_event_about_the_configuration_has_one_place(thief: Thief) -> None:
    """No other namespace gets one: Kubernetes keeps those of objects without a namespace together.

    It checks that before the policy, which checks the rest: the object may be said to have one.
    """
    event = _event(thief)
    event["metadata"]["namespace"] = LAB
    elsewhere = EVENTS.replace("/default/", f"/{LAB}/")
    assert thief.send("POST", elsewhere, event).code == 422
    event["regarding"]["namespace"] = LAB
    response = thief.send("POST", elsewhere, event)
    assert (response.code, _AT in response.refusal) == (403, True), response.refusal


def test_a_token_of_no_pod_makes_no_event(webhook: Webhook, thief: Thief) -> None:
    """A token that is not a pod's, such as one from `kubectl create token`, can write no event."""
    token = webhook.kubectl("create", "token", NAME).strip()
    response = send(webhook.cluster, "POST", f"{EVENTS}?dryRun=All", _event(thief), token=token)
    assert (response.code, _ABOUT in response.refusal) == (403, True), response.refusal


def test_the_policies_are_well_typed(webhook: Webhook) -> None:
    """The API server's own type check of the policies' expressions finds nothing."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    policies = {
        policy["metadata"]["name"]: policy for policy in json.loads(webhook.read(path))["items"]
    }
    guards = [name for name in policies if name.startswith("rdma-webhook-guard")]
    assert len(guards) == 5
    for name in guards:
        assert not policies[name]["status"].get("typeChecking", {}).get("expressionWarnings"), name


@pytest.mark.parametrize("configuration", ["mutating/zz-rdma-webhook", "validating/rdma-webhook"])
def test_no_configuration_can_be_filled(thief: Thief, configuration: str) -> None:
    """A full or unreadable object could not be healed; nor may an entry keep others from it."""
    kind, _, name = configuration.partition("/")
    path = f"{ADMISSION}/{kind}webhookconfigurations/{name}"
    version = {"apiVersion": "admissionregistration.k8s.io/v1"}
    small, large = _fields(1, 10) | version, _filled(version["apiVersion"])
    entries = json.loads(thief.webhook.read(path))["metadata"]["managedFields"]
    other = next(entry for entry in entries if entry["manager"] != NAME)
    for field, value, message in (
        ("/webhooks/0/clientConfig/caBundle", "eHh4" * (1 << 15), "64 KiB"),
        ("/metadata/managedFields/-", small, _MANAGERS),
        ("/metadata/managedFields/-", large | {"manager": NAME}, _MANAGERS),
        ("/metadata/managedFields/-", small | {"manager": NAME, "subresource": "x"}, _MANAGERS),
        ("/metadata/managedFields", [small], _MANAGERS),
        ("/metadata/managedFields/-", other | {"subresource": "copy"}, _MANAGERS),
        ("/metadata/managedFields/-", _odd_entry(version["apiVersion"]), _MANAGERS),
    ):
        change = {"op": "add", "path": field, "value": value}
        response = thief.send("PATCH", path, [change], "application/json-patch+json")
        assert (response.code, message in response.refusal) == (403, True), response.refusal


@pytest.mark.parametrize("configuration", ["mutating/zz-rdma-webhook", "validating/rdma-webhook"])
def test_no_entry_makes_the_webhook_remove_fields(thief: Thief, configuration: str) -> None:
    """An apply removes what its manager owns and does not apply; it would then be rejected.

    A large entry is refused unread.
    """
    kind, _, name = configuration.partition("/")
    path = f"{ADMISSION}/{kind}webhookconfigurations/{name}"
    stored = json.loads(thief.webhook.read(path))
    (applied,) = (m for m in stored["metadata"]["managedFields"] if m["operation"] == "Apply")
    ((key, fields),) = applied["fieldsV1"]["f:webhooks"].items()
    address: Document = {"f:clientConfig": {"f:caBundle": {}, "f:service": {}}}
    for owned in (
        {"f:webhooks": {key: fields | address}},
        {"f:webhooks": {key: fields | {"f:rules": {}}}},
        {**applied["fieldsV1"], "f:metadata": {"f:labels": {}}},
        {"f:webhooks": {f'k:{{"name":"{number}"}}': fields for number in range(1000)}},
    ):
        change = {
            "op": "add",
            "path": "/metadata/managedFields",
            "value": [applied | {"fieldsV1": owned}],
        }
        response = thief.send("PATCH", path, [change], "application/json-patch+json")
        message = "rdma-webhook may apply only caBundle"
        assert (response.code, message in response.refusal) == (403, True), response.refusal


#: Changes of the Lease, and the message that rejects each.
MISUSED: dict[str, tuple[Callable[[Document], None], str]] = {
    "a long hold": (_put("spec", "leaseDurationSeconds", value=16), "for at most 15 s"),
    "a year of five digits": (_put("spec", "renewTime", value=_ODD_TIMES[0]), "in its own name"),
    "the year 0": (_put("spec", "acquireTime", value=_ODD_TIMES[1]), "in its own name"),
    "another holder": (_put("spec", "holderIdentity", value="another"), "in its own name"),
    "an annotation": (_put("metadata", "annotations", value={"a": "x" * 1000}), "only the spec"),
    "a label": (_put("metadata", "labels", value={"a": "b"}), "only the spec"),
    "a large prefix": (_put("metadata", "generateName", value="x" * 100_000), "only the spec"),
    "a finalizer": (_put("metadata", "finalizers", value=["example.com/never"]), "only the spec"),
    "an owner": (_put("metadata", "ownerReferences", value=[_NODE]), "only the spec"),
}


def _put_lease(thief: Thief, change: Callable[[Document], object]) -> Response:
    """Write the Lease with a change; again if its holder has renewed it since it was read."""
    while True:
        lease = thief.send("GET", LEASE).object
        change(lease)
        response = thief.send("PUT", LEASE, lease)
        if response.code != HTTPStatus.CONFLICT:
            return response


@pytest.mark.parametrize("change", MISUSED)
def test_the_lease_can_be_taken_over(thief: Thief, change: str) -> None:
    """It is held for 15 s, in the pod's own name; it is not filled, nor deleted with an owner."""
    do, message = MISUSED[change]

    def misuse(lease: Document) -> None:
        lease["spec"]["holderIdentity"] = thief.pod
        do(lease)

    response = _put_lease(thief, misuse)
    assert (response.code, message in response.refusal) == (403, True), response.refusal


@pytest.mark.parametrize("field", ["preferredHolder", "strategy"])
def test_the_lease_has_no_fields_of_a_coordinated_election(thief: Thief, field: str) -> None:
    """An API server without that feature drops them before the policy sees the Lease."""
    coordinated = {"holderIdentity": thief.pod, field: "another"}
    response = _put_lease(thief, lambda lease: lease["spec"].update(coordinated))
    assert response.code == 403 or field not in response.object["spec"]


def test_a_replica_may_hold_the_lease(thief: Thief) -> None:
    """Renewals as the process writes them are accepted; the Lease is never deleted."""
    hold = {"holderIdentity": thief.pod, "leaseDurationSeconds": 15}
    assert _put_lease(thief, lambda lease: lease["spec"].update(hold)).code == 200
    for entry in (_filled("coordination.k8s.io/v1"), _odd_entry("coordination.k8s.io/v1")):
        managed = {"managedFields": [entry]}

        def fill(lease: Document, managed: Document = managed) -> None:
            lease["spec"] |= hold
            lease["metadata"] |= managed

        response = _put_lease(thief, fill)
        assert (response.code, _MANAGERS in response.refusal) == (403, True), response.refusal
    assert thief.send("DELETE", LEASE).code == 403


def test_a_full_entry_does_not_keep_a_replica_from_the_lease(thief: Thief) -> None:
    """A renewal does not add to an entry that somebody has filled to the policy's limit."""
    full = _fields(1, 16_100) | {"apiVersion": "coordination.k8s.io/v1", "manager": NAME}

    def fill() -> bool:
        lease = thief.send("GET", LEASE).object
        lease["spec"]["holderIdentity"] = thief.pod
        lease["metadata"]["managedFields"] = [full]
        response = thief.request("PUT", f"{LEASE}?fieldManager={NAME}", lease, JSON)
        assert response.code in {200, 409}, response.refusal  # 409: a replica has just renewed it
        return response.code == 200

    until(fill)
    filled = thief.send("GET", LEASE).object["spec"]
    until(lambda: thief.send("GET", LEASE).object["spec"]["renewTime"] > filled["renewTime"])


STATUS = f"{PATH}/status"
MERGE = "application/merge-patch+json"


@pytest.fixture
def stored(webhook: Webhook) -> Document:
    """Return the FabricConfiguration, after the replicas have kept its spec and reported."""
    document: Document = {}

    def kept() -> bool:
        document.update(json.loads(webhook.read(PATH)))
        status = document.get("status", {})
        entries = status.get("kept") or [{}]
        reported = set(status.get("replicas", ())) >= set(webhook.replicas())
        return bool(entries[0].get("spec") == document["spec"]) and reported

    until(kept)
    return document


def test_only_the_present_spec_is_kept(thief: Thief, stored: Document) -> None:
    """A replica that starts would decide with another one; nor can a good one be removed."""
    now = {"generation": stored["metadata"]["generation"], "config": "c", "spec": stored["spec"]}
    before = stored["status"]["kept"]
    attempts = {
        "another spec": [{**now, "spec": {"fabrics": []}}, before[0]],
        "another generation": [{**now, "generation": 1 << 40}, before[0]],
        "nothing": [],
        "null": None,
        "the same once more": [now, before[0]],
        "the present one alone": [now],
        "twice": [now, now],
        "three": [now, *before, *before][:3],
        "numbers": [1, 2],
        "another field": [{**now, "other": 1}, before[0]],
        "a number for a hash": [{**now, "config": 1}, before[0]],
        "a changed older one": [before[0], {**before[0], "spec": {"fabrics": []}}],
    }
    for how, kept in attempts.items():
        response = thief.send("PATCH", STATUS, {"status": {"kept": kept}}, MERGE)
        assert response.code in {403, 422}, how
    refused = thief.send("PATCH", STATUS, {"status": {"kept": attempts["another spec"]}}, MERGE)
    assert "rdma-webhook may add only the current spec to status.kept" in refused.refusal
    unchanged = thief.send("PATCH", STATUS, {"status": {"kept": before}}, MERGE)
    assert unchanged.code == 200, unchanged.refusal


def test_what_replicas_merge_is_not_applied(thief: Thief, stored: Document) -> None:
    """The holder's next apply would remove it, and the policy would reject each of its applies."""
    body: Document = {"apiVersion": "rdma.lab/v1alpha1", "kind": "FabricConfiguration"}
    body |= {"metadata": {"name": "default"}}
    for field in ("kept", "replicas"):
        body["status"] = {field: stored["status"][field]}
        path = f"{STATUS}?dryRun=All&force=true&fieldManager={NAME}"
        response = thief.request("PATCH", path, body, "application/apply-patch+yaml")
        message = "rdma-webhook may not apply kept and replicas, but merge them"
        assert (response.code, message in response.refusal) == (403, True), response.refusal


def test_many_managers_do_not_keep_the_replicas_from_writing(
    thief: Thief, stored: Document
) -> None:
    """The API server keeps ten entries of updates, and merges older ones when a replica writes."""
    cluster = thief.webhook.cluster
    managers = range(MAX_UPDATES + 1)

    def annotate(value: str | None) -> None:
        for manager in managers:
            notes = {f"{'long' * 12}-{manager}-{number}": value for number in range(9)}
            path = f"{PATH}?fieldManager=m{manager}"
            send(cluster, "PATCH", path, {"metadata": {"annotations": notes}}, MERGE)

    annotate("x")
    defaults = stored["spec"].get("defaults")
    change = {"spec": {"defaults": {**(defaults or {}), "hcoll": "off"}}}
    changed = send(cluster, "PATCH", PATH, change, MERGE).object["spec"]
    try:
        until(lambda: json.loads(thief.webhook.read(PATH))["status"]["kept"][0]["spec"] == changed)
    finally:
        annotate(None)
        send(cluster, "PATCH", PATH, {"spec": {"defaults": None}}, MERGE)
        send(cluster, "PATCH", PATH, {"spec": {"defaults": defaults}}, MERGE)


def test_the_hash_of_a_kept_spec_is_visible(thief: Thief, stored: Document) -> None:
    """A thief may keep a new spec before the replicas do, but not with hidden characters."""
    defaults = stored["spec"].get("defaults") or {}
    cluster = thief.webhook.cluster

    def keep(document: Document, config: str) -> int:
        now = {"generation": document["metadata"]["generation"], "spec": document["spec"]}
        specs = [{**now, "config": config}, document["status"]["kept"][0]]
        return thief.send("PATCH", STATUS, {"status": {"kept": specs}}, MERGE).code

    def faster_than_the_replicas() -> bool:
        now = json.loads(thief.webhook.read(PATH))["spec"].get("defaults") or {}
        hcoll = "env" if now.get("hcoll") == "off" else "off"
        change = {"spec": {"defaults": {**defaults, "hcoll": hcoll}}}
        changed = send(cluster, "PATCH", PATH, change, MERGE).object
        codes = [keep(changed, config) for config in ("abc", "a\x9bb")]
        assert codes[1] == HTTPStatus.FORBIDDEN
        return codes[0] == HTTPStatus.OK

    try:
        until(faster_than_the_replicas)
    finally:
        send(cluster, "PATCH", PATH, {"spec": {"defaults": None}}, MERGE)
        send(cluster, "PATCH", PATH, {"spec": {"defaults": stored["spec"].get("defaults")}}, MERGE)


def _entry(**fields: Any) -> Document:
    seen = {"seen": "2026-01-01T00:00:00Z"}
    return {"config": "c", "generation": 1, "version": "1", **seen, **fields}


def test_a_replica_speaks_only_for_itself(thief: Thief, stored: Document) -> None:
    """It may remove the entry of a replica that is gone, but not write it."""
    others = [name for name in stored["status"]["replicas"] if name != thief.pod]
    message = "a replica of rdma-webhook may write only its own entry of status.replicas"
    for name in ("another", *others):
        entries = {"status": {"replicas": {name: _entry()}}}
        response = thief.send("PATCH", STATUS, entries, MERGE)
        assert (response.code, message in response.refusal) == (403, True), response.refusal
    for own in (_entry(), None):
        changed = {"status": {"replicas": {thief.pod: own}}}
        assert thief.send("PATCH", STATUS, changed, MERGE).code == 200
    for odd in (
        {"version": "a\x9b31m"},
        {"config": "a\u202eb"},
        {"version": "x" * 65},
        {"version": 1},
        {"config": None},
        {"generation": "1"},
        {"generation": None},
        {"seen": "9999-12-31T23:59:59-23:00"},
        {"seen": "0001-01-01T00:00:00Z"},
        {"seen": None},
        {"another": "x"},
    ):
        change = {"status": {"replicas": {thief.pod: _entry(**odd)}}}
        response = thief.send("PATCH", STATUS, change, MERGE)
        assert (response.code, message in response.refusal) == (403, True), (odd, response)
    impossible = {"status": {"replicas": {thief.pod: _entry(seen="2026-13-01T00:00:00Z")}}}
    assert thief.send("PATCH", STATUS, impossible, MERGE).code in {403, 422}


def test_the_status_cannot_fill_etcd(thief: Thief) -> None:
    """Its fields have a limit, and so have managedFields; the object itself is not writable."""
    problems = ["x" * 1000] * 300
    for fields in (
        {"fabrics": [{"name": "a", "problems": problems}]},
        {"fabricNames": "x" * 300_000},
        {"fabricNames": "<" * 50_000},
        {"fabricNames": "\N{EURO SIGN}" * 100_000},
        {"fabricNames": "a\x1fb"},
        {"fabricNames": "a\x9b31mb"},
        {"fabricNames": "a\u202eb"},
        {"conditions": [_condition(f"C{number}", "x" * 30_000) for number in range(10)]},
    ):
        response = thief.send("PATCH", STATUS, {"status": fields}, MERGE)
        assert (response.code, "256 KiB of visible text" in response.refusal) == (403, True), fields
    managed = {"manager": "thief", "operation": "Update", "apiVersion": "rdma.lab/v1alpha1"}
    managed |= {"fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z", "subresource": "status"}
    names: Document = {f'k:{{"name":"{number:0>100}"}}': {".": {}} for number in range(3000)}
    written: Document = {"f:status": {"f:fabrics": names}}
    body = {"metadata": {"managedFields": [{**managed, "fieldsV1": written}]}}
    response = thief.send("PATCH", STATUS, body, MERGE)
    size = len(json.dumps(response.object["metadata"].get("managedFields", "")))
    assert response.code == 403 or size < 10_000, (response.code, size)
    for path in (PATH, f"{PATH}/scale"):
        assert thief.send("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE).code == 403


def test_no_other_manager_can_keep_the_holder_from_writing(thief: Thief) -> None:
    """Lists are written as a whole, by a single manager, so nothing is left of a false status."""
    condition = _condition("X", "false")
    body: Document = {"apiVersion": "rdma.lab/v1alpha1", "kind": "FabricConfiguration"}
    body |= {"metadata": {"name": "default"}, "status": {"conditions": [condition]}}

    def applied_by(manager: str) -> Response:
        path = f"{STATUS}?dryRun=All&force=true&fieldManager={manager}"
        return thief.request("PATCH", path, body, "application/apply-patch+yaml")

    refused, stored = applied_by("thief"), applied_by(NAME)
    assert (refused.code, _MANAGERS in refused.refusal) == (403, True), refused.refusal
    assert [item["type"] for item in stored.object["status"]["conditions"]] == ["X"]


def _condition(kind: str, message: str) -> Document:
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"type": kind, "status": "True", "reason": "R", "message": message, **since}
