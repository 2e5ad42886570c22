from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from certs.durations import Durations
from certs.errors import ApiError
from certs.issue import issue_ca, issue_leaf
from certs.self_managed import SelfManaged
from certs.serving import ServingContext
from tests.unit.certs.clocks import Ticking
from tests.unit.certs.objects import INSTALLATION, MUTATING, SECRET, VALIDATING, Objects
from tests.unit.certs.test_watched import ManualWatch
from tests.unit.serve.client import Lines
from webhook.errors import ConfigError
from webhook.kube import access
from webhook.kube.access import IN_CLUSTER, NAMESPACE_VARIABLE
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.certificates import (
    SelfManagedCertificate,
    UntrustedCertificate,
    certificate_of,
)
from webhook.serve.state import State

EXPIRY = "rdma_webhook_certificate_not_after_timestamp_seconds"
METRICS = ("certificate_last_update_successful", "ca_rotating", "ca_not_after_timestamp_seconds")
DEFECTS = "rdma_webhook_internal_errors_total"


class Server:
    """A server whose certificates come from the objects of an API server in memory."""

    def __init__(self) -> None:
        self.api = Objects()
        self.state, self.metrics, self.lines = State(), Metrics(), Lines()
        self.clock = Ticking()
        self.serving = ServingContext(clock=self.clock)
        self.managed = SelfManaged(INSTALLATION, self.serving, lambda: self.api, clock=self.clock)
        self.certificate = SelfManagedCertificate(self.managed, self.serving, self.state)

    def round(self) -> tuple[bool, str]:
        """Run one round; return the readiness and detail of `/readyz`."""
        self.clock.tick(5)
        self.managed.attempt()
        if self.certificate.poll():
            self.certificate.apply(self.metrics, self.lines.log)
        check = self.certificate.check()
        return check.ready, check.detail

    def logged(self) -> list[tuple[str, str, str | None]]:
        """Return level, message and problem of the lines logged since the last call."""
        return [(line["level"], line["msg"], line.get("problem")) for line in self.lines.read()]


def test_unready_before_the_first_round() -> None:
    """The line in `/readyz` has the reason, as every line there does."""
    check = Server().certificate.check()

    assert (check.name, check.ready, check.detail) == ("certificate", False, "not tried yet")


def test_ready_as_soon_as_the_api_server_trusts_it() -> None:
    """Until then the line names what is missing; each change is one line of the log."""
    server, missing = Server(), "MutatingWebhookConfiguration zz-rdma-webhook does not exist yet"

    assert server.round() == (False, missing)
    assert server.round() == (False, missing)
    server.api.configure()
    ready, detail = server.round()
    assert ready
    assert re.fullmatch(r"valid until 20[-0-9T:]+Z, its CA is in caBundle", detail)
    assert server.logged() == [
        ("info", "certificates changed", None),
        ("info", "certificate loaded", None),
        ("warning", "certificate not trusted yet", missing),
        ("info", "certificates changed", None),
        ("info", "certificates changed", None),
        ("info", "certificate trusted", None),
    ]
    assert server.serving.not_after is not None
    until = server.serving.not_after.timestamp()
    assert server.metrics.registry.get_sample_value(EXPIRY) == until


def test_without_the_second_configuration_it_is_ready() -> None:
    """Pods are decided; the missing object is in the line, in the log once, and in the metric."""
    server, missing = Server(), "ValidatingWebhookConfiguration rdma-webhook does not exist yet"
    server.api.install(MUTATING)
    for _ in range(2):
        ready, detail = server.round()
        assert ready
        assert detail.endswith(f"its CA is in caBundle; problem: {missing}")
    problems = [line for line in server.logged() if line[2]]
    assert problems == [("warning", "certificate at risk", missing)]
    measured = f"rdma_webhook_{METRICS[0]}"
    assert server.metrics.registry.get_sample_value(measured) == 0
    server.api.install(VALIDATING)
    assert "problem" not in server.round()[1]
    assert server.metrics.registry.get_sample_value(measured) == 1


def test_what_is_measured() -> None:
    """Metrics show the CA's expiry, whether all is well, and whether a rotation is in progress."""
    server = Server()

    def measured() -> list[float | None]:
        server.round()
        return [
            server.metrics.registry.get_sample_value(f"rdma_webhook_{name}") for name in METRICS
        ]

    problem = measured()
    server.api.configure()
    settled = measured()
    metadata = server.api.stored[SECRET]["metadata"]
    metadata["annotations"] = {"rdma.lab/rotate": "rotate"}
    metadata["resourceVersion"] += "'"
    until = server.managed.status.ca_not_after
    assert until is not None
    assert problem == [0, 0, until.timestamp()]
    assert settled == [1, 0, until.timestamp()]
    assert measured() == [1, 1, until.timestamp()]
    assert "created the next CA" in [line.get("what") for line in server.lines.read()]


def test_whether_it_watches_is_measured() -> None:
    """Without a watch, the objects are read every few seconds."""
    server, watched = Server(), "rdma_webhook_certificate_watched"
    server.round()
    assert server.metrics.registry.get_sample_value(watched) == 0
    server.managed = SelfManaged(
        INSTALLATION, server.serving, lambda: server.api, clock=server.clock, watch=ManualWatch()
    )
    server.certificate = SelfManagedCertificate(server.managed, server.serving, State())
    server.round()
    assert server.metrics.registry.get_sample_value(watched) == 1


def test_stays_ready_during_an_outage_of_the_api_server() -> None:
    """Removing replicas from the Service would not help; problem and recovery are logged."""
    server = Server()
    server.api.configure()
    server.round()
    server.lines.read()
    server.api.broken = ApiError("no route to host")

    ready, detail = server.round()
    assert ready
    assert detail.endswith("its CA is in caBundle; problem: no route to host")
    server.api.broken = None
    assert server.round()[0]
    assert server.logged()[-2:] == [
        ("warning", "certificate at risk", "no route to host"),
        ("info", "certificate trusted", None),
    ]


