"""When a certificate is to be replaced: after two thirds of its life."""

from __future__ import annotations

from datetime import datetime

from certs.issue import BACKDATED, KeyPair
from certs.pem import certificates


def ends(pair: KeyPair) -> datetime:
    """Return the end of a certificate's validity."""
    return certificates(pair.certificate)[0].not_valid_after_utc


def renewal(pair: KeyPair) -> datetime:
    """Return when a certificate is to be replaced; its life began when it was issued."""
    certificate = certificates(pair.certificate)[0]
    until = certificate.not_valid_after_utc
    issued = min(certificate.not_valid_before_utc + BACKDATED, until)
    return until - (until - issued) / 3


def due(pair: KeyPair, now: datetime) -> bool:
    """Return whether a certificate is to be replaced now."""
    return now >= renewal(pair)
