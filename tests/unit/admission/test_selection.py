from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.admission.registration import Registration, read_registration
from webhook.admission.selection import (
    Service,
    ca_bundle_of,
    is_called_by_url,
    mutating_webhook_mistakes,
    service_mistakes,
    validating_webhook_mistakes,
)

MANIFESTS = Path(__file__).parents[3] / "manifests" / "base" / "admission"
OURS = Service("rdma-webhook", "rdma-webhook", "/mutate")
Webhook = dict[str, Any]


def shipped(file: str) -> Webhook:
    """Return the webhook of a manifest."""
    document = yaml.safe_load((MANIFESTS / file).read_text(encoding="utf-8"))
    webhook: Webhook = document["webhooks"][0]
    return webhook


PODS, FABRICS = shipped("webhook.yaml"), shipped("validation.yaml")


def registration(
    webhook: Webhook, change: Callable[[Webhook], object] = lambda _: None
) -> Registration:
    """Read a webhook after a change."""
    changed = deepcopy(webhook)
    change(changed)
    return read_registration({}, changed)


def test_the_manifests_have_no_mistake() -> None:
    """Nor have they with the additions that a site may make."""

    def narrowed(webhook: Webhook) -> None:
        webhook["namespaceSelector"]["matchLabels"]["team"] = "a"
        webhook["matchConditions"].append({"name": "more", "expression": "true"})
        webhook["rules"].append({**webhook["rules"][0], "resources": ["pods/ephemeralcontainers"]})

    for pods in (registration(PODS), registration(PODS, narrowed)):
        assert [*mutating_webhook_mistakes(pods), *service_mistakes(pods, OURS)] == []
    fabrics = registration(FABRICS)
    assert [*validating_webhook_mistakes(fabrics)] == []
    assert [*service_mistakes(fabrics, OURS._replace(path="/validate"))] == []


ALL = "so it selects all namespaces"
NOT_OPTED_IN = "so it selects pods that did not opt in"
#: A change of the webhook for pods, the reason, and words of the sentence.
OF_PODS: dict[str, tuple[Callable[[Webhook], object], str, str]] = {
    "no rule": (lambda w: w.pop("rules"), "SelectsTooLittle", "no rule for the creation of pods"),
    "other objects": (
        lambda w: w["rules"][0].update(resources=["services"]),
        "SelectsTooLittle",
        "no rule for the creation of pods",
    ),
    "objects without a namespace": (
        lambda w: w["rules"][0].update(scope="Cluster"),
        "SelectsTooLittle",
        "no rule for the creation of pods",
    ),
    "opted-in namespaces excluded": (
        lambda w: w["namespaceSelector"].update(matchLabels={"rdma.lab/enable": "false"}),
        "SelectsTooLittle",
        'excludes namespaces with rdma.lab/enable: "true"',
    ),
    "no namespaceSelector": (lambda w: w.pop("namespaceSelector"), "SelectsTooMuch", ALL),
    "an empty namespaceSelector": (
        lambda w: w.update(namespaceSelector={}),
        "SelectsTooMuch",
        ALL,
    ),
    "no matchConditions": (lambda w: w.pop("matchConditions"), "SelectsTooMuch", NOT_OPTED_IN),
    "other matchConditions": (
        lambda w: w["matchConditions"].pop(0),
        "SelectsTooMuch",
        NOT_OPTED_IN,
    ),
}


@pytest.mark.parametrize("how", OF_PODS)
def test_what_the_webhook_for_pods_must_select(how: str) -> None:
    """Pods that opted in, in namespaces that opted in, and no others."""
    change, reason, words = OF_PODS[how]
    (mistake,) = mutating_webhook_mistakes(registration(PODS, change))
    assert (mistake.reason, words in mistake.text) == (reason, True), mistake


def test_pods_may_be_selected_by_their_labels() -> None:
    """A site may prefer an objectSelector to the condition on the annotation."""

    def labels(webhook: Webhook) -> None:
        webhook["matchConditions"].clear()
        webhook["objectSelector"] = {"matchLabels": {"rdma": "yes"}}

    assert [*mutating_webhook_mistakes(registration(PODS, labels))] == []


#: A change of the webhook for the configuration, and the sentence.
OF_FABRICS: dict[str, tuple[Callable[[Webhook], object], str]] = {
    "no creation": (
        lambda w: w["rules"][0].update(operations=["UPDATE"]),
        "has no rule for CREATE of fabricconfigurations",
    ),
    "no update": (
        lambda w: w["rules"][0].update(operations=["CREATE"]),
        "has no rule for UPDATE of fabricconfigurations",
    ),
    "some labels": (
        lambda w: w.update(objectSelector={"matchLabels": {"a": "b"}}),
        "has an objectSelector, which excludes objects by labels",
    ),
}


@pytest.mark.parametrize("how", OF_FABRICS)
def test_what_the_webhook_for_the_configuration_must_select(how: str) -> None:
    """The creation and every update of the object."""
    change, text = OF_FABRICS[how]
    (mistake,) = validating_webhook_mistakes(registration(FABRICS, change))
    assert mistake == ("SelectsTooLittle", text)


@pytest.mark.parametrize("field", ["namespace", "name", "path"])
def test_the_service_must_be_ours(field: str) -> None:
    """It has our namespace, name and path; by default, the path is empty."""
    other = registration(PODS, lambda w: w["clientConfig"]["service"].update({field: "other"}))
    (mistake,) = service_mistakes(other, OURS)
    called = OURS._replace(**{field: "other"})
    text = f"calls {called} instead of /mutate of Service rdma-webhook in namespace rdma-webhook"
    assert mistake == ("OtherService", text)


def test_a_url_is_not_judged() -> None:
    """Only its server's certificate shows whether it is ours."""
    url = registration(
        PODS, lambda w: w.update(clientConfig={"url": "https://a/mutate", "caBundle": "x"})
    )
    assert [*service_mistakes(url, OURS)] == []
    assert is_called_by_url(url)
    assert ca_bundle_of(url) == "x"
    assert not is_called_by_url(registration(PODS))
    assert ca_bundle_of(registration(PODS)) == ""
