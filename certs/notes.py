"""What a round did to the Secret, in a few words for the log."""

from __future__ import annotations

from collections.abc import Iterator

from certs.authorities import Authorities


def told(before: Authorities | None, after: Authorities) -> Iterator[str]:
    """Yield what was done; `before` is None where the Secret had nothing that could be used."""
    if before is None:
        return
    if before.current != after.current:
        yield "issues by the next CA from now on"
    elif before.next != after.next:
        why = " since its keys may be in wrong hands" if after.revoking else ""
        yield f"made the next CA{why}"
    if not set(before.previous) >= set(after.previous) - {before.current.certificate}:
        yield "goes on trusting a CA that was in caBundle"
    if before.previous and not after.previous:
        yield "retired the previous CA"
