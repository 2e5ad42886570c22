from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import orjson
import pytest

from tests.builders import (
    HASH,
    V100,
    container,
    decide_on,
    decision_input,
    defaulted,
    fabric,
    gpu,
    outcomes_of,
    pod,
    quantities,
)
from tests.case_names import case_name
from webhook.decide import VOCABULARY, decide
from webhook.decide.analysis import DecisionInput
from webhook.decide.examine.foreign_nic import FOREIGN_REMEDY
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import NOT_OPTED_IN
from webhook.model.annotations import MAX_ANNOTATIONS_SIZE, MAX_STATUS_LENGTH, STATUS_ANNOTATION
from webhook.model.claims import ClaimFacts
from webhook.model.decision import REQUEST_CHECK, Decision
from webhook.model.fabric import ClaimTemplateReference, FabricEnv, RdmaResource
from webhook.model.facts import NamespaceFacts
from webhook.model.nodes import FabricIndex
from webhook.model.pod import PodManifest
from webhook.model.quantity import MAX_QUANTITY

CLAIMED_BY_NONE = f"a NIC that no fabric lists; {FOREIGN_REMEDY}"
EFA = {"vpc.amazonaws.com/efa": "1"}
ROCE = fabric(
    gpu_resources=frozenset({"nvidia.com/v100"}),
    resources=(RdmaResource(name="nvidia.com/roce_vf", network="rails/roce"),),
)
MPIRUN = ["mpirun", "--allow-run-as-root", "-np", "2", "a.out"]

CHAIN = [mutation.name for mutation in MUTATIONS]


def answer(decision: Decision) -> tuple[bool, str, str]:
    """Return the parts of a decision that the caller gets."""
    return decision.allowed, decision.reason.code, decision.message


def status(decision: Decision) -> Any:
    """Read the status annotation."""
    return orjson.loads(decision.pod["metadata"]["annotations"][STATUS_ANNOTATION])


def unclaimed(name: str = "trainer", **limits: str) -> dict[str, Any]:
    """Make a container with a GPU that no fabric lists."""
    return container(name, resources=quantities({"nvidia.com/gpu": "1", **limits}))


def closed(decision: Decision) -> dict[str, str]:
    """Map each mutation that the pipeline skipped for lack of a fabric to its reason code."""
    reasons = (
        *("FabricUnknown", "FabricAmbiguous", "ForeignNIC", "HostNetworkMissing"),
        "FabricNotNeeded",
    )
    return {
        outcome.mutation: outcome.reason.code
        for outcome in decision.outcomes
        if outcome.status == "skipped" and outcome.reason.code in reasons
    }


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"metadata": None, "spec": None},
        {"metadata": {"annotations": {}}, "spec": {"containers": [gpu()]}},
        {"metadata": {"annotations": {"rdma.lab/enable": "false"}}},
        {"metadata": {"annotations": {"rdma.lab/fabric": "nobody"}}, "spec": []},
    ],
    ids=case_name,
)
def test_a_pod_that_did_not_opt_in_is_not_touched(manifest: Any) -> None:
    """Such a pod is not read any further."""
    assert decide_on(manifest) == Decision(
        allowed=True, reason=NOT_OPTED_IN, message=NOT_OPTED_IN.clause, pod=manifest
    )


def test_a_mirror_pod_is_not_touched() -> None:
    """The kubelet runs the static pod regardless of changes to its mirror."""
    manifest = pod(annotations={"kubernetes.io/config.mirror": "hash"})
    decision = decide_on(manifest)
    assert answer(decision) == (
        True,
        "MirrorPod",
        "the pod only mirrors a static pod, so changes to the mirror have no effect",
    )
    assert (decision.patch, decision.pod) == ((), manifest)


@pytest.mark.parametrize(
    "spec",
    [
        {"os": {"name": "windows"}},
        {"nodeSelector": {"kubernetes.io/os": "windows"}},
        {"nodeSelector": {"beta.kubernetes.io/os": "windows"}},
    ],
    ids=case_name,
)
def test_a_windows_pod_gets_a_status_only(spec: dict[str, Any]) -> None:
    """Capabilities are invalid in such a pod; the status has the reason."""
    decision = decide_on(pod(**spec))
    assert answer(decision) == (
        True,
        "WindowsPod",
        "the pod runs on Windows, where Linux capabilities are invalid",
    )
    written = (
        '{"rdma":"no","because":"WindowsPod","fabric":null,"applied":[],"config":"0123456789ab"}'
    )
    assert decision.patch == (
        {"op": "add", "path": "/metadata/annotations/rdma.lab~1status", "value": written},
    )
    assert decide_on(decision.pod).patch == ()


