"""`rdma-webhook certs`, with a replica and an API server of two objects."""

from __future__ import annotations

import json
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from certs.issue import issue_ca
from tests.command_line import run_command
from tests.integration.objects_api import ApiServer
from tests.integration.replica import Replica
from tests.unit.certs.objects import MUTATING, SECRET, VALIDATING
from tests.waiting import until

#: Long enough that no replica repairs a change before the test has seen its effect.
FLAGS = ("--ca-interval", "1h", "--leaf-lifetime", "6h")


def run(*arguments: str) -> tuple[int, str, str]:
    """Run the command; return exit code, output and errors."""
    return run_command("certs", *arguments)


class Command:
    """Runs the command with a kubeconfig, for the address of one replica."""

    def __init__(self, api: ApiServer, replica: Replica) -> None:
        self.api = api
        self.address = f"127.0.0.1:{replica.ports['mutate']}"

    def __call__(self, *arguments: str, address: str | None = None) -> tuple[int, str, str]:
        """Return exit code, output and errors."""
        access = ("--kubeconfig", str(self.api.kubeconfig), "--address", address or self.address)
        return run(*arguments, *access)

    def json(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code and the parsed answer."""
        code, out, _ = self(*arguments, "-o", "json")
        return code, json.loads(out)


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """Run a replica that the API server trusts."""
    folder = tmp_path_factory.mktemp("certs")
    with ApiServer(folder) as api:
        api.objects.configure()
        with Replica(api.kubeconfig, folder, "rdma-webhook", *FLAGS) as replica:
            until(lambda: replica.ready()[0] == 200)
            yield Command(api, replica)


def test_all_is_well(certs: Command) -> None:
    """`status` shows the Secret, `caBundle`, the certificate served, and expiry; exit code 0."""
    code, out, _ = certs("status")
    assert code == 0, out
    lines = out.splitlines()
    assert lines[0] == "✔ Secret    settled: one CA; no rotation is in progress"
    match = "it has exactly the webhook's CAs"
    assert lines[1:3] == [f"✔ caBundle  {name}: {match}" for name in (MUTATING, VALIDATING)]
    assert lines[3].split()[0] == "current"
    assert lines[3].endswith("in caBundle")
    assert lines[-1].startswith(f"✔ {certs.address} ")
    assert lines[-1].endswith("by the current CA")


def test_for_scripts(certs: Command) -> None:
    """`-o json` has the same content, and no key."""
    code, answer = certs.json("status")
    assert (code, answer["healthy"], answer["phase"]) == (0, True, "settled")
    (authority,) = answer["authorities"]
    assert (authority["role"], authority["inBundle"]) == ("current", True)
    (handshake,) = answer["handshakes"]
    assert (handshake["problem"], handshake["issuer"]) == ("", "current")
    assert handshake["names"][0] == "rdma-webhook.rdma-webhook.svc"
    assert "PRIVATE" not in json.dumps(answer)


def test_verify_needs_no_secret(certs: Command) -> None:
    """`verify` needs only `caBundle`, so it also works for certificates from cert-manager."""
    secret = certs.api.objects.stored.pop(SECRET)
    alone = certs.json("verify")
    certs.api.objects.stored[SECRET] = secret
    for (code, answer), issuer in ((alone, "unknown"), (certs.json("verify"), "current")):
        (handshake,) = answer["handshakes"]
        assert (code, answer["healthy"], handshake["issuer"]) == (0, True, issuer)
    assert certs("verify")[1].startswith(f"✔ {certs.address}")


def test_a_bundle_of_another_ca(certs: Command) -> None:
    """`status` reports each problem, and still shows the certificate served; exit code 1."""
    before = certs.api.objects.bundle
    certs.api.objects.configure(b64encode(issue_ca().certificate).decode())
    code, out, _ = certs("status")
    certs.api.objects.configure(before)

    assert code == 1
    assert f"✘ caBundle  {MUTATING}: it lacks the current CA" in out
    assert "unknown" in out
    assert f"✘ {certs.address} " in out
    assert out.rstrip().endswith("by the current CA")


def test_a_configuration_that_trusts_another_ca(certs: Command) -> None:
    """A handshake counts as failed if one of the two configurations does not trust the CA."""
    before = certs.api.objects.bundle
    certs.api.objects.install(VALIDATING, b64encode(issue_ca().certificate).decode())
    code, out, _ = certs("verify")
    certs.api.objects.configure(before)

    assert (code, out.split()[0]) == (1, "✘")


def test_an_empty_bundle(certs: Command) -> None:
    """An empty `caBundle` trusts nobody: the API server would use the system's CAs, not ours."""
    before = certs.api.objects.bundle
    certs.api.objects.configure("")
    code, out, _ = certs("verify")
    certs.api.objects.configure(before)

    assert (code, out.split()[0]) == (1, "✘")


def test_nobody_answers(certs: Command) -> None:
    """If nothing listens, the reason is the operating system's."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    code, out, _ = certs("verify", address=f"127.0.0.1:{port}")
    assert (code, "cannot connect: Connection refused" in out) == (1, True)


def test_a_server_without_tls(certs: Command) -> None:
    """A server that does not speak TLS is reported as such."""
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def answer() -> None:
            with plain.accept()[0] as connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        code, out, _ = certs("verify", address=f"127.0.0.1:{plain.getsockname()[1]}")
        answering.join()
    assert (code, "the TLS handshake failed" in out) == (1, True)


def test_rotate_requests_a_rotation(certs: Command) -> None:
    """`rotate` makes no key itself; until a replica has begun, `status` shows the request."""
    for flags, request in (((), "rotate"), (("--revoke",), "revoke")):
        code, out, err = certs("rotate", *flags)
        assert (code, out) == (0, "")
        assert "requested a new CA" in err
        metadata = certs.api.objects.stored[SECRET]["metadata"]
        assert metadata["annotations"]["rdma.lab/rotate"] == request
        assert f"a request to {request} is pending" in certs("status")[1]
        assert json.loads(certs("status", "-o", "json")[1])["requested"] == request
        assert json.loads(certs("rotate", *flags, "-o", "json")[1]) == {"requested": request}


def test_an_unreachable_api_server(tmp_path: Path) -> None:
    """Without an API server there is no answer: exit code 2."""
    with ApiServer(tmp_path) as api:
        pass
    code, out, err = run("status", "--kubeconfig", str(api.kubeconfig))
    assert (code, out) == (2, "")
    assert err.startswith("rdma-webhook: error: cannot reach the API server")
