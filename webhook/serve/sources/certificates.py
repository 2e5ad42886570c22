"""Sources of the serving certificate, and the choice between them.

It comes from files that another program renews; or, in a cluster, from this process, which
issues certificates and makes the API server trust them; or, with `--dev`, it is issued at start.
Where only previews are served, it is issued in memory, and nobody is made to trust it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Protocol

from certs.clock import Clock
from certs.installation import Installation, server_name
from certs.issue import issue_ca, issue_leaf, renewal_due
from certs.pem import KeyPair
from certs.self_managed import SelfManaged, Status
from certs.serving import CertificateFiles, ServingContext
from webhook.errors import ConfigError, crash_summary
from webhook.kube.access import IN_CLUSTER, SERVICE_ACCOUNT, own_namespace
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions, webhook_configurations
from webhook.serve.sources.certificate_api import certificate_watch, connect
from webhook.serve.state import State
from webhook.text.readiness import ReadinessCheck


class CertificateSource(Protocol):
    """A source of the serving certificate."""

    def start(self) -> None:
        """Start the work outside the event loop."""

    def stop(self) -> None:
        """Stop that work."""

    def poll(self) -> bool:
        """Return whether there is a change to report; may block, so call it in a thread."""

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report the change, in the event loop."""


def certificate_of(
    options: ServeOptions, serving: ServingContext, state: State, environment: Mapping[str, str]
) -> CertificateSource:
    """Return the source for the options, and add its check; raise ConfigError without one."""
    if options.dev or options.tls_cert or options.tls_key:
        return FileCertificate(serving, _files(options, serving, environment), state)
    if options.preview == "only":
        return UntrustedCertificate(serving, state)
    installation = installation_of(options, environment)
    if options.durations.problem:
        raise ConfigError(f"certificates' lifetimes: {options.durations.problem}")
    connect_api = partial(connect, options.kubeconfig)
    watch = certificate_watch(options.kubeconfig, installation)
    managed = SelfManaged(installation, serving, connect_api, options.durations, watch=watch)
    return SelfManagedCertificate(managed, serving, state)


def _files(
    options: ServeOptions, serving: ServingContext, environment: Mapping[str, str]
) -> CertificateFiles | None:
    if options.tls_cert and options.tls_key:
        namespace = _known_namespace(options, environment)
        name = server_name(options.service, namespace) if namespace else None
        return CertificateFiles(options.tls_cert, options.tls_key, serving, name)
    if options.tls_cert or options.tls_key:
        raise ConfigError("--tls-cert and --tls-key belong together; use both, or neither")
    return None


def installation_of(options: ServeOptions, environment: Mapping[str, str]) -> Installation:
    """Return the names of the webhook's objects; raise ConfigError without a namespace."""
    if options.kubeconfig is None and not environment.get(IN_CLUSTER):
        raise ConfigError(
            "no certificate; use --tls-cert and --tls-key, or --dev to try the webhook on your own "
            "computer; in a cluster, or with --kubeconfig, the webhook manages its own"
        )
    if options.kubeconfig is not None and not options.kubeconfig.is_file():
        raise ConfigError(f"cannot read --kubeconfig {options.kubeconfig}: no such file")
    namespace = _known_namespace(options, environment)
    if not namespace:
        reason = f"{SERVICE_ACCOUNT}/namespace does not exist"
        raise ConfigError(f"the webhook's namespace is unknown; use --namespace ({reason})")
    return Installation(
        namespace=namespace,
        service=options.service,
        ca_secret=options.ca_secret,
        webhook_configurations=webhook_configurations(
            options.webhook_configuration, options.validating_webhook_configuration
        ),
    )


def _known_namespace(options: ServeOptions, environment: Mapping[str, str]) -> str:
    """Return the namespace of the options or of the pod; "" if neither is known."""
    return options.namespace or own_namespace(environment)


# Report the state of the serving certificate in the log, in metrics, and on `/readyz`.


