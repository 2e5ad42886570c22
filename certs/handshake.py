"""Shake hands with a webhook as the API server does, and see what is served."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from cryptography import x509

#: The API server waits 10 s for a webhook by default; a handshake is a part of that.
SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaken:
    """What came of a handshake."""

    #: HOST:PORT.
    address: str
    #: Why an API server would not send its reviews there; "" if it would.
    problem: str
    #: What is served, also where it is not trusted; None where nobody answers.
    leaf: x509.Certificate | None = None


def shake(address: str, name: str, roots: bytes) -> Shaken:
    """Shake hands: `name` as server name, `roots` (PEM) as all that is trusted."""
    try:
        leaf = _shake(address, name, _trusting(roots))
    except ssl.SSLCertVerificationError as error:
        problem = error.verify_message or str(error)
        return Shaken(address=address, problem=problem, leaf=_served(address, name))
    except ssl.SSLError as error:
        return Shaken(address=address, problem=f"no TLS: {error.reason or error}")
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        return Shaken(address=address, problem=f"cannot connect: {why}")
    return Shaken(address=address, problem="", leaf=leaf)


def _trusting(roots: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if roots:  # else nobody is trusted, where Go would trust what the system does
        context.load_verify_locations(cadata=roots.decode("ascii"))
    return context


def _served(address: str, name: str) -> x509.Certificate | None:
    """Return the certificate without any trust in it, to be told about."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        return _shake(address, name, context)
    except OSError:  # of which ssl.SSLError is one
        return None


def _shake(address: str, name: str, context: ssl.SSLContext) -> x509.Certificate:
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host.strip("[]"), int(port)), SECONDS) as raw,
        context.wrap_socket(raw, server_hostname=name) as tls,
    ):
        shown = tls.getpeercert(binary_form=True)
    assert shown is not None  # a server always has one
    return x509.load_der_x509_certificate(shown)
