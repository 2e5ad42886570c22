"""The information that /mutate gives to anybody without `--client-ca`: docs/security.md.

With `--client-ca`, nobody but the API server gets an answer: test_client_certificates.py.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.live_api import LiveApi
from tests.integration.serving import FABRICS, Certificates, Running, fabrics, pod, review
from tests.unit.kube.cluster import (
    LIMIT_RANGES,
    NAMESPACES,
    QUOTAS,
    Cluster,
    limit_range,
    namespace,
    quota,
)
from tests.waiting import until

LEVEL = {"pod-security.kubernetes.io/enforce": "baseline"}
SECRET = "s3cr3t-of-a-tenant"
#: A second fabric with the same GPUs, so that the namespace's annotation decides.
SECOND = """\
  - name: other
    match: {gpuResources: [nvidia.com/gpu]}
    resources: [{name: rdma/other}]
    linkLayer: InfiniBand
    rateGbps: 100
    hcas: [mlx5_1]
"""


@pytest.fixture(scope="module")
def server(tls: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serve a cluster with different namespaces, each with metadata that must not leak."""
    folder: Path = tmp_path_factory.mktemp("strangers")
    cluster = Cluster()
    fabric = {"rdma.lab/fabric": "other", "note": SECRET}
    labels = {"plain": {"team": SECRET}, "strict": LEVEL, "limited": {}, "bounded": {}}
    cluster.put(
        NAMESPACES,
        *(namespace(name, labels=pairs, annotations=fabric) for name, pairs in labels.items()),
    )
    cluster.put(LIMIT_RANGES, limit_range("sizes", "limited", max={"memory": "777Gi"}))
    cluster.put(QUOTAS, quota("team", "bounded", limits_memory="777Gi", requests_cpu="777"))
    with LiveApi(folder, cluster).serving() as api:
        config = fabrics(folder, FABRICS + SECOND + "  nvlink: {allowNamespaces: [plain]}\n")
        with Running(tls, config, kubeconfig=api.kubeconfig) as running:
            until(lambda: running.get("/readyz").status == 200)
            yield running


def _answer(server: Running, name: str, **annotations: str) -> str:
    """Send a review of a pod in a namespace; return the whole answer, with the patch decoded."""
    manifest: Any = pod()
    manifest["metadata"]["annotations"] |= annotations
    manifest["spec"]["containers"][0]["resources"]["limits"]["memory"] = "64Gi"
    response = server.post(review(manifest, namespace=name)).response
    patch = b64decode(response.pop("patch", "")).decode()
    return json.dumps(response) + patch


def test_whether_a_namespace_exists_and_what_it_enforces(server: Running) -> None:
    """Reason codes reveal it: NamespaceUnknown, and the code for a Pod Security level."""
    assert "NamespaceUnknown" in _answer(server, "nowhere")
    assert "NamespaceUnknown" not in _answer(server, "plain")
    assert "baseline" in _answer(server, "strict")


def test_the_names_of_what_bounds_memory(server: Running) -> None:
    """The answer names one LimitRange or quota that demands a memory limit, but not its numbers."""
    limited, bounded = (_answer(server, name) for name in ("limited", "bounded"))
    assert "LimitRange sizes" in limited
    assert "quota team" in bounded.lower().replace("resourcequota", "quota")
    assert "777" not in limited + bounded


def test_its_fabric_and_nothing_else_of_it(server: Running) -> None:
    """The answer reveals the default fabric and its settings, but no other label or annotation."""
    answer = _answer(server, "plain")
    assert "rdma~1other" in answer
    assert SECRET not in answer


def test_where_nvlink_may_be_shared(server: Running) -> None:
    """The answer reveals which namespaces the fabrics file lists for sharing NVLink."""
    share = {"rdma.lab/nvlink": "share"}
    reason = "is not in nvlink.allowNamespaces"
    assert [reason in _answer(server, name, **share) for name in ("plain", "limited")] == [
        False,
        True,
    ]
