"""Starting, reloading, draining and stopping."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.serving import (
    FABRICS,
    Process,
    Running,
    certificates,
    fabrics,
    mount,
    renew,
    review,
    send,
)
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from tests.integration.serving import Certificates

_ROOT = Path(__file__).parents[2]
_SERVE = "import sys; from webhook.serve.server import *; sys.exit(serve(ServeOptions({})))"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stops_cleanly(process: Process, number: signal.Signals) -> None:
    """Both signals end it with exit code 0, and the log shows that."""
    assert process.post(review()).status == 200
    assert process.stop(number) == 0
    assert process.lines()[-1]["msg"] == "stopped"


def test_drains_before_it_stops(tls: Certificates, tmp_path: Path) -> None:
    """After SIGTERM it is unready and answers with `Connection: close`; a second signal ends it."""
    config = fabrics(tmp_path)
    with Process(tls, config, tmp_path / "log", os.environ, drain_seconds=30.0) as process:
        connection = process.connect()
        assert "Connection" not in send(connection, review(), "/mutate").headers
        process.process.send_signal(signal.SIGTERM)
        until(lambda: process.get("/readyz").status == 503)
        last = send(connection, review(), "/mutate")
        new = process.post(review())
        connection.close()

        assert [(answer.status, answer.headers["connection"]) for answer in (last, new)] == [
            (200, "close"),
            (200, "close"),
        ]
        assert process.get("/healthz").status == 200
        assert process.stop() == 0


def test_idle_connections_outlast_the_drain(tls: Certificates, tmp_path: Path) -> None:
    """A request that the API server sends on an idle connection is answered, however late.

    One connection has had a request before, the other none: Go's HTTP client keeps both kinds.
    When they have ended, so does the process.
    """
    config = fabrics(tmp_path)
    with (
        Process(tls, config, tmp_path / "log", os.environ, drain_seconds=0.5) as process,
        closing(process.connect()) as used,
        closing(process.connect()) as silent,
    ):
        send(used, review(), "/mutate")
        silent.connect()
        process.process.send_signal(signal.SIGTERM)
        until(lambda: _refuses(process.ports["mutate"]))
        answers = [send(connection, review(), "/mutate") for connection in (used, silent)]
        assert [(answer.status, answer.headers["connection"]) for answer in answers] == [
            (200, "close")
        ] * 2
        assert process.process.wait(PATIENCE) == 0


def test_a_client_cannot_keep_it_from_stopping(tls: Certificates, tmp_path: Path) -> None:
    """Connections without requests are closed in the end."""
    config = fabrics(tmp_path)
    short = {"drain_seconds": 0.5, "idle_seconds": 2.0}
    with (
        Process(tls, config, tmp_path / "log", os.environ, **short) as process,
        closing(process.connect()) as silent,
    ):
        silent.connect()
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(PATIENCE) == 0


def _refuses(port: int) -> bool:
    """Return whether nothing listens on a port."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_configuration_is_reloaded(tls: Certificates, tmp_path: Path) -> None:
    """A ConfigMap that the kubelet has updated is used at the next poll."""
    config = fabrics(tmp_path)
    with Running(tls, config) as server:
        mount(tmp_path, FABRICS.replace("name: ib", "name: roce"))
        until(lambda: "(roce)\n" in server.get("/readyz").text)
        assert server.metric("rdma_webhook_config_loads_total") == 2


def test_broken_configuration_keeps_the_last_good(tls: Certificates, tmp_path: Path) -> None:
    """The server stays ready, shows the error in `/readyz` and a metric, and decides as before."""
    config = fabrics(tmp_path)
    with Running(tls, config) as server:
        mount(tmp_path, "fabrics: 7")
        until(lambda: "still in use" in server.get("/readyz").text)
        assert server.get("/readyz").status == 200
        assert server.metric("rdma_webhook_config_last_reload_successful") == 0
        assert "patch" in server.post(review()).response


def test_without_configuration_up_and_unready(tls: Certificates, tmp_path: Path) -> None:
    """No crash loop: the server waits for a file, and uses it as soon as it exists."""
    config = tmp_path / "fabrics.yaml"
    with Running(tls, config) as server:
        assert server.get("/readyz").status == 503
        assert server.post(review()).status == 503
        config.write_text(FABRICS)
        until(lambda: server.get("/readyz").status == 200)
        assert server.post(review()).status == 200


