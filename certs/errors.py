"""The errors of certificate handling; each is one line for people.

CertsError
├─ CertificateError   a certificate or a key cannot be used
└─ ApiError           the API server did not do, or does not have, what is needed
"""

from __future__ import annotations


class CertsError(Exception):
    """The base class; `str(error)` is one line for a person."""


class CertificateError(CertsError):
    """A certificate or a key cannot be used; `str(error)` names it, with the reason."""


class ApiError(CertsError):
    """The API server is unreachable, rejects a request, or lacks or does not keep an object."""
