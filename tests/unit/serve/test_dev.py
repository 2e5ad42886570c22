from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from webhook.model.fabric import Fabric, build_configuration
from webhook.serve.dev import (
    instructions,
    issue_for_development,
    page_instructions,
    program,
    store_ca,
)

PORTS = {"mutate": 1, "preview": 2, "health": 3, "page": 4}


def test_certificate_is_for_this_node_only() -> None:
    """It has the loopback names, and its CA's key is not stored anywhere."""
    pair, ca = issue_for_development()
    leaf = x509.load_pem_x509_certificate(pair.certificate)

    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(ca))
    assert b"PRIVATE" not in ca


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "HOME"])
def test_ca_is_stored_where_state_belongs(variable: str, tmp_path: Path) -> None:
    """The XDG base directory specification requires $XDG_STATE_HOME, else ~/.local/state."""
    file, other = (store_ca(b"ca", port, {variable: str(tmp_path)}) for port in (8443, 9443))

    assert file.read_bytes() == b"ca"
    assert (file.name, other.name) == ("dev-ca-8443.crt", "dev-ca-9443.crt")
    assert file.is_relative_to(tmp_path)


def test_ca_goes_to_a_temporary_folder_where_there_is_no_home(tmp_path: Path) -> None:
    """A container may not have a home folder that is writable."""
    (tmp_path / "file").touch()
    for environment in ({}, {"HOME": str(tmp_path / "file")}):
        file = store_ca(b"ca", 8443, environment)
        assert file.read_bytes() == b"ca"
        file.unlink()
        file.parent.rmdir()


def test_instructions_contain_a_pod_that_gets_a_patch() -> None:
    """The pod in the curl line requests a GPU of the fabrics."""
    configuration = build_configuration(
        (Fabric(name="ib", gpu_resources=frozenset({"example.com/gpu"})),)
    )
    text = instructions(PORTS, Path("/a b/ca.crt"), Path("/c/fabrics.yaml"), configuration)
    pod = yaml.safe_load(text.partition("<<'EOF'\n")[2].partition("\nEOF\n")[0])

    assert pod["spec"]["containers"][0]["resources"]["limits"]["example.com/gpu"] == 8
    assert "--cacert '/a b/ca.crt'" in text
    assert "rdma-webhook preview -c /c/fabrics.yaml FILE" in text
    assert "https://127.0.0.1:1/mutate" in text
    assert text.startswith("rdma-webhook is ready (Ctrl-C stops it); fabrics: /c/fabrics.yaml\n")


def test_instructions_do_not_claim_to_be_ready() -> None:
    """Without a valid fabrics file /readyz is a 503; the instructions have the reason."""
    text = instructions(PORTS, Path("ca"), Path("f"), None, problem="f:3: fabrics: is missing")

    assert text.splitlines()[:2] == [
        "rdma-webhook is running, but is waiting for a valid fabrics file (Ctrl-C stops it)",
        "  f:3: fabrics: is missing",
    ]


@pytest.mark.parametrize(
    ("started_as", "typed"),
    [
        (".venv/bin/rdma-webhook", ".venv/bin/rdma-webhook"),
        ("/here/.venv/bin/rdma-webhook", ".venv/bin/rdma-webhook"),
        ("/else where/bin/rdma-webhook", "'/else where/bin/rdma-webhook'"),
        ("/here/webhook/__main__.py", f"{sys.executable} -m webhook"),
        ("-c", "rdma-webhook"),
    ],
)
def test_command_is_what_runs(started_as: str, typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `make run` the command is not on the PATH, so it is shown with its folder."""
    monkeypatch.setenv("PATH", "/bin")
    assert program(started_as, Path("/here")) == typed


def test_command_on_the_path_is_shown_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell finds it, so its folder is left out."""
    file = tmp_path / "rdma-webhook"
    file.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert program(str(file), Path("/here")) == "rdma-webhook"


def test_the_page_is_the_first_address() -> None:
    """A browser opens it without a warning, and it asks nothing of its reader."""
    text = instructions(PORTS, Path("ca"), Path("f"), None)

    assert text.splitlines()[1:3] == [
        "  page       http://127.0.0.1:4/",
        "  admission  https://127.0.0.1:1/mutate",
    ]


_READY = "rdma-webhook is ready (Ctrl-C stops it); fabrics:"
_WAITING = "rdma-webhook is running, but is waiting for a valid fabrics file (Ctrl-C stops it)"


@pytest.mark.parametrize(
    ("problem", "example", "heading"),
    [
        ("", False, f"{_READY} f\n"),
        ("", True, f"{_READY} an example; pass yours with -c FABRICS\n"),
        ("f has no fabrics", False, f"{_WAITING}\n  f has no fabrics\n"),
    ],
)
def test_instructions_of_the_page_alone(problem: str, heading: str, *, example: bool) -> None:
    """They have nothing but the address, the fabrics and how to stop."""
    text = page_instructions(4, Path("f"), problem=problem, example=example)

    assert text == f"{heading}  page       http://127.0.0.1:4/\n"


def test_instructions_without_preview_and_fabrics() -> None:
    """With --preview=off there is no line to paste."""
    ports = {"mutate": 1, "health": 3}

    text = instructions(ports, Path("ca"), Path("f"), None)
    assert "curl" not in text
    assert "page" not in text
