"""Where the serving certificate comes from, and what is told of it.

Files that somebody else renews; or, in a cluster, certificates that this process makes and
has the API server trust; or, with `--dev`, one that was made at start.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from certs.self_managed import SelfManaged
from certs.serving import CertificateFiles, ServingContext
from certs.site import Site
from webhook.app.certificate_api import connect
from webhook.app.log import Log, defect
from webhook.app.observe import Metrics
from webhook.app.options import WEBHOOK, ServeOptions
from webhook.app.state import Check, State
from webhook.errors import ConfigError

#: Where the kubelet mounts what a pod needs to talk to the API server.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: What the kubelet sets in every container.
IN_CLUSTER = "KUBERNETES_SERVICE_HOST"


class Certificate(Protocol):
    """What keeps the serving certificate in step with where it comes from."""

    def start(self) -> None:
        """Begin what goes on beside the event loop."""

    def stop(self) -> None:
        """End that."""

    def poll(self) -> bool:
        """Return whether there is something to tell; may block, so not in the loop."""

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Tell it, in the event loop."""


def certificate_of(
    options: ServeOptions, serving: ServingContext, state: State, environment: Mapping[str, str]
) -> Certificate:
    """Choose by what is given, and have `/readyz` ask it; ConfigError if nothing is."""
    if options.dev or options.tls_cert or options.tls_key:
        return FileCertificate(serving, _files(options, serving), state)
    site = _site(options, environment)
    managed = SelfManaged(site, serving, partial(connect, options.kubeconfig))
    return SelfManagedCertificate(managed, serving, state)


class FileCertificate:
    """Swaps the certificate when its files change; a broken pair keeps the last good."""

    def __init__(
        self, serving: ServingContext, files: CertificateFiles | None, state: State
    ) -> None:
        self._serving = serving
        self._files = files
        state.probes.append(self.check)

    def start(self) -> None:
        """Do nothing: `poll` looks at the files."""

    def stop(self) -> None:
        """Do nothing."""

    def poll(self) -> bool:
        """Look at the files, and return whether anything changed; reads them."""
        return self._files is not None and self._files.poll()

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Tell what `poll` found, and when the certificate expires."""
        until = self._serving.not_after
        metrics.certificate_not_after.set(until.timestamp() if until else 0)
        if self._files is not None and self._files.error:
            log.write("error", "certificate not usable", problem=self._files.error)
        else:
            log.write("info", "certificate loaded", not_after=until)

    def check(self) -> Check:
        """Report to `/readyz`: ready while there is a certificate that has not expired."""
        error = self._files.error if self._files else ""
        until = self._serving.not_after
        if until is None:
            return Check("certificate", False, error or "not read yet")
        detail = f"valid until {until:%Y-%m-%dT%H:%M:%SZ}"
        if error:
            detail = f"{detail}, kept because its files are now broken: {error}"
        return Check("certificate", self._serving.valid(), detail)


class SelfManagedCertificate:
    """Tells how far the certificates are that this process looks after."""

    def __init__(self, managed: SelfManaged, serving: ServingContext, state: State) -> None:
        self._managed = managed
        self._serving = serving
        self._told = managed.status
        state.probes.append(self.check)

    def start(self) -> None:
        """Have a thread look after the certificates."""
        self._managed.start()

    def stop(self) -> None:
        """End that thread."""
        self._managed.stop()

    def poll(self) -> bool:
        """Return whether it is at another point than `apply` told; reads nothing."""
        return self._managed.status != self._told

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Tell where it is: one line for each thing that changed."""
        before, now = self._told, self._managed.status
        self._told = now
        metrics.certificate_not_after.set(now.not_after.timestamp() if now.not_after else 0)
        if now.not_after != before.not_after:
            log.write("info", "certificate loaded", not_after=now.not_after)
        if now.problem and now.problem != before.problem:
            message = "certificate at risk" if now.trusted else "certificate not trusted yet"
            log.write("warning", message, problem=now.problem)
            if now.defect is not None:
                metrics.internal_errors.inc()
                log.write("error", "internal error", **defect(now.defect))
        elif now.trusted and (before.problem or not before.trusted):
            log.write("info", "certificate trusted", not_after=now.not_after)

    def check(self) -> Check:
        """Report to `/readyz`: ready once the API server trusts the certificate that is served.

        From then on only its end makes unready: who cannot be reached for a while is told
        in the line.
        """
        now = self._managed.status
        if now.not_after is None or not now.trusted:
            return Check("certificate", False, now.problem)
        detail = f"valid until {now.not_after:%Y-%m-%dT%H:%M:%SZ}, its CA is in caBundle"
        if now.problem:
            detail = f"{detail}; but now: {now.problem}"
        return Check("certificate", self._serving.valid(), detail)


def _files(options: ServeOptions, serving: ServingContext) -> CertificateFiles | None:
    if options.tls_cert and options.tls_key:
        return CertificateFiles(options.tls_cert, options.tls_key, serving)
    if options.tls_cert or options.tls_key:
        raise ConfigError("--tls-cert and --tls-key: one is of no use without the other")
    return None


def _site(options: ServeOptions, environment: Mapping[str, str]) -> Site:
    if options.kubeconfig is None and not environment.get(IN_CLUSTER):
        msg = (
            "no certificate: give --tls-cert and --tls-key, or --dev for a try on this machine, "
            "or run it in a cluster, where it looks after its own (elsewhere: --kubeconfig)"
        )
        raise ConfigError(msg)
    if options.kubeconfig is not None and not options.kubeconfig.is_file():
        raise ConfigError(f"cannot read --kubeconfig {options.kubeconfig}: no such file")
    return Site(
        namespace=options.namespace or _own_namespace(),
        service=options.service,
        ca_secret=options.ca_secret,
        configuration=options.webhook_configuration,
        webhook=WEBHOOK,
    )


def _own_namespace() -> str:
    file = SERVICE_ACCOUNT / "namespace"
    try:
        return file.read_text().strip()
    except OSError as error:
        msg = f"which namespace is the webhook in? Give --namespace ({file}: {error.strerror})"
        raise ConfigError(msg) from error