class FileCertificate:
    """A source that reloads changed files; a broken pair does not replace a good one."""

    def __init__(
        self, serving: ServingContext, files: CertificateFiles | None, state: State
    ) -> None:
        self._serving = serving
        self._files = files
        state.probes.append(self.check)

    def start(self) -> None:
        """Do nothing: `poll` reads the files."""

    def stop(self) -> None:
        """Do nothing."""

    def poll(self) -> bool:
        """Read the files, and return whether anything changed."""
        return self._files is not None and self._files.poll()

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report the result of `poll`, and the certificate's expiry."""
        until = self._serving.not_after
        metrics.certificates.not_after.set(_seconds(until))
        metrics.certificates.successful.set(not (self._files and self._files.error))
        if self._files is not None and self._files.error:
            log.write("error", "certificate not usable", problem=self._files.error)
        else:
            log.write("info", "certificate loaded", not_after=until)

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`: ready while there is an unexpired certificate."""
        error = self._files.error if self._files else ""
        until = self._serving.not_after
        if until is None:
            return ReadinessCheck("certificate", False, error or "not read yet")
        detail = f"valid until {until:%Y-%m-%dT%H:%M:%SZ}"
        if error:
            detail = f"{detail}; still in use, because its files are now broken: {error}"
        return ReadinessCheck("certificate", self._serving.valid(), detail)


class UntrustedCertificate:
    """A source that issues a certificate in memory, for clients that verify none.

    The API server's proxy to a Service is such a client. A certificate that anybody trusts would
    need the key of the webhook's CA, with which this process could pose as the webhook.
    """

    def __init__(self, serving: ServingContext, state: State, clock: Clock | None = None) -> None:
        self._serving = serving
        self._clock = clock or Clock()
        self._pair: KeyPair | None = None
        state.probes.append(self.check)

    def start(self) -> None:
        """Do nothing: `poll` issues the certificate."""

    def stop(self) -> None:
        """Do nothing."""

    def poll(self) -> bool:
        """Issue a certificate if it is time for one; return whether it was."""
        now = self._clock.now()
        if self._pair is not None and not renewal_due(self._pair, now):
            return False
        authority = issue_ca("rdma-webhook preview CA", now=now)
        self._pair = issue_leaf(authority, ["localhost"], now=now)
        self._serving.use(self._pair)
        return True

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report the certificate."""
        until = self._serving.not_after
        metrics.certificates.not_after.set(_seconds(until))
        metrics.certificates.successful.set(1)
        log.write("info", "certificate loaded", not_after=until)

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`: ready while there is an unexpired certificate."""
        until = self._serving.not_after
        if until is None:
            return ReadinessCheck("certificate", False, "not issued yet")
        detail = f"valid until {until:%Y-%m-%dT%H:%M:%SZ}, issued in memory, and trusted by nobody"
        return ReadinessCheck("certificate", self._serving.valid(), detail)


class SelfManagedCertificate:
    """A source that reports on the certificates that this process manages."""

    def __init__(self, managed: SelfManaged, serving: ServingContext, state: State) -> None:
        self._managed = managed
        self._serving = serving
        self._reported = managed.status
        self._notes: list[str] = []
        state.probes.append(self.check)

    def start(self) -> None:
        """Start the thread that manages the certificates."""
        self._managed.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._managed.stop()

    def poll(self) -> bool:
        """Return whether anything changed since the last report; reads no files."""
        self._notes += self._managed.notes()
        return bool(self._notes) or self._managed.status != self._reported

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report the current state: one line for each change."""
        before, now = self._reported, self._managed.status
        self._reported = now
        self._set_gauges(now, metrics)
        for note in self._notes:
            log.write("info", "certificates changed", what=note)
        self._notes.clear()
        if now.not_after != before.not_after:
            log.write("info", "certificate loaded", not_after=now.not_after)
        if now.problem and now.problem != before.problem:
            message = "certificate at risk" if now.trusted else "certificate not trusted yet"
            log.write("warning", message, problem=now.problem)
            if now.defect is not None:
                metrics.internal_errors.inc()
                log.write("error", "internal error", **crash_summary(now.defect))
        elif now.trusted and (before.problem or not before.trusted):
            log.write("info", "certificate trusted", not_after=now.not_after)

    def _set_gauges(self, now: Status, metrics: Metrics) -> None:
        metrics.certificates.not_after.set(_seconds(now.not_after))
        metrics.certificates.successful.set(not now.problem)
        metrics.certificates.ca_not_after.set(_seconds(now.ca_not_after))
        metrics.certificates.ca_rotating.set(now.phase in ("publishing", "draining"))
        metrics.certificates.watched.set_function(lambda: self._managed.watched)

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`: ready once the API server trusts the serving certificate.

        After that, only an expired certificate makes the server unready. While the API server is
        unreachable, the line shows it.
        """
        now = self._managed.status
        if now.not_after is None or not now.trusted:
            return ReadinessCheck("certificate", False, now.problem)
        detail = f"valid until {now.not_after:%Y-%m-%dT%H:%M:%SZ}, its CA is in caBundle"
        if now.problem:
            detail = f"{detail}; problem: {now.problem}"
        return ReadinessCheck("certificate", self._serving.valid(), detail)


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0
