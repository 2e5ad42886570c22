from __future__ import annotations

from typing import Any

import pytest

from webhook.admission.match import predict_call
from webhook.admission.registration import (
    NAME_LABEL,
    SHIPPED,
    Registration,
    Requirement,
    WebhookRule,
    read_registration,
    registrations_in,
)
from webhook.model.facts import NamespaceFacts

NEEDS = 'it needs the label rdma.lab/enable: "true"'
LABEL_AND_ANNOTATION = "namespace lab has the label, and the pod has the annotation rdma.lab/enable"
NO_ANNOTATION = 'the pod has no annotation rdma.lab/enable: "true"'
LABELED = NamespaceFacts(name="lab", labels={"rdma.lab/enable": "true"})
WEBHOOK: dict[str, Any] = {**SHIPPED.webhook}


def _pod(*, os: str = "linux", **annotations: Any) -> dict[str, Any]:
    keys = {"enable": "rdma.lab/enable", "mirror": "kubernetes.io/config.mirror"}
    written = {keys[key]: value for key, value in annotations.items()}
    return {"metadata": {"annotations": written}, "spec": {"os": {"name": os}}}


@pytest.mark.parametrize(
    ("pod", "namespace", "expected", "because"),
    [
        (_pod(enable="true"), LABELED, True, LABEL_AND_ANNOTATION),
        (_pod(enable="yes"), LABELED, True, LABEL_AND_ANNOTATION),
        (_pod(), LABELED, False, NO_ANNOTATION),
        (_pod(enable=None), LABELED, False, NO_ANNOTATION),
        (
            _pod(enable="false"),
            LABELED,
            False,
            'the pod has the annotation rdma.lab/enable: "false"',
        ),
        (_pod(enable="true", mirror="x"), LABELED, False, "the pod is the mirror of a static pod"),
        (_pod(enable="true", os="windows"), LABELED, False, "the pod runs on Windows"),
        ({"metadata": [], "spec": 7}, LABELED, False, NO_ANNOTATION),
        (
            _pod(enable="true"),
            NamespaceFacts(name="lab", labels={"rdma.lab/enable": "True"}),
            False,
            f"namespace lab has the label rdma.lab/enable: 'True', but {NEEDS}",
        ),
        (
            _pod(enable="true"),
            NamespaceFacts(name="lab", labels={"rdma.lab/enable": "x" * 99}),
            False,
            f"namespace lab has the label rdma.lab/enable: '{'x' * 79}, but {NEEDS}",
        ),
        (
            _pod(enable="true"),
            NamespaceFacts(labels={}),
            False,
            'the namespace lacks the label rdma.lab/enable: "true"',
        ),
        (
            _pod(enable="true"),
            NamespaceFacts(name="lab"),
            None,
            f"the labels of namespace lab are unknown; {NEEDS}",
        ),
        (
            _pod(enable="true"),
            NamespaceFacts(name="lab", is_loaded=False),
            None,
            f"the labels of namespace lab are unknown; {NEEDS}",
        ),
        (_pod(), NamespaceFacts(name="lab"), False, NO_ANNOTATION),
    ],
)
def test_called(
    pod: dict[str, Any], namespace: NamespaceFacts, *, expected: bool | None, because: str
) -> None:
    """The answer follows the webhook's selector and conditions; unknown labels give None."""
    assert predict_call(pod, namespace) == (expected, because)


@pytest.mark.parametrize("name", ["kube-system", "kube-public", "kube-node-lease", "rdma-webhook"])
def test_excluded_namespaces(name: str) -> None:
    """The cluster's namespaces and the webhook's are excluded, whatever their labels."""
    namespace = NamespaceFacts(name=name, labels={"rdma.lab/enable": "true"})

    assert predict_call(_pod(enable="true"), namespace) == (
        False,
        f"namespace {name} is always excluded",
    )


def test_a_cluster_without_the_webhook() -> None:
    """No API server calls it then."""
    answer = predict_call(_pod(enable="true"), LABELED, ())
    assert answer == (False, "this cluster has no webhook pods.rdma.lab")


def _registered(**fields: Any) -> Registration:
    """Return the manifests' webhook with other fields, as a cluster returns its configuration."""
    webhook = {**WEBHOOK, **fields}
    other = {"name": "other.example"}
    configuration = {"metadata": {"name": "site"}, "webhooks": [other, webhook]}
    (registration,) = registrations_in([{"webhooks": None}, configuration])
    return registration


