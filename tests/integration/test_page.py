"""The page, served by real listeners: over TLS, and as plain HTTP on this computer."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from certs.inspection import probe
from certs.issue import issue_ca
from tests.integration.serving import (
    FABRICS,
    SERVICE_NAME,
    Certificates,
    Reply,
    Running,
    fabrics,
    pod,
)
from tests.waiting import PATIENCE, until
from webhook.serve.http import page

FOLDER = Path(page.__file__).parent
INDEX = (FOLDER / "index.html").read_bytes()
#: What Firefox sends for an address that its user typed.
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
#: The command line, with time for the worker however busy the machine is.
_PATIENT = """\
import sys
from webhook.cli import main
from webhook.serve import server, worker_supervisor
worker_supervisor.NICEST = 1
supervisor = server.WorkerSupervisor
server.WorkerSupervisor = lambda metrics, log, _: supervisor(metrics, log, 120.0)
sys.exit(main(sys.argv[1:]))
"""
_FREE = ("--port", "0", "--preview-port", "0", "--health-port", "0", "--page-port", "0")


def command(*words: str) -> list[str]:
    """Return the command line of a separate process."""
    return [sys.executable, "-c", _PATIENT, *words]


def ask(
    port: int,
    path: str = "/",
    method: str = "GET",
    body: bytes | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    **headers: str,
) -> Reply:
    """Send a request to a port of this computer."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if tls:
        connection: http.client.HTTPConnection
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=tls, timeout=180)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)
    try:
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.headers.items()}
        return Reply(answer.status, names, answer.read())
    finally:
        connection.close()


class Program:
    """A program that serves until it is stopped; `printed` is what it has printed so far."""

    def __init__(self, process: subprocess.Popen[str], last_line: str) -> None:
        self.process = process
        self.printed = ""
        assert process.stdout is not None
        for line in process.stdout:
            self.printed += line
            if last_line in line:
                break
        (port,) = re.findall(r"http://127\.0\.0\.1:([0-9]+)/$", self.printed, re.MULTILINE)
        self.port = int(port)

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Send a signal; return the exit code, and what was printed after the first lines."""
        self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output


@contextmanager
def program(folder: Path, *words: str, last_line: str = "http://") -> Iterator[Program]:
    """Run a command that serves, in a folder, without the variables of a site."""
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    environment.pop("RDMA_WEBHOOK_CONFIG", None)
    process = subprocess.Popen(
        command(*words),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            yield Program(process, last_line)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Run `preview --page` with a fabrics file."""
    folder = tmp_path_factory.mktemp("page")
    fabrics(folder, FABRICS)
    with program(folder, "preview", "--page", "-c", "fabrics.yaml") as running:
        yield running


def test_the_page_alone_is_plain_http(alone: Program) -> None:
    """`preview --page` prints the address of the page, and nothing else is needed to open it."""
    assert alone.printed == (
        "rdma-webhook is ready (Ctrl-C stops it); fabrics: fabrics.yaml\n"
        f"  page       http://127.0.0.1:{alone.port}/\n"
    )
    answer = ask(alone.port, accept=BROWSER)
    assert (answer.status, answer.body) == (200, INDEX)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_the_page_can_ask_for_a_preview(alone: Program) -> None:
    """Its own POST is answered with the JSON form, decided with the fabrics of -c."""
    answer = ask(
        alone.port,
        "/preview?namespace-label=rdma.lab/enable=true",
        "POST",
        json.dumps(pod()).encode(),
        origin=f"http://127.0.0.1:{alone.port}",
    )
    assert answer.status == 200, answer.text
    (decision,) = json.loads(answer.body)["decisions"]
    assert (decision["fabric"], decision["called"]) == ("ib", True)
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_head_has_no_body(alone: Program) -> None:
    """It has the headers of the file, its length among them."""
    whole = ask(alone.port)
    head = ask(alone.port, method="HEAD")
    assert (head.status, head.body) == (200, b"")
    for headers in (whole.headers, head.headers):
        headers.pop("date", None)  # type: ignore[attr-defined]
    assert head.headers == whole.headers
    assert head.headers["content-length"] == str(len(INDEX))


def test_an_unchanged_page_is_not_sent_again(alone: Program) -> None:
    """The browser's copy is confirmed by its tag, on a connection that stays usable."""
    tag = ask(alone.port).headers["etag"]
    connection = http.client.HTTPConnection("127.0.0.1", alone.port, timeout=180)
    for _ in range(2):
        connection.request("GET", "/", headers={"If-None-Match": tag})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (304, b"")
    connection.close()


@pytest.mark.parametrize("path", ["/", "/page.js", "/preview", "/fabrics"])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_a_rebound_name_is_refused(alone: Program, path: str, host: str) -> None:
    """A site that makes its name resolve to 127.0.0.1 reads nothing."""
    answer = ask(alone.port, path, host=host)
    assert (answer.status, answer.text.count("\n")) == (403, 1)
    assert "open it as 127.0.0.1, localhost or [::1]" in answer.text
    assert ask(alone.port, path, "POST", b"kind: Pod", host=host).status == 403


