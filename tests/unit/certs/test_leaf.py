from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from certs.issue import issue_ca
from certs.leaf import due, issue_service_leaf, renewal


def _close(one: datetime, other: datetime) -> bool:
    return abs(one - other) < timedelta(minutes=10)


def test_names_of_a_service() -> None:
    """The API server asks for the first (ServerName <svc>.<ns>.svc); the rest are for people."""
    leaf = x509.load_pem_x509_certificate(issue_service_leaf(issue_ca(), "web", "lab").certificate)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == [
        "web.lab.svc",
        "web.lab.svc.cluster.local",
        "web.lab",
        "web",
    ]


def test_renewed_after_two_thirds_of_a_day() -> None:
    """Eight hours are left for an API server that is gone."""
    leaf = issue_service_leaf(issue_ca(), "web", "lab")

    assert _close(renewal(leaf), datetime.now(UTC) + timedelta(hours=16))
    assert not due(leaf)


@pytest.mark.parametrize(("left", "is_due"), [(timedelta(hours=3), False), (timedelta(0), True)])
def test_a_leaf_ends_with_its_ca(left: timedelta, is_due: bool) -> None:
    """It is never valid for longer, and what has little left is due."""
    ca = issue_ca(lifetime=left)
    leaf = issue_service_leaf(ca, "web", "lab")
    until = x509.load_pem_x509_certificate(leaf.certificate).not_valid_after_utc

    assert until == x509.load_pem_x509_certificate(ca.certificate).not_valid_after_utc
    assert due(leaf) is is_due
