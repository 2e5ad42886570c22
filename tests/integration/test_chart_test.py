"""The program of `helm test`, run here with an API server that is a function."""

from __future__ import annotations

import io
import json
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.integration.helm import (
    CHART,
    DEPLOYMENT,
    LATEST,
    RELEASE,
    Document,
    Objects,
    by_name,
    documents,
    helm,
    labels_of,
    rendered,
)

_TEST = "rdma-webhook-test"
_FILE = "templates/tests/dry-run.yaml"

#: Answers a request to create a pod: the pod's annotations, or why it is rejected.
Answer = Callable[[], dict[str, str] | str]


def hooks(*options: str) -> Objects:
    """Render the objects of the test."""
    command = ("template", RELEASE, CHART, f"--namespace={RELEASE}", f"--show-only={_FILE}")
    return by_name(documents(helm(LATEST, *command, *options).stdout))


def pod(*options: str) -> Document:
    """Return the pod of the test."""
    return hooks(*options)["Pod", RELEASE, _TEST]


def test_the_user_of_the_pod() -> None:
    """It is the replicas' own, unless OpenShift chooses it."""
    fixed = {"runAsUser": 65532, "runAsGroup": 65532}
    profile = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod()["spec"]["securityContext"] == {**profile, **fixed}
    assert pod("--set=openshift=true")["spec"]["securityContext"] == profile


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: Answer) -> tuple[object, Any]:
    """Run the program; return its exit status or message, and the last pod that it created."""
    (container,) = pod()["spec"]["containers"]
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("secret")
    program = container["args"][0]
    assert '"/var/run/secrets/kubernetes.io/serviceaccount"' in program
    program = program.replace("/var/run/secrets/kubernetes.io/serviceaccount", str(account))
    created: list[Any] = []

    def send(request: urllib.request.Request, context: object) -> io.BytesIO:
        assert context == f"{account}/ca.crt"
        assert request.get_header("Authorization") == "Bearer secret"
        assert request.full_url.endswith(f"/namespaces/{_TEST}/pods?dryRun=All")
        assert isinstance(request.data, bytes)
        created.append(json.loads(request.data))
        answered = answer()
        if isinstance(answered, str):
            refusal = io.BytesIO(json.dumps({"message": answered}).encode())
            raise HTTPError(request.full_url, 403, "", {}, refusal)  # type: ignore[arg-type]
        return io.BytesIO(json.dumps({"metadata": {"annotations": answered}}).encode())

    monkeypatch.setattr(ssl, "create_default_context", lambda cafile: cafile)
    monkeypatch.setattr(urllib.request, "urlopen", send)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(SystemExit) as ended:
        exec(program, {})
    return ended.value.code, created[-1]


def test_a_pod_is_decided_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first answers may be rejections, while the new account's rights are not known yet."""
    status = {"rdma.lab/status": '{"rdma":"no"}'}
    answers: Iterator[dict[str, str] | str] = iter(("forbidden", "not found", status))
    code, created = run(monkeypatch, tmp_path, lambda: next(answers))
    assert not code
    assert created["metadata"]["annotations"] == {"rdma.lab/enable": "true"}
    printed = capsys.readouterr().out
    assert printed == 'the webhook has decided on a pod that opts in: {"rdma":"no"}\n'


def test_a_rejection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The API server's message is the result, such as that of a webhook without fabrics."""
    code, _ = run(monkeypatch, tmp_path, lambda: "rdma-webhook has no fabrics")
    assert code == "the API server rejects a pod that opts in: rdma-webhook has no fabrics"


def test_a_pod_that_is_not_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With failurePolicy Ignore, the API server creates the pod without the webhook."""
    code, _ = run(monkeypatch, tmp_path, lambda: {"rdma.lab/enable": "true"})
    assert code == (
        "the API server creates a pod that opts in without calling the webhook: "
        "it has no rdma.lab/status"
    )


def test_its_objects_are_hooks() -> None:
    """They are no part of the release, and the Service selects none of them."""
    for document in hooks().values():
        assert labels_of(document)["app.kubernetes.io/name"] == _TEST
        assert document["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (namespace,) = (document for (kind, _, _), document in hooks().items() if kind == "Namespace")
    assert labels_of(namespace)["rdma.lab/enable"] == "true"
    assert not hooks().keys() & rendered(LATEST).keys()


def test_its_account_may_create_pods_only_as_a_dry_run() -> None:
    """A policy limits it before it has the right: an interrupted test leaves the account behind."""
    objects = hooks("--namespace=elsewhere")
    (policy,) = (hook for (kind, *_), hook in objects.items() if kind.endswith("Policy"))
    (binding,) = (hook for (kind, *_), hook in objects.items() if kind.endswith("PolicyBinding"))
    assert binding["spec"] == {"policyName": _TEST, "validationActions": ["Deny"]}
    (condition,) = policy["spec"]["matchConditions"]
    account = f"'system:serviceaccount:elsewhere:{_TEST}'"
    assert condition["expression"] == f"request.userInfo.username == {account}"
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    (role,) = (hook for (kind, *_), hook in objects.items() if kind == "Role")
    (right,) = role["rules"]
    assert [verb.upper() for verb in right["verbs"]] == rule["operations"] == ["CREATE"]
    assert right["resources"] == rule["resources"] == ["pods"]
    assert [weight(policy), weight(binding), weight(role)] == [-1, -1, 0]


def weight(hook: Document) -> int:
    """Return the place of a hook in the order of creation."""
    return int(hook["metadata"]["annotations"].get("helm.sh/hook-weight", 0))


def test_its_pod_runs_where_replicas_do() -> None:
    """With the same image, nodes and user; the namespace may enforce the level restricted."""
    options = ("--set=image.pullSecrets={registry}", "--set=tolerations[0].operator=Exists")
    chart = rendered(LATEST, *options)
    template = chart[DEPLOYMENT]["spec"]["template"]["spec"]
    ours = pod(*options)["spec"]
    (container,), (replica,) = ours["containers"], template["containers"]
    for field in ("nodeSelector", "tolerations", "imagePullSecrets"):
        assert ours[field] == template[field]
    assert ours["securityContext"].items() <= template["securityContext"].items()
    for field in ("image", "imagePullPolicy", "securityContext"):
        assert container[field] == replica[field]
