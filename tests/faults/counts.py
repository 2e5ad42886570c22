"""The outcomes of pods that were created during a fault."""

from __future__ import annotations

from collections import Counter

from tests.e2e.installed.load import Creations

#: The API server's errors for requests to a process that ends, and to one that ended: kube-proxy
#: sends half of the new connections there until the kubelet has noticed, and nothing retries them.
_CAUSES = {
    "in flight": (
        "EOF",
        "connection reset",
        "broken pipe",
        "server closed idle connection",
        "use of closed network connection",
    ),
    "dialed before it was noticed": ("connection refused",),
}


def check_none_lost(creations: Creations) -> str:
    """Check that every pod was created and patched; return the figure."""
    assert not creations.refusals, creations.refusals
    assert set(creations.codes) == {201}
    assert creations.patched == creations.created > 0
    return f"0 of {creations.created} pods failed, p99 {creations.p99 * 1000:.0f} ms"


def lost(creations: Creations) -> str:
    """Return how many pods were not created."""
    refused = sum(creations.refusals.values())
    return f"{refused} of {refused + creations.created} pods failed"


def killed_with(creations: Creations) -> str:
    """Check that all failures come from a replica's sudden end; return their number and causes."""
    causes = Counter(_cause(message) for message in creations.refusals.elements())
    assert "" not in causes, creations.refusals
    parts = (f"{causes[cause]} {cause}" for cause in _CAUSES)
    return f"{lost(creations)}: {', '.join(parts)}"


def _cause(message: str) -> str:
    """Return the cause of an error; "" if it is not in the table."""
    causes = (cause for cause, words in _CAUSES.items() if any(word in message for word in words))
    return next(causes, "")
