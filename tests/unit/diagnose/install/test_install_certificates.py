"""The CA, `caBundle` and the served certificates, as far as they could be inspected."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.diagnose.install import installation as module
from tests.unit.diagnose.install.installation import NAMES, NOW, Installation
from webhook.diagnose.install.facts import CertificateFacts, ServedCertificate
from webhook.model.finding import Finding

MUTATING = "MutatingWebhookConfiguration zz-rdma-webhook"
VALIDATING = "ValidatingWebhookConfiguration rdma-webhook"
BUNDLE_REMEDY = (
    "Run `rdma-webhook certs status`, which shows the CAs in caBundle and in the Secret. If "
    "cert-manager sets caBundle, read the log of its CA injector instead."
)
EXPIRY_REMEDY = (
    "Read the line `certificate` of each replica's /readyz, and each replica's log, which give the "
    "reason."
)
ADDRESS = "10.0.0.7:8443"
VERIFIED = f"the certificate served at {ADDRESS} verifies against caBundle and is valid"


def change(installation: Installation, **changes: Any) -> None:
    """Change what was inspected."""
    installation.certificates = installation.certificates._replace(**changes)


def test_all_is_well(installation: Installation) -> None:
    """The texts have the ends of the CA and of the first certificate."""
    assert installation.texts("certificates") == [
        "the CA is valid until 2027-09-25T04:00:00Z",
        f"{MUTATING}: caBundle has exactly the webhook's CAs",
        f"{VALIDATING}: caBundle has exactly the webhook's CAs",
        (
            "the certificates served at 2 addresses verify against caBundle; the first one to "
            "expire is valid until 2026-11-30T00:00:00Z"
        ),
    ]
    assert installation.self_managed is True


def test_files_of_another_program(installation: Installation) -> None:
    """The Secret is not inspected: cert-manager writes `caBundle`, and the CA is unknown."""
    deployment = installation["Deployment", "rdma-webhook"]
    deployment["spec"]["template"]["spec"]["containers"][0]["args"].append("--tls-cert=/tls.crt")
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        installation.delete(kind, "rdma-webhook")  # the replicas write no certificates
    served = ServedCertificate(ADDRESS, "", True, NOW + timedelta(days=8))
    installation.certificates = CertificateFacts(self_managed=False, served=(served,))
    (text,) = installation.texts("certificates")
    assert text.endswith(" is valid until 2026-12-07T04:00:00Z")
    assert installation.self_managed is False
    assert installation.findings() == []
    ending = served._replace(not_after=NOW + timedelta(days=7, seconds=-1))
    change(installation, served=(ending,))
    assert [finding.code for finding in installation.findings()] == ["CertificateExpires"]


def test_an_empty_ca_bundle(installation: Installation) -> None:
    """Failed handshakes follow from it, so they are not reported as well."""
    registration = installation["MutatingWebhookConfiguration", "zz-rdma-webhook"]["webhooks"][0]
    registration["clientConfig"]["caBundle"] = ""
    served = ServedCertificate(ADDRESS, "unable to get issuer certificate", True)
    bundles = {MUTATING: "it lacks the current CA", VALIDATING: ""}
    change(installation, served=(served,), bundles=bundles)
    text = f"{MUTATING}: it has no caBundle, so every call fails"
    assert installation.findings() == [Finding("error", "OtherCaBundle", text, BUNDLE_REMEDY)]


def test_another_ca_bundle(installation: Installation) -> None:
    """The sentence is that of `certs status`."""
    change(installation, bundles={MUTATING: "", VALIDATING: "it lacks the current CA"})
    text = f"{VALIDATING}: it lacks the current CA"
    assert installation.findings() == [Finding("error", "OtherCaBundle", text, BUNDLE_REMEDY)]


def test_a_url(installation: Installation) -> None:
    """A server that is called by a URL may have a certificate of a public CA."""
    registration = installation["MutatingWebhookConfiguration", "zz-rdma-webhook"]["webhooks"][0]
    registration["clientConfig"] = {"url": "https://webhook.example/mutate"}
    assert installation.findings() == []


def test_a_missing_configuration_has_no_ca_bundle(installation: Installation) -> None:
    """It is reported as missing, and only so."""
    installation.delete("ValidatingWebhookConfiguration", "rdma-webhook")
    change(installation, bundles={MUTATING: "", VALIDATING: "does not exist yet"})
    assert [finding.code for finding in installation.findings()] == ["NoWebhookConfiguration"]


def test_an_unusable_secret(installation: Installation) -> None:
    """The sentence is that of `certs status`; nothing is said about the end of the CA."""
    change(installation, secret_problem="there is no CA in the Secret", ca_not_after=None)
    remedy = (
        "Wait a few seconds, since the replicas usually repair the Secret. If they do not, see "
        '"What can go wrong" in docs/certificates.md.'
    )
    text = "there is no CA in the Secret"
    assert installation.findings() == [Finding("error", "CaSecretUnusable", text, remedy)]
    assert len(installation.texts("certificates")) == 4


def test_a_secret_that_cannot_be_read(installation: Installation) -> None:
    """`caBundle` is there, but whether it has the right CAs is shown by the handshakes alone."""
    change(installation, secret_obstacle="forbidden", bundles={}, ca_not_after=None)
    text = "the Secret with the CA: not checked, since forbidden"
    (finding,) = installation.findings()
    assert (finding.level, finding.code, finding.text) == ("unsure", "NotChecked", text)
    assert len(installation.texts("certificates")) == 2


def test_handshakes_that_were_not_made(installation: Installation) -> None:
    """For example, since a webhook configuration cannot be read."""
    change(installation, handshake_obstacle="forbidden", served=())
    text = "the served certificates: not checked, since forbidden"
    (finding,) = installation.findings()
    assert (finding.level, finding.code, finding.text) == ("unsure", "NotChecked", text)


def test_a_certificate_that_is_not_trusted(installation: Installation) -> None:
    """It is an error, with the reason of the handshake."""
    served = ServedCertificate(ADDRESS, "certificate has expired", True)
    change(installation, served=(served, *installation.certificates.served))
    remedy = (
        "Run `rdma-webhook certs status`, which shows what is wrong with each certificate. If "
        "another program, such as cert-manager, issues the certificates, run `rdma-webhook certs "
        "verify` instead."
    )
    text = f"{ADDRESS}: certificate has expired"
    assert installation.findings() == [Finding("error", "CertificateNotTrusted", text, remedy)]


def test_a_replica_that_cannot_be_reached(installation: Installation) -> None:
    """From outside the cluster, that shows nothing about the certificate."""
    served = ServedCertificate(ADDRESS, "cannot connect: timed out", False)
    change(installation, served=(served,))
    text = f"{ADDRESS}: the certificate was not checked (cannot connect: timed out)"
    remedy = (
        "From outside the cluster, run `kubectl -n rdma-webhook port-forward svc/rdma-webhook "
        "8443:443`, and pass `--address 127.0.0.1:8443`."
    )
    assert installation.findings() == [Finding("unsure", "NotChecked", text, remedy)]


def test_a_service_with_another_name(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port-forward in the remedy names that Service."""
    monkeypatch.setattr(module, "NAMES", NAMES._replace(service="hook"))
    served = ServedCertificate(ADDRESS, "cannot connect: timed out", False)
    change(installation, served=(served,))
    remedies = [finding.remedy for finding in installation.findings()]
    assert [remedy for remedy in remedies if " svc/hook 8443:443`, " in remedy]


