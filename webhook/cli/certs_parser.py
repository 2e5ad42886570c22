"""The options of `rdma-webhook certs`."""

from __future__ import annotations

import argparse
from pathlib import Path

from webhook.cli.form import add_form

EXAMPLES = """examples:
  rdma-webhook certs status                    by your kubeconfig
  rdma-webhook certs status -o json | jq .good
  rdma-webhook certs rotate                    a new CA now; no call fails meanwhile
  rdma-webhook certs rotate --revoke           the Secret was in wrong hands
  kubectl -n rdma-webhook port-forward svc/rdma-webhook 8443:443 &
  rdma-webhook certs verify --address 127.0.0.1:8443

exit codes: 0 all is well (rotate: it is asked for), 1 something is not,
2 usage, or the API server did not answer
"""
_WHAT = "status: all of it; verify: only the handshakes; rotate: a new CA"
_REVOKE = "with rotate: trust the CAs there are no longer than replicas need to leave them"
_ADDRESS = "shake hands here and not with the Service's endpoints; may be repeated"
_KUBECONFIG = "reach the API server by this file (default: as kubectl does; in a pod, its account)"


def add_certs(command: argparse.ArgumentParser) -> None:
    """Add what the command can be told, but for the names of the installation."""
    command.epilog = EXAMPLES
    add = command.add_argument
    add("what", choices=("status", "verify", "rotate"), help=_WHAT)
    add("--revoke", action="store_true", help=_REVOKE)
    add("--address", action="append", default=[], type=_address, metavar="HOST:PORT", help=_ADDRESS)
    add("--kubeconfig", type=Path, metavar="FILE", help=_KUBECONFIG)
    add_form(command)


def _address(given: str) -> str:
    host, _, port = given.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{given!r:.80} is not HOST:PORT")
    return given
