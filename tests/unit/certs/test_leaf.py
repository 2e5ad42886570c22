from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509

from certs.issue import issue_ca
from certs.leaf import issue_service_leaf


def test_names_of_a_service() -> None:
    """The API server asks for the first (ServerName <svc>.<ns>.svc); the rest are for people."""
    issued = issue_service_leaf(issue_ca(), "web", "lab", timedelta(hours=24), datetime.now(UTC))
    leaf = x509.load_pem_x509_certificate(issued.certificate)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == [
        "web.lab.svc",
        "web.lab.svc.cluster.local",
        "web.lab",
        "web",
    ]
