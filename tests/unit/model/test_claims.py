from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, fabric, fabrics, pod
from tests.case_names import case_name
from webhook.model.claims import (
    NO_CLAIM_FACTS,
    Claim,
    ClaimFacts,
    DeviceClasses,
    RequestedClasses,
    brings_gpu,
    claims_by_container,
    claims_of,
    fabrics_of,
    has_nic_of,
    is_gpu_claim,
    may_claim_gpu,
)
from webhook.model.fabric import ClaimTemplateReference, Fabric
from webhook.model.pod import Pod

SITE = fabrics(
    fabric(
        "a",
        claim_templates=(ClaimTemplateReference(template="nics"),),
        device_classes=frozenset({"h100"}),
    ),
    fabric(
        "b",
        claim_templates=(ClaimTemplateReference(template="pairs"),),
        device_classes=frozenset({"roce.b"}),
    ),
    fabric(
        "c",
        claim_templates=(ClaimTemplateReference(template="pairs"),),
        device_classes=frozenset({"h100"}),
    ),
)


def summaries(listed: Any, *used: dict[str, str]) -> list[tuple[str, str | None, str]]:
    """List the claims of a pod with one container: name, user, and kinds of device."""
    manifest = pod(container(resources={"claims": list(used)}), resourceClaims=listed)
    return [
        (
            claim.name,
            claim.container.name if claim.container else None,
            "".join((claim.is_gpu * "G", claim.is_nic * "N", claim.is_compute_domain * "D")),
        )
        for claim in claims_of(Pod(manifest))
    ]


@pytest.mark.parametrize(
    ("words", "device"),
    [
        ("gpu", "G"),
        ("my-GPUs", "G"),
        ("mig-1g-5gb", "G"),
        ("migration", ""),
        ("my-RDMA-nic", "N"),
        *((word, "N") for word in ("nic", "nics-0", "nic0", "rdmanet", "roce2", "mlx5-vf", "efa")),
        *((word, "N") for word in ("sriov", "ib", "hca-1", "rail0", "infiniband", "dranet-0")),
        ("gpu-nic-pair", "GN"),
        *((word, "") for word in ("default", "unicorn", "technical", "fast", "library", "trail")),
        ("default-gpu", "G"),
        ("compute-domain-channel", "D"),
        ("imex-channel-0", "D"),
        ("computedomain-gpu-nic", "D"),
    ],
    ids=case_name,
)
def test_names_say_what_a_claim_is(words: str, device: str) -> None:
    """Short words count only as whole words; any of the names may contain them."""
    assert summaries([{"name": words}], {"name": words}) == [(words, "trainer", device)]
    for key in ("resourceClaimName", "resourceClaimTemplateName"):
        assert summaries([{"name": "x", key: words}], {"name": "x"}) == [("x", "trainer", device)]
    assert summaries([{"name": "x"}], {"name": "x", "request": words}) == [("x", "trainer", device)]


@pytest.mark.parametrize(
    ("words", "device"), [("fast", "N"), ("rdma", "N"), ("gpu", "G"), ("imex", "D")], ids=case_name
)
def test_a_claim_that_no_container_uses_is_a_networks(words: str, device: str) -> None:
    """A driver moves its NIC into the pod; a GPU would reach no container."""
    assert summaries([{"name": "x", "resourceClaimName": words}]) == [("x", None, device)]


def test_each_use_is_listed_and_then_what_nobody_uses() -> None:
    """A claim that the pod does not list does not count, and a request belongs to one use."""
    listed = [{"name": "b"}, {"name": "a"}, {}]
    used = [{"name": "a", "request": "gpu"}, {"name": "a", "request": "nic"}, {"name": "z"}]
    assert summaries(listed, *used) == [
        ("a", "trainer", "G"),
        ("a", "trainer", "N"),
        ("b", None, "N"),
        ("", None, "N"),
    ]


@pytest.mark.parametrize("listed", [None, []], ids=case_name)
def test_most_pods_have_none(listed: Any) -> None:
    """Nothing is read from their containers."""
    assert summaries(listed, {"name": "gpu"}) == []


