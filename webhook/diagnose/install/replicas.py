"""Whether all replicas are ready, of similar versions, and decide with the same configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from webhook.config.custom_resource import CONFIGURATION_TITLE
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import parse_object
from webhook.config.replica_reports import LIVE, ReplicaReport, live_reports, replica_reports
from webhook.diagnose.install.facts import CHECKED, NOT_CHECKED, InstallFacts, ReplicaReading
from webhook.diagnose.install.records import ConfigurationRecord, running_pods
from webhook.kube.objects import Manifest
from webhook.model.finding import Code, Finding
from webhook.model.names import counted, enumerated

REPLICA_NOT_READY = Code(
    "ReplicaNotReady",
    "A check of a replica's /readyz has failed, so the API server does not call that replica.",
    'Correct the problem that the message reports. For the meaning of the check, see "/healthz '
    'and /readyz" in docs/operation.md.',
)
REPLICA_NOT_REPORTED = Code(
    "ReplicaNotReported",
    "A replica is running, but has not written its entry in status.replicas of the "
    "FabricConfiguration for more than six minutes.",
    "Read the replica's log to find out whether the replica can write the status, and check the "
    "clock of its node.",
)
CONFIGURATIONS_DIFFER = Code(
    "ConfigurationsDiffer",
    "A replica uses a configuration that differs from the current FabricConfiguration.",
    "After a change, wait a few seconds. If the difference remains, read the line `configuration` "
    "of the replica's /readyz, which gives the reason.",
)
VERSIONS_DIFFER = Code(
    "VersionsDiffer",
    "The replicas run different versions of rdma-webhook, as during a rollout.",
    "Wait for the rollout: `kubectl -n NAMESPACE rollout status deployment/rdma-webhook`.",
)
VERSION_SKEW = Code(
    "VersionSkew",
    "This program is more than one minor version newer or older than the replicas, so its checks "
    "might be wrong for them.",
    "Use a version of the rdma-webhook command that is at most one minor version older or newer "
    "than that of the replicas.",
)
CODES = (
    REPLICA_NOT_READY,
    REPLICA_NOT_REPORTED,
    CONFIGURATIONS_DIFFER,
    VERSIONS_DIFFER,
    VERSION_SKEW,
)
_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})\b")


def replica_findings(facts: InstallFacts) -> Iterator[Finding]:
    """Yield findings on the replicas that run; nothing if none does."""
    if facts.pods.obstacle:
        yield facts.pods.unread_finding()
    yield from _readiness_findings(facts)
    if facts.configuration.manifest is None:
        return
    reports = _reports(facts, facts.configuration.manifest)
    yield from _unreported_findings(facts, reports)
    if reports:
        yield from _version_findings(facts, reports)
        yield from _configuration_findings(facts, reports)


def _reports(facts: InstallFacts, manifest: Manifest) -> dict[str, ReplicaReport]:
    """Return the entries of replicas that run, or all recent ones if the pods are not known."""
    status = manifest.get("status")
    stored = replica_reports(status if isinstance(status, dict) else {})
    reports = live_reports(stored, facts.clocks.now)
    if facts.pods.manifest is None:
        return reports
    running = {pod.metadata.name for pod in running_pods(facts.pods.manifest)}
    return {name: report for name, report in reports.items() if name in running}


def _readiness_findings(facts: InstallFacts) -> Iterator[Finding]:
    ready = 0
    for replica in facts.replicas:
        failed = [check for check in replica.checks if not check.ready]
        if replica.obstacle:
            yield _unread_finding(replica, facts.names.namespace)
        for check in failed:
            text = f"{replica.pod} is not ready: {check.name}: {check.detail}"
            yield REPLICA_NOT_READY.finding("error", text)
        ready += not replica.obstacle and not failed
    if ready:
        yield CHECKED.finding("ok", f"/readyz of {counted(ready, 'replica')}: every check passes")


def _unread_finding(replica: ReplicaReading, namespace: str) -> Finding:
    remedy = (
        f"Ask for the right to {replica.missing_right}."
        if replica.missing_right
        else f"Run `kubectl -n {namespace} port-forward {replica.pod} 8080`, and read "
        "http://localhost:8080/readyz."
    )
    text = f"/readyz of {replica.pod}: not checked, since {replica.obstacle}"
    return NOT_CHECKED.finding("unsure", text, remedy)


def _unreported_findings(
    facts: InstallFacts, reports: Mapping[str, ReplicaReport]
) -> Iterator[Finding]:
    minutes = int(LIVE.total_seconds()) // 60
    for pod in running_pods(facts.pods.manifest):
        name = pod.metadata.name
        if pod.status.is_ready and name not in reports:
            text = f"{name} has written no entry in status.replicas for {minutes} minutes"
            yield REPLICA_NOT_REPORTED.finding("warning", text)


def _version_findings(
    facts: InstallFacts, reports: Mapping[str, ReplicaReport]
) -> Iterator[Finding]:
    versions = sorted({report.version for report in reports.values()})
    distant = [version for version in versions if _is_distant(version, facts.version)]
    if len(versions) > 1:
        remedy = VERSIONS_DIFFER.remedy.replace("NAMESPACE", facts.names.namespace)
        text = f"the replicas have the versions {enumerated(versions)}"
        yield VERSIONS_DIFFER.finding("warning", text, remedy)
    if distant:
        text = f"this program has version {facts.version}, but replicas have {enumerated(distant)}"
        yield VERSION_SKEW.finding("warning", text)
    if len(versions) == 1 and not distant:
        own = (
            "the same version as this program"
            if versions == [facts.version]
            else f"and this program is {facts.version}"
        )
        text = f"{_replicas(len(reports), 'run')} version {versions[0]}, {own}"
        yield CHECKED.finding("ok", text)


def _replicas(number: int, verb: str) -> str:
    """Return a subject with its verb: "1 replica runs", "2 replicas run"."""
    return f"{counted(number, 'replica')} {verb}{'s' * (number == 1)}"


def _is_distant(version: str, own: str) -> bool:
    """Return whether versions differ by more than one minor version; unknown forms do not."""
    there, here = _VERSION.match(version), _VERSION.match(own)
    if there is None or here is None:
        return False
    return there[1] != here[1] or abs(int(there[2]) - int(here[2])) > 1


def _configuration_findings(
    facts: InstallFacts, reports: Mapping[str, ReplicaReport]
) -> Iterator[Finding]:
    """Compare the replicas' configurations with the object's, if that is valid."""
    manifest = facts.configuration.manifest or {}
    generation = ConfigurationRecord.model_validate(manifest).metadata.generation
    config = _config_hash(manifest)
    if not config:
        return  # the conditions have the reason, and the last good configuration is in use
    same, current = 0, f"generation {generation} of the FabricConfiguration"
    for name, report in reports.items():
        if report.generation != generation:
            text = f"{name} uses generation {report.generation}, not {current}"
            yield CONFIGURATIONS_DIFFER.finding("error", text)
        elif report.version == facts.version and report.config != config:
            text = f"{name} uses config {report.config}, but {current} has {config}"
            yield CONFIGURATIONS_DIFFER.finding("error", text)
        else:
            same += 1
    if same:
        text = f"{_replicas(same, 'use')} {current} (hash {config})"
        yield CHECKED.finding("ok", text)


def _config_hash(manifest: Manifest) -> str:
    """Return the hash of the object's configuration; "" if it is not valid here."""
    try:
        return parse_object(manifest, CONFIGURATION_TITLE).compiled.config_hash
    except InvalidConfiguration:
        return ""
