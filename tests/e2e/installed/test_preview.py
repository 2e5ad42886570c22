"""The preview shows the API server's decision to users who may do nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.install import NAME, Webhook
from tests.e2e.documents import ENABLE, Document, make_namespaces, namespace
from tests.e2e.installed.space import Space
from tests.waiting import until

SERVICE = f"/api/v1/namespaces/{NAME}/services/https:{NAME}"
#: Fields that the API server sets itself, differently for each pod.
_SERVER_FIELDS = ("uid", "creationTimestamp", "generation", "namespace", "managedFields")
Preview = Callable[[Document], Document]


def _two(space: Space) -> Document:
    helper = {"name": "helper", "image": "example.com/none", "resources": {"limits": {"cpu": "1"}}}
    document = space.pod("two", "nvidia.com/a100")
    document["spec"]["containers"].append(helper)
    return document


#: Pods of different shapes, which take different paths through the mutations.
SHAPES: dict[str, Callable[[Space], Document]] = {
    "one GPU": lambda space: space.pod("one", "nvidia.com/v100"),
    "no GPU": lambda space: space.pod("none"),
    "a helper beside": _two,
    "sshd": lambda space: space.pod(
        "sshd", "nvidia.com/v100", container={"command": ["/usr/sbin/sshd", "-D"]}
    ),
    "with settings": lambda space: space.pod(
        "settings",
        "nvidia.com/v100",
        {ENABLE: "true", "rdma.lab/devices": "2", "rdma.lab/memory-limit": "keep"},
        container={"env": [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "X", "value": "y"}]},
    ),
}
each_shape = pytest.mark.parametrize("shape", SHAPES)


@pytest.fixture(scope="module")
def elsewhere(space: Space) -> Iterator[str]:
    """Make a namespace where the API server adds its defaults, and the webhook nothing."""
    name = f"{space.name}-plain"
    make_namespaces(space.cluster, namespace(name, None))
    yield name
    space.cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def as_user(webhook: Webhook) -> Iterator[str]:
    """Bind the shipped Role to a user, as docs/installation.md shows; return kubectl's flag."""
    user = "somebody"
    webhook.kubectl(
        "create", "rolebinding", "preview-test", f"--role={NAME}-preview", f"--user={user}"
    )
    usage = ("get", "--raw", f"{SERVICE}:preview/proxy/preview", f"--as={user}")
    until(lambda: webhook.kubectl(*usage, check=False).startswith("POST a pod"))
    yield f"--as={user}"
    webhook.kubectl("delete", "rolebinding", "preview-test")


@each_shape
def test_dry_run_and_command_line_agree(
    webhook: Webhook, space: Space, elsewhere: str, shape: str
) -> None:
    """The command line prints the pod that the API server would store, except defaults and status.

    So the printed pod goes through the API server too, where no webhook is called for it.
    """
    document = SHAPES[shape](space)
    command = [sys.executable, "-m", "webhook", "preview", "-c", str(webhook.fabrics)]
    printed = subprocess.run(
        [*command, "--namespace-label", f"{ENABLE}=true", "-o", "yaml", "-"],
        input=json.dumps(document),
        capture_output=True,
        text=True,
        check=True,
    )
    assert_same(space, document, yaml.safe_load(printed.stdout), elsewhere)


@each_shape
def test_dry_run_and_service_proxy_agree(
    space: Space, as_user: str, elsewhere: str, shape: str
) -> None:
    """So does the installed webhook's preview, for a user who may only preview."""
    document = SHAPES[shape](space)
    printed = ask(space, document, as_user, "preview?output=yaml")
    assert_same(space, document, yaml.safe_load(printed), elsewhere)


def assert_same(space: Space, document: Document, previewed: Document, elsewhere: str) -> None:
    """Compare the pod that would be stored with the previewed pod."""
    stored = space.proposed(document)
    assert "rdma.lab/status" in stored["metadata"]["annotations"]
    plain = Space(space.cluster, elsewhere, space.image)
    previewed["metadata"]["namespace"] = elsewhere
    assert comparable(stored) == comparable(plain.proposed(previewed))


def comparable(pod: Document) -> Document:
    """Remove the status and the fields that differ for each pod, and sort its volumes and mounts.

    The API server mounts the service account's token before it calls the webhook. The previewed pod
    has been patched before that, so its token comes after the webhook's volumes, not before them.
    """
    cleaned: Document = json.loads(json.dumps(pod))
    for field in _SERVER_FIELDS:
        cleaned["metadata"].pop(field, None)
    cleaned["metadata"]["annotations"].pop("rdma.lab/status", None)  # it is not written into files
    spec = cleaned["spec"]
    token = next(
        volume["name"] for volume in spec["volumes"] if "kube-api-access" in volume["name"]
    )
    named: Document = json.loads(json.dumps(cleaned).replace(token, "kube-api-access"))
    for container in named["spec"]["containers"]:
        container["volumeMounts"].sort(key=lambda mount: mount["mountPath"])
    named["spec"]["volumes"].sort(key=lambda volume: volume["name"])
    return named


@pytest.mark.parametrize("port", ["preview", "8444"])
def test_a_user_with_the_role_may_preview(space: Space, as_user: str, port: str) -> None:
    """By the port's name or number, the preview answers with the decision and reasons as JSON."""
    answer = json.loads(ask(space, space.pod("one", "nvidia.com/v100"), as_user, port=port))
    (decision,) = answer["decisions"]
    assert decision["allowed"] is True


@pytest.mark.parametrize(
    "command",
    [
        ("get", "pods", "--namespace", NAME),
        ("get", "--raw", f"{SERVICE}:443/proxy/mutate"),
        ("get", "--raw", f"{SERVICE}:https/proxy/mutate"),
        ("get", "--raw", f"/api/v1/namespaces/{NAME}/services/http:{NAME}:8080/proxy/metrics"),
        ("delete", "--raw", f"{SERVICE}:preview/proxy/preview"),
        ("get", "secret", f"{NAME}-ca", "--namespace", NAME),
    ],
    ids=["pods", "mutate by number", "mutate by name", "metrics", "delete", "the CA"],
)
def test_a_user_with_the_role_may_do_nothing_else(
    cluster: Cluster, as_user: str, command: tuple[str, ...]
) -> None:
    """The user may not reach the webhook's own port, its metrics, its pods or its Secret."""
    assert "Forbidden" in cluster.kubectl(*command, as_user, check=False)


@pytest.mark.usefixtures("as_user")
def test_a_user_without_the_role_is_refused(space: Space) -> None:
    """Without the Role, the API server forwards nothing."""
    printed = ask(space, space.pod("one"), "--as=somebody-else", check=False)
    assert "Forbidden" in printed
    assert 'User "somebody-else" cannot create resource "services/proxy"' in printed


def ask(
    space: Space,
    document: Document,
    as_user: str,
    path: str = "preview",
    *,
    port: str = "preview",
    check: bool = True,
) -> str:
    """Send a pod through the API server's service proxy, as docs/installation.md shows."""
    raw = ("create", "--raw", f"{SERVICE}:{port}/proxy/{path}", "--filename=-", as_user)
    return space.cluster.kubectl(*raw, input=json.dumps(document), check=check)
