from __future__ import annotations

from typing import Any

import pytest

from tests.builders import (
    container,
    decide_on,
    decision_input,
    defaulted,
    fabric,
    ops,
    outcomes_of,
    pod,
    quantities,
)
from tests.case_names import case_name
from webhook.decide.analysis import DecisionInput
from webhook.model.claims import ClaimFacts
from webhook.model.fabric import ClaimTemplateReference
from webhook.model.facts import NamespaceFacts

NAME = "claims"
GPU = "nvidia.com/h100"
NICS = ClaimTemplateReference(template="nics", request="nic")
SHARED = ClaimTemplateReference(template="shared", per="pod")


def with_claims(
    *claims: ClaimTemplateReference, templates: Any = None, **fields: Any
) -> DecisionInput:
    """Make a decision input with fabric `h100`, whose NICs come through these claims."""
    given = {"gpu_resources": frozenset({GPU}), "mode": "dra", **fields}
    facts = ClaimFacts(templates=templates or {}, has_all_templates=True)
    h100 = fabric("h100", claim_templates=claims, **given)
    return decision_input(h100, namespace=NamespaceFacts(name="lab", claim_facts=facts))


def trainer(name: str = "trainer", claims: Any = None, **fields: Any) -> dict[str, Any]:
    """Make a container with a GPU of the fabric, and with claims if given."""
    resources = {**quantities({GPU: "1"}), **({"claims": claims} if claims else {})}
    return container(name, **{"resources": resources, **fields})


def used(manifest: Any, index: int = 0) -> Any:
    """Return the claims that an app container uses."""
    return manifest["spec"]["containers"][index]["resources"].get("claims")


def listed(name: str, template: str = "", **fields: str) -> dict[str, str]:
    """Write an entry of `spec.resourceClaims`."""
    return {"name": name, **({"resourceClaimTemplateName": template} if template else {}), **fields}


def test_a_fabric_without_claims_adds_none() -> None:
    """Its NICs come in another way."""
    decision = decide_on(pod(trainer()), with_claims(mode="shared-device"))
    assert outcomes_of(decision, NAME) == [
        ("", "skipped", "NotConfigured", "fabric h100 has no claims")
    ]
    assert "resourceClaims" not in decision.pod["spec"]


def test_a_target_gets_a_claim_of_each_template() -> None:
    """The pod's entry comes first, then the container's entry that names it."""
    decision = decide_on(pod(trainer()), with_claims(NICS, SHARED))
    message = "claimed nics as rdma-lab-h100-0, shared as rdma-lab-h100-1"
    assert outcomes_of(decision, NAME) == [("trainer", "applied", "Added", message)]
    at = "/spec/containers/0/resources/claims"
    assert ops(decision, NAME) == [
        {
            "op": "add",
            "path": "/spec/resourceClaims",
            "value": [listed("rdma-lab-h100-0", "nics")],
        },
        {"op": "add", "path": at, "value": [{"name": "rdma-lab-h100-0", "request": "nic"}]},
        {
            "op": "add",
            "path": "/spec/resourceClaims/-",
            "value": listed("rdma-lab-h100-1", "shared"),
        },
        {"op": "add", "path": f"{at}/-", "value": {"name": "rdma-lab-h100-1"}},
    ]


def test_containers_share_a_claim_of_the_pod() -> None:
    """`per: pod` makes one claim for all targets, `per: container` one for each."""
    decision = decide_on(pod(trainer("a"), trainer("b")), with_claims(NICS, SHARED))
    assert decision.pod["spec"]["resourceClaims"] == [
        listed("rdma-lab-h100-0", "nics"),
        listed("rdma-lab-h100-1", "shared"),
        listed("rdma-lab-h100-2", "nics"),
    ]
    assert used(decision.pod, 0) == [
        {"name": "rdma-lab-h100-0", "request": "nic"},
        {"name": "rdma-lab-h100-1"},
    ]
    assert used(decision.pod, 1) == [
        {"name": "rdma-lab-h100-2", "request": "nic"},
        {"name": "rdma-lab-h100-1"},
    ]


