"""`serve --dev` and `preview --page`: certificates issued at start, and addresses to use."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from tempfile import mkdtemp

from certs.issue import issue_ca, issue_leaf
from certs.pem import KeyPair
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import OPT_IN_LABEL

HOST = "127.0.0.1"
_FOLDER = "rdma-webhook"
#: The name of the installed command.
_PROGRAM = "rdma-webhook"
#: The resource in the example pod if there are no fabrics.
_GPU = "nvidia.com/gpu"

#: A pod small enough for a terminal that shows most mutations of the webhook.
_POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: trainer
  annotations: {rdma.lab/enable: "true"}
spec:
  containers:
  - name: trainer
    image: example.com/trainer
    command: [mpirun, --allow-run-as-root, -np, "8", python, train.py]
    resources: {limits: {%s: 8, memory: 64Gi}}
"""


def issue_for_development() -> tuple[KeyPair, bytes]:
    """Return a leaf for this machine's loopback, and its CA as PEM.

    The CA's key is discarded at once, so trusting this CA means trusting only this leaf.
    """
    ca = issue_ca("rdma-webhook development CA")
    return issue_leaf(ca, ["localhost"], [HOST, "::1"]), ca.certificate


def store_ca(certificate: bytes, port: int, environment: Mapping[str, str]) -> Path:
    """Write the public CA certificate to a file for curl, and return the file.

    Its name has a port of this server, so it never replaces the file of a running server.
    """
    name = f"dev-ca-{port}.crt"
    home = environment.get("HOME", "")
    state = environment.get("XDG_STATE_HOME", "") or (home and f"{home}/.local/state")
    if state:
        try:
            return _write(certificate, Path(state, _FOLDER), name)
        except OSError:
            pass  # the home directory is not writable, as in many containers
    return _write(certificate, Path(mkdtemp(prefix=f"{_FOLDER}-")), name)


def _write(certificate: bytes, folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_bytes(certificate)
    return file


def program(started_as: str, folder: Path) -> str:
    """Return the command of `sys.argv[0]` as typed in a shell with the cwd `folder`."""
    path = Path(started_as)
    if path.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m {shlex.quote(path.parent.name)}"
    installed = which(path.name)
    if path.name != _PROGRAM or (installed and Path(installed).resolve() == path.resolve()):
        return _PROGRAM
    absolute = folder / path
    if absolute.is_relative_to(folder):
        return shlex.quote(f"{absolute.relative_to(folder)}")
    return shlex.quote(str(absolute))


def instructions(
    ports: Mapping[str, int],
    ca: Path,
    config: Path,
    configuration: CompiledConfiguration | None,
    *,
    command: str = _PROGRAM,
    problem: str = "",
    example: bool = False,
) -> str:
    """Return the addresses of the server, and two commands to paste.

    `problem`: why there are no fabrics to decide with; "" if there are. `example`: whether they
    are example fabrics.
    """
    gpu = min(configuration.by_gpu, default=_GPU) if configuration else _GPU
    page = [f"  page       {_page(ports['page'])}"] if "page" in ports else []
    option = "" if example else f"-c {shlex.quote(str(config))} "
    lines = [
        *_heading(problem, _source(config, example=example)),
        *page,
        f"  admission  https://{HOST}:{ports['mutate']}/mutate",
        f"  health     http://{HOST}:{ports['health']}/readyz and /metrics",
        f"  its CA     {ca}",
        *(_by_curl(ports["preview"], ca, gpu) if "preview" in ports else ()),
        "",
        "Preview a file without a server:",
        f"  {command} preview {option}FILE",
        "",
    ]
    return "\n".join(lines)


def page_instructions(port: int, config: Path, *, problem: str, example: bool) -> str:
    """Return the address of the page, where it is the only one; parameters as in `instructions`."""
    lines = [
        *_heading(problem, _source(config, example=example)),
        f"  page       {_page(port)}",
        "",
    ]
    return "\n".join(lines)


def _page(port: int) -> str:
    return f"http://{HOST}:{port}/"


def _source(config: Path, *, example: bool) -> str:
    return "an example; pass yours with -c FABRICS" if example else str(config)


def _heading(problem: str, source: str) -> list[str]:
    if not problem:
        return [f"rdma-webhook is ready (Ctrl-C stops it); fabrics: {source}"]
    waits = "rdma-webhook is running, but is waiting for a valid fabrics file (Ctrl-C stops it)"
    return [waits, f"  {problem}"]


def _by_curl(port: int, ca: Path, gpu: str) -> list[str]:
    url = f"https://{HOST}:{port}/preview"
    return [
        f"  preview    {url}",
        "",
        "Preview a pod over HTTPS:",
        f"  curl -sS --cacert {shlex.quote(str(ca))} -H 'Accept: text/plain' \\",
        f"    --data-binary @- '{url}?namespace-label={OPT_IN_LABEL}=true' <<'EOF'",
        f"{_POD % gpu}EOF",
    ]
