"""`make release` as its users see it: files that can be checked, built again, and installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from release.publish import publish
from tests.cluster.binaries import binary
from tests.release.conftest import ROOT, make
from webhook import __version__

#: For cosign: the registry has no TLS.
_HTTP = "--allow-http-registry"


def packages(bom: Path) -> set[tuple[str, str]]:
    """Return name and version of each Python package in a bill of materials."""
    components = json.loads(bom.read_text())["components"]
    return {
        (component["name"].lower().replace("_", "-"), component["version"])
        for component in components
        if component.get("purl", "").startswith("pkg:pypi/")
    }


def locked() -> set[tuple[str, str]]:
    """Return name and version of each package in requirements.lock."""
    lock = (ROOT / "requirements.lock").read_text()
    return set(re.findall(r"^([a-z0-9.-]+)==([^ ;\\]+)", lock, flags=re.MULTILINE))


def test_two_builds_give_the_same_files(
    release: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In another folder and with another umask; so anybody can check what was published."""
    previous = os.umask(0o077)
    try:
        again = make(tmp_path_factory.mktemp("again"))
    finally:
        os.umask(previous)
    sums = "SHA256SUMS"
    assert (again / sums).read_text() == (release / sums).read_text()
    subprocess.run(["sha256sum", "--check", "--quiet", sums], cwd=release, check=True)


def test_bills_of_materials_are_the_lock(release: Path) -> None:
    """All of the lock in that of the dependencies; nothing but the lock and us in the image's."""
    (image,) = release.glob("*-image.cdx.json")
    assert packages(release / f"rdma-webhook-{__version__}-python.cdx.json") == locked()
    ours = ("rdma-webhook", __version__)
    assert ours in packages(image)
    assert packages(image) - {ours} <= locked()
    assert {"kubernetes", "uvicorn", "cryptography"} <= {name for name, _ in packages(image)}


def test_the_wheel_has_the_commands(commands: Path) -> None:
    """Each prints the version."""
    for command in ("rdma-webhook", "kubectl-rdma"):
        printed = subprocess.check_output([commands / command, "--version"], text=True)
        assert printed.split() == ["rdma-webhook", __version__]


def test_what_is_published_is_signed(
    release: Path, registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signature is that of the key: another key does not verify it."""
    monkeypatch.setenv("COSIGN_PASSWORD", "")
    keys = [_key_pair(tmp_path / name) for name in ("ours", "other")]
    offline = tmp_path / "signing-config.json"  # no transparency log: that would be on the internet
    subprocess.run([binary("cosign"), "signing-config", "create", "--out", offline], check=True)
    sign_options = ("--key", f"{keys[0]}.key", "--signing-config", str(offline), _HTTP)
    repository = f"{registry}/lab/rdma-webhook"
    references = publish(release, repository, sign_options, ["--plain-http"])
    assert len(references) == 2
    for reference in references:
        assert _verified(reference, keys[0])
        assert not _verified(reference, keys[1])


def test_the_alert_rules_are_a_rule_file(release: Path) -> None:
    """A Prometheus without the operator reads them as they are."""
    command = [str(binary("promtool")), "check", "rules", str(release / "alert-rules.yaml")]
    subprocess.run(command, check=True, capture_output=True)


def _key_pair(prefix: Path) -> Path:
    command = [str(binary("cosign")), "generate-key-pair", f"--output-key-prefix={prefix}"]
    subprocess.run(command, check=True)
    return prefix


def _verified(reference: str, key: Path) -> bool:
    options = ("--key", f"{key}.pub", "--insecure-ignore-tlog", _HTTP)
    command = [str(binary("cosign")), "verify", *options, reference]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
