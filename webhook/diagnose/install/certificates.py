"""Whether the API server trusts the certificates that the replicas serve, and until when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from webhook.admission.expected_registration import ExpectedRegistration
from webhook.admission.selection import ca_bundle_of, is_called_by_url
from webhook.diagnose.install.facts import (
    CHECKED,
    NOT_CHECKED,
    InstallFacts,
    InstallNames,
    Reading,
    ServedCertificate,
)
from webhook.diagnose.install.records import DeploymentRecord
from webhook.model.finding import Code, Finding

#: The times before the end of a certificate that are too short. Replicas renew their own eight
#: hours before its end; another program may need people. As in manifests/monitoring.
_SELF_MANAGED, _OF_FILES, _CA = timedelta(hours=4), timedelta(days=7), timedelta(days=30)

OTHER_CA_BUNDLE = Code(
    "OtherCaBundle",
    "The caBundle of a webhook configuration does not contain exactly the webhook's CAs, so the "
    "API server's calls to the webhook may fail.",
    "Run `rdma-webhook certs status`, which shows the CAs in caBundle and in the Secret. If "
    "cert-manager sets caBundle, read the log of its CA injector instead.",
)
CA_SECRET_UNUSABLE = Code(
    "CaSecretUnusable",
    "The Secret with the CA does not exist, is malformed or cannot be changed.",
    'Wait a few seconds, since the replicas usually repair the Secret. If they do not, see "What '
    'can go wrong" in docs/certificates.md.',
)
CERTIFICATE_NOT_TRUSTED = Code(
    "CertificateNotTrusted",
    "A replica serves a certificate that the API server does not accept.",
    "Run `rdma-webhook certs status`, which shows what is wrong with each certificate. If another "
    "program, such as cert-manager, issues the certificates, run `rdma-webhook certs verify` "
    "instead.",
)
CERTIFICATE_EXPIRES = Code(
    "CertificateExpires",
    "A certificate expires soon or has expired, although it should already have been renewed.",
    "Read the line `certificate` of each replica's /readyz, and each replica's log, which give "
    "the reason.",
)
CODES = (OTHER_CA_BUNDLE, CA_SECRET_UNUSABLE, CERTIFICATE_NOT_TRUSTED, CERTIFICATE_EXPIRES)


def certificate_findings(facts: InstallFacts) -> Iterator[Finding]:
    """Yield findings on the Secret, `caBundle`, and the certificates that replicas serve."""
    certificates = facts.certificates
    if obstacle := certificates.secret_obstacle or _unknown_issuer(facts):
        yield NOT_CHECKED.finding(
            "unsure", f"the Secret with the CA: not checked, since {obstacle}"
        )
    elif certificates.secret_problem:
        yield CA_SECRET_UNUSABLE.finding("error", certificates.secret_problem)
    elif certificates.self_managed:
        yield _ending_finding("the CA", certificates.ca_not_after, facts.clocks.now, _CA)
    bundles = [*_bundle_findings(facts)]
    yield from bundles
    if not any(finding.level == "error" for finding in bundles):
        yield from _handshake_findings(facts)


def _unknown_issuer(facts: InstallFacts) -> str:
    """Return a clause if it is unknown whether the webhook uses the Secret; else ""."""
    if not facts.deployment.obstacle:
        return ""
    return "the Deployment, which shows whether the webhook uses it, was not read"


def _bundle_findings(facts: InstallFacts) -> Iterator[Finding]:
    """Yield what is wrong with the `caBundle` of each webhook configuration that exists."""
    for expected, reading in zip(
        facts.names.registrations, facts.webhook_configurations, strict=True
    ):
        problem = _bundle_problem(facts, expected, reading)
        if problem:
            yield OTHER_CA_BUNDLE.finding("error", f"{expected.configuration}: {problem}")
        elif problem == "" and facts.certificates.bundles:
            text = f"{expected.configuration}: caBundle has exactly the webhook's CAs"
            yield CHECKED.finding("ok", text)


def _bundle_problem(
    facts: InstallFacts, expected: ExpectedRegistration, reading: Reading
) -> str | None:
    """Return the defect of a `caBundle`, "" without any; None if there is nothing to judge."""
    registration = expected.registration(reading.manifest or {})
    if registration is None or is_called_by_url(registration):
        return None
    if not ca_bundle_of(registration):
        return "it has no caBundle, so every call fails"
    return facts.certificates.bundles.get(str(expected.configuration), "")


def _handshake_findings(facts: InstallFacts) -> Iterator[Finding]:
    certificates, now = facts.certificates, facts.clocks.now
    if certificates.handshake_obstacle:
        text = f"the served certificates: not checked, since {certificates.handshake_obstacle}"
        yield NOT_CHECKED.finding("unsure", text)
    verified = [served for served in certificates.served if not served.problem]
    for served in certificates.served:
        if served.problem:
            yield _failed_handshake(served, facts.names)
    reads_files = DeploymentRecord.read(facts.deployment.manifest).reads_certificate_files
    margin = _OF_FILES if reads_files else _SELF_MANAGED
    if verified:
        end = min((served.not_after for served in verified if served.not_after), default=None)
        yield _ending_finding(_verified_title(verified), end, now, margin)


def _verified_title(verified: list[ServedCertificate]) -> str:
    if len(verified) == 1:
        return f"the certificate served at {verified[0].address} verifies against caBundle and"
    certificates = f"the certificates served at {len(verified)} addresses"
    return f"{certificates} verify against caBundle; the first one to expire"


def _failed_handshake(served: ServedCertificate, names: InstallNames) -> Finding:
    if served.answered:
        return CERTIFICATE_NOT_TRUSTED.finding("error", f"{served.address}: {served.problem}")
    text = f"{served.address}: the certificate was not checked ({served.problem})"
    remedy = (
        f"From outside the cluster, run `kubectl -n {names.namespace} port-forward "
        f"svc/{names.service} 8443:443`, and pass `--address 127.0.0.1:8443`."
    )
    return NOT_CHECKED.finding("unsure", text, remedy)


def _ending_finding(title: str, end: datetime | None, now: datetime, margin: timedelta) -> Finding:
    """Return until when a certificate is valid; a warning if that is less than a margin away."""
    text = f"{title} is valid until {end:%Y-%m-%dT%H:%M:%SZ}" if end else f"{title} is valid"
    if end is not None and end - now < margin:
        return CERTIFICATE_EXPIRES.finding("warning" if end > now else "error", text)
    return CHECKED.finding("ok", text)