def test_the_name_that_the_webhook_gives_says_nothing() -> None:
    """`rdma` and the fabric's name in it are not the user's words."""
    name = "rdma-lab-ib-0"
    assert summaries([{"name": name}], {"name": name}) == [(name, "trainer", "")]
    template = {"name": name, "resourceClaimTemplateName": "gpu"}
    assert summaries([template], {"name": name}) == [(name, "trainer", "G")]


FACTS = ClaimFacts(
    templates={"pair": {"one": ("gpu.lab",), "two": ("roce.lab", "fast.lab")}},
    claims={"shared": {"all": ("roce.lab",)}},
)


@pytest.mark.parametrize(
    ("listed", "used", "classes", "device"),
    [
        ({"resourceClaimTemplateName": "pair"}, {}, ("gpu.lab", "roce.lab", "fast.lab"), "GN"),
        ({"resourceClaimTemplateName": "pair"}, {"request": "one"}, ("gpu.lab",), "G"),
        ({"resourceClaimTemplateName": "pair"}, {"request": "three"}, (), ""),
        ({"resourceClaimTemplateName": "other"}, {}, (), ""),
        ({"resourceClaimName": "shared"}, {}, ("roce.lab",), "N"),
        ({"resourceClaimName": "pair"}, {}, (), ""),
    ],
    ids=case_name,
)
def test_known_device_classes_say_what_a_claim_is(
    listed: dict[str, str], used: dict[str, str], classes: tuple[str, ...], device: str
) -> None:
    """A request has its own classes; without one, a container gets the classes of all requests."""
    trainer = container(resources={"claims": [{"name": "x", **used}]})
    manifest = pod(trainer, resourceClaims=[{"name": "x", **listed}])
    (claim,) = claims_of(Pod(manifest), FACTS)
    assert claim.classes == classes
    assert claim.template == listed.get("resourceClaimTemplateName", "")
    assert "".join((claim.is_gpu * "G", claim.is_nic * "N")) == device


def test_claims_are_grouped_by_the_containers_that_use_them() -> None:
    """Unused claims belong to the pod."""
    used = [{"name": "a"}]
    manifest = pod(
        container("x"),
        container("y", resources={"claims": used}),
        resourceClaims=[*used, {"name": "b"}],
    )
    groups = claims_by_container(claims_of(Pod(manifest)))
    named = {path: [claim.name for claim in claims] for path, claims in groups.items()}
    assert named == {("spec", "containers", 1): ["a"], (): ["b"]}


def claim(template: str = "", *classes: str) -> Claim:
    """Make a claim with neutral names."""
    return Claim("x", "x", None, template, DeviceClasses.of(classes))


@pytest.mark.parametrize(
    ("pod_claim", "names"),
    [
        (claim(), ""),
        (claim("nics"), "a"),
        (claim("pairs"), "bc"),
        (claim("pairs", "h100"), "bc"),
        (claim("other", "h100"), "ac"),
        (claim("other", "roce.b", "h100"), "abc"),
        (claim("other", "unknown"), ""),
    ],
    ids=case_name,
)
def test_a_claim_belongs_to_fabrics(pod_claim: Claim, names: str) -> None:
    """By its template, which is more specific than the device classes."""
    assert fabrics_of(pod_claim, SITE) == frozenset(names)


@pytest.mark.parametrize(
    ("pod_claim", "name", "is_nic", "is_gpu"),
    [
        (claim("nics"), "a", True, False),
        (claim("pairs"), "a", False, False),
        (claim("", "h100"), "a", False, True),
        (claim("", "roce.b"), "b", True, False),
        (claim("", "roce.b"), "a", False, False),
    ],
    ids=case_name,
)
def test_a_device_class_is_a_nic_if_its_name_says_so(
    pod_claim: Claim, name: str, is_nic: bool, is_gpu: bool
) -> None:
    """Otherwise the classes of a fabric are its GPUs."""
    claimed_fabric: Fabric = SITE.fabrics[name]
    assert has_nic_of(pod_claim, claimed_fabric, NO_CLAIM_FACTS) is is_nic
    assert is_gpu_claim(pod_claim, SITE) is is_gpu