@pytest.mark.parametrize("name", ["linux", None, 5])
def test_other_systems_are_decided(name: Any) -> None:
    """A pod that names no system, or an invalid one, counts as a Linux pod."""
    assert decide_on(pod(os={"name": name})).reason.code == "Patched"


def test_a_pod_may_be_decided_as_if_it_had_opted_in() -> None:
    """The preview uses this to show what opting in would do."""
    manifest = {"spec": {"containers": [gpu()]}}
    decision = decide_on(manifest, decision_input(assume_opted_in=True))
    assert decision.reason.code == "Patched"
    assert decision.patch[-1]["path"] == "/metadata"
    denied = decide_on(
        pod(annotations={"rdma.lab/enable": "yes"}), decision_input(assume_opted_in=True)
    )
    assert denied.reason.code == "InvalidAnnotation"


@pytest.mark.parametrize(
    ("manifest", "code", "message"),
    [
        (
            pod(annotations={"rdma.lab/enable": "yes"}),
            "InvalidAnnotation",
            'annotation rdma.lab/enable is \'yes\', but it must be "true" or "false"',
        ),
        (
            pod(annotations={"rdma.lab/containers": "x"}),
            "InvalidAnnotation",
            "annotation rdma.lab/containers names 'x', but the pod's containers are: trainer",
        ),
        (
            pod(annotations={"rdma.lab/fabric": "x"}),
            "InvalidAnnotation",
            "annotation rdma.lab/fabric names 'x', but the fabrics are: v100-ib, h100-roce",
        ),
        (
            pod(annotations={"rdma.lab/fabric": "h100-roce"}),
            "FabricConflict",
            (
                "annotation rdma.lab/fabric=h100-roce implies fabric h100-roce, "
                "but nvidia.com/v100 in container trainer implies fabric v100-ib; "
                "remove one of these two settings"
            ),
        ),
        (
            pod(container("a"), container("b"), annotations={"rdma.lab/fabric": "v100-ib"}),
            "ContainersRequired",
            (
                "annotation rdma.lab/fabric is set, but no container requests a GPU or an RDMA "
                "resource; set rdma.lab/containers to one or more of: a, b"
            ),
        ),
        (
            {**pod(), "spec": {"containers": [gpu(), 5]}},
            "InvalidPod",
            "spec.containers[1] must be a mapping, but is a number (5)",
        ),
        (
            pod(nodeSelector=[]),
            "InvalidPod",
            "spec.nodeSelector must be a mapping, but is a list ([])",
        ),
        (
            pod(nodeSelector={"pool": True}),
            "InvalidPod",
            "spec.nodeSelector.pool must be a string, but is a boolean (True)",
        ),
        (
            {"metadata": {"annotations": {"rdma.lab/enable": "true"}}, "spec": "x"},
            "InvalidPod",
            "spec must be a mapping, but is a string ('x')",
        ),
        (
            {"metadata": {"annotations": []}},
            "InvalidPod",
            "metadata.annotations must be a mapping, but is a list ([])",
        ),
        ([], "InvalidPod", "a pod must be a mapping, but is a list ([])"),
        (None, "InvalidPod", "a pod must be a mapping, but is a number (None)"),
    ],
    ids=case_name,
)
def test_a_pod_may_be_denied(manifest: Any, code: str, message: str) -> None:
    """The message names the mistake, and nothing is patched."""
    decision = decide_on(manifest)
    assert answer(decision) == (False, code, message)
    assert (decision.patch, decision.outcomes, decision.warnings) == ((), (), ())
    assert decision.pod is manifest


def test_all_wrong_values_are_named_at_once() -> None:
    """Of all containers and of nodeSelector; at most four."""
    limits = {"resources": {"limits": {"nvidia.com/v100": "x"}}}
    selector = dict.fromkeys("abc", "-")
    manifest = pod(container("a", **limits), container("b", **limits), nodeSelector=selector)
    problems = decide_on(manifest).message.split("; ")
    assert [problem.partition(":")[0] for problem in problems] == [
        'spec.containers[0].resources.limits["nvidia.com/v100"]',
        'spec.containers[1].resources.limits["nvidia.com/v100"]',
        "spec.nodeSelector.a",
        "spec.nodeSelector.b",
    ]


def test_no_depth_is_too_much_for_a_message() -> None:
    """The place is named, and not its content."""
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    manifest = pod(gpu(securityContext={"privileged": deep}))
    assert answer(decide(manifest, decision_input())) == (
        False,
        "InvalidPod",
        "spec.containers[0].securityContext.privileged must be true or false, but is a list",
    )


def test_a_defect_of_ours_is_raised() -> None:
    """The server then answers with HTTP 500, so that failurePolicy decides."""
    broken: Any = None
    unusable = DecisionInput(
        configuration=broken, namespace=NamespaceFacts(), fabric_index=FabricIndex()
    )
    with pytest.raises(AttributeError):
        decide(pod(), unusable)


