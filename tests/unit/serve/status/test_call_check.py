from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.issue import issue_ca, issue_leaf
from tests.unit.certs.objects import CONFIGURATION, VALIDATION
from tests.unit.serve.client import Lines
from tests.waiting import until
from webhook.errors import ClusterError
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.status import call_check
from webhook.serve.status.call_check import CHECK_SECONDS, CONFIRM_SECONDS, CallCheck
from webhook.serve.status.content import Condition

MANIFESTS = Path(__file__).parents[4] / "manifests" / "base" / "admission"
CA, OTHER = issue_ca(), issue_ca()
LEAF = issue_leaf(CA, ["rdma-webhook.rdma-webhook.svc"]).certificate
CALLED = Condition(
    "Called",
    True,
    "Called",
    "The API server calls the webhook for pods that opted in, and for this object.",
)
APPLY = (
    "apply the webhook's manifests again (kubectl apply -k or helm upgrade; see "
    "docs/installation.md)."
)
RESTORE = (
    f"{APPLY} If that does not correct the webhook configuration, delete it, and apply the "
    "manifests once more."
)
MUTATING = "MutatingWebhookConfiguration zz-rdma-webhook"
VALIDATING = "ValidatingWebhookConfiguration rdma-webhook"


def shipped(file: str, bundle: bytes = CA.certificate) -> dict[str, Any]:
    """Return a webhook configuration of the manifests, with a caBundle."""
    document: dict[str, Any] = yaml.safe_load((MANIFESTS / file).read_text(encoding="utf-8"))
    document["webhooks"][0]["clientConfig"]["caBundle"] = b64encode(bundle).decode()
    return document


