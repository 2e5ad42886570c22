from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, decision_input, fabric, pod, quantities
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.decide.analysis import DecisionInput
from webhook.model.claims import ClaimFacts
from webhook.model.fabric import ClaimTemplateReference
from webhook.model.facts import NamespaceFacts

GPU = "nvidia.com/h100"
NICS = ClaimTemplateReference(template="nics", request="nic")
RAIL = ClaimTemplateReference(template="rail")
MISSING = ("no", "ClaimTemplateMissing")
UNKNOWN = ("unsure", "ClaimTemplateUnknown")


def with_templates(
    templates: Any = None, *, has_all_templates: bool = True, namespace: str = "lab"
) -> DecisionInput:
    """Make a decision input with a fabric of mode dra, and these templates in the namespace."""
    facts = ClaimFacts(templates=templates or {}, has_all_templates=has_all_templates)
    h100 = fabric("h100", gpu_resources=frozenset({GPU}), mode="dra", claim_templates=(NICS, RAIL))
    return decision_input(h100, namespace=NamespaceFacts(name=namespace, claim_facts=facts))


def trainer(**fields: Any) -> dict[str, Any]:
    """Make a container with a GPU of the fabric."""
    return container(resources=quantities({GPU: "1"}), **fields)


def test_the_fabrics_claims_are_a_device() -> None:
    """All of its templates exist, with the named requests."""
    assert judged(pod(trainer()), with_templates({"nics": {"nic": ()}, "rail": {}})) == (
        "yes",
        "Equipped",
    )


def test_a_template_that_is_missing_keeps_the_pod_pending() -> None:
    """The message names it, and has the remedy."""
    verdict = verdict_on(pod(trainer()), with_templates({"nics": {"nic": ()}}))
    assert (verdict.rdma, verdict.because.code) == MISSING
    assert verdict.message == (
        "namespace lab has no ResourceClaimTemplate rail, for which the pod waits; "
        "create the template"
    )
    unnamed = verdict_on(pod(trainer()), with_templates(namespace="")).message
    assert unnamed.startswith("the namespace has no ResourceClaimTemplate nics, ")


@pytest.mark.parametrize(
    ("requests", "have"), [({"a": (), "b": ()}, "a, b"), ({}, "none")], ids=("others", "none")
)
def test_a_template_must_have_the_request(requests: Any, have: str) -> None:
    """Otherwise the scheduler finds no device for the container, and the pod stays Pending."""
    verdict = verdict_on(pod(trainer()), with_templates({"nics": requests, "rail": {}}))
    assert (verdict.rdma, verdict.because.code) == ("no", "ClaimRequestMissing")
    assert verdict.message == (
        f"ResourceClaimTemplate nics has no request named nic; its requests are: {have}"
    )


def test_what_is_not_known_is_not_certain() -> None:
    """Without a list of templates; a certain problem comes first."""
    assert judged(pod(trainer()), with_templates(has_all_templates=False)) == UNKNOWN
    verdict = verdict_on(
        pod(trainer()), with_templates({"nics": {"nic": ()}}, has_all_templates=False)
    )
    assert verdict.message == "whether namespace lab has ResourceClaimTemplate rail is unknown"
    lacking = with_templates({"rail": {}, "nics": {}}, has_all_templates=False)
    assert judged(pod(trainer()), lacking) == ("no", "ClaimRequestMissing")
    complete = with_templates({"nics": {"other": ()}})
    assert judged(pod(trainer()), complete) == ("no", "ClaimRequestMissing")
    first = with_templates({"nics": {"other": ()}}, has_all_templates=False)
    assert judged(pod(trainer()), first) == ("no", "ClaimRequestMissing")


def test_only_claims_that_the_pod_has_need_a_template() -> None:
    """The user's own claim of one template is enough."""
    user = container(resources={**quantities({GPU: "1"}), "claims": [{"name": "mine"}]})
    manifest = pod(user, resourceClaims=[{"name": "mine", "resourceClaimTemplateName": "rail"}])
    assert judged(manifest, with_templates({"rail": {}})) == ("yes", "Equipped")
    assert judged(manifest, with_templates({"nics": {"nic": ()}})) == MISSING


def test_without_the_claim_there_is_no_device() -> None:
    """Not even privileged: the NIC stays in the node's network namespace."""
    skipping = {"rdma.lab/skip": "claims"}
    privileged = trainer(securityContext={"privileged": True})
    verdict = verdict_on(pod(privileged, annotations=skipping), with_templates())
    assert (verdict.rdma, verdict.because.code) == ("no", "DeviceMissing")
    assert (
        verdict.message == "container trainer gets no RDMA device, since rdma.lab/skip lists claims"
    )


def test_each_container_has_its_own_obstacle() -> None:
    """The first container has the fabric's claim, and the second cannot get it."""
    first = container("first", resources={**quantities({GPU: "1"}), "claims": [{"name": "mine"}]})
    claims = {"mine": "nics", "rdma-lab-h100-0": "other"}
    manifest = pod(
        first,
        container("second", resources=quantities({GPU: "1"})),
        container("third", resources={"claims": [{"name": "rdma-lab-h100-0"}]}),
        resourceClaims=[
            {"name": name, "resourceClaimTemplateName": template}
            for name, template in claims.items()
        ],
    )
    verdict = verdict_on(manifest, with_templates({"nics": {"nic": ()}, "rail": {}}))
    assert (verdict.rdma, verdict.because.code) == ("no", "DeviceMissing")
    assert verdict.message == (
        "container second gets no RDMA device; rename the pod's own claim rdma-lab-h100-0, since "
        "the webhook uses that name"
    )


def test_a_claim_of_the_fabrics_class_is_a_device() -> None:
    """Even if the fabric has no templates, and no resources."""
    classes = frozenset({"rdma-nic"})
    bare = fabric("bare", gpu_resources=frozenset({GPU}), device_classes=classes)
    user = container(resources={**quantities({GPU: "1"}), "claims": [{"name": "mine"}]})
    manifest = pod(user, resourceClaims=[{"name": "mine", "resourceClaimTemplateName": "own"}])
    for requested, expected in (("rdma-nic", "yes"), ("other-nic", "unsure")):
        facts = ClaimFacts(templates={"own": {"nic": (requested,)}}, has_all_templates=True)
        namespace = NamespaceFacts(name="lab", claim_facts=facts)
        assert judged(manifest, decision_input(bare, namespace=namespace))[0] == expected


def test_a_claim_of_no_fabric_leaves_it_open() -> None:
    """The NIC belongs to no fabric, even if the GPU does."""
    user = container(resources={**quantities({GPU: "1"}), "claims": [{"name": "nic"}]})
    manifest = pod(user, resourceClaims=[{"name": "nic", "resourceClaimTemplateName": "x"}])
    assert judged(manifest, with_templates()) == ("unsure", "ForeignNIC")


def test_the_hosts_network_does_not_fit() -> None:
    """The driver moves the NIC into the pod's own network namespace."""
    assert judged(
        pod(trainer(), hostNetwork=True), with_templates({"nics": {"nic": ()}, "rail": {}})
    ) == (
        "no",
        "HostNetworkWrong",
    )