def test_the_whole_set_is_applied_in_order() -> None:
    """The patch has the outcomes' operations in the mutations' order, and then the status."""
    manifest = pod(gpu(limits={"memory": "64Gi"}))
    before = deepcopy(manifest)
    decision = decide_on(manifest)
    assert manifest == before
    assert answer(decision) == (True, "Patched", "")
    assert (decision.fabric, decision.fabric_evidence) == (
        "v100-ib",
        "nvidia.com/v100 in container trainer",
    )
    assert list(dict.fromkeys(outcome.mutation for outcome in decision.outcomes)) == CHAIN
    of_outcomes = [op for outcome in decision.outcomes for op in outcome.ops]
    assert list(decision.patch[:-1]) == of_outcomes
    assert decision.patch[-1]["path"] == "/metadata/annotations/rdma.lab~1status"
    assert status(decision) == {
        "rdma": "yes",
        "because": "Equipped",
        "assumed": "RootAssumed",
        "fabric": "v100-ib",
        "applied": ["ipc-lock", "rdma-resources", "memory-limit", "env", "hcoll"],
        "config": HASH,
    }
    assert decision.warnings == ()
    assert decision.audit == {"rdma": "yes", "fabric": "v100-ib", "config": HASH}


def test_each_mutation_has_a_single_verdict_for_a_container() -> None:
    """A mutation may also warn any number of times."""
    decision = decide_on(pod(gpu("a"), container("b"), gpu("c", limits={"memory": "1Gi"})))
    verdicts = [
        (outcome.mutation, outcome.container)
        for outcome in decision.outcomes
        if outcome.status != "warned"
    ]
    assert len(set(verdicts)) == len(verdicts)
    assert {container for mutation, container in verdicts if mutation == "ipc-lock"} == {"a", "c"}


def test_deciding_again_finds_everything_in_place() -> None:
    """The second call adds no operation, and the status stays the same, byte for byte."""
    first = decide_on(defaulted(pod(gpu(limits={"memory": "64Gi"}))))
    second = decide_on(defaulted(first.pod))
    assert answer(second) == (True, "AlreadyPatched", "")
    assert second.patch == ()


def test_a_status_of_the_user_is_replaced() -> None:
    """A status that the user wrote is never read, but people would believe it."""
    decision = decide_on(pod(annotations={STATUS_ANNOTATION: '{"applied":["nvlink"]}'}))
    assert decision.patch[-1]["op"] == "replace"
    assert "nvlink" not in status(decision)["applied"]


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (pod(container()), "NoTarget"),
        (
            pod(container(resources={"claims": [{"name": "x"}]}), resourceClaims=[{"name": "x"}]),
            "GPUByClaim",
        ),
    ],
    ids=("none", "claim"),
)
def test_a_pod_without_targets_gets_a_status_only(manifest: PodManifest, reason: str) -> None:
    """The status and a warning both give the reason."""
    decision = decide_on(manifest)
    assert (decision.allowed, decision.reason.code, len(decision.patch)) == (True, reason, 1)
    assert decision.outcomes == ()
    assert status(decision) == {
        "rdma": "no",
        "because": reason,
        "fabric": None,
        "applied": [],
        "config": HASH,
    }
    assert decision.warnings == (f"rdma.lab: no RDMA: {decision.message}",)


#: The mutations by what they need; a new one goes to its list.
NEEDING_NIC = ["memory-limit"]
NEEDING_FABRIC = ["rdma-resources", "claims", "networks", "env", "config-files", "placement"]


def test_with_a_fabric_every_mutation_may_act() -> None:
    """If the fabric is known, no mutation is closed."""
    assert closed(decide_on(pod())) == {}


def test_with_a_foreign_nic_the_fabrics_mutations_are_closed() -> None:
    """Mutations that need a fabric are closed, although the GPU may belong to one."""
    decision = decide_on(pod(gpu(limits=EFA)))
    assert closed(decision) == dict.fromkeys(NEEDING_FABRIC, "ForeignNIC")
    assert answer(decision) == (
        True,
        "ForeignNIC",
        f"vpc.amazonaws.com/efa in container trainer is {CLAIMED_BY_NONE}",
    )
    assert decision.fabric is None
    assert [
        outcome.status for outcome in decision.outcomes if outcome.mutation == "shared-memory"
    ] == ["skipped"]
    assert decision.warnings[0] == (
        "rdma.lab: RDMA not certain: vpc.amazonaws.com/efa in container trainer is "
        "a NIC that no fabric lists; if it belongs t..."
    )