class Installation:
    """An installation: the stored webhook configurations, and a replica that checks them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stored = {
            CONFIGURATION: shipped("webhook.yaml"),
            VALIDATION: shipped("validation.yaml"),
        }
        self.chain = LEAF
        self.failure: Exception | None = None
        self.metrics, self.lines = Metrics(), Lines()
        monkeypatch.setattr("webhook.kube.client.Client", self._connect)
        self.check = call_check.call_check_of(
            ServeOptions(kubeconfig=Path("config")),
            {"POD_NAMESPACE": "rdma-webhook"},
            lambda: self.chain,
            "webhook-a",
        )

    def _connect(self, kubeconfig: Path | None, _overrides: object) -> Installation:
        assert kubeconfig == Path("config")
        return self

    def read(self, path: str) -> dict[str, Any] | None:
        """Return an object."""
        if self.failure:
            raise self.failure
        return self.stored.get(path)

    @property
    def webhook(self) -> dict[str, Any]:
        """Return the webhook for pods."""
        webhook: dict[str, Any] = self.stored[CONFIGURATION]["webhooks"][0]
        return webhook

    def condition(self) -> Condition:
        """Check until the result is confirmed, and report it."""
        while self.check.attempt() == CONFIRM_SECONDS:
            pass
        if self.check.poll():
            self.check.apply(self.metrics, self.lines.log)
        condition = self.check.condition()
        assert condition is not None
        return condition

    def called(self) -> list[float | None]:
        """Return the metric of each webhook."""
        return [
            self.metrics.registry.get_sample_value("rdma_webhook_called", {"webhook": label})
            for label in ("mutating", "validating")
        ]

    def logged(self) -> list[tuple[str, str, str]]:
        """Return level, message and webhook of the lines since the last call."""
        return [(line["level"], line["msg"], line["webhook"]) for line in self.lines.read()]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installation:
    """Return the installation of the manifests."""
    return Installation(monkeypatch)


def test_an_installation_as_shipped_is_called(installed: Installation) -> None:
    """Both webhook configurations are in order: it is checked again after half a minute."""
    assert installed.check.condition() is None
    assert installed.check.attempt() == CHECK_SECONDS
    assert installed.condition() == CALLED
    assert installed.called() == [1, 1]
    assert installed.logged() == [("info", "called", "mutating"), ("info", "called", "validating")]


def test_a_deleted_configuration(installed: Installation) -> None:
    """The condition names it and the remedy, after a second look; it recovers at the next check."""
    assert installed.condition() == CALLED
    installed.logged()
    document = installed.stored.pop(CONFIGURATION)
    assert installed.check.attempt() == CONFIRM_SECONDS
    assert installed.check.condition() == CALLED
    text = (
        f"{MUTATING} does not exist, so the API server does not send pods to the webhook; {APPLY}"
    )
    missing = Condition("Called", False, "NoWebhookConfiguration", text)
    assert [installed.condition(), installed.condition()] == [missing, missing]
    assert installed.called() == [0, 1]
    assert installed.logged() == [("warning", "not called", "mutating")]

    installed.stored[CONFIGURATION] = document
    assert installed.condition() == CALLED
    assert installed.called() == [1, 1]
    assert installed.logged() == [("info", "called", "mutating")]

    del installed.stored[VALIDATION]
    assert installed.condition().message == (
        f"{VALIDATING} does not exist, so the API server does not send FabricConfigurations to the "
        f"webhook; {APPLY}"
    )


def test_a_problem_that_heals_itself_is_not_reported(installed: Installation) -> None:
    """Replicas restore `caBundle` within seconds."""
    installed.condition()
    document = installed.stored.pop(VALIDATION)
    assert installed.check.attempt() == CONFIRM_SECONDS
    installed.stored[VALIDATION] = document
    assert installed.check.attempt() == CHECK_SECONDS
    assert installed.check.condition() == CALLED


def test_a_configuration_without_our_webhook(installed: Installation) -> None:
    """Somebody has removed or renamed it."""
    installed.webhook["name"] = "other.example.com"
    text = f"{MUTATING} has no webhook pods.rdma.lab; {APPLY}"
    assert installed.condition() == Condition("Called", False, "NoWebhookConfiguration", text)


def test_other_objects_are_selected(installed: Installation) -> None:
    """Each of the two is judged by its own rules."""
    installed.stored[VALIDATION]["webhooks"][0]["rules"] = []
    text = f"{VALIDATING} has no rule for CREATE of fabricconfigurations; {RESTORE}"
    assert installed.condition() == Condition("Called", False, "SelectsTooLittle", text)
    assert installed.called() == [1, 0]
    installed.webhook["namespaceSelector"] = {}
    assert installed.condition().reason == "SelectsTooMuch"


def test_another_service_is_called(installed: Installation) -> None:
    """Its name comes from the options, its namespace from the pod."""
    installed.webhook["clientConfig"]["service"]["namespace"] = "elsewhere"
    text = (
        f"{MUTATING} calls /mutate of Service rdma-webhook in namespace elsewhere instead of "
        f"/mutate of Service rdma-webhook in namespace rdma-webhook; {RESTORE}"
    )
    assert installed.condition() == Condition("Called", False, "OtherService", text)


#: A caBundle in PEM or base64, and what the sentence says about it.
_WITHOUT = (
    "has a caBundle without the CA of the certificate that the webhook's replica webhook-a serves"
)
BUNDLES: dict[str, tuple[bytes | str, str]] = {
    "ours": (CA.certificate, ""),
    "ours and another": (OTHER.certificate + CA.certificate, ""),
    "our certificate itself": (LEAF, ""),
    "another": (OTHER.certificate, _WITHOUT),
    "none": ("", "has no caBundle"),
    "no PEM": ("QQ==", _WITHOUT),
    "no base64": ("%", _WITHOUT),
}


@pytest.mark.parametrize("kind", BUNDLES)
def test_the_bundle_must_have_our_ca(installed: Installation, kind: str) -> None:
    """Otherwise the handshake of each call fails; the remedy is a command."""
    bundle, text = BUNDLES[kind]
    encoded = bundle if isinstance(bundle, str) else b64encode(bundle).decode()
    installed.webhook["clientConfig"]["caBundle"] = encoded
    remedy = "run `rdma-webhook certs status`, which shows what to do."
    expected = Condition("Called", False, "OtherCaBundle", f"{MUTATING} {text}; {remedy}")
    assert installed.condition() == (expected if text else CALLED)


def test_without_a_certificate_the_bundle_is_not_compared(installed: Installation) -> None:
    """At the start of a replica, it serves none."""
    installed.chain = b""
    installed.webhook["clientConfig"]["caBundle"] = b64encode(OTHER.certificate).decode()
    assert installed.condition() == CALLED
    del installed.webhook["clientConfig"]["caBundle"]
    assert installed.condition().reason == "OtherCaBundle"


def test_a_url_may_have_a_certificate_of_a_public_ca(installed: Installation) -> None:
    """It then needs no `caBundle`; if it has one, that must have our CA."""
    client = installed.webhook["clientConfig"] = {"url": "https://rdma.example.com/mutate"}
    assert installed.condition() == CALLED
    client["caBundle"] = b64encode(OTHER.certificate).decode()
    assert installed.condition().reason == "OtherCaBundle"


def test_a_chain_may_have_an_intermediate_ca(installed: Installation) -> None:
    """The bundle then has the CA of the last certificate."""
    unrelated = issue_leaf(OTHER, ["a"]).certificate
    installed.chain = unrelated + LEAF
    assert installed.condition() == CALLED


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (ClusterError("the API server answered 403: no"), "the API server answered 403: no"),
        (ValueError("secret"), "internal error: ValueError"),
    ],
    ids=["refused", "defect"],
)
def test_what_cannot_be_read_is_unknown(
    installed: Installation, failure: Exception, text: str
) -> None:
    """The metric keeps its last value."""
    installed.condition()
    installed.logged()
    installed.failure = failure
    expected = Condition("Called", None, "NotReadable", f"{MUTATING}: {text}.")
    assert installed.condition() == expected
    assert installed.called() == [1, 1]
    warnings = [("warning", "calls not checked", name) for name in ("mutating", "validating")]
    assert installed.logged() == warnings


def test_a_problem_comes_before_the_unknown(installed: Installation) -> None:
    """It is certain, whatever the other configuration is."""
    check = installed.check
    unknown = Condition("Called", None, "NotReadable", "…")
    broken = Condition("Called", False, "OtherService", "…")
    for results in ((unknown, broken), (broken, CALLED), (broken, unknown)):
        check._results = dict(zip(("mutating", "validating"), results, strict=True))
        assert check.condition() == broken
    check._results = {"mutating": CALLED, "validating": unknown}
    assert check.condition() == unknown


def test_it_checks_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread stops with the source."""
    installed = Installation(monkeypatch)
    check: CallCheck = installed.check
    check.start()
    until(lambda: check.condition() == CALLED)
    check.stop()
    check._periodic._thread.join(20)
    assert not check._periodic._thread.is_alive()
