"""The Secret that stores the CAs.

    data         ca.crt, ca.key          the CA that issues
                 next.crt, next.key      the CA that will issue next
                 previous.crt            CAs that issued before: certificates only
    annotations  rdma.lab/retire-after   previous.crt stays until then
                 rdma.lab/rotate         "rotate" or "revoke": a request for the next CA
                 rdma.lab/revoking       "true": next.crt exists because of a "revoke"

Each write carries the resourceVersion that was read, so the API server rejects it if
another replica has written meanwhile.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import UTC, datetime

from certs.authorities import (
    MAX_FIELD_BYTES,
    Authorities,
    RotationRequest,
    check_ca,
    unexpired_cas,
)
from certs.errors import ApiError, CertificateError
from certs.installation import Api, Installation, Object
from certs.pem import KeyPair, load_certificates, to_pem

_CERTIFICATE, _KEY = "ca.crt", "ca.key"
_NEXT_CERTIFICATE, _NEXT_KEY, _PREVIOUS = "next.crt", "next.key", "previous.crt"
_DATA = (_CERTIFICATE, _KEY, _NEXT_CERTIFICATE, _NEXT_KEY, _PREVIOUS)
_ROTATE = "rdma.lab/rotate"
_RETIRE_AFTER, _REVOKING = "rdma.lab/retire-after", "rdma.lab/revoking"
_ANNOTATIONS = (_ROTATE, _RETIRE_AFTER, _REVOKING)
_TIME = "%Y-%m-%dT%H:%M:%SZ"

#: The number of attempts to write a request for a rotation while the Secret keeps changing.
_ATTEMPTS = 5
#: The problem of a Secret that is `SecretContent.immutable`, and the remedy.
IMMUTABLE = (
    "it is immutable, so its CA can be neither replaced nor repaired; delete the Secret, and the "
    "replicas will create it again with the same CA"
)
IMMUTABLE_AND_EMPTY = (
    "it is immutable and has no CA; delete the Secret, and the replicas will create it again with "
    "a CA"
)
#: The remedy for a rotation that cannot be requested.
_RECREATE = (
    "delete the Secret, wait until the replicas have created it again, and repeat the command"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretContent:
    """The content of the Secret at one read."""

    #: The object; None if it does not exist.
    secret: Object | None
    #: The CAs; None if there are none, or if they are unusable.
    authorities: Authorities | None = None
    #: The reason why they are unusable; "" if they are usable, or if there is no CA data at all.
    problem: str = ""

    @property
    def immutable(self) -> bool:
        """Whether nobody can ever write its data again (`immutable: true`)."""
        return bool(self.secret and self.secret.get("immutable"))


class CaSecret:
    """The Secret (type Opaque) with the CAs of an installation."""

    def __init__(self, api: Api, installation: Installation) -> None:
        self._api = api
        self._namespace = installation.namespace
        self._name = installation.ca_secret
        self._collection = f"/api/v1/namespaces/{self._namespace}/secrets"
        self._path = f"{self._collection}/{self._name}"

    def __str__(self) -> str:
        return f"Secret {self._namespace}/{self._name}"

    def read(self, now: datetime) -> SecretContent:
        """Return the content; raise ApiError if the API server does not answer."""
        secret = self._api.read(self._path)
        if secret is None or _has_no_cas(secret):
            return SecretContent(secret=secret)
        try:
            return SecretContent(secret=secret, authorities=_decode(secret, now))
        except CertificateError as error:
            return SecretContent(secret=secret, problem=str(error))

    def write(self, authorities: Authorities, content: SecretContent) -> bool:
        """Store these CAs if `content` differs; False if the Secret has changed since that read."""
        if content.secret is None:
            return self._api.create(self._collection, _encode(authorities, self._new()))
        secret = _encode(authorities, content.secret)
        return _equal(secret, content.secret) or self._api.replace(self._path, secret)

    def request_rotation(self, request: RotationRequest) -> None:
        """Annotate the Secret so that a replica makes the next CA; its keys are not used here.

        Raises ApiError if the Secret does not exist or cannot be written.
        """
        for _ in range(_ATTEMPTS):
            secret = self._api.read(self._path)
            if secret is None:
                raise ApiError(f"{self} does not exist")
            if secret.get("immutable"):
                raise ApiError(f"{self} is immutable; {_RECREATE}")
            annotations = {**_annotations(secret), _ROTATE: request.value}
            metadata = {**secret["metadata"], "annotations": annotations}
            if self._api.replace(self._path, {**secret, "metadata": metadata}):
                return
        raise ApiError(f"another client keeps changing {self}")

    def _new(self) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "type": "Opaque",
        }


def _annotations(secret: Object) -> dict[str, str]:
    return (secret.get("metadata") or {}).get("annotations") or {}


def _has_no_cas(secret: Object) -> bool:
    """Return whether a Secret has no CA data at all, not even malformed data."""
    return not any((secret.get("data") or {}).get(key) for key in _DATA)


def _equal(first: Object, second: Object) -> bool:
    """Return whether two Secrets have the same data and annotations."""
    return (first.get("data") or {}) == (second.get("data") or {}) and _annotations(
        first
    ) == _annotations(second)


def _decode(secret: Object, now: datetime) -> Authorities:
    """Read the CAs; raise CertificateError if the current one is unusable.

    Other parts are ignored if they are malformed: the rotation then starts again.
    """
    data, annotations = secret.get("data") or {}, _annotations(secret)
    return Authorities(
        current=_pair(data, _CERTIFICATE, _KEY, now),
        next=_next(data, now),
        previous=_previous(data, now),
        retire_after=_time(annotations.get(_RETIRE_AFTER)),
        rotation_request=_request(annotations.get(_ROTATE)),
        revoking=annotations.get(_REVOKING) == "true",
    )


def _pair(data: Object, certificate: str, key: str, now: datetime) -> KeyPair:
    missing = [name for name in (certificate, key) if not data.get(name)]
    if missing:
        raise CertificateError(f"it lacks {' and '.join(missing)}")
    pair = KeyPair(certificate=_bytes(data, certificate), key=_bytes(data, key))
    check_ca(pair, now)
    (canonical,) = to_pem(load_certificates(pair.certificate))  # ends in a newline
    _check_size(certificate, canonical)
    return KeyPair(certificate=canonical, key=pair.key)


def _bytes(data: Object, key: str) -> bytes:
    try:
        content = b64decode(data[key], validate=True)
    except (TypeError, binascii.Error) as error:  # the API server rejects such data
        raise CertificateError("its data is not base64") from error
    _check_size(key, content)
    return content


def _check_size(key: str, content: bytes) -> None:
    if len(content) > MAX_FIELD_BYTES:
        raise CertificateError(f"{key} has more than {MAX_FIELD_BYTES} bytes")


def _next(data: Object, now: datetime) -> KeyPair | None:
    try:
        return _pair(data, _NEXT_CERTIFICATE, _NEXT_KEY, now)
    except CertificateError:
        return None


def _previous(data: Object, now: datetime) -> tuple[bytes, ...]:
    if not data.get(_PREVIOUS):
        return ()
    try:
        return tuple(unexpired_cas(_bytes(data, _PREVIOUS), now))
    except CertificateError:
        return ()


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.strptime(text or "", _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _request(text: str | None) -> RotationRequest | None:
    try:
        return RotationRequest(text or "")
    except ValueError:
        return None


def _encode(authorities: Authorities, secret: Object) -> Object:
    """Return a Secret with these CAs and otherwise the same content."""
    data = {key: value for key, value in (secret.get("data") or {}).items() if key not in _DATA} | {
        key: b64encode(value).decode() for key, value in _data_of(authorities).items()
    }
    annotations = {
        key: text for key, text in _annotations(secret).items() if key not in _ANNOTATIONS
    }
    metadata: Object = dict(secret.get("metadata") or {})
    metadata["annotations"] = annotations | _annotations_of(authorities)
    return {**secret, "metadata": metadata, "data": data}


def _data_of(authorities: Authorities) -> dict[str, bytes]:
    data = {_CERTIFICATE: authorities.current.certificate, _KEY: authorities.current.key}
    if authorities.next is not None:
        data[_NEXT_CERTIFICATE] = authorities.next.certificate
        data[_NEXT_KEY] = authorities.next.key
    if authorities.previous:
        data[_PREVIOUS] = b"".join(authorities.previous)
    return data


def _annotations_of(authorities: Authorities) -> dict[str, str]:
    annotations = {}
    if authorities.rotation_request is not None:
        annotations[_ROTATE] = authorities.rotation_request.value
    if authorities.retire_after is not None:
        annotations[_RETIRE_AFTER] = authorities.retire_after.strftime(_TIME)
    if authorities.revoking:
        annotations[_REVOKING] = "true"
    return annotations
