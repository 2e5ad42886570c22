"""The CAs as they stand in a Secret.

data         ca.crt, ca.key       who issues
             next.crt, next.key   who will
             previous.crt         who did: certificates only
annotations  rdma.lab/retire-after   before this time previous.crt stays
             rdma.lab/rotate         "rotate" or "revoke": somebody asks for the next CA
             rdma.lab/revoking       "true": next.crt comes because of a "revoke"
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from typing import Any

from certs import pem
from certs.authorities import Authorities, RotationRequest, check_ca, unexpired_cas
from certs.errors import CertificateError
from certs.installation import Object
from certs.pem import KeyPair

CERTIFICATE, KEY = "ca.crt", "ca.key"
_NEXT_CERTIFICATE, _NEXT_KEY, _PREVIOUS = "next.crt", "next.key", "previous.crt"
_DATA = (CERTIFICATE, KEY, _NEXT_CERTIFICATE, _NEXT_KEY, _PREVIOUS)
ROTATE = "rdma.lab/rotate"
_RETIRE_AFTER, _REVOKING = "rdma.lab/retire-after", "rdma.lab/revoking"
_ANNOTATIONS = (ROTATE, _RETIRE_AFTER, _REVOKING)
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def decoded(secret: Object, now: datetime) -> Authorities:
    """Read the CAs in a Secret; CertificateError if the one that issues is no CA.

    What else is broken is taken as not there: the rotation then begins anew.
    """
    data, annotations = secret.get("data") or {}, _annotations(secret)
    return Authorities(
        current=_pair(data, CERTIFICATE, KEY, now),
        next=_optional(data, now),
        previous=_previous(data, now),
        retire_after=_time(annotations.get(_RETIRE_AFTER)),
        requested=_requested(annotations.get(ROTATE)),
        revoking=annotations.get(_REVOKING) == "true",
    )


def encoded(authorities: Authorities, secret: Object) -> Object:
    """Return a Secret with these CAs; what else is in it stays as it is."""
    data = {key: value for key, value in (secret.get("data") or {}).items() if key not in _DATA} | {
        key: b64encode(value).decode() for key, value in _written(authorities).items()
    }
    metadata: Object = dict(secret.get("metadata") or {})
    kept = {key: text for key, text in _annotations(secret).items() if key not in _ANNOTATIONS}
    metadata["annotations"] = kept | _told(authorities)
    return {**secret, "metadata": metadata, "data": data}


def is_empty(secret: Object) -> bool:
    """Return whether there is nothing of a CA in a Secret, not even a broken one."""
    return not any((secret.get("data") or {}).get(key) for key in _DATA)


def same(one: Object, other: Object) -> bool:
    """Return whether two Secrets hold the same, so that neither need be written."""
    return (one.get("data") or {}) == (other.get("data") or {}) and _annotations(
        one
    ) == _annotations(other)


def _annotations(secret: Object) -> dict[str, str]:
    return (secret.get("metadata") or {}).get("annotations") or {}


def _pair(data: dict[str, Any], certificate: str, key: str, now: datetime) -> KeyPair:
    missing = [one for one in (certificate, key) if not data.get(one)]
    if missing:
        raise CertificateError(f"it has no {' and no '.join(missing)}")
    pair = KeyPair(certificate=_bytes(data, certificate), key=_bytes(data, key))
    check_ca(pair, now)
    (canonical,) = pem.to_pem(pem.load_certificates(pair.certificate))  # ends in a newline
    return KeyPair(certificate=canonical, key=pair.key)


def _bytes(data: dict[str, Any], key: str) -> bytes:
    try:
        return b64decode(data[key], validate=True)
    except (TypeError, binascii.Error) as error:  # the API server does not store such a thing
        raise CertificateError("its data are not base64") from error


def _optional(data: dict[str, Any], now: datetime) -> KeyPair | None:
    try:
        return _pair(data, _NEXT_CERTIFICATE, _NEXT_KEY, now)
    except CertificateError:
        return None


def _previous(data: dict[str, Any], now: datetime) -> tuple[bytes, ...]:
    if not data.get(_PREVIOUS):
        return ()
    try:
        return tuple(unexpired_cas(_bytes(data, _PREVIOUS), now))
    except CertificateError:
        return ()


def _time(written: str | None) -> datetime | None:
    try:
        return datetime.strptime(written or "", _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _requested(written: str | None) -> RotationRequest | None:
    try:
        return RotationRequest(written or "")
    except ValueError:
        return None


def _written(authorities: Authorities) -> dict[str, bytes]:
    data = {CERTIFICATE: authorities.current.certificate, KEY: authorities.current.key}
    if authorities.next is not None:
        data[_NEXT_CERTIFICATE] = authorities.next.certificate
        data[_NEXT_KEY] = authorities.next.key
    if authorities.previous:
        data[_PREVIOUS] = b"".join(authorities.previous)
    return data


def _told(authorities: Authorities) -> dict[str, str]:
    told = {}
    if authorities.requested is not None:
        told[ROTATE] = authorities.requested.value
    if authorities.retire_after is not None:
        told[_RETIRE_AFTER] = authorities.retire_after.strftime(_TIME)
    if authorities.revoking:
        told[_REVOKING] = "true"
    return told
