"""What is wrong with a FabricConfiguration, as the API server tells whoever applies it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.admission.configuration_answer import Faults
from webhook.config.findings import Finding, InvalidConfiguration, Severity
from webhook.config.load import Loaded, parse_object
from webhook.text.escape import visible

#: What messages about no field in particular are about.
_WHOLE = "the object"


def configuration_faults(item: Mapping[str, Any]) -> Faults:
    """Apply the rules of `check-config` to an object."""
    try:
        found: Loaded | InvalidConfiguration = parse_object(item, _WHOLE)
    except InvalidConfiguration as error:
        found = error
    return Faults(
        errors=_said(found.findings, "error"),
        more_errors=found.more.errors,
        warnings=_said(found.findings, "warning"),
        more_warnings=found.more.warnings,
    )


def _said(findings: Iterable[Finding], severity: Severity) -> list[tuple[str, str]]:
    return [
        (visible(one.path) or _WHOLE, visible(one.message))
        for one in findings
        if one.severity == severity
    ]
