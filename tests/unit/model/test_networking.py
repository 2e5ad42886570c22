"""Tests of Istio's sidecar and of DNS in the host's network."""

from __future__ import annotations

from typing import Any

import pytest

from tests.case_names import case_name
from webhook.model.pod import Pod
from webhook.model.pod.sandbox import istio_evidence, lacks_cluster_dns

INJECT = "sidecar.istio.io/inject"
ENABLED = {"istio-injection": "enabled"}


def evidence(namespace: dict[str, str] | None = None, **spec: Any) -> str:
    """Return the evidence of a sidecar in a pod with these labels, annotations and containers."""
    metadata = {key: spec.pop(key) for key in ("labels", "annotations") if key in spec}
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "a"}], **spec}}
    return istio_evidence(Pod(pod), namespace or {})


def test_a_pod_may_have_no_sidecar() -> None:
    """Nothing indicates Istio, or the pod disables it."""
    assert evidence() == ""
    assert evidence({"istio-injection": "disabled"}) == ""
    assert evidence(ENABLED, labels={INJECT: "false"}) == ""
    assert evidence(ENABLED, annotations={INJECT: "false"}) == ""


def test_a_sidecar_is_known_by_what_asks_for_it() -> None:
    """The proxy itself, the pod's label or annotation, or the namespace's label."""
    assert evidence(labels={INJECT: "true"}) == f"label {INJECT}"
    assert evidence(annotations={INJECT: "true"}) == f"annotation {INJECT}"
    assert evidence(ENABLED) == "namespace label istio-injection"
    assert evidence(ENABLED, annotations={"a": "b"}) == "namespace label istio-injection"
    proxy = [{"name": "istio-proxy", "restartPolicy": "Always"}]
    assert evidence(initContainers=proxy, labels={INJECT: "false"}) == "container istio-proxy"


@pytest.mark.parametrize(
    ("spec", "lacks"),
    [
        ({}, False),
        ({"hostNetwork": False, "dnsPolicy": "ClusterFirst"}, False),
        ({"hostNetwork": True}, True),
        ({"hostNetwork": True, "dnsPolicy": "ClusterFirst"}, True),
        ({"hostNetwork": True, "dnsPolicy": "Default"}, True),
        ({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}, False),
        ({"hostNetwork": True, "dnsPolicy": "None"}, False),
    ],
    ids=case_name,
)
def test_names_of_services_resolve_by_the_policy(spec: dict[str, Any], *, lacks: bool) -> None:
    """In the host's network the default policy is the node's DNS."""
    assert lacks_cluster_dns(Pod({"spec": spec})) is lacks
    assert not lacks_cluster_dns(Pod({}))
