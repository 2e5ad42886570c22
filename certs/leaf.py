"""The leaf that a replica serves: its names, its life, and when the next one is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509

from certs.issue import KeyPair, issue_leaf

LIFETIME = timedelta(hours=24)


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the names of a Service; the API server asks for the first one."""
    return (
        f"{service}.{namespace}.svc",
        f"{service}.{namespace}.svc.cluster.local",
        f"{service}.{namespace}",
        service,
    )


def issue_service_leaf(ca: KeyPair, service: str, namespace: str) -> KeyPair:
    """Issue a leaf for a Service that lasts a day, or until its CA ends."""
    return issue_leaf(ca, service_names(service, namespace), lifetime=LIFETIME)


def renewal(leaf: KeyPair) -> datetime:
    """Return when a leaf is to be replaced: after two thirds of its life."""
    certificate = x509.load_pem_x509_certificate(leaf.certificate)
    until = certificate.not_valid_after_utc
    return until - (until - certificate.not_valid_before_utc) / 3


def due(leaf: KeyPair) -> bool:
    """Return whether a leaf is to be replaced now."""
    return datetime.now(UTC) >= renewal(leaf)
