"""What can go wrong with certificates: each error is one line for people.

CertificateError   a certificate or a key cannot be used
ClusterError       the API server cannot be reached, refuses, or lacks what is needed
"""

from __future__ import annotations


class CertificateError(Exception):
    """A certificate or a key cannot be used: `str(error)` says which, and why."""


class ClusterError(Exception):
    """The cluster did not do what was asked: `str(error)` says what, and why."""
