"""All codes of `check-install`."""

from __future__ import annotations

from webhook.diagnose.install import (
    certificates,
    clocks,
    fabrics,
    facts,
    installed_objects,
    monitoring,
    policies,
    replicas,
    tried_pods,
)
from webhook.model.finding import Code

_MODULES = (
    facts,
    installed_objects,
    certificates,
    policies,
    replicas,
    fabrics,
    clocks,
    monitoring,
    tried_pods,
)
CODES: tuple[Code, ...] = tuple(code for module in _MODULES for code in module.CODES)