def test_the_user_may_declare_that_the_nic_is_the_fabrics() -> None:
    """With a named fabric and no devices, everything else is done."""
    annotations = {"rdma.lab/fabric": "v100-ib", "rdma.lab/devices": "0"}
    decision = decide_on(pod(gpu(limits=EFA), annotations=annotations))
    assert (answer(decision), closed(decision)) == ((True, "Patched", ""), {})
    assert outcomes_of(decision, "rdma-resources") == [
        ("trainer", "skipped", "NoDevices", 'rdma.lab/devices is "0"')
    ]
    for name, value in annotations.items():
        alone = decide_on(pod(gpu(limits=EFA), annotations={name: value}))
        assert alone.reason.code == "ForeignNIC"


def test_without_a_fabric_only_what_every_fabric_needs_is_done() -> None:
    """Mutations that need a fabric or its NIC are closed."""
    decision = decide_on(pod(unclaimed()))
    assert closed(decision) == dict.fromkeys(NEEDING_NIC + NEEDING_FABRIC, "FabricUnknown")
    assert answer(decision) == (
        True,
        "FabricUnknown",
        (
            "container trainer requests nvidia.com/gpu, which no fabric lists; "
            "request nvidia.com/v100 (v100-ib), nvidia.com/h100 (h100-roce), or add nvidia.com/gpu "
            "to gpuResources of the fabric that has it"
        ),
    )
    assert status(decision)["applied"] == ["ipc-lock", "hcoll"]
    assert status(decision)["because"] == "FabricUnknown"


TWO = (
    fabric("north", gpu_resources=frozenset({"nvidia.com/gpu"})),
    fabric("south", gpu_resources=frozenset({"nvidia.com/gpu"})),
)
FITS_TWO = "nvidia.com/gpu in container trainer matches north and south; set rdma.lab/fabric"


def test_an_ambiguous_fabric_is_as_unknown() -> None:
    """This is `onAmbiguous: skip`; the message explains how to choose."""
    decision = decide_on(pod(unclaimed()), decision_input(*TWO))
    assert answer(decision) == (True, "FabricAmbiguous", FITS_TWO)
    assert closed(decision) == dict.fromkeys(NEEDING_NIC + NEEDING_FABRIC, "FabricAmbiguous")
    assert decision.warnings == (f"rdma.lab: no RDMA: {FITS_TWO}",)


def test_an_ambiguous_fabric_may_be_denied() -> None:
    """This is `onAmbiguous: deny`, which never denies a pod without targets."""
    deny = decision_input(*TWO, defaults={"on_ambiguous": "deny"})
    assert answer(decide_on(pod(unclaimed()), deny)) == (False, "FabricAmbiguous", FITS_TWO)
    assert decide_on(pod(container()), deny).reason.code == "NoTarget"
    launching = pod(container(command=MPIRUN), nodeSelector={"kubernetes.io/hostname": "n"})
    nodes = FabricIndex(by_node={"n": frozenset({"north", "south"})})
    two_fabrics = decision_input(*TWO, defaults={"on_ambiguous": "deny"}, fabric_index=nodes)
    assert (
        decide_on(launching, two_fabrics).allowed,
        decide_on(launching, two_fabrics).reason.code,
    ) == (
        True,
        "Patched",
    )
    assert closed(decide_on(launching, two_fabrics)) == {"env": "FabricNotNeeded"}


REMOTE = [*MPIRUN[:1], "--hostfile", "/etc/mpi/hostfile", *MPIRUN[1:]]


def test_a_launcher_gets_env_and_hcoll_only() -> None:
    """A launcher never gets a resource or a capability, and the outcome has the evidence for it."""
    launching = container("launcher", command=REMOTE)
    decision = decide_on(pod(launching, annotations={"rdma.lab/fabric": "v100-ib"}))
    assert answer(decision) == (True, "Patched", "")
    assert {outcome.mutation for outcome in decision.outcomes} == {REQUEST_CHECK, "env", "hcoll"}
    patched = decision.pod["spec"]["containers"][0]
    assert patched.keys() - launching.keys() == {"env"}
    assert outcomes_of(decision, REQUEST_CHECK) == [
        (
            "launcher",
            "skipped",
            "TakenForLauncher",
            (
                "treated as a launcher because of the mpirun --hostfile in its command; "
                "its ranks run in other pods"
            ),
        )
    ]
    assert status(decision)["skipped"] == ["TakenForLauncher"]


def test_a_launcher_needs_no_fabric() -> None:
    """Its workers have one: a launcher without a fabric is not a problem."""
    decision = decide_on(pod(container("launcher", command=REMOTE)))
    assert (answer(decision), decision.warnings) == ((True, "Patched", ""), ())
    assert closed(decision) == {"env": "FabricNotNeeded"}
    assert status(decision)["skipped"] == ["TakenForLauncher"]


