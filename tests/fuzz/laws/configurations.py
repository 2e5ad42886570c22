"""The laws of fabrics files."""

from __future__ import annotations

import re
from typing import Any

from tests.fuzz import cost
from tests.fuzz.cost import Allowance
from tests.fuzz.laws.broken import broken, check_line, shapes
from tests.fuzz.laws.costs import Costing, costs_little_memory, costs_little_time
from tests.fuzz.worlds import CLUSTERS
from tests.property.allowed import forbidden, names_of
from webhook.config.files import decode
from webhook.config.findings import InvalidConfiguration, compiler_line
from webhook.config.load import LoadedConfiguration, parse_fabrics
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.model.facts import Facts
from webhook.model.finding import Finding
from webhook.model.pod import dotted


class Loading(Costing):
    """A fabrics file, and the result of loading it."""

    allowance = Allowance(0.15, 1.5e-5, 1500)

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.measures_memory = True
        self.repeat = self._load
        self.seconds, (self.loaded, self.findings) = cost.timed(self._load)

    def _load(self) -> tuple[LoadedConfiguration | None, tuple[Finding, ...]]:
        try:
            loaded = parse_fabrics(decode(self.data, "fabrics.yaml"), "fabrics.yaml")
        except InvalidConfiguration as error:
            return None, error.findings
        return loaded, loaded.findings


#: The maximum of findings that are shown for a file.
_MAX_FINDINGS = 100


def findings_are_lines(observed: Loading) -> None:
    """Each finding is one line that a terminal can show, about a line that the file has."""
    if observed.loaded is None and not any(
        finding.level == "error" for finding in observed.findings
    ):
        broken("refused without an error", "none")
    if len(observed.findings) > _MAX_FINDINGS:
        broken(f"{len(observed.findings)} findings", "many")
    lines = len(re.split(rb"\r\n|[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9]", observed.data))
    for finding in observed.findings:
        check_line(compiler_line(finding))
        # libyaml reports the end of an unfinished text on the line after the last one.
        line = finding.location.line
        if line is not None and not 1 <= line <= lines + 1:
            broken(f"line {line} of {lines}", "line")


def what_is_loaded_can_be_used(observed: Loading) -> None:
    """Pods can be decided with the configuration, which adds only fields that the file allows."""
    if observed.loaded is None:
        return
    configuration = observed.loaded.compiled
    facts = Facts.from_objects(_NODES)
    for namespace in ("lab", "other"):
        decision_input = DecisionInput(
            configuration, facts.namespace(namespace), facts.fabric_index(configuration)
        )
        for pod in _PODS:
            decision = decide(pod, decision_input)
            for change in forbidden(pod, decision.pod, names_of(configuration)):
                broken(f"{change!r:.300}", f"{change.kind} {shapes([dotted(change.path)])}")
            if decision.allowed and decide(decision.pod, decision_input).patch:
                broken("a second call changes something", "idempotent")


def the_hash_is_stable(observed: Loading) -> None:
    """A file has the same hash each time it is loaded."""
    if observed.loaded is not None:
        reloaded = observed.repeat()
        assert isinstance(reloaded, tuple)
        if reloaded[0].compiled.config_hash != observed.loaded.compiled.config_hash:
            broken("another hash of the same file")


FABRICS_LAWS = (
    costs_little_time,
    findings_are_lines,
    the_hash_is_stable,
    what_is_loaded_can_be_used,
    costs_little_memory,
)
_PODS: tuple[dict[str, Any], ...] = tuple(
    {
        "metadata": {"annotations": {"rdma.lab/enable": "true"}},
        "spec": {"containers": [{"name": "a", "resources": {"limits": limits}, "env": []}], **spec},
    }
    for limits in (
        {"nvidia.com/gpu": 8, "memory": "64Gi"},
        {"nvidia.com/v100": "2", "rdma/hca": 1},
        {"nvidia.com/h100": 1},
    )
    for spec in ({}, {"hostNetwork": True}, {"nodeName": "node-1"})
)
_NODES = [manifest for manifest in CLUSTERS[1] or () if manifest["kind"] == "Node"]
