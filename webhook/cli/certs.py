"""`rdma-webhook certs`: show the state of certificates, and request a new CA."""

from __future__ import annotations

import argparse
import os

from certs.authorities import RotationRequest
from certs.errors import CertsError
from certs.inspection import inspect, verify
from certs.installation import Api, Installation
from certs.secret import CaSecret
from webhook.cli.certs_text import handshakes_text, inspection_text, told
from webhook.cli.cluster_options import add_cluster_options, cluster_access
from webhook.cli.common_options import add_form
from webhook.cli.installation_options import add_names
from webhook.cli.output import fail, say, write_json, write_lines
from webhook.kube.access import own_namespace
from webhook.serve.options import configurations
from webhook.serve.sources.certificate_api import connect

_GOOD, _NOT_GOOD = 0, 1
#: The namespace that the manifests install the webhook in.
_NAMESPACE = "rdma-webhook"

_EXAMPLES = """examples:
  rdma-webhook certs status                    with your kubeconfig
  rdma-webhook certs status -o json | jq .good
  rdma-webhook certs rotate                    start a new CA now; calls go on
  rdma-webhook certs rotate --revoke           the same, if the Secret has leaked
  kubectl -n rdma-webhook port-forward svc/rdma-webhook 8443:443 &
  rdma-webhook certs verify --address 127.0.0.1:8443

exit codes: 0 no problem found (rotate: requested), 1 a problem found, 2 wrong usage, or the API
server did not answer
"""
_WHAT = "status: all checks; verify: only the TLS handshakes; rotate: request a new CA"
_REVOKE = "with rotate: stop trusting the present CAs as soon as the replicas have replaced them"
_ADDRESS = (
    "check the handshake with this address instead of the Service's endpoints; may be repeated"
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `certs`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add("what", nargs="?", choices=tuple(_DO), help=_WHAT)
    add("--revoke", action="store_true", help=_REVOKE)
    add("--address", action="append", default=[], type=_address, metavar="HOST:PORT", help=_ADDRESS)
    add_form(command)
    add_names(command)
    add_cluster_options(command)


def _address(given: str) -> str:
    host, _, port = given.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{given!r:.80} is not HOST:PORT")
    return given


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action, and return the exit code."""
    if arguments.what is None:
        arguments.command.error(f"name an action: certs {', certs '.join(_DO)}")
    try:
        api, installation = connect(*cluster_access(arguments)), _installation(arguments)
        return _DO[arguments.what](api, installation, arguments)
    except CertsError as error:
        return fail(str(error))


def _status(api: Api, installation: Installation, arguments: argparse.Namespace) -> int:
    found = inspect(api, installation, arguments.address)
    if arguments.output == "json":
        write_json({**told(found), "good": found.good})
    else:
        write_lines(inspection_text(found))
    return _GOOD if found.good else _NOT_GOOD


def _verify(api: Api, installation: Installation, arguments: argparse.Namespace) -> int:
    found = verify(api, installation, arguments.address)
    good = bool(found) and not any(one.problem for one in found)
    if arguments.output == "json":
        write_json({"handshakes": [told(one) for one in found], "good": good})
    else:
        write_lines(handshakes_text(found))
    return _GOOD if good else _NOT_GOOD


def _rotate(api: Api, installation: Installation, arguments: argparse.Namespace) -> int:
    asked = RotationRequest.REVOKE if arguments.revoke else RotationRequest.ROTATE
    CaSecret(api, installation).request_rotation(asked)
    if arguments.output == "json":
        write_json({"asked": asked.value})
    else:
        say("note", _REQUESTED)
    return _GOOD


_REQUESTED = (
    "requested a new CA: the replicas create it now, and `rdma-webhook certs status` shows progress"
)
_DO = {"status": _status, "verify": _verify, "rotate": _rotate}


def _installation(arguments: argparse.Namespace) -> Installation:
    return Installation(
        namespace=arguments.namespace or own_namespace(os.environ) or _NAMESPACE,
        service=arguments.service,
        ca_secret=arguments.ca_secret,
        configurations=configurations(
            arguments.webhook_configuration, arguments.validating_webhook_configuration
        ),
    )
