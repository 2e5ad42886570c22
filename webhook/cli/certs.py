"""`rdma-webhook certs`: show the state of certificates, check them, and request a new CA."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime

from certs.authorities import RotationRequest
from certs.errors import CertsError
from certs.inspection import Authority, Handshake, InspectedBundle, Inspection, inspect, verify
from certs.installation import Api, Installation
from certs.secret import CaSecret
from webhook.cli.installation_options import add_names
from webhook.cli.options import add_cluster_options, add_form, cluster_access
from webhook.cli.output import fail, print_status, write_json, write_lines
from webhook.kube.access import own_namespace
from webhook.serve.options import configurations
from webhook.serve.sources.certificate_api import connect

# The command and its three actions.

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
        write_json({**describe_authority(found), "good": found.good})
    else:
        write_lines(inspection_text(found))
    return _GOOD if found.good else _NOT_GOOD


def _verify(api: Api, installation: Installation, arguments: argparse.Namespace) -> int:
    found = verify(api, installation, arguments.address)
    good = bool(found) and not any(one.problem for one in found)
    if arguments.output == "json":
        write_json({"handshakes": [describe_authority(one) for one in found], "good": good})
    else:
        write_lines(handshakes_text(found))
    return _GOOD if good else _NOT_GOOD


def _rotate(api: Api, installation: Installation, arguments: argparse.Namespace) -> int:
    asked = RotationRequest.REVOKE if arguments.revoke else RotationRequest.ROTATE
    CaSecret(api, installation).request_rotation(asked)
    if arguments.output == "json":
        write_json({"asked": asked.value})
    else:
        print_status("note", _REQUESTED)
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


# The output of `rdma-webhook certs`.

_SHORT = 16  # hex digits of a fingerprint; enough to distinguish a few CAs
_SAME = "it has exactly the CAs of the Secret"
_PHASES = {
    "settled": "one CA; no rotation is in progress",
    "publishing": (
        "the next CA is in caBundle, and issues certificates once every API server has seen it"
    ),
    "draining": (
        "the next CA issues certificates; the previous one stays until no replica can still use it"
    ),
}


def inspection_text(inspection: Inspection) -> str:
    """Render an inspection as text for people."""
    return "\n".join([*_state(inspection), "", *_lines(inspection.handshakes), ""])


def handshakes_text(handshakes: Sequence[Handshake]) -> str:
    """Render handshakes as text for people."""
    return "\n".join([*_lines(handshakes), ""])


def describe_authority(
    record: Inspection | Authority | Handshake | InspectedBundle,
) -> dict[str, object]:
    """Return a record in JSON's types, with names as Kubernetes writes them."""
    return {_camel(one.name): _plain(getattr(record, one.name)) for one in fields(record)}


def _state(inspection: Inspection) -> Iterator[str]:
    if inspection.secret_problem:
        yield f"✘ Secret    {inspection.secret_problem}"
    else:
        yield f"✔ Secret    {inspection.phase}: {_PHASES[inspection.phase]}"
    for bundle in inspection.bundles:
        where, problem = bundle.configuration, bundle.problem
        what = problem if problem.startswith(where) else f"{where}: {problem or _SAME}"
        yield f"{'✘' if problem else '✔'} caBundle  {what}"
    for one in inspection.authorities:
        where = "in caBundle" if one.in_bundle else "not in caBundle"
        ends = _moment(one.not_after)
        yield f"    {one.role:<9} {one.fingerprint[:_SHORT]}  until {ends}  {where}"
    if inspection.retire_after is not None:
        yield f"  the previous CA stays at least until {_moment(inspection.retire_after)}"
    if inspection.asked:
        yield f"  a request to {inspection.asked} is pending; a replica starts it in its next round"


def _lines(handshakes: Sequence[Handshake]) -> Iterator[str]:
    if not handshakes:
        yield "✘ served    the Service has no ready endpoints"
    for one in handshakes:
        sign, verdict = ("✘", one.problem) if one.problem else ("✔", "verified")
        leaf = f"  until {_moment(one.not_after)}" if one.not_after else ""
        issuer = f"  by the {one.issuer} CA" if one.issuer else ""
        yield f"{sign} {one.address:<22} {verdict}{leaf}{issuer}"


def _moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else ""


def _camel(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def _plain(value: object) -> object:
    if isinstance(value, (Inspection, Authority, Handshake, InspectedBundle)):
        return describe_authority(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return _moment(value) if isinstance(value, datetime) else value
