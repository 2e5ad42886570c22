from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.errors import CertificateError
from certs.issue import issue_ca, issue_leaf
from certs.pem import KeyPair
from certs.serving import CertificateFiles, ServingContext

NOW = datetime.now(UTC)
CA = issue_ca()
NAME = "localhost"
SERVICE = "web.lab.svc"


def _leaf(lifetime: timedelta = timedelta(hours=1)) -> KeyPair:
    return issue_leaf(CA, [NAME], lifetime=lifetime)


def _client(ca: KeyPair = CA) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=ca.certificate.decode())


def _shake(serving: ServingContext, client: ssl.SSLContext) -> tuple[bytes | None, str | None]:
    """Make a handshake in memory; return the server's certificate and the protocol."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_side = serving.context.wrap_bio(to_server, to_client, server_side=True)
    client_side = client.wrap_bio(to_client, to_server, server_hostname=NAME)
    waiting = [client_side, server_side]
    for _ in range(6):
        for side in list(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
    assert not waiting
    return client_side.getpeercert(binary_form=True), client_side.selected_alpn_protocol()


def _der(pair: KeyPair) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pair.certificate.decode())


def test_context_without_a_certificate_fails_handshakes() -> None:
    """A server without a certificate fails handshakes rather than showing a wrong one."""
    serving = ServingContext()

    with pytest.raises(ssl.SSLError):
        _shake(serving, _client())
    assert not serving.valid()


def test_new_handshakes_get_the_new_certificate() -> None:
    """The certificate is replaced in the context in use, without a restart."""
    serving, first, second = ServingContext(), _leaf(), _leaf()

    serving.use(first)
    assert _shake(serving, _client())[0] == _der(first)
    serving.use(second)
    assert _shake(serving, _client())[0] == _der(second)
    assert serving.valid()


def test_clients_without_the_ca_do_not_trust_it() -> None:
    """No client trusts our CA by default."""
    serving = ServingContext()
    serving.use(_leaf())

    with pytest.raises(ssl.SSLCertVerificationError):
        _shake(serving, _client(issue_ca()))


def test_http_1_1_is_what_is_spoken() -> None:
    """The API server (client-go) offers only http/1.1, so ALPN chooses it."""
    serving = ServingContext()
    serving.use(_leaf())
    client = _client()
    client.set_alpn_protocols(["h2", "http/1.1"])

    assert _shake(serving, client)[1] == "http/1.1"


def test_sessions_have_no_tickets() -> None:
    """A hello with hundreds of tickets would take milliseconds; no client of ours resumes any."""
    for context in (ServingContext().context, ServingContext(issue_ca().certificate).anonymous):
        assert context.num_tickets == 0
        assert context.options & ssl.OP_NO_TICKET


def test_client_certificates_are_required_where_a_client_ca_is_given() -> None:
    """With --client-ca, a client without a certificate gets no answer."""
    serving = ServingContext(issue_ca().certificate)
    serving.use(_leaf())

    with pytest.raises(ssl.SSLError):
        _shake(serving, _client())


def test_client_ca_must_be_a_certificate() -> None:
    """A wrong file is an error at the start; otherwise the server would trust nobody."""
    with pytest.raises(CertificateError, match="the client CA is not a PEM certificate"):
        ServingContext(b"nonsense")


def test_a_bad_pair_leaves_the_last_one_in_place() -> None:
    """A failed renewal must not break a working server."""
    serving, valid = ServingContext(), _leaf()
    serving.use(valid)

    with pytest.raises(CertificateError):
        serving.use(KeyPair(certificate=valid.certificate, key=b""))
    assert _shake(serving, _client())[0] == _der(valid)


def _write(folder: Path, pair: KeyPair) -> CertificateFiles:
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    return CertificateFiles(folder / "tls.crt", folder / "tls.key", ServingContext())


def test_files_are_read_again_when_their_content_changes(tmp_path: Path) -> None:
    """cert-manager renews by replacing the files; polling without a change does nothing."""
    files = _write(tmp_path, _leaf())

    assert [files.poll(), files.poll()] == [True, False]
    _write(tmp_path, _leaf())
    assert [files.poll(), files.poll(), files.error] == [True, False, ""]


def test_files_that_are_missing_or_wrong_are_reported_once(tmp_path: Path) -> None:
    """The error names the file, and is reported again only when it changes."""
    files = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key", ServingContext())

    assert [files.poll(), files.poll()] == [True, False]
    assert files.error == f"cannot read {tmp_path}/tls.crt: No such file or directory"
    (tmp_path / "tls.crt").write_bytes(CA.certificate)
    (tmp_path / "tls.key").write_bytes(_leaf().key)
    assert [files.poll(), files.poll()] == [True, False]
    assert files.error == (
        f"{tmp_path}/tls.crt with {tmp_path}/tls.key: the key does not belong to the certificate"
    )