def _requires(*expressions: tuple[str, str, list[str]]) -> dict[str, Any]:
    return {
        "matchExpressions": [
            {"key": key, "operator": operator, "values": values}
            for key, operator, values in expressions
        ]
    }


TEAM = NamespaceFacts(name="lab", labels={"rdma.lab/enable": "true", "team": "ml"})
UNKNOWN = NamespaceFacts(name="lab")
SELECTED = "the selectors and conditions of the webhook in site match the pod"


@pytest.mark.parametrize(
    ("selector", "namespace", "expected", "because"),
    [
        ({}, NamespaceFacts(name="lab", labels={}), True, SELECTED),
        ({}, UNKNOWN, True, SELECTED),
        ({}, LABELED, True, "namespace lab has the label, and the pod has the annotation"),
        (_requires(("team", "In", ["ml", "hpc"])), TEAM, True, ""),
        (
            _requires(("team", "In", ["ml", "hpc"])),
            LABELED,
            False,
            "namespace lab lacks a label team in (ml, hpc)",
        ),
        (
            _requires(("team", "NotIn", ["ml"])),
            TEAM,
            False,
            "namespace lab has the label team: 'ml', but it needs a label team not in (ml)",
        ),
        (_requires(("team", "NotIn", ["ml"])), LABELED, True, ""),
        (_requires(("team", "Exists", [])), TEAM, True, ""),
        (
            _requires(("team", "Exists", [])),
            LABELED,
            False,
            "namespace lab lacks a label team",
        ),
        (_requires(("team", "DoesNotExist", [])), LABELED, True, ""),
        (
            _requires(("team", "DoesNotExist", [])),
            TEAM,
            False,
            "namespace lab has the label team: 'ml', but it needs to be without the label team",
        ),
        (
            _requires(("team", "Near", ["ml"])),
            TEAM,
            False,
            "namespace lab has the label team: 'ml', but it needs a label team Near (ml)",
        ),
        (
            _requires(("team", "Exists", []), ("tier", "In", ["a"])),
            UNKNOWN,
            None,
            'the labels of namespace lab are unknown; it needs a label team, the label tier: "a"',
        ),
        (_requires((NAME_LABEL, "In", ["lab"])), UNKNOWN, True, SELECTED),
        (
            _requires((NAME_LABEL, "In", ["web"])),
            TEAM,
            False,
            f'namespace lab is not selected; it needs the label {NAME_LABEL}: "web"',
        ),
        (
            _requires((NAME_LABEL, "NotIn", ["lab"])),
            TEAM,
            False,
            "namespace lab is always excluded",
        ),
        ({"matchLabels": ["x"], "matchExpressions": "y"}, TEAM, True, ""),
    ],
)
def test_another_selector_of_namespaces(
    selector: Any, namespace: NamespaceFacts, *, expected: bool | None, because: str
) -> None:
    """Each operator works as in the API server; unknown labels leave the answer open."""
    registration = _registered(namespaceSelector=selector)
    answer, sentence = predict_call(_pod(enable="true"), namespace, [registration])
    assert (answer, because in sentence) == (expected, True), sentence


@pytest.mark.parametrize(
    ("labels", "expected"),
    [({"app": "train"}, True), ({"app": "web"}, False), (None, False), ({"app": 1}, False)],
)
def test_a_selector_of_pods(labels: Any, *, expected: bool) -> None:
    """The pod's own labels count; a label that is not a string is ignored."""
    registration = _registered(objectSelector={"matchLabels": {"app": "train"}})
    pod = _pod(enable="true")
    pod["metadata"]["labels"] = labels
    answer, sentence = predict_call(pod, LABELED, [registration])
    assert answer is expected
    needed = 'the pod does not match the webhook\'s objectSelector; it needs the label app: "train"'
    assert expected or sentence == needed


def test_conditions_of_the_site() -> None:
    """One that the manifests do not have leaves the answer open, unless something else decides."""
    ours = WEBHOOK["matchConditions"]
    theirs = {"name": "not-at-night", "expression": "object.metadata.name != 'night'"}
    registration = _registered(matchConditions=[theirs, *ours])
    answer = predict_call(_pod(enable="true"), LABELED, [registration])
    reason = "the matchCondition not-at-night of the webhook in site cannot be evaluated here"
    assert answer == (None, reason)
    assert predict_call(_pod(), LABELED, [registration])[0] is False
    assert predict_call(_pod(enable="true"), NamespaceFacts(labels={}), [registration])[0] is False
    assert predict_call(_pod(enable="true"), UNKNOWN, [registration]) == (None, reason)


