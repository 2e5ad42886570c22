"""The webhook configurations of the manifests are as expected, and each mistake is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from webhook.admission.expected_registration import (
    NO_CONFIGURATION,
    ExpectedRegistration,
    expected_registrations,
    registration_mistakes,
)
from webhook.admission.selection import Mistake

_MANIFESTS = Path(__file__).parents[3] / "manifests" / "base" / "admission"


class _Name(NamedTuple):
    webhook: str
    path: str = ""


PODS, FABRICS = expected_registrations(
    _Name("pods.rdma.lab"), _Name("fabrics.rdma.lab"), "rdma-webhook", "rdma-webhook"
)


def _shipped(file: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((_MANIFESTS / file).read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize(
    ("expected", "file"),
    [(PODS, "webhook.yaml"), (FABRICS, "validation.yaml")],
    ids=["pods", "fabrics"],
)
def test_the_manifests_have_no_mistakes(expected: ExpectedRegistration, file: str) -> None:
    """Both webhook configurations are as shipped, and have the expected webhook."""
    document = _shipped(file)
    registration = expected.registration(document)
    assert registration is not None
    assert registration.webhook["name"] == expected.configuration.webhook
    assert [*registration_mistakes(expected, document)] == []


@pytest.mark.parametrize(
    ("expected", "objects"),
    [(PODS, "pods"), (FABRICS, "FabricConfigurations")],
    ids=["pods", "fabrics"],
)
def test_a_missing_configuration(expected: ExpectedRegistration, objects: str) -> None:
    """The sentence names the objects that the API server does not send."""
    text = f"does not exist, so the API server does not send {objects} to the webhook"
    assert [*registration_mistakes(expected, None)] == [Mistake(NO_CONFIGURATION, text)]


def test_a_configuration_without_the_webhook() -> None:
    """The other webhook of the same installation does not count."""
    document = _shipped("validation.yaml")
    assert [*registration_mistakes(PODS, document)] == [
        Mistake(NO_CONFIGURATION, "has no webhook pods.rdma.lab")
    ]


def test_all_mistakes_are_reported() -> None:
    """A rule for nothing and another Service are two mistakes of one webhook."""
    document = _shipped("webhook.yaml")
    webhook = document["webhooks"][0]
    webhook["rules"] = []
    webhook["clientConfig"]["service"]["path"] = "/validate"
    assert [mistake.reason for mistake in registration_mistakes(PODS, document)] == [
        "SelectsTooLittle",
        "OtherService",
    ]