def test_a_launcher_that_may_run_its_ranks_itself_gets_a_hint() -> None:
    """Without hosts it is unknown where they run; with a named fabric, the pod is a target."""
    decision = decide_on(pod(container("osu", command=MPIRUN)))
    assert outcomes_of(decision, REQUEST_CHECK)[0][3] == (
        "treated as a launcher because of the mpirun in its command; "
        "if its ranks run in this pod, set rdma.lab/fabric"
    )
    named = pod(container("osu", command=MPIRUN), annotations={"rdma.lab/fabric": "v100-ib"})
    decision = decide_on(named)
    assert outcomes_of(decision, REQUEST_CHECK) == []
    assert outcomes_of(decision, "rdma-resources")[0][:3] == ("osu", "applied", "Added")
    assert outcomes_of(decision, "ipc-lock")[0][:3] == ("osu", "applied", "Added")
    assert decide_on(defaulted(decision.pod)).patch == ()


def test_labels_that_no_node_has_are_warned_of() -> None:
    """A pod that requires such a label stays pending; a pod without targets is not checked."""
    manifest = pod(nodeSelector={"pool": "a"})
    nodes = FabricIndex(by_node={"n": frozenset()}, label_keys=frozenset({"zone"}))
    decision = decide_on(manifest, decision_input(V100, fabric_index=nodes))
    assert outcomes_of(decision, REQUEST_CHECK) == [
        ("", "warned", "SelectorUnknown", "no node has the label pool, which the pod requires")
    ]
    idle = pod(container(), nodeSelector={"pool": "a"})
    assert (
        outcomes_of(decide_on(idle, decision_input(V100, fabric_index=nodes)), REQUEST_CHECK) == []
    )


HOST = fabric("host", mode="host-network", gpu_resources=V100.gpu_resources, env=V100.env)


def test_a_host_network_fabric_is_for_pods_in_it() -> None:
    """Other pods get a warning and what needs no fabric, and keep their memory limit."""
    decision = decide_on(pod(), decision_input(HOST))
    needing = (*NEEDING_FABRIC, "memory-limit")
    assert closed(decision) == dict.fromkeys(needing, "HostNetworkMissing")
    assert answer(decision) == (True, "Patched", "")
    assert decision.warnings == (
        "rdma.lab: no RDMA: fabric host needs hostNetwork: true, which the pod lacks",
    )
    assert closed(decide_on(pod(hostNetwork=True), decision_input(HOST))) == {}


def test_a_launcher_needs_no_host_network() -> None:
    """Its workers need it; a pod without targets gets no warning about it."""
    launching = container(command=["mpirun", "-np", "2", "--hostfile", "/etc/mpi/hostfile", "a"])
    decision = decide_on(
        pod(launching, annotations={"rdma.lab/fabric": "host"}), decision_input(HOST)
    )
    assert [code for _, _, code, _ in outcomes_of(decision, REQUEST_CHECK)] == ["TakenForLauncher"]
    assert "HostNetworkMissing" in closed(decision).values()


def test_a_mutation_may_be_skipped_by_name() -> None:
    """This is checked before everything else."""
    manifest = pod(unclaimed(), annotations={"rdma.lab/skip": "env,ipc-lock"})
    decision = decide_on(manifest)
    message = "the pod lists this mutation in rdma.lab/skip"
    for name in ("env", "ipc-lock"):
        assert outcomes_of(decision, name) == [("", "skipped", "SkippedByUser", message)]
    assert status(decision)["skipped"] == ["SkippedByUser"]


def test_all_may_be_skipped() -> None:
    """Then only the status is written."""
    manifest = pod(annotations={"rdma.lab/skip": ",".join(CHAIN)})
    decision = decide_on(manifest)
    assert {outcome.reason.code for outcome in decision.outcomes} == {"SkippedByUser"}
    assert len(decision.outcomes) == len(MUTATIONS)
    assert len(decision.patch) == 1


def test_unknown_annotations_are_warned_of() -> None:
    """The warning is about the pod's request, so its outcome is `request`'s."""
    decision = decide_on(pod(annotations={"rdma.lab/enabled": "true"}))
    message = "unknown annotation 'rdma.lab/enabled' (did you mean rdma.lab/enable?)"
    assert outcomes_of(decision, REQUEST_CHECK) == [("", "warned", "UnknownAnnotation", message)]
    assert decision.warnings == (f"rdma.lab: request: {message}",)
    assert status(decision)["warned"] == ["UnknownAnnotation"]