def test_without_conditions() -> None:
    """Then the webhook receives every pod of the namespace."""
    assert predict_call(_pod(), LABELED, [_registered(matchConditions=[])]) == (True, SELECTED)


def test_the_layout_of_an_expression() -> None:
    """A condition is recognized with any white space."""
    lines = [
        {**condition, "expression": condition["expression"].replace(" ", "\n  ")}
        for condition in WEBHOOK["matchConditions"]
    ]
    registration = _registered(matchConditions=lines)
    assert predict_call(_pod(enable="true"), LABELED, [registration])[0] is True


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({}, True),
        ({"operations": ["*"], "resources": ["*/*"], "apiGroups": ["*"]}, True),
        ({"apiVersions": ["*"], "resources": ["*"], "scope": "*"}, True),
        ({"operations": ["UPDATE"]}, False),
        ({"resources": ["pods/ephemeralcontainers"]}, False),
        ({"apiGroups": ["apps"]}, False),
        ({"apiVersions": ["v2"]}, False),
        ({"scope": "Cluster"}, False),
        ({"operations": "CREATE"}, False),
    ],
    ids=str,
)
def test_rules(rule: dict[str, Any], *, expected: bool) -> None:
    """One of the rules must select the creation of pods."""
    (ours,) = WEBHOOK["rules"]
    other_rule = {**ours, "resources": ["services"]}
    answer = predict_call(
        _pod(enable="true"), LABELED, [_registered(rules=[other_rule, {**ours, **rule}])]
    )
    assert answer[0] is expected
    reason = "no rule of the webhook in site covers the creation of pods"
    assert expected or answer[1] == reason


def test_a_rule_without_a_scope() -> None:
    """It also selects objects in namespaces: that is the API server's default."""
    (ours,) = WEBHOOK["rules"]
    rule = {key: value for key, value in ours.items() if key != "scope"}
    assert predict_call(_pod(enable="true"), LABELED, [_registered(rules=[rule])])[0] is True


def test_a_registration_is_read_once() -> None:
    """Each field has its place in the record, next to the original."""
    webhook = {
        "matchConditions": [{"name": "a", "expression": "b  c"}],
        "rules": [{"apiGroups": ["", 7], "apiVersions": ["v1"], "operations": ["CREATE"]}],
        "namespaceSelector": {"matchLabels": {"team": "ml"}},
        "objectSelector": _requires(("app", "Exists", [])),
    }
    configuration = {"metadata": {"name": "site"}}
    assert read_registration(configuration, webhook) == Registration(
        webhook_configuration=configuration,
        webhook=webhook,
        webhook_configuration_name="site",
        conditions=(("a", "b c"),),
        rules=(WebhookRule(("",), ("v1",), ("CREATE",), (), "*"),),
        namespace_selector=(Requirement("team", "In", ("ml",)),),
        object_selector=(Requirement("app", "Exists"),),
    )


def test_several_registrations() -> None:
    """The webhook receives the pod if one of them selects it, and may receive it if one may."""
    no = _registered(rules=[])
    unsure = _registered(matchConditions=[{"name": "x", "expression": "y"}])
    yes = _registered()
    pod = _pod(enable="true")
    assert predict_call(pod, LABELED, [no, unsure, yes])[0] is True
    assert predict_call(pod, LABELED, [no, unsure])[0] is None
    assert predict_call(pod, LABELED, [no, no])[0] is False


def test_a_configuration_of_an_odd_shape() -> None:
    """A value that is not a string counts as absent."""
    assert read_registration({"metadata": {"name": 7}}, {}).webhook_configuration_name == ""
    odd = read_registration({}, {"matchConditions": [7, {"name": None}], "rules": [{"scope": 7}]})
    assert odd.selects_creation_of_pods is False
    assert list(odd.conditions) == [("None", "None")]


@pytest.mark.parametrize(
    ("configuration", "webhook", "created", "failure_policy"),
    [
        (
            {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}},
            {"failurePolicy": "Ignore"},
            "2026-01-01T00:00:00Z",
            "Ignore",
        ),
        ({}, {}, "", ""),
        ({"metadata": None}, {"failurePolicy": None}, "", ""),
    ],
    ids=["as stored", "from a file", "of another form"],
)
def test_a_registration_has_its_age_and_its_failure_policy(
    configuration: Any, webhook: Any, created: str, failure_policy: str
) -> None:
    """Both are empty in a configuration that no API server stored."""
    registration = read_registration(configuration, webhook)
    assert (registration.creation_time, registration.failure_policy) == (created, failure_policy)
