"""The installation that the tests of a rule break."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.install.installation import Installation


@pytest.fixture
def installation() -> Installation:
    """Return an installation of the manifests without a fault."""
    return Installation()
