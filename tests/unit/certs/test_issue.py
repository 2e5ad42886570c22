from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.issue import BACKDATED, expiry, issue_ca, issue_leaf, renewal_due, renewal_time
from certs.pem import KeyPair
from tests.unit.certs.clocks import Ticking

NOW = Ticking().now().replace(microsecond=0)
SERVICE = "rdma-webhook.rdma-webhook.svc"


def _read(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def test_leaf_names_the_service_and_its_addresses() -> None:
    """The API server checks only the subject alternative names, and requires serverAuth."""
    leaf = _read(issue_leaf(issue_ca(), [SERVICE, "localhost"], ["127.0.0.1", "::1"]))
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    usages = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value

    assert names.get_values_for_type(x509.DNSName) == [SERVICE, "localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert list(usages) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_leaf_is_signed_by_its_ca() -> None:
    """A leaf verifies with its own CA and with no other."""
    ca, other = issue_ca(), issue_ca()
    leaf = _read(issue_leaf(ca, [SERVICE]))

    leaf.verify_directly_issued_by(_read(ca))
    with pytest.raises(InvalidSignature):
        leaf.verify_directly_issued_by(_read(other))


def test_ca_may_sign_leaves_and_nothing_below() -> None:
    """A stolen leaf cannot sign, and the CA cannot make another CA."""
    ca = _read(issue_ca())
    constraints = ca.extensions.get_extension_for_class(x509.BasicConstraints).value
    usage = ca.extensions.get_extension_for_class(x509.KeyUsage).value
    leaf = _read(issue_leaf(issue_ca(), [SERVICE]))
    below = leaf.extensions.get_extension_for_class(x509.BasicConstraints).value

    assert (constraints.ca, constraints.path_length, usage.key_cert_sign) == (True, 0, True)
    assert below.ca is False


def test_certificates_are_backdated_for_clocks_that_are_behind() -> None:
    """A certificate is valid even on a machine whose clock is minutes behind."""
    leaf = _read(issue_leaf(issue_ca(), [SERVICE], lifetime=timedelta(hours=1)))

    assert leaf.not_valid_before_utc <= datetime.now(UTC) - BACKDATED + timedelta(seconds=2)
    assert leaf.not_valid_after_utc <= datetime.now(UTC) + timedelta(hours=1)


def test_leaf_never_outlives_its_ca() -> None:
    """A chain is only as valid as its CA, so a later end of the leaf would mislead."""
    ca = issue_ca(lifetime=timedelta(minutes=30))
    leaf = issue_leaf(ca, [SERVICE], lifetime=timedelta(days=1))

    assert _read(leaf).not_valid_after_utc == _read(ca).not_valid_after_utc


def test_keys_are_p256_and_stay_out_of_repr() -> None:
    """All keys are ECDSA P-256, and the repr of a record does not show them."""
    pair = issue_ca()
    key = load_pem_private_key(pair.key, password=None)

    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, ec.SECP256R1)
    assert "PRIVATE" not in repr(pair)


def test_leaf_with_addresses_only() -> None:
    """A server without a name is reached by its address."""
    leaf = _read(issue_leaf(issue_ca(), [], ["127.0.0.1"]))

    assert leaf.subject.rfc4514_string() == "CN=rdma-webhook"


def test_long_names_are_cut_in_the_subject_only() -> None:
    """RFC 5280 allows 64 characters in a common name; the alternative name is complete."""
    name = "a" * 60 + ".example.com"
    leaf = _read(issue_leaf(issue_ca(), [name]))
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == [name]


def _leaf(lifetime: timedelta, ca: timedelta = timedelta(days=365)) -> KeyPair:
    return issue_leaf(issue_ca(lifetime=ca, now=NOW), ["a"], lifetime=lifetime, now=NOW)


@pytest.mark.parametrize("seconds", [24 * 3600, 60, 6])
def test_after_two_thirds_of_its_life(seconds: int) -> None:
    """The hour of backdating does not count, however short the life is."""
    leaf = _leaf(timedelta(seconds=seconds))

    assert expiry(leaf) == NOW + timedelta(seconds=seconds)
    assert renewal_time(leaf) == NOW + timedelta(seconds=seconds) * 2 / 3
    assert not renewal_due(leaf, renewal_time(leaf) - timedelta(seconds=1))
    assert renewal_due(leaf, renewal_time(leaf))


def test_a_leaf_ends_with_its_ca() -> None:
    """It never outlives its CA, and if little time is left, it is renewed soon."""
    leaf = _leaf(timedelta(hours=24), ca=timedelta(hours=3))

    assert expiry(leaf) == NOW + timedelta(hours=3)
    assert renewal_time(leaf) == NOW + timedelta(hours=2)


def test_one_that_was_over_when_it_was_issued() -> None:
    """It is due at once, and not at a time after its end."""
    leaf = _leaf(timedelta(minutes=-30))
    assert renewal_time(leaf) == expiry(leaf)