@pytest.mark.parametrize(
    ("fabric_claim", "classes", "is_nic"),
    [
        (ClaimTemplateReference(template="pairs"), ["fast"], True),
        (ClaimTemplateReference(template="pairs"), ["h100.lab", "accelerator"], False),
        (ClaimTemplateReference(template="pairs"), ["gpu.lab"], False),
        (ClaimTemplateReference(template="pairs", request="nic"), ["fast"], True),
        (ClaimTemplateReference(template="pairs", request="nic"), ["slow"], False),
        (ClaimTemplateReference(template="pairs", request="no"), ["fast"], False),
        (ClaimTemplateReference(template="absent"), ["fast"], False),
    ],
    ids=case_name,
)
def test_the_class_that_a_fabrics_template_requests_is_its_nic(
    fabric_claim: ClaimTemplateReference, classes: list[str], is_nic: bool
) -> None:
    """Its GPUs are not, by their names or by `match`."""
    requested = {"gpu": ("h100.lab", "gpu.lab"), "nic": ("fast",), "other": ("slow",)}
    facts = ClaimFacts(templates={"pairs": requested})
    claimed_fabric = fabric(
        "a", claim_templates=(fabric_claim,), device_classes=frozenset({"h100.lab"})
    )
    assert has_nic_of(claim("", *classes), claimed_fabric, facts) is is_nic


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (("gpu.nvidia.com",), True),
        (("h100",), True),
        (("roce.b",), False),
        (("fast.lab",), False),
        ((), False),
    ],
    ids=case_name,
)
def test_a_template_brings_a_gpu_by_its_classes(classes: tuple[str, ...], expected: bool) -> None:
    """By the name of a class, or as a fabric lists it; an unknown template has no classes."""
    facts = ClaimFacts(templates={"mine": {"nic": ("roce.b",), "more": classes}})
    assert brings_gpu("mine", SITE, facts) is expected
    assert not brings_gpu("theirs", SITE, facts)


@pytest.mark.parametrize(
    ("templates", "expected"),
    [(None, False), ([], False), (["nics"], False), (["nics", "other"], True), ([None], True)],
    ids=repr,
)
def test_a_claim_that_is_no_fabrics_nic_may_be_a_gpu(templates: Any, expected: bool) -> None:
    """A claim of the webhook's own must not look like a GPU in a second call."""
    listed = templates and [
        {"name": "x", "resourceClaimTemplateName": template} for template in templates
    ]
    assert may_claim_gpu(Pod(pod(container(), resourceClaims=listed)), SITE) is expected
    assert not may_claim_gpu(Pod(pod(container())), SITE)


def test_the_classes_of_a_request_are_searched_once() -> None:
    """A user may request 256 classes of 253 letters, and use the claim in each of 100 containers.

    What the names show is kept with the template, and no use has a copy of them.
    """
    names = [f"{letter}{number}".ljust(253, "x") for letter in "ab" for number in range(128)]
    requested = RequestedClasses.of({"": ("gpu.lab", "compute-domain.lab", *names, "roce.lab")})
    requested.search_names()
    assert requested.together.words.split("\n") == ["roce.lab", "gpu.lab", "compute-domain.lab"]
    uses = [{"name": "a"}, {"name": "a", "request": "none"}] * 40
    containers = [container(f"c{index}", resources={"claims": uses}) for index in range(3)]
    manifest = pod(*containers, resourceClaims=[{"name": "a", "resourceClaimTemplateName": "t"}])
    claims = claims_of(Pod(manifest), ClaimFacts(templates={"t": requested}))
    assert [len(claim.classes) for claim in claims] == [259, 0] * 3
    assert all(claim.classes is requested.together for claim in claims[::2])
    assert max(len(claim.words) for claim in claims) < 100