@pytest.mark.parametrize(
    ("remaining", "level"),
    [
        (timedelta(hours=4), None),
        (timedelta(hours=4, seconds=-1), "warning"),
        (timedelta(seconds=1), "warning"),
        (timedelta(), "error"),
    ],
)
def test_a_certificate_that_ends(
    installation: Installation, remaining: timedelta, level: str | None
) -> None:
    """Four hours before its end, a replica has failed to renew it; the first end counts."""
    later = ServedCertificate("10.0.0.8:8443", "", True, NOW + timedelta(hours=9))
    first = ServedCertificate(ADDRESS, "", True, NOW + remaining)
    change(installation, served=(later, first))
    text = (
        "the certificates served at 2 addresses verify against caBundle; the first one to "
        f"expire is valid until {NOW + remaining:%Y-%m-%dT%H:%M:%SZ}"
    )
    expected = [] if level is None else [Finding(level, "CertificateExpires", text, EXPIRY_REMEDY)]  # type: ignore[arg-type]
    assert installation.findings() == expected


@pytest.mark.parametrize(("seconds", "count"), [(0, 0), (-1, 1)])
def test_a_ca_that_ends(installation: Installation, seconds: int, count: int) -> None:
    """A rotation begins four months before the end, so a month is late."""
    change(installation, ca_not_after=NOW + timedelta(days=30, seconds=seconds))
    findings = installation.findings()
    assert [finding.code for finding in findings] == ["CertificateExpires"] * count
    assert [finding.level for finding in findings] == ["warning"] * count


def test_ends_that_are_unknown(installation: Installation) -> None:
    """The certificate was verified, so it is valid."""
    served = ServedCertificate(ADDRESS, "", True)
    change(installation, served=(served,), ca_not_after=None)
    texts = installation.texts("certificates")
    assert (texts[0], texts[-1]) == (
        "the CA is valid",
        VERIFIED,
    )


def test_an_unknown_issuer(installation: Installation) -> None:
    """Without the Deployment, nothing is claimed about the Secret, nor the rights to write it."""
    installation.refuse("Deployment", "rdma-webhook")
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        installation.delete(kind, "rdma-webhook")
    served = ServedCertificate(ADDRESS, "", True, NOW + timedelta(hours=4))
    installation.certificates = CertificateFacts(self_managed=False, served=(served,))
    deployment, secret = installation.findings()
    assert installation.self_managed is False
    assert deployment.text.startswith("Deployment rdma-webhook: not checked")
    assert (secret.level, secret.code) == ("unsure", "NotChecked")
    assert secret.text == (
        "the Secret with the CA: not checked, since the Deployment, which shows whether the "
        "webhook uses it, was not read"
    )
