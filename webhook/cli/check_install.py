"""`rdma-webhook check-install`: check whether all parts of an installation work together."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from certs.errors import CertsError
from certs.inspection import Handshake, Inspection, inspect, verify
from certs.installation import Installation
from webhook import __version__
from webhook.admission.expected_registration import expected_registrations
from webhook.cli.installation_options import (
    add_addresses,
    add_name_options,
    installation_of,
)
from webhook.cli.options import (
    add_cluster_options,
    add_output_format,
    cluster_access,
    namespace_name,
)
from webhook.cli.output import color, width, write, write_json
from webhook.diagnose.install.answer import check_install
from webhook.diagnose.install.facts import CertificateFacts, InstallNames, ServedCertificate
from webhook.diagnose.install.output import install_form, install_text
from webhook.diagnose.install.reads import InstallOptions, read_installation
from webhook.kube.access import connect
from webhook.serve.sources.certificate_api import CertificateApi

if TYPE_CHECKING:
    from webhook.kube.client import Client

_PASSED, _FAILED = 0, 1
_EXAMPLES = """examples:
  rdma-webhook check-install                         with your kubeconfig
  rdma-webhook check-install --try lab               also have the API server patch a pod in lab,
                                                     in a dry run, which stores nothing
  rdma-webhook check-install --strict -o json        for scripts
  kubectl -n rdma-webhook port-forward svc/rdma-webhook 8443:443 &
  rdma-webhook check-install --address 127.0.0.1:8443

The command changes nothing. What you have no right to read is listed as not checked.

exit codes: 0 no error, 1 an error or, with --strict, a warning or something not checked, 2 wrong
usage, or the API server did not answer
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `check-install`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add(
        "--try",
        dest="tried_namespace",
        type=namespace_name,
        metavar="NAMESPACE",
        help="also create a pod in this namespace, in a dry run, and check that it is patched",
    )
    add("--strict", action="store_true", help="treat warnings, and what was not checked, as errors")
    add_addresses(command)
    add_output_format(command)
    add_name_options(command)
    add_cluster_options(command)


def run(arguments: argparse.Namespace) -> int:
    """Check an installation, print the findings, and return the exit code."""
    client = connect(*cluster_access(arguments))
    installation = installation_of(arguments)
    options = InstallOptions(_names(installation), __version__, arguments.tried_namespace or "")
    certificates = _Certificates(client, installation, arguments.address)
    facts = read_installation(client, options, certificates.facts, lambda: datetime.now(UTC))
    check = check_install(facts)
    if arguments.output == "json":
        write_json(install_form(check, strict=arguments.strict))
    else:
        write(install_text(check, width=width(), color=color()))
    return _PASSED if check.passes(strict=arguments.strict) else _FAILED


def _names(installation: Installation) -> InstallNames:
    pods, fabrics = installation.webhook_configurations
    namespace, service = installation.namespace, installation.service
    registrations = expected_registrations(pods, fabrics, namespace, service)
    return InstallNames(namespace, service, registrations)


# The certificates, as `rdma-webhook certs status` and `certs verify` inspect them.


class _Certificates:
    """Inspects the certificates of an installation."""

    def __init__(
        self, client: Client, installation: Installation, addresses: Sequence[str]
    ) -> None:
        self._api = CertificateApi(client)
        self._installation = installation
        self._addresses = addresses

    def facts(self, self_managed: bool) -> CertificateFacts:
        """Return what was inspected; the Secret only if the replicas write it."""
        obstacle = ""
        if self_managed:
            try:
                return self._inspected()
            except CertsError as error:
                obstacle = str(error)
        try:
            handshakes = verify(self._api, self._installation, self._addresses)
        except CertsError as error:
            return CertificateFacts(
                self_managed, secret_obstacle=obstacle, handshake_obstacle=str(error)
            )
        served = tuple(map(_served, handshakes))
        return CertificateFacts(self_managed, served=served, secret_obstacle=obstacle)

    def _inspected(self) -> CertificateFacts:
        inspection = inspect(self._api, self._installation, self._addresses)
        return CertificateFacts(
            self_managed=True,
            secret_problem=inspection.secret_problem,
            bundles={bundle.configuration: bundle.problem for bundle in inspection.bundles},
            served=tuple(map(_served, inspection.handshakes)),
            ca_not_after=_current_ca_expiry(inspection),
        )


def _current_ca_expiry(inspection: Inspection) -> datetime | None:
    """Return when the current CA expires; None without one."""
    current = (ca.not_after for ca in inspection.authorities if ca.role == "current")
    return min(current, default=None)


def _served(handshake: Handshake) -> ServedCertificate:
    return ServedCertificate(
        handshake.address, handshake.problem, handshake.reached, handshake.not_after
    )
