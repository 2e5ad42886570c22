from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from certs.authorities import MAX_FIELD_BYTES, Authorities, RotationRequest
from certs.errors import ApiError
from certs.issue import issue_ca
from certs.pem import KeyPair
from certs.secret import CaSecret
from tests.unit.certs.objects import INSTALLATION, SECRET, Objects, secret_of

NOW = datetime.now(UTC).replace(microsecond=0)
CA, NEXT, OLD = issue_ca(), issue_ca(), issue_ca()
BEFORE = [OLD.certificate, issue_ca().certificate]


def _secret(api: Objects) -> CaSecret:
    return CaSecret(api, INSTALLATION)


@pytest.mark.parametrize(
    "authorities",
    [
        Authorities(current=CA),
        Authorities(current=CA, next=NEXT, rotation_request=RotationRequest.REVOKE),
        Authorities(current=CA, next=NEXT, revoking=True, rotation_request=RotationRequest.ROTATE),
        Authorities(current=CA, previous=tuple(BEFORE), retire_after=NOW),
    ],
)
def test_what_is_written_is_read(authorities: Authorities) -> None:
    """A Secret is created if missing, replaced if different, and left alone if equal."""
    api = Objects()
    secret = _secret(api)

    assert secret.write(authorities, secret.read(NOW))
    assert secret.read(NOW).authorities == authorities
    assert secret.write(authorities, secret.read(NOW))
    assert [(verb, path) for verb, path, _ in api.writes] == [("create", SECRET)]
    assert secret.write(Authorities(current=OLD), secret.read(NOW))
    assert secret.read(NOW).authorities == Authorities(current=OLD)
    assert set(api.stored[SECRET]["data"]) == {"ca.crt", "ca.key"}
    assert api.stored[SECRET]["type"] == "Opaque"


def test_what_others_put_there_stays() -> None:
    """Others' labels, annotations and keys are kept."""
    api = Objects()
    api.stored[SECRET] = secret_of(CA, mine="eA==")
    api.stored[SECRET]["metadata"] = {"name": "a", "annotations": {"b": "c"}, "labels": {"d": "e"}}
    secret = _secret(api)

    assert secret.write(Authorities(current=NEXT), secret.read(NOW))
    metadata = api.stored[SECRET]["metadata"]
    assert (metadata["annotations"], metadata["labels"]) == ({"b": "c"}, {"d": "e"})
    assert api.stored[SECRET]["data"]["mine"] == "eA=="


def test_who_was_overtaken_writes_nothing() -> None:
    """It overwrites neither another replica's creation nor another replica's change."""
    api = Objects()
    secret = _secret(api)
    absent = secret.read(NOW)
    assert secret.write(Authorities(current=CA), absent)
    assert not secret.write(Authorities(current=NEXT), absent)
    stored = secret.read(NOW)
    assert secret.write(Authorities(current=NEXT), stored)
    assert not secret.write(Authorities(current=OLD), stored)
    assert secret.read(NOW).authorities == Authorities(current=NEXT)


@pytest.mark.parametrize("content", [{}, {"data": None}, {"data": {"other": "eA=="}}])
def test_a_secret_with_nothing_of_a_ca_is_as_good_as_none(content: dict[str, Any]) -> None:
    """Somebody may have created it beforehand."""
    api = Objects()
    api.stored[SECRET] = content
    stored = _secret(api).read(NOW)

    assert (stored.authorities, stored.problem) == (None, "")


def _long_ca() -> KeyPair:
    """Return a CA of 12,174 bytes on one line; with line breaks, it has more than the maximum."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x" * 60)] * 62)
    usual = x509.load_pem_x509_certificate(CA.certificate)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), 1, NOW, usual.not_valid_after_utc
    )
    for extension in usual.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    begin, *lines, end = builder.sign(key, SHA256()).public_bytes(Encoding.PEM).splitlines()
    pem = b"\n".join([begin, b"".join(lines), end])
    return KeyPair(
        certificate=pem, key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )


def test_a_ca_that_cannot_be_written_again_is_no_ca() -> None:
    """Its other form, which replicas write, is larger than the guard allows."""
    ca = _long_ca()
    api = Objects()
    api.stored[SECRET] = secret_of(ca)

    assert len(ca.certificate) <= MAX_FIELD_BYTES
    assert _secret(api).read(NOW).problem == "ca.crt has more than 12288 bytes"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (secret_of(CA, **{"ca.key": ""}), "it lacks ca.key"),
        ({"data": {"next.crt": "eA=="}}, "it lacks ca.crt and ca.key"),
        (secret_of(CA, **{"ca.crt": "%"}), "its data is not base64"),
        (secret_of(CA, **{"ca.crt": "Z2FyYmFnZQ=="}), "it is not a single PEM certificate"),
        (secret_of(issue_ca(now=NOW + timedelta(days=1))), "the CA is not valid before 2"),
        (
            secret_of(CA, **{"ca.crt": b64encode(b" " * (MAX_FIELD_BYTES + 1)).decode()}),
            "ca.crt has more than 12288 bytes",
        ),
    ],
)
def test_what_is_no_ca_is_reported(content: dict[str, Any], problem: str) -> None:
    """It may be somebody else's CA, so the caller decides what to do."""
    api = Objects()
    api.stored[SECRET] = content
    stored = _secret(api).read(NOW)

    assert stored.authorities is None
    assert stored.problem.startswith(problem)


