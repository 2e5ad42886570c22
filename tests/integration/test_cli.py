"""The command line as a process: what it imports, and how it ends when something goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from webhook.config import EXAMPLE

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: trainer, annotations: {rdma.lab/enable: "true"}}
spec:
  containers:
  - {name: main, resources: {limits: {nvidia.com/v100: 1}}}
"""
FULL = Path("/dev/full")
#: Modules that a preview must not load: they are for a server, or slower than the preview itself.
SERVER_MODULES = (
    "asyncio",
    "certs",
    "cryptography",
    "fastapi",
    "httptools",
    "kubernetes",
    "prometheus_client",
    "ssl",
    "starlette",
    "uvicorn",
    "uvloop",
    "webhook.serve",
    "webhook.serve.listener",
    "webhook.serve.server",
)
SHOW_MODULES = """\
import sys
from webhook.cli import main
code = main(sys.argv[1:])
print(code, *sorted(sys.modules), file=sys.stderr)
"""


#: Output that can be applied to a cluster needs a fabrics file.
FABRICS = ("-c", str(EXAMPLE))


def command(*arguments: str) -> list[str]:
    """Return the command line of a separate process."""
    return [sys.executable, "-m", "webhook", *arguments]


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the command to its end."""
    options.setdefault("timeout", 60)
    return subprocess.run(command(*arguments), capture_output=True, check=False, **options)


@pytest.fixture
def pod(tmp_path: Path) -> str:
    """Write the manifest of a pod that gets a patch."""
    (tmp_path / "pod.yaml").write_text(POD)
    return str(tmp_path / "pod.yaml")


@pytest.mark.parametrize("output", ["text", "json", "yaml", "patch", "diff"])
def test_a_preview_loads_nothing_of_a_server(pod: str, output: str) -> None:
    """A preview loads no module of the server, which keeps a cold preview under 0.6 s."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW_MODULES, "preview", *FABRICS, "-o", output, pod],
        capture_output=True,
        check=True,
        text=True,
        timeout=300,
    )
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == "0"
    assert set(SERVER_MODULES).isdisjoint(modules)


NONSENSE = {
    "nothing": b"",
    "binary": b"\x00\x01\x02\xff" * 64,
    "program": b"\x7fELF\x02\x01\x01\x00",
    "utf-16": "kind: Pod".encode("utf-16"),
    "deep lists": b"[" * 100_000,
    "deep mappings": b"{" * 100_000,
    "deep json": b'{"a":' * 100_000,
    "deep dashes": b"- " * 100_000,
    "list": b"a: &a [x]\nb: *a\n",
    "alias bomb": b"a0: &a0 [1]\n"
    + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b"*a%d, " % (n - 1) * 9) for n in range(1, 12)),
    "long": b"x" * (9 * 1024 * 1024),
    "containers": b"kind: Pod\napiVersion: v1\nspec: {containers: [{}, [], 5, null]}\n",
    "metadata": b"kind: Pod\napiVersion: v1\nmetadata: 5\nspec: {containers: [{name: {}}]}\n",
    "infinity": b'{"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"a": 1e999}]}}',
    "nan": b"kind: Pod\napiVersion: v1\nspec: {containers: [{resources: {limits: {a: .nan}}}]}\n",
    "digits": b"kind: Pod\napiVersion: v1\nspec: {containers: [{args: [1%b]}]}\n" % (b"0" * 5000),
    "template": b"{{- if .Values.gpu }}\nkind: Pod\n{{- end }}\n",
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_never_ends_in_a_traceback(name: str) -> None:
    """Any input gets an answer, or one line that names the error."""
    content = NONSENSE[name]
    done = run("preview", *FABRICS, "--enable", "-o", "yaml", "-", input=content)
    assert done.returncode in (0, 1, 2)
    assert b"Traceback" not in done.stderr
    assert b"internal error" not in done.stderr
    if done.returncode == 2:
        (error,) = (line for line in done.stderr.splitlines() if b": note: " not in line)
        assert error.startswith(b"rdma-webhook: error: <stdin>")


def test_an_endless_device_is_refused() -> None:
    """Reading stops at the largest size that a document may have."""
    done = run("preview", "/dev/zero")
    assert (done.returncode, b"longer than the maximum of 8 MiB" in done.stderr) == (2, True)


def test_a_closed_pipe_is_not_an_error(pod: str) -> None:
    """`rdma-webhook preview … | head -1` stays quiet; the exit code is that of SIGPIPE."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            command("preview", "-o", "json", pod),
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            timeout=300,
        )
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert b"error" not in done.stderr.lower()


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_a_single_line() -> None:
    """A full disk is reported once: the interpreter does not report it again when it exits."""
    with FULL.open("wb") as full:
        done = subprocess.run(
            command("schema", "preview"),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=300,
        )
    assert done.returncode == 2
    assert done.stderr == (
        b"rdma-webhook: error: cannot write the output: No space left on device\n"
    )


def test_ctrl_c_is_quiet() -> None:
    """Ctrl-C ends a preview that waits for its input, with the exit code that a shell expects.

    Python looks for signals before it waits for input. A signal between the two is noticed with
    the next, so the test repeats Ctrl-C, as people do.
    """
    with subprocess.Popen(
        command("preview", "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin
        process.stdin.write(b"#" * (1 << 20))  # more than a pipe holds: it is reading by now
        process.stdin.flush()
        assert _interrupted(process) == 130
        assert process.stdout
        assert process.stderr
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")


def _interrupted(process: subprocess.Popen[bytes]) -> int:
    """Send Ctrl-C until the process ends; return its exit code."""
    for _ in range(10):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=30)
    raise AssertionError("it does not end")


def test_serve_dev_runs_until_it_is_stopped(tmp_path: Path) -> None:
    """`serve --dev` prints its addresses, needs no cluster and no files, and exits with code 0."""
    ports = ("--port", "0", "--preview-port", "0", "--health-port", "0", "--page-port", "0")
    with subprocess.Popen(
        command("serve", "--dev", *ports),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    ) as process:
        assert process.stdout
        output = ""
        while "rdma-webhook is ready" not in output:
            line = process.stdout.readline()
            assert line, process.stderr and process.stderr.read()
            output += line
        process.terminate()
        assert process.wait(timeout=300) == 0
        process.stdout.read()
    assert len(list((tmp_path / "rdma-webhook").glob("dev-ca-*.crt"))) == 1