def test_an_unknown_namespace_is_warned_of() -> None:
    """Until the namespace is known, its default is not used and limits are kept."""
    namespace = NamespaceFacts(
        name="lab", is_loaded=False, annotations={"rdma.lab/fabric": "v100-ib"}
    )
    decision = decide_on(
        pod(container(), annotations={"rdma.lab/containers": "trainer"}),
        decision_input(namespace=namespace),
    )
    assert decision.reason.code == "FabricUnknown"
    assert outcomes_of(decision, REQUEST_CHECK) == [
        (
            "",
            "warned",
            "NamespaceUnknown",
            (
                "nothing is known about namespace lab, so memory limits stay and its "
                "rdma.lab/fabric is ignored"
            ),
        )
    ]
    assert status(decision)["warned"] == ["NamespaceUnknown"]


def claiming(*claims: str) -> PodManifest:
    """Make a pod that names ResourceClaims."""
    listed = [
        {"name": f"c{place}", "resourceClaimName": claim} for place, claim in enumerate(claims)
    ]
    return pod(gpu(), resourceClaims=listed)


def test_unknown_claims_are_warned_of() -> None:
    """If a fabric has claims; at most the first three."""
    dra = replace(V100, claim_templates=(ClaimTemplateReference(template="nics"),))
    namespace = NamespaceFacts(name="lab", claim_facts=ClaimFacts(claims={"mine": {}}))
    cluster = decision_input(dra, namespace=namespace)
    manifest = claiming("mine", "a", "b", "a", "c", "d")
    warned = [
        outcome
        for outcome in outcomes_of(decide_on(manifest, cluster), REQUEST_CHECK)
        if outcome[1] == "warned"
    ]
    assert warned == [
        (
            "",
            "warned",
            "ClaimUnknown",
            (
                f"ResourceClaim {name} could not be read, so its devices were guessed from the "
                "names in the pod"
            ),
        )
        for name in "abc"
    ]
    assert outcomes_of(decide_on(claiming("mine"), cluster), REQUEST_CHECK) == []
    assert (
        outcomes_of(decide_on(manifest, decision_input(namespace=namespace)), REQUEST_CHECK) == []
    )


@pytest.mark.parametrize("name", ["nowhere", ["v100-ib"]], ids=case_name)
def test_a_namespace_that_names_no_fabric_is_warned_of(name: Any) -> None:
    """A wrong annotation would go unnoticed; a pod with a fabric gets no warning."""
    namespace = NamespaceFacts(name="lab", annotations={"rdma.lab/fabric": name})
    manifest = pod(unclaimed("a"), annotations={"rdma.lab/containers": "a"})
    decision = decide_on(manifest, decision_input(namespace=namespace))
    message = f"the namespace's annotation rdma.lab/fabric is {name!r}, which is not a fabric"
    assert outcomes_of(decision, REQUEST_CHECK) == [("", "warned", "NamespaceFabric", message)]
    assert outcomes_of(decide_on(pod(), decision_input(namespace=namespace)), REQUEST_CHECK) == []


def test_a_fabric_in_a_label_of_the_namespace_is_warned_of() -> None:
    """Only the annotation counts; with a fabric of the pod's own, nothing is missing."""
    key = "rdma.lab/fabric"
    manifest = pod(unclaimed("a"), annotations={"rdma.lab/containers": "a"})
    labeled = NamespaceFacts(name="lab", labels={key: "v100-ib"})
    message = f"the namespace has {key} as a label, but it must be an annotation"
    decision = decide_on(manifest, decision_input(namespace=labeled))
    assert outcomes_of(decision, REQUEST_CHECK) == [("", "warned", "NamespaceFabric", message)]
    annotated = replace(labeled, annotations={key: "v100-ib"})
    for cluster, other in (
        (decision_input(namespace=annotated), manifest),
        (decision_input(namespace=labeled), pod(gpu())),
        (decision_input(namespace=NamespaceFacts(name="lab", labels={})), manifest),
        (decision_input(namespace=NamespaceFacts(name="lab", labels=None)), manifest),
    ):
        assert outcomes_of(decide_on(other, cluster), REQUEST_CHECK) == []


def test_another_injector_is_warned_of() -> None:
    """The pod could get what both webhooks add twice."""
    decision = decide_on(pod(annotations={"rdma.ome.io/auto-inject": "true"}))
    message = "annotation rdma.ome.io/auto-inject also requests RDMA from another webhook"
    assert outcomes_of(decision, REQUEST_CHECK) == [("", "warned", "OtherInjector", message)]


def test_an_unknown_fabric_is_denied_even_without_targets() -> None:
    """A fabric that does not exist is a mistake in any pod."""
    manifest = pod(annotations={"rdma.lab/fabric": "nowhere"})
    manifest["spec"]["containers"] = []
    assert decide_on(manifest).reason.code == "InvalidAnnotation"