def test_a_defect_is_counted_and_logged_without_its_text() -> None:
    """Only the type and lines of code are logged, since the text may quote a secret."""
    server = Server()
    server.api.broken = ValueError("-----BEGIN PRIVATE KEY-----")

    assert server.round() == (False, "internal error, please report it: ValueError")
    assert server.metrics.registry.get_sample_value(DEFECTS) == 1
    last = server.lines.read()[-1]
    assert (last["msg"], last["error"]) == ("internal error", "ValueError")
    assert "PRIVATE" not in str(last)


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        ({}, {}, "no certificate; use --tls-cert and --tls-key, or --dev to try the webhook"),
        ({"tls_cert": Path("a")}, {}, "--tls-cert and --tls-key belong together"),
        ({"tls_key": Path("a"), "dev": True}, {}, "--tls-cert and --tls-key belong together"),
        ({"kubeconfig": Path("/nowhere")}, {}, "cannot read --kubeconfig /nowhere: no such file"),
        ({}, {IN_CLUSTER: "10.0.0.1"}, "the webhook's namespace is unknown; use --namespace"),
        (
            {"namespace": "lab", "durations": Durations(leaf=timedelta(seconds=1))},
            {IN_CLUSTER: "10.0.0.1"},
            "certificates' lifetimes: a leaf must last at least 30 s",
        ),
    ],
)
def test_what_cannot_start(
    options: dict[str, object],
    environment: dict[str, str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line names the missing options."""
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", tmp_path)  # since tests may run in a pod
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        certificate_of(
            ServeOptions(**options),  # type: ignore[arg-type]
            ServingContext(),
            State(),
            environment,
        )


def test_in_a_cluster_it_manages_its_own() -> None:
    """No option is needed there; the API server is not called before the start."""
    options = ServeOptions(namespace="lab")
    chosen = certificate_of(options, ServingContext(), State(), {IN_CLUSTER: "10.0.0.1"})

    assert isinstance(chosen, SelfManagedCertificate)
    installation = chosen._managed.installation
    assert (installation.namespace, installation.service) == ("lab", "rdma-webhook")
    assert installation.webhook_configurations == INSTALLATION.webhook_configurations
    assert chosen.check().detail == "not tried yet"


def test_previews_alone_need_no_certificate_that_is_trusted() -> None:
    """It is issued in memory, without a namespace or an API server, and renewed in time."""
    clock, state = Ticking(), State()
    chosen = certificate_of(ServeOptions(preview="only"), ServingContext(), state, {})
    assert isinstance(chosen, UntrustedCertificate)
    assert [check.name for check in state.checks()] == ["certificate", "serving"]

    serving = ServingContext(clock=clock)
    certificate = UntrustedCertificate(serving, State(), clock)
    assert certificate.check() == ("certificate", False, "not issued yet")
    assert certificate.poll()
    assert not certificate.poll()
    first = serving.not_after
    assert first is not None
    assert certificate.check() == (
        "certificate",
        True,
        f"valid until {first:%Y-%m-%dT%H:%M:%SZ}, issued in memory, and trusted by nobody",
    )
    metrics, lines = Metrics(), Lines()
    certificate.apply(metrics, lines.log)
    assert [line["msg"] for line in lines.read()] == ["certificate loaded"]
    values = [
        metrics.registry.get_sample_value(name) for name in (EXPIRY, f"rdma_webhook_{METRICS[0]}")
    ]
    assert values == [first.timestamp(), 1]

    clock.tick(timedelta(days=21).total_seconds())
    assert certificate.poll()
    assert serving.not_after == first + timedelta(days=21)
    clock.tick(timedelta(days=31).total_seconds())
    assert not certificate.check().ready


def test_files_may_have_the_certificate_of_a_preview(tmp_path: Path) -> None:
    """An operator whose clients verify it may have it issued elsewhere."""
    files = {"tls_cert": tmp_path / "tls.crt", "tls_key": tmp_path / "tls.key"}
    given = ServeOptions(preview="only", **files)  # type: ignore[arg-type]
    chosen = certificate_of(given, ServingContext(), State(), {})
    assert not isinstance(chosen, UntrustedCertificate)


@pytest.mark.parametrize(
    ("options", "environment", "problem"),
    [
        ({}, {}, ""),
        ({"namespace": "web"}, {}, ""),
        ({}, {NAMESPACE_VARIABLE: "lab"}, "the certificate is not for rdma-webhook.lab.svc"),
        ({"namespace": "lab", "service": "web"}, {}, "the certificate is not for web.lab.svc"),
    ],
)
def test_files_are_for_the_name_that_is_known(
    options: dict[str, str],
    environment: dict[str, str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the namespace is known, the certificate must be for its Service; else any name will do."""
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", tmp_path)
    pair = issue_leaf(issue_ca(), ["rdma-webhook.web.svc"])
    files = {"tls_cert": tmp_path / "tls.crt", "tls_key": tmp_path / "tls.key"}
    files["tls_cert"].write_bytes(pair.certificate)
    files["tls_key"].write_bytes(pair.key)
    given = ServeOptions(**files, **options)  # type: ignore[arg-type]
    chosen = certificate_of(given, ServingContext(), State(), environment)
    chosen.poll()
    metrics, lines = Metrics(), Lines()
    chosen.apply(metrics, lines.log)

    assert problem in lines.read()[-1].get("problem", "")
    value = metrics.registry.get_sample_value(f"rdma_webhook_{METRICS[0]}")
    assert value == (not problem)
