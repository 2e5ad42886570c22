"""What is said of pods that were created under a fault."""

from __future__ import annotations

from tests.e2e.installed.load import Creations


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
