"""A check whether the API server calls this webhook: the condition `Called`.

Somebody may delete a webhook configuration, change what it selects, or write another `caBundle`.
Pods that opted in then run without RDMA or are rejected, while every replica is well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Protocol

from certs.ca_bundle import verifies
from webhook.admission.expected_registration import (
    NO_CONFIGURATION,
    ExpectedRegistration,
    expected_registrations,
    registration_mistakes,
)
from webhook.admission.registration import Registration
from webhook.admission.selection import Mistake, ca_bundle_of, is_called_by_url
from webhook.errors import ClusterError
from webhook.kube.access import connect, own_namespace
from webhook.kube.remedies import APPLY_AGAIN, RESTORE
from webhook.model.json import JsonObject
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions, webhook_configurations
from webhook.serve.sources.periodic import Periodic
from webhook.serve.status.content import Condition

#: Seconds between two checks, and until the confirmation of a new problem: replicas heal
#: `caBundle` within seconds.
CHECK_SECONDS, CONFIRM_SECONDS = 30.0, 10.0
OTHER_CA_BUNDLE = "OtherCaBundle"
NOT_READABLE = "NotReadable"
#: Reason → what to do, if that is not to restore a changed object.
_REMEDIES = {
    NO_CONFIGURATION: APPLY_AGAIN,
    OTHER_CA_BUNDLE: "run `rdma-webhook certs status`, which shows what to do",
}
_CALLED = "The API server calls the webhook for pods that opted in, and for this object."


class ObjectReader(Protocol):
    """The API server."""

    def read(self, path: str) -> JsonObject | None:
        """Return an object; None if it does not exist. Raise ClusterError without an answer."""


class CallCheck:
    """A source that checks in a thread, and reports in a condition, the log and a metric."""

    def __init__(
        self,
        connect: Callable[[], ObjectReader],
        registrations: tuple[ExpectedRegistration, ...],
        chain: Callable[[], bytes],
        replica: str,
    ) -> None:
        """Keep what the thread needs: only the thread calls `connect`, which may be slow.

        `chain` returns the served certificate with its chain, in PEM; empty while there is none.
        `replica`: the name of this pod.
        """
        self._connect = connect
        self._api: ObjectReader | None = None
        self._registrations = registrations
        self._chain = chain
        self._replica = replica
        #: Whether the last attempt showed a fault; the next one must confirm it.
        self._has_fault = False
        #: The confirmed results by label; empty before the first check.
        self._results: dict[str, Condition] = {}
        self._reported: dict[str, Condition] = {}
        self._periodic = Periodic("calls", self.attempt)
        self.start, self.stop = self._periodic.start, self._periodic.stop

    def attempt(self) -> float:
        """Check both configurations; return the seconds until the next attempt; never raises."""
        results = {expected.label: self._result(expected) for expected in self._registrations}
        had_fault = self._has_fault
        self._has_fault = any(result.holds is not True for result in results.values())
        if self._has_fault and not had_fault:
            return CONFIRM_SECONDS
        self._results = results
        return CHECK_SECONDS

    def _result(self, expected: ExpectedRegistration) -> Condition:
        configuration = expected.configuration
        try:
            if self._api is None:
                self._api = self._connect()
            document = self._api.read(configuration.path)
        except ClusterError as error:
            return Condition("Called", None, NOT_READABLE, f"{configuration}: {error}.")
        except Exception as error:  # noqa: BLE001 -- the thread must go on to the next attempt
            text = f"{configuration}: internal error: {type(error).__name__}."
            return Condition("Called", None, NOT_READABLE, text)
        mistake = self._mistake(expected, document)
        if mistake is None:
            return Condition("Called", True, "Called", _CALLED)
        remedy = _REMEDIES.get(mistake.reason, RESTORE)
        text = f"{configuration} {mistake.text}; {remedy}."
        return Condition("Called", False, mistake.reason, text)

    def _mistake(
        self, expected: ExpectedRegistration, document: JsonObject | None
    ) -> Mistake | None:
        """Return the first mistake; None without one."""
        mistakes = registration_mistakes(expected, document)
        registration = expected.registration(document) if document else None
        ca_mistakes = self._ca_mistakes(registration) if registration else ()
        return next(chain(mistakes, ca_mistakes), None)

    def _ca_mistakes(self, registration: Registration) -> Iterator[Mistake]:
        bundle, chain = ca_bundle_of(registration), self._chain()
        if not bundle and not is_called_by_url(registration):
            yield Mistake(OTHER_CA_BUNDLE, "has no caBundle")
        elif bundle and chain and not verifies(bundle, chain):
            text = (
                "has a caBundle without the CA of the certificate that the webhook's replica "
                f"{self._replica} serves"
            )
            yield Mistake(OTHER_CA_BUNDLE, text)

    def condition(self) -> Condition | None:
        """Return the condition `Called`, by the worse result; None before the first check."""
        results = self._results.values()
        order = (False, None, True)
        return min(results, key=lambda result: order.index(result.holds), default=None)

    def poll(self) -> bool:
        """Return whether there is a change to report."""
        return self._results != self._reported

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report the current state: one line for each change."""
        before, self._reported = self._reported, self._results
        for label, result in self._reported.items():
            if result.holds is not None:
                metrics.called.labels(label).set(result.holds)
            if result == before.get(label):
                continue
            if result.holds is not True:
                message = "not called" if result.holds is False else "calls not checked"
                log.write("warning", message, webhook=label, problem=result.message)
            else:
                log.write("info", "called", webhook=label)


def call_check_of(
    options: ServeOptions,
    environment: Mapping[str, str],
    chain: Callable[[], bytes],
    replica: str,
) -> CallCheck:
    """Return the check for the webhook configurations of an installation."""
    namespace = options.namespace or own_namespace(environment)
    pods, fabrics = webhook_configurations(
        options.webhook_configuration, options.validating_webhook_configuration
    )
    registrations = expected_registrations(pods, fabrics, namespace, options.service)
    return CallCheck(partial(connect, options.kubeconfig), registrations, chain, replica)