def test_many_containers_cost_no_more_than_they_must() -> None:
    """Each container has its outcomes, and the warnings stay within their limit."""
    containers = [
        gpu(f"c{index:04}", env=[{"name": "UCX_TLS", "value": "tcp"}]) for index in range(100)
    ]
    decision = decide_on(pod(*containers))
    assert len(outcomes_of(decision, "ipc-lock")) == 100
    assert sum(map(len, decision.warnings)) < 4096
    assert decision.warnings[-1] == "rdma.lab: more in annotation rdma.lab/status"
    assert len(decision.pod["metadata"]["annotations"][STATUS_ANNOTATION]) < 4096


@pytest.mark.parametrize("name", ["训练", "", "a\nb", "é" * 63])
def test_any_name_of_a_container_will_do(name: str) -> None:
    """The API server rejects invalid names itself; each warning stays a single line of ASCII."""
    decision = decide_on(pod(gpu(name, securityContext={"runAsUser": 5})))
    assert decision.allowed
    assert len(decision.warnings) == 2
    assert all(warning.isascii() and warning.isprintable() for warning in decision.warnings)
    assert max(map(len, decision.warnings)) <= 120


def test_two_containers_of_equal_name_both_get_the_set() -> None:
    """The API server rejects such a pod afterwards."""
    decision = decide_on(pod(gpu("a"), gpu("a")))
    assert [patched["securityContext"] for patched in decision.pod["spec"]["containers"]] == [
        {"capabilities": {"add": ["IPC_LOCK"]}}
    ] * 2


@pytest.mark.parametrize("variable", ["OMPI_MCA_btl", "HYDRA_HOST_FILE", "K_MPI_JOB_ROLE"])
@pytest.mark.parametrize("command", [["train"], ["/usr/sbin/sshd", "-D"], ["mpirun", "-version"]])
def test_what_the_site_writes_makes_no_launcher(variable: str, command: list[str]) -> None:
    """A pod that names its fabric has the same target on the second call."""
    env = FabricEnv(
        library_variables=(("NCCL_IB_HCA", "=mlx5_0"),), site_variables=((variable, "launcher"),)
    )
    cluster = decision_input(fabric("lab", env=env))
    manifest = pod(
        container(command=command),
        annotations={"rdma.lab/fabric": "lab", "rdma.lab/devices": "0"},
    )
    first = decide_on(manifest, cluster)
    assert variable in outcomes_of(first, "env")[0][3]
    second = decide_on(defaulted(first.pod), cluster)
    assert second.patch == ()
    before, after = (
        [
            (outcome.mutation, outcome.container)
            for outcome in decision.outcomes
            if outcome.status != "warned"
        ]
        for decision in (first, second)
    )
    assert after == before
    for decision in (first, second):
        file_outcomes = {
            (status, code) for _, status, code, _ in outcomes_of(decision, "config-files")
        }
        expected = ("applied", "Mounted") if decision is first else ("already", "Present")
        assert file_outcomes == {expected if "sshd" in command[0] else ("skipped", "NotNeeded")}


_LIMITS = 'spec.containers[0].resources.limits["{}"]: '


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (
            pod(gpu(limits={"nvidia.com/roce_vf": f"-{MAX_QUANTITY}"}), gpu("b")),
            (
                f"{_LIMITS.format('nvidia.com/roce_vf')}'-{MAX_QUANTITY}' is negative, "
                "and a resource's quantity cannot be"
            ),
        ),
        (
            pod(gpu(limits={"nvidia.com/roce_vf": "9" * 65})),
            (
                f"{_LIMITS.format('nvidia.com/roce_vf')}'{'9' * 65}' is longer than any "
                "quantity (64 characters)"
            ),
        ),
        (
            pod(gpu(limits={"memory": "1e60"}), resources={"limits": {"memory": "1e61"}}),
            (
                "spec.containers[0].resources.limits.memory: '1e60' is more than 2^63-1, "
                "the largest quantity"
            ),
        ),
        (
            pod(gpu(), resources={"limits": {"memory": 10**5000}}),
            (
                "spec.resources.limits.memory: a number of 16610 bits is more than 2^63-1, "
                "the largest quantity"
            ),
        ),
        (
            pod(
                gpu(resources={"limits": {"nvidia.com/v100": 1}, "requests": {"memory": "-1Gi"}}),
                resources={"limits": {"memory": "1Gi"}},
                annotations={"rdma.lab/memory-limit": "drop"},
            ),
            (
                "spec.containers[0].resources.requests.memory: '-1Gi' is negative, "
                "and a resource's quantity cannot be"
            ),
        ),
        (
            pod(annotations={"rdma.lab/devices": 10**5000}),
            (
                "annotation rdma.lab/devices is a number (too many digits to be shown), but it "
                "must be a whole number of RDMA devices for each container, 0 for none, in quotes"
            ),
        ),
    ],
    ids=case_name,
)
def test_a_quantity_never_breaks_a_decision(manifest: PodManifest, says: str) -> None:
    """An unusable quantity is denied with its place, regardless of its size."""
    decision = decide_on(manifest, decision_input(ROCE))
    assert (decision.allowed, decision.message) == (False, says)


