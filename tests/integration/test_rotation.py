"""A rotation of the CA, over real sockets, with lifetimes of seconds."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from certs.issue import issue_ca
from tests.integration.objects_api import ApiServer
from tests.integration.replica import Replica
from tests.integration.serving import review
from tests.integration.test_client_certificates import client_pair
from tests.unit.certs.objects import CONFIGURATION, SECRET
from tests.waiting import until

NAME = "rdma-webhook.rdma-webhook.svc"
PROPAGATION = 3.0  #: seconds
#: A third of a leaf's life is left when it is renewed: five seconds, which a busy machine needs.
FLAGS = ("--ca-propagation", f"{PROPAGATION:g}s", "--ca-interval", "1s", "--leaf-lifetime", "15s")
CLIENTS = issue_ca("clients")
#: The number of observations, ten per second.
LOOKS = 20


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    """Run an API server with the MutatingWebhookConfiguration."""
    with ApiServer(tmp_path) as running:
        running.objects.configure()
        yield running


def _rotate(api: ApiServer) -> None:
    """Request a rotation as `kubectl annotate` does."""
    secret = api.objects.read(SECRET)
    assert secret is not None
    secret["metadata"]["annotations"] = {"rdma.lab/rotate": "rotate"}
    assert api.objects.replace(SECRET, secret)


def _issuer(api: ApiServer) -> str:
    return str(api.objects.stored[SECRET]["data"]["ca.crt"])


def _trusting(bundle: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=b64decode(bundle).decode())
    context.check_hostname = False
    return context


def _connection(replica: Replica, context: ssl.SSLContext) -> http.client.HTTPSConnection:
    port = replica.ports["mutate"]
    return http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)


def _ask(connection: http.client.HTTPSConnection) -> bool:
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/mutate", review(), headers)
    answer = connection.getresponse()
    return bool(json.loads(answer.read())["response"]["allowed"])


def test_no_handshake_fails_all_the_while(api: ApiServer, tmp_path: Path) -> None:
    """No handshake fails by the current `caBundle` or the one two seconds before; connections stay.

    A change may take three seconds to spread. The test goes on until the next CA's leaf has been
    served for two.
    """
    with Replica(api.kubeconfig, tmp_path, "rdma-webhook", *FLAGS) as replica:
        until(lambda: replica.ready()[0] == 200)
        before = _issuer(api)
        open_connection = _connection(replica, _trusting(api.objects.bundle))
        assert _ask(open_connection)
        bundles = deque([(api.objects.bundle, time.monotonic())], maxlen=LOOKS)
        _rotate(api)
        shaken, after = 0, 0
        while after < LOOKS:
            for bundle, when in (bundles[0], bundles[-1]):
                trusted = _trusted(replica, bundle)
                if time.monotonic() - when < PROPAGATION:  # else the machine was slow
                    assert trusted
                    shaken += 1
            time.sleep(0.1)
            bundles.append((api.objects.bundle, time.monotonic()))
            after += not _trusted(replica, before)
        assert _ask(open_connection)
        open_connection.close()
        count = b64decode(api.objects.bundle).count(b"BEGIN CERTIFICATE")

        assert (_issuer(api) != before, count) == (True, 2)
        print(f"{shaken} handshakes during a rotation, none failed")  # noqa: T201 -- a figure


def _trusted(replica: Replica, bundle: str) -> bool:
    """Return whether a handshake succeeds with a `caBundle` as its roots."""
    try:
        return bool(replica.handshake(bundle, NAME))
    except ssl.SSLCertVerificationError:
        return False


def test_a_rotation_keeps_asking_clients_for_a_certificate(api: ApiServer, tmp_path: Path) -> None:
    """A rotation replaces only the server's certificate: clients without theirs stay rejected."""
    file = tmp_path / "clients.crt"
    file.write_bytes(CLIENTS.certificate)
    flags = (*FLAGS, "--client-ca", str(file))
    with Replica(api.kubeconfig, tmp_path, "rdma-webhook", *flags) as replica:
        until(lambda: replica.ready()[0] == 200)
        _rotate(api)
        until(lambda: "previous.crt" in api.objects.stored[SECRET]["data"])
        context = _trusting(_issuer(api))
        context.load_cert_chain(*client_pair(tmp_path, CLIENTS))
        until(lambda: _answers(replica, context))

        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            _answers(replica, _trusting(_issuer(api)))


def _answers(replica: Replica, context: ssl.SSLContext) -> bool:
    with closing(_connection(replica, context)) as connection:
        return _ask(connection)


def test_what_is_broken_is_healed(api: ApiServer, tmp_path: Path) -> None:
    """Any damage is repaired within a round or two; the test prints the seconds."""
    with Replica(api.kubeconfig, tmp_path, "rdma-webhook", *FLAGS) as replica:
        until(lambda: replica.ready()[0] == 200)
        bundle, secret = api.objects.bundle, dict(api.objects.stored[SECRET]["data"])

        def healed() -> bool:
            stored = api.objects.stored.get(SECRET, {}).get("data")
            return stored == secret and api.objects.bundle == bundle

        changes: dict[str, Callable[[], object]] = {
            "Secret deleted": lambda: api.objects.stored.pop(SECRET),
            "Secret garbage": lambda: api.objects.stored[SECRET].update(data={"ca.crt": "eA=="}),
            "caBundle emptied": lambda: api.objects.configure(""),
            "configuration deleted": lambda: api.objects.stored.pop(CONFIGURATION),
        }
        for damage, change in changes.items():
            change()
            if damage == "configuration deleted":
                until(lambda: "problem: MutatingWebhookConf" in replica.ready()[1])
                assert replica.ready()[0] == 200
                api.objects.configure()
            took = until(healed)
            print(f"{damage}: healed after {took:.1f} s")  # noqa: T201 -- a figure
        assert replica.handshake(bundle, NAME)[0] == NAME
