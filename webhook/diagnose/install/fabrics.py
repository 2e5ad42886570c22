"""Whether the FabricConfiguration exists, is valid and in use, and its fabrics have nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from webhook.config.custom_resource import CONFIGURATION_TITLE
from webhook.diagnose.install.facts import CHECKED, InstallFacts
from webhook.diagnose.install.records import ConfigurationRecord, running_pods
from webhook.model.finding import Code, Finding
from webhook.model.names import counted, enumerated

NO_FABRICS = Code(
    "NoFabrics",
    "There is no FabricConfiguration, so no pod gets RDMA: pods that opted in are rejected "
    "(failurePolicy Fail) or start without RDMA (Ignore).",
    "Apply your fabrics: `kubectl apply -f fabrics.yaml` (docs/installation.md, Fabrics).",
)
CONDITION_FALSE = Code(
    "ConditionFalse",
    "A condition of the FabricConfiguration is false or unknown; its message explains why.",
    "Correct the problem that the message reports; `kubectl describe fabrics default` shows "
    "all conditions and Events.",
)
STATUS_OUTDATED = Code(
    "StatusOutdated",
    "No replica has written the status of the FabricConfiguration since the last change to its "
    "spec.",
    "After a change, wait a few seconds. If the status stays outdated, check that the replicas "
    "are running, and that the Lease rdma-webhook exists in their namespace.",
)
NODES_HAVE_PROBLEMS = Code(
    "NodesHaveProblems",
    "A node of a fabric cannot take pods or lacks a resource, or a fabric has no nodes.",
    "Run `rdma-webhook fabrics`, which names the nodes and the remedies.",
)
CODES = (NO_FABRICS, CONDITION_FALSE, STATUS_OUTDATED, NODES_HAVE_PROBLEMS)
#: `Ready` repeats the reason of the first of the others that is false, so it comes last.
_CONDITIONS = ("Valid", "Active", "Called", "Ready")


def fabric_findings(facts: InstallFacts, reported: Collection[str]) -> Iterator[Finding]:
    """Yield findings on the configuration; `reported`: codes of findings on other parts.

    A replica reports what is wrong with a webhook configuration in a condition, too. Without a
    replica, nobody updates the status.
    """
    reading = facts.configuration
    if reading.obstacle:
        yield reading.unread_finding()
    elif reading.manifest is None:
        text = f"{CONFIGURATION_TITLE} does not exist, so no pod gets RDMA"
        yield NO_FABRICS.finding("error", text)
    elif facts.pods.manifest is None or running_pods(facts.pods.manifest):
        configuration = ConfigurationRecord.model_validate(reading.manifest)
        yield from _condition_findings(configuration, reported)
        yield from _node_findings(configuration)


def _condition_findings(
    configuration: ConfigurationRecord, reported: Collection[str]
) -> Iterator[Finding]:
    generation = configuration.metadata.generation
    conditions = {condition.type: condition for condition in configuration.status.conditions}
    present = [conditions[name] for name in _CONDITIONS if name in conditions]
    if not present or any(condition.observed_generation != generation for condition in present):
        text = f"the status of {CONFIGURATION_TITLE} does not describe its generation {generation}"
        yield STATUS_OUTDATED.finding("warning", text)
        return
    reasons = set(reported)
    for condition in present:
        if condition.status != "True" and condition.reason not in reasons:
            text = f"{condition.type} is {condition.status}: {condition.message}"
            is_false = condition.status == "False"
            yield CONDITION_FALSE.finding("error" if is_false else "unsure", text)
        if condition.status != "True":
            reasons.add(condition.reason)
    true = [condition.type for condition in present if condition.status == "True"]
    if true:
        names = configuration.status.fabric_names
        yield CHECKED.finding("ok", f"{CONFIGURATION_TITLE} ({names}) is {enumerated(true)}")


def _node_findings(configuration: ConfigurationRecord) -> Iterator[Finding]:
    status = configuration.status
    if status.problems:
        text = f"{counted(status.problems, 'problem')} with the fabrics or their nodes"
        yield NODES_HAVE_PROBLEMS.finding("warning", text)
    elif status.nodes:
        text = f"no problems with the fabrics and their {counted(status.nodes, 'node')}"
        yield CHECKED.finding("ok", text)