def test_the_largest_quantities_are_counted() -> None:
    """The sum of two memory limits of 2^63-1 is larger than that, and is written in full."""
    pod_resources = {"limits": {"memory": str(MAX_QUANTITY)}}
    manifest = pod(
        gpu("a", limits={"memory": str(MAX_QUANTITY)}),
        gpu("b", limits={"memory": str(MAX_QUANTITY)}),
        resources=pod_resources,
    )
    decision = decide_on(manifest, decision_input(ROCE))
    assert decision.pod["spec"]["resources"]["requests"]["memory"] == str(2 * MAX_QUANTITY)
    assert decide_on(decision.pod, decision_input(ROCE)).patch == ()


def test_a_preset_status_is_removed_where_ours_has_no_room() -> None:
    """The user's status would be wrong, so it is removed; a second call has nothing to do."""
    preset = f'{{"fabric":null,"applied":10,"config":"{HASH}"}}'
    manifest = pod(annotations={STATUS_ANNOTATION: preset, "note": ""})
    sizes = sum(map(len, [*manifest["metadata"]["annotations"], preset, "true"]))
    manifest["metadata"]["annotations"]["note"] = "x" * (MAX_ANNOTATIONS_SIZE - sizes)
    decision = decide_on(manifest)
    assert decision.allowed
    assert STATUS_ANNOTATION not in decision.pod["metadata"]["annotations"]
    assert decision.patch[-1] == {"op": "remove", "path": "/metadata/annotations/rdma.lab~1status"}
    assert decide_on(decision.pod).patch == ()


def test_the_longest_status_of_all_has_room() -> None:
    """The status has room for every mutation with all its reasons, without shortening a list."""
    body = {"rdma": "unsure", "because": "x" * 32, "fabric": "x" * 63, "reason": "x" * 32}
    lists = {"applied": CHAIN, "skipped": VOCABULARY.codes, "config": HASH}
    written = orjson.dumps(body | lists)
    assert len(written) < MAX_STATUS_LENGTH


def noted(
    manifest: PodManifest, cluster: DecisionInput | None = None
) -> list[tuple[str, str, str]]:
    """List the warnings of `request`: container, code and sentence."""
    return [
        (container, code, message)
        for container, _, code, message in outcomes_of(decide_on(manifest, cluster), REQUEST_CHECK)
    ]


def test_a_sidecar_between_the_ranks_is_warned_of() -> None:
    """The warning names the request for it; pods without targets, and launchers, get none."""
    sentence = 'Istio ({}) proxies TCP; set sidecar.istio.io/inject: "false"'
    labels = {"sidecar.istio.io/inject": "true"}
    message = sentence.format("label sidecar.istio.io/inject")
    assert noted(pod(labels=labels)) == [("", "IstioSidecar", message)]
    meshed = NamespaceFacts(name="lab", labels={"istio-injection": "enabled"})
    message = sentence.format("namespace label istio-injection")
    assert noted(pod(), decision_input(namespace=meshed)) == [("", "IstioSidecar", message)]
    assert noted(pod(container()), decision_input(namespace=meshed)) == []
    longest = pod(annotations=labels)
    assert not any(line.endswith("...") for line in decide_on(longest).warnings)


def test_dns_in_the_hosts_network_is_warned_of() -> None:
    """Ranks could not resolve each other by the name of a Service."""
    message = "with hostNetwork, Service names resolve only with dnsPolicy: ClusterFirstWithHostNet"
    assert noted(pod(hostNetwork=True)) == [("", "HostNetworkDNS", message)]
    assert noted(pod(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")) == []
    launcher = container(command=["mpirun", "a.out"])
    codes = [code for _, code, _ in noted(pod(launcher, hostNetwork=True))]
    assert codes == ["TakenForLauncher", "HostNetworkDNS"]


def test_devices_by_host_path_are_warned_of() -> None:
    """Only a privileged container may open a device that no device plugin gave it."""
    mounts = [{"name": "ib", "mountPath": "/dev/infiniband"}]
    volumes = [{"name": "ib", "hostPath": {"path": "/dev/infiniband"}}]
    message = (
        "hostPath /dev/infiniband shows devices, but only a device plugin's resource gives access"
    )
    manifest = pod(gpu("a", volumeMounts=mounts), gpu("b"), volumes=volumes)
    assert noted(manifest) == [("a", "HostPathDevices", message)]
    free = gpu(volumeMounts=mounts, securityContext={"privileged": True})
    assert noted(pod(free, volumes=volumes)) == []
