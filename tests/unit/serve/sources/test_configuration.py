from __future__ import annotations

from pathlib import Path

import pytest

from certs.issue import issue_ca, issue_leaf
from certs.pem import KeyPair
from certs.serving import CertificateFiles, ServingContext
from tests.fabrics_file import below_spec
from tests.server_state import learn
from tests.unit.serve.client import Lines
from webhook.config import EXAMPLE
from webhook.model.facts import Facts
from webhook.model.nodes import Node
from webhook.serve import state as former
from webhook.serve.metrics import Metrics
from webhook.serve.sources.certificates import FileCertificate
from webhook.serve.sources.configuration import FileConfiguration, PolledConfigFile
from webhook.serve.sources.configuration_in_use import ConfigurationInUse
from webhook.serve.state import State
from webhook.text.readiness import ReadinessCheck

VALID = EXAMPLE.read_text()
CA = issue_ca()


class Server:
    """A state that follows files."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "fabrics.yaml"
        self.lines = Lines()
        self.metrics = Metrics()
        self.state = State()
        in_use = ConfigurationInUse(self.state, self.metrics, self.lines.log)
        self.configuration = FileConfiguration(PolledConfigFile(self.file), self.state, in_use)

    def poll(self) -> None:
        """Do what the server does every second."""
        if self.configuration.poll():
            self.configuration.apply(self.metrics, self.lines.log)

    def value(self, name: str) -> float | None:
        """Read a metric."""
        return self.metrics.registry.get_sample_value(f"rdma_webhook_config_{name}")


def test_first_configuration_makes_ready(tmp_path: Path) -> None:
    """Without a file it is unready, with the reason; a file makes it ready, log and metrics too."""
    server = Server(tmp_path)
    server.poll()
    before, missing = server.configuration.check(), server.configuration.reason_without_fabrics
    server.file.write_text(VALID)
    server.poll()

    assert (before.ready, str(server.file) in before.detail) == (False, True)
    assert (missing, server.configuration.reason_without_fabrics) == (before.detail, "")
    current = server.state.snapshot.current_configuration
    assert current is not None
    used = current.config_hash
    detail = f"load 1, config {used} (v100-ib, a100-ib)"
    assert server.configuration.check() == ReadinessCheck("configuration", True, detail)
    assert list(current.compiled.fabrics) == ["v100-ib", "a100-ib"]
    assert [server.value("loads_total"), server.value("last_reload_successful")] == [1, 1]
    assert [line["msg"] for line in server.lines.read()] == [
        "configuration not usable",
        "configuration loaded",
    ]


def test_broken_reload_keeps_the_last_good(tmp_path: Path) -> None:
    """It stays ready, with the error in line, metric and log, until the file is repaired."""
    server = Server(tmp_path)
    server.file.write_text(VALID)
    server.poll()
    before, detail = (
        server.state.snapshot.current_configuration,
        server.configuration.check().detail,
    )
    server.file.write_text(VALID.replace("rateGbps: 100", "rateGbps: fast"))
    server.poll()
    broken = server.configuration.check()

    assert server.state.snapshot.current_configuration is before
    assert broken.ready
    assert broken.detail.startswith(f"{detail}; still in use, because")
    assert "fabrics[0].rateGbps" in broken.detail
    assert "\n" not in broken.detail
    assert [server.value("loads_total"), server.value("last_reload_successful")] == [1, 0]
    server.file.write_text(VALID)
    server.poll()
    assert server.configuration.check().detail == detail
    assert server.value("last_reload_successful") == 1


def test_warnings_are_logged_with_their_file(tmp_path: Path) -> None:
    """The file and line let a person go from the log to the place."""
    server = Server(tmp_path)
    server.file.write_text(
        VALID.replace("hcas: [mlx5_0, mlx5_1]", "hcas: [mlx5_0, mlx5_bond_0]", 1)
    )
    server.poll()
    (line,) = server.lines.read()

    assert line["warnings"][0].startswith(f"{server.file}:")


def test_facts_go_into_the_snapshot(tmp_path: Path) -> None:
    """Facts from a file are used in every decision."""
    namespace = {"kind": "Namespace", "metadata": {"name": "lab", "labels": {"a": "b"}}}
    server = Server(tmp_path)
    server.file.write_text(VALID)
    learn(server.state, Facts.from_objects([namespace]))
    server.poll()

    facts = server.state.snapshot.facts
    assert facts.namespace("lab").labels == {"a": "b"}
    assert facts.namespace("other").is_loaded is False


def test_a_file_is_prepared_where_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is outside the event loop, which thousands of nodes would block."""
    server = Server(tmp_path)
    server.file.write_text(VALID)
    learn(server.state, Facts(nodes={"n1": Node(labels={}, resources={})}))
    assert server.configuration.poll()
    with monkeypatch.context() as only:
        only.setattr(former, "build_fabric_index", None)
        server.configuration.apply(server.metrics, server.lines.log)

    current = server.state.snapshot.current_configuration
    assert current is not None
    assert current.fabric_index.by_node == {"n1": frozenset()}


def test_a_file_without_fabrics_is_valid_but_decides_nothing(tmp_path: Path) -> None:
    """The server is ready, and its answer for each pod that opted in names the missing field."""
    server = Server(tmp_path)
    server.file.write_text(VALID)
    server.poll()
    server.file.write_text(below_spec("fabrics: []\n"))
    server.poll()
    check = server.configuration.check()
    lacking = f"{server.file} has no fabrics; add them under spec"

    assert server.state.snapshot.current_configuration is None
    assert (
        server.state.snapshot.reason_without_fabrics
        == server.configuration.reason_without_fabrics
        == f"{lacking}.fabrics"
    )
    assert (check.ready, check.detail.endswith(f" ({lacking}.fabrics)")) == (True, True)
    assert server.metrics.registry.get_sample_value("rdma_webhook_configured") == 0


def test_before_the_first_good_file_the_reason_is_in_the_log(tmp_path: Path) -> None:
    """The message for a pod created meanwhile names the file, but no value in it."""
    server = Server(tmp_path)
    server.file.write_text(VALID.replace("rateGbps: 100", "rateGbps: fast"))
    server.poll()

    reason = f"{server.file} is not usable, for the reason in the webhook's log"
    snapshot = server.state.snapshot
    assert (snapshot.current_configuration, snapshot.reason_without_fabrics) == (None, reason)
    assert server.metrics.registry.get_sample_value("rdma_webhook_configured") == 0


def _write(folder: Path, pair: KeyPair) -> None:
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)


def test_certificate_makes_ready_and_a_broken_renewal_keeps_the_last(tmp_path: Path) -> None:
    """Without a certificate it is unready; after a failed renewal the last is still served."""
    state, serving, metrics, lines = State(), ServingContext(), Metrics(), Lines()
    files = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key", serving)
    certificate = FileCertificate(serving, files, state)
    checks = [certificate.check()]
    for pair in (issue_leaf(CA, ["a"]), KeyPair(certificate=b"?", key=b"?")):
        _write(tmp_path, pair)
        assert certificate.poll()
        certificate.apply(metrics, lines.log)
        checks.append(certificate.check())

    assert [check.ready for check in checks] == [False, True, True]
    assert checks[0].detail == "not read yet"
    assert checks[1].detail.startswith("valid until 20")
    assert checks[2].detail.endswith("the certificate is not a PEM certificate")
    assert serving.not_after is not None
    expiry = "rdma_webhook_certificate_not_after_timestamp_seconds"
    assert metrics.registry.get_sample_value(expiry) == serving.not_after.timestamp()
    assert [line["level"] for line in lines.read()] == ["info", "error"]
