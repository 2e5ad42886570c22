"""The options that choose the cluster, with `why` and an API server over HTTP and HTTPS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from kubernetes.config import incluster_config

from certs.issue import issue_ca, issue_leaf
from tests.integration.answers_api import AnswersApi
from tests.unit.diagnose.why.pods import pod_in_cluster
from webhook.cli import main
from webhook.kube import access

PODS = {
    f"/api/v1/namespaces/{name}/pods/train-0": pod_in_cluster()
    for name in ("lab", "other", "default")
}


class ConfiguredClusters(NamedTuple):
    """Two API servers, a kubeconfig for both, and a CA that signed the second one's certificate."""

    plain: AnswersApi
    tls: AnswersApi
    config: Path
    authority: Path


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConfiguredClusters]:
    """Serve a pod in three namespaces, over HTTP and over HTTPS."""
    for name in ("KUBECONFIG", access.IN_CLUSTER, access.NAMESPACE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    ca = issue_ca()
    leaf = issue_leaf(ca, ["localhost"])
    pair, authority, config = (tmp_path / name for name in ("pair.pem", "ca.crt", "config"))
    pair.write_bytes(leaf.certificate + leaf.key)
    authority.write_bytes(ca.certificate)
    with ExitStack() as stack:
        plain = stack.enter_context(AnswersApi(dict(PODS)))
        tls = stack.enter_context(AnswersApi(dict(PODS), pair))
        config.write_text(json.dumps(_config(plain.port, tls.port)))
        yield ConfiguredClusters(plain, tls, config, authority)


def _config(plain: int, tls: int) -> object:
    """Write a kubeconfig whose second cluster names its CA by a relative path."""
    second = {"server": f"https://localhost:{tls}", "certificate-authority": "ca.crt"}
    return {
        "current-context": "x",
        "clusters": [
            {"name": "c", "cluster": {"server": f"http://127.0.0.1:{plain}"}},
            {"name": "d", "cluster": second},
        ],
        "users": [
            {"name": "u", "user": {"token": "hunter2"}},
            {"name": "v", "user": {"token": "hunter3"}},
        ],
        "contexts": [
            {"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "lab"}},
            {"name": "y", "context": {"cluster": "d", "user": "v", "namespace": "other"}},
            {"name": "z", "context": {"cluster": "c"}},
        ],
    }


def explain(*arguments: str) -> int:
    """Explain the pod, and return the exit code."""
    try:
        return main(["why", "train-0", *arguments])
    except SystemExit as stop:
        return int(stop.code or 0)


@pytest.mark.parametrize(
    ("options", "tls", "namespace", "token"),
    [
        ([], False, "lab", "hunter2"),
        (["--context", "y"], True, "other", "hunter3"),
        (["--context=z"], False, "default", ""),
        (["-n", "other"], False, "other", "hunter2"),
        (["--cluster", "d"], True, "lab", "hunter2"),
        (["--user", "v"], False, "lab", "hunter3"),
        (["--context", "y", "--cluster", "c", "--user", "u"], False, "other", "hunter2"),
        (["--token", "hunter4"], False, "lab", "hunter4"),
        (["--context", "y", "--token", "hunter4"], True, "other", "hunter4"),
    ],
    ids=lambda value: " ".join(value) or "none" if isinstance(value, list) else None,
)
def test_options_override_the_context(
    lab: ConfiguredClusters, options: list[str], *, tls: bool, namespace: str, token: str
) -> None:
    """The options override the current context, each alone and together."""
    assert explain("--kubeconfig", str(lab.config), *options) == 0
    used, unused = (lab.tls, lab.plain) if tls else (lab.plain, lab.tls)
    assert unused.asked == []
    assert used.asked[0] == f"/api/v1/namespaces/{namespace}/pods/train-0"
    assert used.headers[0]["Authorization"] == (f"Bearer {token}" if token else None)


def test_without_a_kubeconfig(lab: ConfiguredClusters) -> None:
    """A server, with its CA and a token, is enough."""
    server = ("--server", f"https://localhost:{lab.tls.port}", "--token", "hunter4")
    assert explain(*server, "--certificate-authority", str(lab.authority)) == 0
    assert lab.tls.asked[0] == "/api/v1/namespaces/default/pods/train-0"
    assert lab.tls.headers[0]["Authorization"] == "Bearer hunter4"


def test_a_server_without_a_scheme(lab: ConfiguredClusters) -> None:
    """It is called over TLS, since secrets would be readable otherwise."""
    named = ("-s", f"localhost:{lab.tls.port}", "--certificate-authority", str(lab.authority))
    assert explain("--kubeconfig", str(lab.config), *named) == 0
    assert lab.tls.asked
    assert lab.plain.asked == []


def test_the_certificate_is_checked(
    lab: ConfiguredClusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """The CA and the name must match, unless an option disables that."""
    server = ("--server", f"https://127.0.0.1:{lab.tls.port}")
    authority = ("--certificate-authority", str(lab.authority))
    assert explain(*server) == 2
    assert explain(*server, *authority) == 2
    assert lab.tls.asked == []
    assert capsys.readouterr().err.count("cannot reach the API server") == 2
    assert explain(*server, *authority, "--tls-server-name", "localhost") == 0
    assert explain(*server, "--insecure-skip-tls-verify") == 0
    assert capsys.readouterr().err == ""


def test_impersonation(lab: ConfiguredClusters) -> None:
    """Each group has its own header."""
    groups = ("--as-group", "researchers", "--as-group", "staff")
    assert explain("--kubeconfig", str(lab.config), "--as", "ada", "--as-uid", "7", *groups) == 0
    sent = lab.plain.headers[0]
    assert (sent["Impersonate-User"], sent["Impersonate-Uid"]) == ("ada", "7")
    assert sent.get_all("Impersonate-Group") == ["researchers", "staff"]
    assert sent["Authorization"] == "Bearer hunter2"


def test_no_command_is_run_for_somebody_else(
    lab: ConfiguredClusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """The client library would run it with the caller's own rights."""
    states = [{"name": "main", "state": {"running": {}}, "restartCount": 0}]
    lab.plain.answers["/api/v1/namespaces/lab/pods/train-0"] = pod_in_cluster(
        containerStatuses=states
    )
    explain("--kubeconfig", str(lab.config), "--as", "ada", "--exec")
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "commands in pods are not supported with --as, since they would run with your own rights"
        in out
    )
    assert not any("/exec" in path for path in lab.plain.asked)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--context", "w"], "cannot connect with"),
        (["--cluster", "w"], "cannot connect with"),
        (["--user", "w"], "cannot connect with"),
        (["--client-key", "missing.key"], "there is no file missing.key"),
        (["--as-group", "staff"], "--as-uid and --as-group require --as"),
        (["--request-timeout", "soon"], "--request-timeout: 'soon' is not a duration such as"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_options_that_cannot_be_used(
    lab: ConfiguredClusters, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error is one line; no request is made."""
    given = [option.replace("{config}", str(lab.config)) for option in options]
    assert explain("--kubeconfig", str(lab.config), *given) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert (lab.plain.asked, lab.tls.asked) == ([], [])


def test_a_timeout(lab: ConfiguredClusters, capsys: pytest.CaptureFixture[str]) -> None:
    """A request takes no longer than `--request-timeout`; this API server never answers."""
    lab.plain.shutdown()
    assert explain("--kubeconfig", str(lab.config), "--request-timeout", "1s") == 2
    assert "cannot reach the API server" in capsys.readouterr().err


@pytest.fixture
def pod(lab: ConfiguredClusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this process the files and variables of a pod; return the account's folder."""
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("hunter5")
    (folder / "namespace").write_text("other")
    (folder / "ca.crt").write_bytes(lab.authority.read_bytes())
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", folder)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(folder / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(folder / "ca.crt"))
    environment = {
        incluster_config.SERVICE_HOST_ENV_NAME: "localhost",
        incluster_config.SERVICE_PORT_ENV_NAME: str(lab.tls.port),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return folder


def test_in_a_pod(lab: ConfiguredClusters, pod: Path) -> None:
    """Without a kubeconfig, its service account and its namespace are used."""
    assert pod.is_dir()
    assert explain() == 0
    assert lab.tls.asked[0] == "/api/v1/namespaces/other/pods/train-0"
    assert lab.tls.headers[0]["Authorization"] == "bearer hunter5"
    assert explain("-n", "lab") == 0


def test_in_a_pod_with_a_kubeconfig(
    lab: ConfiguredClusters, pod: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kubeconfig is used; a context without a kubeconfig is an error."""
    assert pod.is_dir()
    assert explain("--kubeconfig", str(lab.config)) == 0
    assert lab.tls.asked == []
    capsys.readouterr()
    assert explain("--context", "x") == 2
    assert "context x is not available without a kubeconfig" in capsys.readouterr().err
