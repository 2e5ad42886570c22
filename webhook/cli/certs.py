"""`rdma-webhook certs`: show the state of certificates, check them, and request a new CA."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime

from certs.authorities import RotationRequest
from certs.errors import CertsError
from certs.inspection import Handshake, InspectedBundle, InspectedCa, Inspection, inspect, verify
from certs.installation import Api, Installation
from certs.secret import CaSecret
from webhook.cli.installation_options import add_addresses, add_name_options, installation_of
from webhook.cli.options import add_cluster_options, add_output_format, cluster_access
from webhook.cli.output import fail, print_message, write_json, write_lines
from webhook.serve.sources.certificate_api import connect

# The command and its three actions.

_PASSED, _FAILED = 0, 1

_EXAMPLES = """examples:
  rdma-webhook certs status                    with your kubeconfig
  rdma-webhook certs status -o json | jq .healthy
  rdma-webhook certs rotate                    begin to replace the CA, without interrupting calls
  rdma-webhook certs rotate --revoke           the same, if the Secret has leaked
  kubectl -n rdma-webhook port-forward svc/rdma-webhook 8443:443 &
  rdma-webhook certs verify --address 127.0.0.1:8443

exit codes: 0 no problem (rotate: requested), 1 a problem, 2 wrong usage, or the API server did not
answer
"""
_ACTION_HELP = (
    "status: run all checks; verify: check only the TLS handshakes; rotate: request a new CA"
)
_REVOKE_HELP = (
    "with rotate: stop trusting the current CAs as soon as the replicas have replaced them"
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `certs`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add("action", nargs="?", choices=tuple(_ACTIONS), metavar="ACTION", help=_ACTION_HELP)
    add("--revoke", action="store_true", help=_REVOKE_HELP)
    add_addresses(command)
    add_output_format(command)
    add_name_options(command)
    add_cluster_options(command)


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action, and return the exit code."""
    if arguments.action is None:
        arguments.command.error("missing ACTION")
    try:
        api, installation = connect(*cluster_access(arguments)), installation_of(arguments)
        return _ACTIONS[arguments.action](api, installation, arguments)
    except CertsError as error:
        return fail(str(error))


def _status(api: Api, installation: Installation, arguments: argparse.Namespace) -> int:
    inspection = inspect(api, installation, arguments.address)
    if arguments.output == "json":
        write_json({**record_form(inspection), "healthy": inspection.is_healthy})
    else:
        write_lines(inspection_text(inspection))
    return _PASSED if inspection.is_healthy else _FAILED


def _verify(api: Api, installation: Installation, arguments: argparse.Namespace) -> int:
    handshakes = verify(api, installation, arguments.address)
    verified = bool(handshakes) and not any(handshake.problem for handshake in handshakes)
    if arguments.output == "json":
        write_json(
            {
                "handshakes": [record_form(handshake) for handshake in handshakes],
                "healthy": verified,
            }
        )
    else:
        write_lines(handshakes_text(handshakes))
    return _PASSED if verified else _FAILED


def _rotate(api: Api, installation: Installation, arguments: argparse.Namespace) -> int:
    request = RotationRequest.REVOKE if arguments.revoke else RotationRequest.ROTATE
    CaSecret(api, installation).request_rotation(request)
    if arguments.output == "json":
        write_json({"requested": request.value})
    else:
        print_message("note", _REQUESTED)
    return _PASSED


_REQUESTED = (
    "requested a new CA: the replicas create it now, and `rdma-webhook certs status` shows progress"
)
_ACTIONS = {"status": _status, "verify": _verify, "rotate": _rotate}


# The output of `rdma-webhook certs`.

#: The hex digits shown of a fingerprint: enough to distinguish a few CAs.
_FINGERPRINT_DIGITS = 16
_UP_TO_DATE = "it has exactly the webhook's CAs"
_PHASES = {
    "settled": "one CA; no rotation is in progress",
    "publishing": (
        "the next CA is in caBundle, and issues certificates once every API server has seen it"
    ),
    "draining": (
        "the new CA issues certificates; the previous one stays trusted until no replica can still "
        "be using it"
    ),
}


def inspection_text(inspection: Inspection) -> str:
    """Render an inspection as text for people."""
    return "\n".join([*_state(inspection), "", *_lines(inspection.handshakes), ""])


def handshakes_text(handshakes: Sequence[Handshake]) -> str:
    """Render handshakes as text for people."""
    return "\n".join([*_lines(handshakes), ""])


def record_form(
    record: Inspection | InspectedCa | Handshake | InspectedBundle,
) -> dict[str, object]:
    """Return a record as JSON types, with camelCase names as in Kubernetes."""
    return {_camel(field.name): _plain(getattr(record, field.name)) for field in fields(record)}


def _state(inspection: Inspection) -> Iterator[str]:
    if inspection.secret_problem:
        yield f"✘ Secret    {inspection.secret_problem}"
    else:
        yield f"✔ Secret    {inspection.phase}: {_PHASES[inspection.phase]}"
    for bundle in inspection.bundles:
        name, problem = bundle.configuration, bundle.problem
        message = problem if problem.startswith(name) else f"{name}: {problem or _UP_TO_DATE}"
        yield f"{'✘' if problem else '✔'} caBundle  {message}"
    for authority in inspection.authorities:
        presence = "in caBundle" if authority.in_bundle else "not in caBundle"
        ends = _moment(authority.not_after)
        fingerprint = authority.fingerprint[:_FINGERPRINT_DIGITS]
        yield f"    {authority.role:<9} {fingerprint}  until {ends}  {presence}"
    if inspection.retire_after is not None:
        yield f"  the previous CA stays at least until {_moment(inspection.retire_after)}"
    if inspection.requested:
        request = inspection.requested
        yield f"  a request to {request} is pending; a replica starts it in its next round"


def _lines(handshakes: Sequence[Handshake]) -> Iterator[str]:
    if not handshakes:
        yield "✘ served    the Service has no ready endpoints"
    for handshake in handshakes:
        sign, verdict = ("✘", handshake.problem) if handshake.problem else ("✔", "verified")
        leaf = f"  until {_moment(handshake.not_after)}" if handshake.not_after else ""
        issuer = f"  by the {handshake.issuer} CA" if handshake.issuer else ""
        yield f"{sign} {handshake.address:<22} {verdict}{leaf}{issuer}"


def _moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else ""


def _camel(name: str) -> str:
    first, *following = name.split("_")
    return first + "".join(word.capitalize() for word in following)


def _plain(value: object) -> object:
    if isinstance(value, (Inspection, InspectedCa, Handshake, InspectedBundle)):
        return record_form(value)
    if isinstance(value, tuple):
        return [_plain(member) for member in value]
    return _moment(value) if isinstance(value, datetime) else value
