"""What is known about one pod: objects as the API server returns them, logs and processes.

`collector` or a file provides them. Everything but the pod may be missing, and any field may have
any shape, since a file may contain anything: the readers below return nothing for a wrong shape.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.admission.registration import WebhookSetup
from webhook.diagnose.tools.logs import LogFindings
from webhook.model.annotations import ENABLE, STATUS
from webhook.model.fabric import Fabrics
from webhook.model.facts import Facts
from webhook.model.pod import Path, PodManifest, at

#: A Kubernetes object as JSON.
Item = dict[str, Any]
_NO_FACTS = Facts()
_RDMA = ("yes", "no", "unsure", "none")


class PinnedProcess(NamedTuple):
    """A process that has an RDMA device open, and the memory that it has registered."""

    pid: int
    name: str
    kibibytes: int


class MissingClaim(NamedTuple):
    """A ResourceClaim that does not exist, or is being deleted."""

    name: str
    is_ending: bool = False


class ContainerProcesses(NamedTuple):
    """What was found in one container; `problem` says why nothing could be looked at."""

    container: str
    pinned: tuple[PinnedProcess, ...] = ()
    problem: str = ""


class ContainerLog(NamedTuple):
    """What the log of one container says."""

    container: str
    findings: LogFindings
    #: Whether it is the log of the run before the last restart.
    previous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What is known about one pod; None stands for what was not read."""

    pod: PodManifest
    namespace: Item | None = None
    #: The pod's controller, its controller, and so on.
    owners: tuple[Item, ...] = ()
    #: Events of the pod and of its owners, oldest first.
    events: tuple[Item, ...] | None = None
    #: All webhooks named pods.rdma.lab; () if none is installed.
    webhooks: tuple[WebhookSetup, ...] | None = None
    nodes: tuple[Item, ...] | None = None
    #: The ResourceClaims that the pod names and that it cannot have.
    missing_claims: tuple[MissingClaim, ...] = ()
    processes: tuple[ContainerProcesses, ...] | None = None
    logs: tuple[ContainerLog, ...] | None = None
    #: The configuration for what would be decided today.
    fabrics: Fabrics | None = None
    #: What that depends on, too: the namespace, its rules and claims, and the nodes.
    facts: Facts = _NO_FACTS
    #: Sentences on what could not be read.
    lacking: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The pod's name, "" if it has none."""
        return word_at(self.pod, ("metadata", "name"))

    @property
    def home(self) -> str:
        """The name of the pod's namespace."""
        return word_at(self.pod, ("metadata", "namespace")) or "default"

    @property
    def annotations(self) -> dict[str, str]:
        """The pod's annotations whose values are strings."""
        return strings_at(self.pod, ("metadata", "annotations"))

    @property
    def status(self) -> PodStatus | None:
        """What `rdma.lab/status` says; None if the webhook cannot have written it.

        It writes none into a pod that did not opt in, so such a status was copied.
        """
        if self.annotations.get(ENABLE) in (None, "false"):
            return None
        return read_status(self.annotations.get(STATUS, ""))


class PodStatus(NamedTuple):
    """The content of `rdma.lab/status`."""

    rdma: str
    because: str
    fabric: str
    reason: str
    applied: tuple[str, ...] | int
    skipped: tuple[str, ...] | int
    warned: tuple[str, ...] | int


def read_status(written: str) -> PodStatus | None:
    """Read the annotation; None for anything but an object with a verdict."""
    try:
        found: Any = json.loads(written)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("rdma") not in _RDMA:
        return None
    return PodStatus(
        rdma=found["rdma"],
        because=word_at(found, ("because",)),
        fabric=word_at(found, ("fabric",)),
        reason=word_at(found, ("reason",)),
        applied=_listed(found.get("applied")),
        skipped=_listed(found.get("skipped")),
        warned=_listed(found.get("warned")),
    )


def _listed(found: Any) -> tuple[str, ...] | int:
    """Return a list of words; a number stands for that many words, for which there was no room."""
    if isinstance(found, int):
        return int(found)
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def waits_for_node(pod: Item) -> bool:
    """Return whether a pod of the cluster has no node yet."""
    return word_at(pod, ("status", "phase")) == "Pending" and not word_at(pod, ("spec", "nodeName"))


def word_at(node: Any, path: Path) -> str:
    """Return the string at a path, "" for anything else."""
    found = at(node, path)
    return found if isinstance(found, str) else ""


def strings_at(node: Any, path: Path) -> dict[str, str]:
    """Return the entries of a mapping whose values are strings."""
    found = at(node, path)
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def items_at(node: Any, path: Path) -> list[Item]:
    """Return the mappings in a list."""
    found = at(node, path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def number_at(node: Any, path: Path) -> int:
    """Return the integer at a path, 0 for anything else."""
    found = at(node, path)
    return found if type(found) is int else 0


def title(item: Item) -> str:
    """Return kind and name of an object, for sentences."""
    return f"{word_at(item, ('kind',))} {word_at(item, ('metadata', 'name'))}".strip()