@pytest.mark.parametrize(
    ("broken", "annotations"),
    [
        ({"next.crt": "Z2FyYmFnZQ==", "next.key": "eA=="}, {}),
        ({"previous.crt": "Z2FyYmFnZQ=="}, {}),
        ({"previous.crt": "%"}, {}),
        ({}, {"rdma.lab/retire-after": "soon", "rdma.lab/rotate": "yes"}),
    ],
)
def test_what_else_is_broken_is_not_there(
    broken: dict[str, str], annotations: dict[str, str]
) -> None:
    """Only the CA that issues is needed; the rest is removed."""
    api = Objects()
    api.stored[SECRET] = {
        **secret_of(CA, **broken),
        "metadata": {"name": "a", "annotations": annotations},
    }
    secret = _secret(api)
    stored = secret.read(NOW)

    assert stored.authorities == Authorities(current=CA)
    assert secret.write(stored.authorities, stored)
    assert api.stored[SECRET]["data"] == secret_of(CA)["data"]
    assert api.stored[SECRET]["metadata"]["annotations"] == {}


def test_a_ca_that_has_ended_is_one() -> None:
    """A replica replaces it; nobody has to do so by hand."""
    api, ended = Objects(), issue_ca(lifetime=timedelta(minutes=-1))
    api.stored[SECRET] = secret_of(ended)

    assert _secret(api).read(NOW).authorities == Authorities(current=ended)


def test_a_ca_without_a_last_newline() -> None:
    """`--from-literal` omits the newline; in caBundle, the next CA must start on a new line."""
    api = Objects()
    api.stored[SECRET] = secret_of(
        type(CA)(certificate=CA.certificate.rstrip(), key=CA.key),
    )
    assert _secret(api).read(NOW).authorities == Authorities(current=CA)


def _api(**annotations: str) -> Objects:
    api = Objects()
    metadata = {"name": "rdma-webhook-ca", "annotations": annotations}
    api.stored[SECRET] = {**secret_of(CA), "metadata": metadata}
    return api


@pytest.mark.parametrize("requested", RotationRequest)
def test_what_is_asked_is_what_replicas_read(requested: RotationRequest) -> None:
    """Nothing else in the Secret changes."""
    api = _api(other="a")
    _secret(api).request_rotation(requested)

    authorities = _secret(api).read(NOW).authorities
    assert authorities is not None
    assert (authorities.rotation_request, authorities.current) == (requested, CA)
    assert api.stored[SECRET]["metadata"]["annotations"]["other"] == "a"


def test_without_a_secret_there_is_nothing_to_exchange() -> None:
    """The Secret is missing with cert-manager, or before the first start."""
    with pytest.raises(ApiError, match=r"^Secret rdma-webhook/rdma-webhook-ca does not exist$"):
        _secret(Objects()).request_rotation(RotationRequest.ROTATE)


def test_an_immutable_secret_is_refused() -> None:
    """Its annotation could be written, but no replica could do what it requests."""
    api = _api()
    api.stored[SECRET]["immutable"] = True
    message = (
        r"^Secret rdma-webhook/rdma-webhook-ca is immutable; delete the Secret, wait until the "
        r"replicas have created it again, and repeat the command$"
    )
    with pytest.raises(ApiError, match=message):
        _secret(api).request_rotation(RotationRequest.ROTATE)
    assert api.stored[SECRET]["metadata"]["annotations"] == {}


def test_a_replica_was_faster() -> None:
    """The write is repeated, but not forever."""

    class Busy(Objects):
        tries = 0

        def replace(self, path: str, body: dict[str, Any]) -> bool:
            self.tries += 1
            return self.tries == 3 and super().replace(path, body)

    api = Busy()
    api.stored.update(_api().stored)
    _secret(api).request_rotation(RotationRequest.ROTATE)
    with pytest.raises(ApiError, match="another client keeps changing"):
        _secret(api).request_rotation(RotationRequest.ROTATE)