def test_a_users_claim_of_the_template_is_shared_too() -> None:
    """Another container has it; with `per: pod`, this one gets the same device."""
    manifest = pod(
        trainer("a", [{"name": "mine"}]), trainer("b"), resourceClaims=[listed("mine", "shared")]
    )
    decision = decide_on(manifest, with_claims(SHARED))
    assert [outcome[:3] for outcome in outcomes_of(decision, NAME)] == [
        ("a", "already", "Present"),
        ("b", "applied", "Added"),
    ]
    assert decision.pod["spec"]["resourceClaims"] == [listed("mine", "shared")]
    assert used(decision.pod, 1) == [{"name": "mine"}]


@pytest.mark.parametrize(
    ("claims", "template"),
    [(["mine"], "nics"), ([], "nics")],
    ids=("used", "of the pod"),
)
def test_a_nic_that_is_claimed_already_is_enough(claims: list[str], template: str) -> None:
    """A claim that no container uses is a NIC of the whole pod."""
    manifest = pod(
        trainer(claims=[{"name": name} for name in claims]),
        resourceClaims=[listed("mine", template)],
    )
    decision = decide_on(manifest, with_claims(NICS))
    message = "already claims a NIC (mine)"
    assert outcomes_of(decision, NAME) == [("trainer", "already", "Present", message)]
    assert ops(decision, NAME) == []


def test_a_device_class_of_the_fabric_may_be_its_nic() -> None:
    """The user's own template requests a class of the fabric with a NIC's name."""
    manifest = pod(trainer(claims=[{"name": "two"}]), resourceClaims=[listed("two", "two-devices")])
    templates = {"two-devices": {"all": ("roce.lab",)}}
    nics = with_claims(
        NICS, templates=templates, device_classes=frozenset({"roce.lab", "h100.lab"})
    )
    assert outcomes_of(decide_on(manifest, nics), NAME)[0][1:3] == ("already", "Present")
    gpus = with_claims(
        NICS,
        templates={"two-devices": {"all": ("h100.lab",)}},
        device_classes=frozenset({"roce.lab", "h100.lab"}),
    )
    assert outcomes_of(decide_on(manifest, gpus), NAME)[0][1:3] == ("applied", "Added")


@pytest.mark.parametrize("amount", ["1", "0"])
def test_an_rdma_resource_of_the_users_is_enough(amount: str) -> None:
    """Even 0 of it: the user needs no device, or has an extended resource (KEP-5004)."""
    manifest = pod(container(resources=quantities({GPU: "1", "rdma/nic": amount})))
    decision = decide_on(manifest, with_claims(NICS))
    message = "already requests rdma/nic"
    assert outcomes_of(decision, NAME) == [("trainer", "already", "Present", message)]


def test_only_app_containers_get_a_claim() -> None:
    """As with RDMA resources: an init container would hold a device that it does not need."""
    sidecar = container("proxy", restartPolicy="Always")
    manifest = pod(
        trainer(),
        initContainers=[container("setup"), sidecar],
        annotations={"rdma.lab/containers": "setup,proxy,trainer"},
    )
    decision = decide_on(manifest, with_claims(NICS))
    assert [outcome[:3] for outcome in outcomes_of(decision, NAME)] == [
        ("setup", "skipped", "NotAppContainer"),
        ("proxy", "skipped", "NotAppContainer"),
        ("trainer", "applied", "Added"),
    ]
    assert outcomes_of(decision, NAME)[0][3] == "only app containers get the claim"


def test_the_site_may_claim_elsewhere() -> None:
    """`injectResources: false` holds for claims, too."""
    decision = decide_on(pod(trainer()), with_claims(NICS, inject_resources=False))
    message = "another injector adds the claim"
    assert outcomes_of(decision, NAME) == [("trainer", "skipped", "InjectedElsewhere", message)]


def test_no_devices_means_no_claim() -> None:
    """The user requests no device."""
    decision = decide_on(pod(trainer(), annotations={"rdma.lab/devices": "0"}), with_claims(NICS))
    assert outcomes_of(decision, NAME) == [
        ("trainer", "skipped", "NoDevices", 'rdma.lab/devices is "0"')
    ]


def test_another_number_of_devices_is_in_the_template() -> None:
    """The user gets the claim, with a warning."""
    decision = decide_on(pod(trainer(), annotations={"rdma.lab/devices": "4"}), with_claims(NICS))
    message = "rdma.lab/devices has no effect, since the template determines the number of devices"
    assert outcomes_of(decision, NAME)[1:] == [("trainer", "warned", "DevicesByTemplate", message)]
    assert used(decision.pod) == [{"name": "rdma-lab-h100-0", "request": "nic"}]


