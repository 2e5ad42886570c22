"""Laws for the Secret with the CAs, whose content anybody may have written."""

from __future__ import annotations

from base64 import b64decode, encodebytes
from contextlib import suppress
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from certs.authorities import check_ca, unexpired_cas
from certs.errors import CertificateError
from certs.issue import issue_ca
from certs.pem import KeyPair, check_pair

NOW = datetime.now(UTC)
CA = issue_ca(now=NOW)
#: Offsets with new bytes at each; none removes the byte.
damages = st.lists(st.tuples(st.integers(0, 2**16), st.binary(max_size=2)), max_size=4)
labels = st.sampled_from(["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"])


@given(damages, damages, labels)
def test_damage_is_a_certificate_error(
    certificate: list[tuple[int, bytes]], key: list[tuple[int, bytes]], label: str
) -> None:
    """Whatever cryptography raises, callers get the one error that they handle."""
    pair = KeyPair(
        certificate=_damaged(CA.certificate, certificate, "CERTIFICATE"),
        key=_damaged(CA.key, key, label),
    )
    for check in (check_ca, check_pair):
        with suppress(CertificateError):
            check(pair, NOW)
    with suppress(CertificateError):
        unexpired_cas(pair.certificate, NOW)


def _damaged(pem: bytes, damage: list[tuple[int, bytes]], label: str) -> bytes:
    der = bytearray(b64decode(b"".join(pem.splitlines()[1:-1])))
    for offset, new in damage:
        start = offset % len(der)
        der[start : start + 1] = new
    return f"-----BEGIN {label}-----\n{encodebytes(der).decode()}-----END {label}-----\n".encode()
