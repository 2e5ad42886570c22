from __future__ import annotations

import re
from typing import Any

import pytest

from tests.case_names import case_name
from webhook.errors import ShapeError
from webhook.model.claims import (
    ClaimFacts,
    KnownClaims,
    is_made_for_pod,
    requested_classes,
    unknown_claims,
)
from webhook.model.facts import Facts, NamespaceFacts

NICS = {"name": "nics", "exactly": {"deviceClassName": "roce.lab", "count": 4}}
EITHER = {
    "name": "gpu",
    "firstAvailable": [{"name": "a", "deviceClassName": "h200"}, {"deviceClassName": "h100"}],
}
BETA = {"name": "old", "deviceClassName": "gpu.lab"}


def template(
    name: str = "nics", space: str = "lab", requests: Any = (NICS,), kind: str = "Template"
) -> dict[str, Any]:
    """Make a ResourceClaimTemplate, or with `kind=""` a ResourceClaim."""
    metadata = {"name": name, **({"namespace": space} if space else {})}
    spec: dict[str, Any] = {"devices": {"requests": list(requests)}}
    return {
        "kind": f"ResourceClaim{kind}",
        "metadata": metadata,
        "spec": {"spec": spec} if kind else spec,
    }


def space(name: str = "lab") -> dict[str, Any]:
    """Make a Namespace."""
    return {"kind": "Namespace", "metadata": {"name": name}}


@pytest.mark.parametrize("kind", ["Template", ""], ids=("template", "claim"))
def test_requests_have_device_classes(kind: str) -> None:
    """In the form of v1, with alternatives, and in the form of v1beta1."""
    item = template(requests=(NICS, EITHER, BETA, {}), kind=kind)
    assert requested_classes(item) == {
        "nics": ("roce.lab",),
        "gpu": ("h200", "h100"),
        "old": ("gpu.lab",),
        "": (),
    }


@pytest.mark.parametrize("spec", [None, {}, {"spec": {}}, {"spec": {"devices": None}}], ids=repr)
def test_an_object_may_request_nothing(spec: Any) -> None:
    """An absent list is an empty one."""
    assert requested_classes({"spec": spec}) == {}


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"name": 1}, "[0].name must be a string"),
        ({"exactly": []}, "[0].exactly must be a mapping"),
        ({"firstAvailable": {}}, "[0].firstAvailable must be a list"),
        ({"deviceClassName": 1}, "[0].deviceClassName must be a string"),
    ],
    ids=case_name,
)
def test_a_wrong_shape_is_named_by_its_place(request_: Any, place: str) -> None:
    """Only a file can have one: the API server checks its objects."""
    item = template(requests=(request_,))
    with pytest.raises(ShapeError, match=re.escape(f"spec.spec.devices.requests{place}")):
        requested_classes(item)
    with pytest.raises(ShapeError, match=r"^spec.devices.requests must be a list"):
        requested_classes({"spec": {"devices": {"requests": {}}}})


def test_without_any_template_nothing_is_known_of_them() -> None:
    """A list of Namespaces alone does not show their templates; nor does a claim."""
    facts = Facts.from_objects([space(), template("used", requests=(BETA,), kind="")])
    assert facts.namespace("lab").claim_facts == ClaimFacts(claims={"used": {"old": ("gpu.lab",)}})
    assert facts.namespace("x") == NamespaceFacts(name="x", is_loaded=False)


def test_with_a_template_all_are_known() -> None:
    """A list of templates contains all of them, in all namespaces."""
    facts = Facts.from_objects([space(), template(space="other"), space("empty")])
    no_claims = ClaimFacts(has_all_templates=True)
    assert facts.namespace("lab").claim_facts == no_claims
    assert facts.namespace("empty").claim_facts == no_claims
    assert facts.namespace("unlisted") == NamespaceFacts(
        name="unlisted", is_loaded=False, claim_facts=no_claims
    )
    assert facts.namespace("other") == NamespaceFacts(
        name="other",
        is_loaded=False,
        claim_facts=ClaimFacts(templates={"nics": {"nics": ("roce.lab",)}}, has_all_templates=True),
    )


def test_a_preview_adds_its_own_templates() -> None:
    """They replace any with the same name, and a Namespace keeps its claims."""
    cluster = Facts.from_objects([space(), template(), template("rail")])
    facts = cluster.with_objects([template("nics", "", (BETA,)), space()], "lab")
    assert facts.namespace("lab").claim_facts == ClaimFacts(
        templates={"nics": {"old": ("gpu.lab",)}, "rail": {"nics": ("roce.lab",)}},
        has_all_templates=True,
    )
    alone = Facts().with_objects([template(space="")], "lab").namespace("lab")
    assert alone.is_loaded
    assert alone.claim_facts == ClaimFacts(templates={"nics": {"nics": ("roce.lab",)}})


def test_all_templates_of_a_namespace_may_be_known() -> None:
    """As a cluster lists them; other namespaces stay as they are."""
    given = Facts.from_objects([space("mine")])
    facts = given.with_fallback([space(), template(), space("other")], ["lab", "empty", "mine"])
    assert facts.namespace("lab").claim_facts == ClaimFacts(
        templates={"nics": {"nics": ("roce.lab",)}}, has_all_templates=True
    )
    assert facts.namespace("lab").labels == {}
    assert facts.namespace("empty").claim_facts == ClaimFacts(has_all_templates=True)
    assert facts.namespace("other").claim_facts == ClaimFacts()
    assert facts.namespace("mine").claim_facts == ClaimFacts()


def test_a_namespace_without_claims() -> None:
    """The facts elsewhere also show whether an unlisted template may exist."""
    lab, elsewhere = ClaimFacts(claims={"nic": {}}), ClaimFacts(has_all_templates=True)
    claims = KnownClaims({"lab": lab}, elsewhere, are_watched=True)
    assert (claims.of("lab"), claims.of("other")) == (lab, elsewhere)


def made_for_a_pod(**metadata: Any) -> bool:
    """Return whether a claim with this metadata was made for one pod."""
    return is_made_for_pod({"metadata": {"name": "x", **metadata}})


def test_claims_that_kubernetes_made() -> None:
    """By their annotation, or by their owner; users' claims may have owners, too."""
    assert made_for_a_pod(annotations={"resource.kubernetes.io/pod-claim-name": "nic"})
    assert made_for_a_pod(ownerReferences=[{"kind": "JobSet"}, {"kind": "Pod"}])
    assert not made_for_a_pod(ownerReferences=[{"kind": "JobSet"}], annotations={"a": "b"})
    assert not made_for_a_pod(ownerReferences="nonsense")
    assert not made_for_a_pod()


@pytest.mark.parametrize(
    ("listed", "unknown"),
    [
        ([{"resourceClaimName": "a"}, {"resourceClaimName": "known"}], ["a"]),
        ([{"resourceClaimName": "b"}, {"resourceClaimName": "a"}] * 2, ["b", "a"]),
        ([{"resourceClaimTemplateName": "a"}, {"resourceClaimName": 7}, "nonsense"], []),
        ([{"resourceClaimName": str(n)} for n in range(40)], [str(n) for n in range(32)]),
        ("nonsense", []),
        (None, []),
    ],
    ids=["known", "twice", "other shapes", "many", "no list", "none"],
)
def test_the_claims_of_which_nothing_is_known(listed: Any, unknown: list[str]) -> None:
    """Each once, from the first entries; any pod is accepted, since it has not been checked yet."""
    facts = ClaimFacts(claims={"known": {}})
    assert unknown_claims({"spec": {"resourceClaims": listed}}, facts) == unknown