def test_without_certificate_up_and_unready(tmp_path: Path) -> None:
    """A certificate that is issued later is served as soon as it is there."""
    tls = certificates(tmp_path)
    pair = tls.cert.read_bytes()
    tls.cert.unlink()
    with Running(tls, fabrics(tmp_path)) as server:
        assert "[-] certificate: cannot read" in server.get("/readyz").text
        with pytest.raises((ssl.SSLError, OSError)):
            server.post(review())
        tls.cert.write_bytes(pair)
        until(lambda: server.get("/readyz").status == 200)
        assert server.post(review()).status == 200


def test_renewed_certificate_is_served(tmp_path: Path) -> None:
    """New handshakes get the renewed certificate; open connections stay open."""
    tls = certificates(tmp_path)
    with Running(tls, fabrics(tmp_path)) as server:
        connection = server.connect()
        assert send(connection, review(), "/mutate").status == 200
        renewed = ssl.PEM_cert_to_DER_cert(renew(tls).certificate.decode())
        until(lambda: _certificate(server) == renewed)
        assert send(connection, review(), "/mutate").status == 200
        connection.close()


def _certificate(server: Running) -> bytes | None:
    address = ("127.0.0.1", server.ports["mutate"])
    with (
        socket.create_connection(address) as raw,
        server.tls.client.wrap_socket(raw, server_hostname="localhost") as tls,
    ):
        return tls.getpeercert(binary_form=True)


def _serve(options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _SERVE.format(options)],
        cwd=_ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_taken_port_is_a_single_line_that_names_the_flag(tmp_path: Path) -> None:
    """A taken port is reported in one line that names the option, not in a traceback."""
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        done = _serve(f"dev=True, port={port}", XDG_STATE_HOME=str(tmp_path))

    assert (done.returncode, done.stderr) == (
        2,
        (
            f"rdma-webhook: error: cannot listen on 127.0.0.1 port {port} "
            "(Address already in use); choose another port with --port (0 for any free one)\n"
        ),
    )


def test_no_certificate_is_a_single_line_that_names_the_flags() -> None:
    """The error names all three ways to get a certificate."""
    done = _serve("", KUBERNETES_SERVICE_HOST="")  # tests may run in a pod

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    for option in ("--tls-cert and --tls-key", "--dev", "in a cluster"):
        assert option in done.stderr


def test_a_renamed_account_is_a_single_line_with_a_remedy() -> None:
    """No guard matches an account that `namePrefix` renamed, so the server does not start."""
    done = _serve("dev=True", POD_SERVICE_ACCOUNT="team-rdma-webhook")
    assert (done.returncode, done.stderr) == (
        2,
        (
            "rdma-webhook: error: the ServiceAccount of this pod is team-rdma-webhook, but the "
            "policies that guard it match only the name rdma-webhook; remove namePrefix and "
            "nameSuffix from the kustomization (another namespace needs neither: "
            "docs/installation.md)\n"
        ),
    )


@pytest.mark.skipif(
    shutil.which("curl") is None and not os.environ.get("CI"), reason="curl is missing: install it"
)
def test_dev_prints_a_curl_line_that_works_as_pasted(tmp_path: Path) -> None:
    """`serve --dev` needs no cluster and no file; a shell can run the command that it prints."""
    free = "port=0, preview_port=0, health_port=0, page_port=0"
    with subprocess.Popen(
        # The preview gets processor time, and enough of it, however busy the machine is.
        [
            *(sys.executable, "-c"),
            "from webhook.serve import worker_supervisor; worker_supervisor.NICEST = 1; "
            + _SERVE.format(f"dev=True, preview_seconds=120.0, {free}, announce=print"),
        ],
        cwd=_ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            printed = ""
            for line in server.stdout:
                printed += line
                if "rdma-webhook preview" in line:
                    break
            pasted = re.search(r"^  curl .*?^EOF$", printed, re.DOTALL | re.MULTILINE)
            assert pasted is not None, printed
            done = subprocess.run(
                ["sh", "-c", pasted[0]], capture_output=True, text=True, timeout=300, check=True
            )
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(PATIENCE) == 0
    assert "ipc-lock" in done.stdout
    port = re.search(r":([0-9]+)/mutate$", printed, re.MULTILINE)
    assert port is not None
    stored = [file.name for file in tmp_path.rglob("*") if file.is_file()]
    assert stored == [f"dev-ca-{port[1]}.crt"]
