"""The rules for a fabrics file, beyond the types of its fields; each rule is one function.

A rule is an error if pods would break or be rejected, or if the file contradicts itself. It is a
warning if the file works, but something has no effect or is probably unintended.
"""

from __future__ import annotations

from webhook.config.findings import FILE_CODES
from webhook.config.rules import (
    device_claims,
    devices,
    environment,
    hca_prefixes,
    hcas,
    matching,
    naming,
    node_labels,
    qos,
    resources,
    transports,
)
from webhook.config.rules.rule import ParsedSpec, Rule, Violation

__all__ = ["CODES", "RULES", "ParsedSpec", "Rule", "Violation"]

_MODULES = (
    *(naming, matching, resources, node_labels, hcas, hca_prefixes, devices, device_claims),
    *(transports, environment, qos),
)
#: All rules, in the order of their functions, which the table in docs/configuration.md follows.
RULES: tuple[Rule, ...] = tuple(
    value for module in _MODULES for value in vars(module).values() if isinstance(value, Rule)
)
#: The codes of all findings about a file.
CODES = (*FILE_CODES, *(rule.code for rule in RULES))