@pytest.mark.parametrize(
    ("name", "template", "conflicts"),
    [
        ("rdma-lab-h100-0", "one", True),
        ("rdma-lab-h100-17", "one", True),
        ("rdma-lab-h100-x", "one", False),
        ("rdma-lab-h100", "one", False),
        ("rdma-lab-h1-0", "one", False),
        ("rdma-lab-h100-0", "nics", False),
    ],
)
def test_the_name_of_a_claim_may_be_taken(name: str, template: str, conflicts: bool) -> None:
    """A claim of another template under the webhook's name is the user's, and stays."""
    manifest = pod(trainer(), container("b", resources={"claims": [{"name": name}]}))
    manifest["spec"]["resourceClaims"] = [listed(name, template)]
    decision = decide_on(manifest, with_claims(NICS))
    if conflicts:
        message = f"rename the pod's own claim {name}, since the webhook uses that name"
        assert outcomes_of(decision, NAME) == [("trainer", "skipped", "ClaimNameTaken", message)]
        assert decision.verdict is not None
        assert decision.verdict.message == f"container trainer gets no RDMA device; {message}"
    else:
        assert outcomes_of(decision, NAME)[0][2] == "Added"


def test_claims_of_an_earlier_call_are_passed_over() -> None:
    """A container that another plugin added afterwards gets the next number."""
    first = decide_on(pod(trainer("a")), with_claims(NICS)).pod
    first["spec"]["containers"].append(trainer("b"))
    second = decide_on(first, with_claims(NICS))
    assert [outcome[:3] for outcome in outcomes_of(second, NAME)] == [
        ("a", "already", "Present"),
        ("b", "applied", "Added"),
    ]
    assert used(second.pod, 1) == [{"name": "rdma-lab-h100-1", "request": "nic"}]


@pytest.mark.parametrize(
    ("requested", "remedy"),
    [
        ({GPU: "1"}, "the container's own GPU"),
        ({"nvidia.com/mig-1g.5gb": "1"}, "the container's own GPU"),
        ({}, "claim gpus"),
        ({"cpu": "1"}, ""),
    ],
    ids=("whole", "slice", "claim", "none"),
)
@pytest.mark.parametrize("device", ["gpu.nvidia.com", "h100.lab"])
def test_a_template_with_a_gpu_brings_the_only_gpu(
    requested: dict[str, str], remedy: str, device: str
) -> None:
    """A GPU of the device plugin would be an additional GPU, on any NUMA node."""
    resources = {**quantities(requested), **({} if requested else {"claims": [{"name": "gpus"}]})}
    manifest = pod(
        container(resources=resources),
        annotations={"rdma.lab/containers": "trainer", "rdma.lab/fabric": "h100"},
        resourceClaims=[] if requested else [listed("gpus", "own-gpus")],
    )
    templates = {"pairs": {"gpu": (device,), "nic": ("roce.lab",)}}
    pairs = with_claims(
        ClaimTemplateReference(template="pairs"),
        templates=templates,
        device_classes=frozenset({"h100.lab"}),
    )
    decision = decide_on(manifest, pairs)
    if remedy:
        message = f"remove {remedy}, since template pairs includes a GPU"
        assert outcomes_of(decision, NAME) == [("trainer", "skipped", "GPUTwice", message)]
    else:
        assert outcomes_of(decision, NAME)[0][1:3] == ("applied", "Added")


@pytest.mark.parametrize(
    "manifest",
    [
        pod(trainer()),
        pod(trainer("a"), trainer("b")),
        pod(
            trainer("a", [{"name": "mine"}]), trainer("b"), resourceClaims=[listed("mine", "nics")]
        ),
        pod(container(), annotations={"rdma.lab/fabric": "h100"}),
        pod(
            container(command=["mpirun", "-np", "4", "./osu"]),
            annotations={"rdma.lab/fabric": "h100"},
        ),
    ],
    ids=case_name,
)
def test_deciding_again_changes_nothing(manifest: Any) -> None:
    """The second call finds the claims of the first, and comes to the same verdict."""
    at = with_claims(NICS, SHARED, templates={"nics": {"nic": ()}, "shared": {"gpu": ("gpu.lab",)}})
    first = decide_on(defaulted(manifest), at)
    second = decide_on(defaulted(first.pod), at)
    assert second.patch == ()
    assert second.verdict == first.verdict
