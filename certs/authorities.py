"""The CAs of one installation, and how far the exchange of one for the next has come.

There is no phase in here that could contradict the rest; it follows from what there is:

    settled      only `current`
    publishing   `next` too: it is in `caBundle`, and nothing is issued by it yet
    draining     `previous` too: nothing is issued by it any more, but some may still serve it
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from certs.issue import KeyPair
from certs.pem import distinct, fingerprint_of


class Asked(StrEnum):
    """What somebody may ask for, by an annotation of the Secret."""

    #: A new CA before its time.
    ROTATE = "rotate"
    #: The same, since the keys of these may be in wrong hands: trust them no longer than must be.
    REVOKE = "revoke"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorities:
    """Which CA issues, which one will, and which ones did, as the Secret has them."""

    current: KeyPair
    next: KeyPair | None = None
    #: Certificates only (PEM, one each): their keys are forgotten.
    previous: tuple[bytes, ...] = ()
    #: Before this, `previous` stays, because a replica without the API server may still serve it.
    retire_after: datetime | None = None
    asked: Asked | None = None
    #: `next` comes because the keys before it may be in wrong hands.
    revoking: bool = False

    @property
    def phase(self) -> str:
        """Where the exchange is: settled, publishing or draining."""
        if self.next is not None:
            return "publishing"
        return "draining" if self.previous else "settled"

    @property
    def trusted(self) -> tuple[bytes, ...]:
        """The certificates (PEM, one each) that belong into `caBundle`, each once."""
        pairs = (self.current, self.next) if self.next is not None else (self.current,)
        return tuple(distinct([*(pair.certificate for pair in pairs), *self.previous]))

    def knows(self, certificate: bytes) -> bool:
        """Return whether a CA (PEM) is one of these."""
        wanted = fingerprint_of(certificate)
        return any(fingerprint_of(one) == wanted for one in self.trusted)
