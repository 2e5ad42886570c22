"""What was read of an installation; every finding follows from these values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from webhook.admission.expected_registration import ExpectedRegistration
from webhook.kube.objects import Manifest
from webhook.model.finding import Code, Finding
from webhook.model.names import enumerated
from webhook.text.readiness import ReadinessCheck

#: The name of most objects of an installation. The policies match the account by this name, so no
#: site can change it.
NAME = "rdma-webhook"
#: The name of the objects of previews, where these have a Deployment of their own.
PREVIEW_NAME = f"{NAME}-preview"

CHECKED = Code("Checked", "The check found no problem.")
NOT_CHECKED = Code(
    "NotChecked",
    "A part of the installation was not checked: you lack a right, the API server or a replica "
    "did not answer, or the pods of a dry run were rejected.",
    "If the finding names a right, ask for it, or ask somebody who has it to run the command. If "
    "the pods of a dry run were rejected, pass a different namespace to --try. Otherwise, run the "
    "command again.",
)
CODES = (CHECKED, NOT_CHECKED)


class Reading(NamedTuple):
    """An object of the API server, or why it is not known."""

    #: Its kind and name, for sentences.
    title: str
    #: None if it does not exist, or if that is unknown.
    manifest: Manifest | None = None
    #: Why it is unknown, as a clause after "since"; "" if it is known.
    obstacle: str = ""
    #: Whether the cluster does not have its kind.
    lacks_kind: bool = False
    #: The right that is missing: "get secrets in namespace rdma-webhook"; "" otherwise.
    missing_right: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether the object certainly does not exist."""
        return self.manifest is None and not self.obstacle

    def unread_finding(self, titles: Sequence[str] = ()) -> Finding:
        """Return that the object, or objects with these titles, were not checked."""
        objects = enumerated(titles or (self.title,))
        remedy = "Run the command again."
        if self.missing_right:
            remedy = (
                f"Ask for the right to {self.missing_right}, or have an administrator run the "
                "command."
            )
        text = f"{objects}: not checked, since {self.obstacle}"
        return NOT_CHECKED.finding("unsure", text, remedy)


def unread_findings(readings: Iterable[Reading]) -> Iterator[Finding]:
    """Yield a finding for each reason for which some of the objects were not read."""
    titles: dict[str, list[str]] = {}
    first: dict[str, Reading] = {}
    for reading in readings:
        if reading.obstacle:
            titles.setdefault(reading.obstacle, []).append(reading.title)
            first.setdefault(reading.obstacle, reading)
    yield from (first[obstacle].unread_finding(names) for obstacle, names in titles.items())


class InstallNames(NamedTuple):
    """The names of an installation that its administrator can choose."""

    namespace: str
    service: str
    registrations: tuple[ExpectedRegistration, ...]


class PolicyReading(NamedTuple):
    """A ValidatingAdmissionPolicy and its binding."""

    policy: Reading
    binding: Reading


class ReplicaReading(NamedTuple):
    """The answer of a replica to `/readyz`."""

    pod: str
    checks: tuple[ReadinessCheck, ...] = ()
    #: Why it has none; "" if it has.
    obstacle: str = ""
    missing_right: str = ""


class ServedCertificate(NamedTuple):
    """The TLS handshake with a replica, as the API server does it."""

    address: str
    #: Why the API server would not send it anything; "" if it would.
    problem: str
    #: Whether a certificate was served.
    answered: bool
    not_after: datetime | None = None


class CertificateFacts(NamedTuple):
    """The certificates of an installation."""

    #: Whether the replicas certainly issue them themselves; otherwise the Secret and `bundles` are
    #: unknown.
    self_managed: bool
    #: What is wrong with the Secret that has the CA; "" if nothing is.
    secret_problem: str = ""
    #: Webhook configuration (kind and name) → the defect of its caBundle; "" if it has none.
    bundles: Mapping[str, str] = {}
    served: tuple[ServedCertificate, ...] = ()
    #: When the first CA expires; None if unknown.
    ca_not_after: datetime | None = None
    #: Why the Secret was not read, and why no handshake was made; "" otherwise.
    secret_obstacle: str = ""
    handshake_obstacle: str = ""


class ClockFacts(NamedTuple):
    """The time of the API server, and of this machine at the same moment."""

    server: datetime | None
    machine: datetime
    #: Between the request and the answer that had the time.
    uncertainty: timedelta = timedelta()

    @property
    def now(self) -> datetime:
        """The API server's time, since it judges the certificates; else the machine's."""
        return self.server or self.machine


class TriedPod(NamedTuple):
    """The answer to the dry run of a pod's creation."""

    status: int
    answer: Manifest


class TriedPods(NamedTuple):
    """The dry runs in a namespace, of a pod that opts in and of one that does not."""

    namespace: Reading
    name: str
    #: The fabric that the pod chooses; "" for none.
    fabric: str = ""
    #: None if the namespace is known to lack the label, so that the result is clear.
    opted_in: TriedPod | None = None
    other: TriedPod | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallFacts:
    """Everything that was read."""

    names: InstallNames
    #: The version of this program.
    version: str
    clocks: ClockFacts
    definition: Reading
    deployment: Reading
    #: The Deployment of previews, which few installations have.
    preview: Reading
    service: Reading
    #: The EndpointSlices of the Service, as a list.
    endpoints: Reading
    #: The Lease, whose holder writes the status.
    lease: Reading
    #: Objects that need only exist.
    others: tuple[Reading, ...]
    #: In the order of `names.registrations`.
    webhook_configurations: tuple[Reading, ...]
    #: Policy → what was read.
    policies: Mapping[str, PolicyReading]
    configuration: Reading
    #: The pods of the Deployment, as a list.
    pods: Reading
    replicas: tuple[ReplicaReading, ...]
    certificates: CertificateFacts
    #: PodMonitor and PrometheusRule.
    monitoring: tuple[Reading, ...]
    tried: TriedPods | None = None
