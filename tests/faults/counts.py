"""What is said of pods that were created under a fault."""

from __future__ import annotations

from collections import Counter

from tests.e2e.installed.load import Creations

#: What the API server says of a request to a process that ends, and to one that is gone: kube-proxy
#: leads half of the new connections there until the kubelet has noticed, and nobody tries again.
_CAUSES = {
    "in flight": ("EOF", "connection reset", "broken pipe"),
    "dialled before it was noticed": ("connection refused",),
}


def none_lost(creations: Creations, least: int = 1) -> str:
    """Check that every pod was created, and patched; return the figure."""
    assert not creations.refusals, creations.refusals
    assert set(creations.codes) == {201}
    assert creations.patched == creations.created >= least
    return f"0 of {creations.created} pods failed, p99 {creations.p99 * 1000:.0f} ms"


def lost(creations: Creations) -> str:
    """Return how many pods were not created."""
    refused = sum(creations.refusals.values())
    return f"{refused} of {refused + creations.created} pods failed"


def killed_with(creations: Creations) -> str:
    """Check that nothing failed but by a replica's sudden end; return how many, and how."""
    causes = Counter(_cause(message) for message in creations.refusals.elements())
    assert "" not in causes, creations.refusals
    told = (f"{causes[cause]} {cause}" for cause in _CAUSES)
    return f"{lost(creations)}: {', '.join(told)}"


def _cause(message: str) -> str:
    """Return which it was, "" if none of them."""
    found = (cause for cause, words in _CAUSES.items() if any(word in message for word in words))
    return next(found, "")
