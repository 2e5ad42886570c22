"""The findings on an installation, in groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from webhook.diagnose.install.certificates import certificate_findings
from webhook.diagnose.install.clocks import clock_findings
from webhook.diagnose.install.fabrics import fabric_findings
from webhook.diagnose.install.facts import InstallFacts
from webhook.diagnose.install.installed_objects import object_findings
from webhook.diagnose.install.monitoring import monitoring_findings
from webhook.diagnose.install.policies import policy_findings
from webhook.diagnose.install.replicas import replica_findings
from webhook.diagnose.install.tried_pods import tried_pod_findings
from webhook.model.finding import Finding, Level, severity


class CheckedPart(NamedTuple):
    """The findings on a part of an installation."""

    title: str
    findings: tuple[Finding, ...]


class InstallCheck(NamedTuple):
    """The result of all checks."""

    parts: tuple[CheckedPart, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all parts."""
        return tuple(finding for part in self.parts for finding in part.findings)

    @property
    def level(self) -> Level:
        """The worst level."""
        return max((finding.level for finding in self.findings), key=severity, default="unsure")

    def passes(self, *, strict: bool) -> bool:
        """Return whether there is no error; with `strict`, also no warning and nothing unread."""
        return severity(self.level) < severity("warning" if strict else "error")


def check_install(facts: InstallFacts) -> InstallCheck:
    """Judge an installation."""
    parts = (part._replace(findings=(*dict.fromkeys(part.findings),)) for part in _parts(facts))
    return InstallCheck(tuple(part for part in parts if part.findings))


def _parts(facts: InstallFacts) -> Iterator[CheckedPart]:
    objects, certificates = (*object_findings(facts),), (*certificate_findings(facts),)
    reported = {finding.code for finding in (*objects, *certificates)}
    yield CheckedPart("objects", objects)
    yield CheckedPart("certificates", certificates)
    yield CheckedPart("policies", (*policy_findings(facts),))
    yield CheckedPart("replicas", (*replica_findings(facts),))
    yield CheckedPart("fabrics", (*fabric_findings(facts, reported),))
    yield CheckedPart("clocks", (*clock_findings(facts),))
    yield CheckedPart("monitoring", (*monitoring_findings(facts),))
    yield CheckedPart("dry run", (*tried_pod_findings(facts),))
