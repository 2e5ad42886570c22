from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from certs.errors import CertificateError
from certs.issue import issue_ca, issue_leaf
from certs.pem import KeyPair, check_pair

NOW = datetime.now(UTC)
CA = issue_ca()
SERVICE = "web.lab.svc"


def _leaf(lifetime: timedelta = timedelta(hours=1)) -> KeyPair:
    return issue_leaf(CA, ["localhost"], lifetime=lifetime)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (KeyPair(certificate=b"", key=b""), "the certificate is not a PEM certificate"),
        (
            KeyPair(certificate=CA.certificate, key=b"?"),
            "the key is not an unencrypted PEM private key",
        ),
        (KeyPair(certificate=CA.certificate, key=_leaf().key), "does not belong to"),
        (_leaf(timedelta(minutes=-1)), "the certificate expired at 20"),
    ],
)
def test_pairs_that_cannot_be_served(pair: KeyPair, message: str) -> None:
    """Each defect has its own message: no certificate, no key, another key, expired."""
    with pytest.raises(CertificateError, match=message):
        check_pair(pair, NOW)


@pytest.mark.parametrize(
    "names", [[SERVICE], ["a", SERVICE.upper()], [f"*.{SERVICE.partition('.')[2]}"]]
)
def test_names_that_the_api_server_accepts(names: list[str]) -> None:
    """The name may be one of several, in any case, or a wildcard for the first label."""
    check_pair(issue_leaf(CA, names), NOW, SERVICE)


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        ([], "none"),
        (["web.other.svc"], "web.other.svc"),
        (["*.svc"], "*.svc"),
        (
            [f"{SERVICE}.cluster.local", "b", "c", "d", "e", "f"],
            f"{SERVICE}.cluster.local, b, c, d, e",
        ),
    ],
)
def test_names_that_it_does_not(names: list[str], listed: str) -> None:
    """Such a pair never replaces a good one, since every call would fail; subjects do not count."""
    pair = issue_leaf(CA, names, ["127.0.0.1"])
    message = (
        f"the certificate is not for {SERVICE}, which the API server expects, but for {listed}"
    )
    with pytest.raises(CertificateError, match=f"^{re.escape(message)}$"):
        check_pair(pair, NOW, SERVICE)