def test_a_page_of_another_site_cannot_post(alone: Program) -> None:
    """Its form or script would reach this computer, but is refused."""
    body = json.dumps(pod()).encode()
    for origin in ("http://evil.example", "https://127.0.0.1", "null"):
        assert ask(alone.port, "/preview", "POST", body, origin=origin).status == 403


def test_no_other_port_is_open(alone: Program) -> None:
    """It listens on the loopback alone, without admission, TLS, health and metrics."""
    process = Path(f"/proc/{alone.process.pid}")
    files = (str(file.readlink()) for file in (process / "fd").iterdir() if file.is_symlink())
    inodes = {file.removeprefix("socket:[").rstrip("]") for file in files}
    tables = ((process / "net" / name).read_text() for name in ("tcp", "tcp6"))
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[9] in inodes]
    assert listening == [f"0100007F:{alone.port:04X}"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C ends it at once with code 0, also with an open connection, and prints nothing more."""
    with program(tmp_path, "preview", "--page") as running:
        assert "fabrics: an example; pass yours with -c FABRICS" in running.printed
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=180)
        connection.request("GET", "/")
        assert connection.getresponse().read() == INDEX
        assert running.stop(number) == (0, "")
        connection.close()
    assert list(tmp_path.iterdir()) == []


def test_changed_fabrics_are_used(tmp_path: Path) -> None:
    """The file is read again when it changes; one that is not valid is named and not used."""
    file = tmp_path / "fabrics.yaml"
    file.write_text(FABRICS)
    body = json.dumps(pod()).encode()
    with program(tmp_path, "preview", "--page", "-c", "fabrics.yaml") as running:

        def fabric() -> str:
            answer = ask(running.port, "/preview", "POST", body)
            name: str = json.loads(answer.body)["decisions"][0]["fabric"]
            return name

        assert fabric() == "ib"
        file.write_text(FABRICS.replace("name: ib", "name: renamed"))
        until(lambda: fabric() == "renamed")
        file.write_text("kind: [")
        assert running.process.stdout is not None
        line = json.loads(running.process.stdout.readline())
        assert (line["level"], line["msg"]) == ("error", "configuration not usable")
        assert fabric() == "renamed"
        assert running.stop()[0] == 0


def test_a_taken_port_names_the_option(alone: Program, tmp_path: Path) -> None:
    """It is an error, with the option for another port."""
    done = subprocess.run(
        command("preview", "--page", "--port", str(alone.port)),
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "choose another port with --port (0 for any free one)" in done.stderr


def test_serve_dev_opens_the_same_page(tmp_path: Path) -> None:
    """`make run` prints its address first; it is the page of the TLS port, without a warning."""
    with program(tmp_path, "serve", "--dev", *_FREE, last_line="rdma-webhook preview") as running:
        first, second, *_ = (line for line in running.printed.splitlines() if line[:1] == " ")
        assert first == f"  page       http://127.0.0.1:{running.port}/"
        assert second.startswith("  admission  https://")
        assert ask(running.port).body == INDEX
        assert ask(running.port, host="evil.example").status == 403
        (port,) = re.findall(r"(?m)^  preview +https://127.0.0.1:([0-9]+)/", running.printed)
        (ca,) = re.findall(r"(?m)^  its CA +(.*)$", running.printed)
        tls = ssl.create_default_context(cafile=ca)
        assert ask(int(port), tls=tls).body == INDEX
        assert running.stop()[0] == 0


def test_serve_dev_without_preview_has_no_page(tmp_path: Path) -> None:
    """`--preview off` closes both."""
    with subprocess.Popen(
        command("serve", "--dev", "--preview", "off", *_FREE),
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        printed = ""
        for line in process.stdout:
            printed += line
            if "rdma-webhook preview" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert "page" not in printed
    assert "https://" in printed


def test_a_cluster_s_listener_serves_the_page(server: Running) -> None:
    """Over TLS any name will do: `kubectl port-forward`, a Service or an Ingress has its own."""
    port, tls = server.ports["preview"], server.tls.client
    assert "page" not in server.ports
    for host in ("localhost:8444", "rdma-webhook.rdma-webhook.svc", "rdma.example"):
        answer = ask(port, accept=BROWSER, host=host, tls=tls)
        assert (answer.status, answer.body) == (200, INDEX)
    assert ask(port, "/preview", accept=BROWSER, tls=tls).body == INDEX
    assert ask(port, "/preview", accept="*/*", tls=tls).text.startswith("POST a pod")


def test_its_certificate_can_be_checked(server: Running) -> None:
    """`certs verify --address` does this with the port that kubectl forwards: a replica answers."""
    address = f"127.0.0.1:{server.ports['preview']}"
    assert probe(address, SERVICE_NAME, server.tls.ca.certificate).problem == ""
    other = issue_ca().certificate
    assert probe(address, SERVICE_NAME, other).problem != ""


def test_a_server_with_certificates_has_nothing_to_announce(
    tls: Certificates, tmp_path: Path
) -> None:
    """Its addresses are the site's, and standard output is its log."""
    announced: list[str] = []
    with Running(tls, fabrics(tmp_path), announce=announced.append) as running:
        assert ask(running.ports["preview"], tls=tls.client).status == 200
    assert announced == []
