"""Pods above certain sizes are denied, with a message that names the largest part."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, decide_on, decision_input, gpu, pod
from tests.case_names import case_name
from webhook.decide.limits import MAX_CONTAINERS, MAX_ENTRIES

REMEDY = "split the pod, or remove the annotation rdma.lab/enable"
#: The entries that every pod here also has: an annotation and a GPU.
BESIDES = 2
HERE = "spec.containers[0]"
SPARE = MAX_ENTRIES - BESIDES


def affinity(*terms: Any) -> dict[str, Any]:
    """Make a required node affinity with these terms."""
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def pod_with(**fields: Any) -> dict[str, Any]:
    """Make a pod with a single container that has these fields."""
    return pod(gpu(**fields))


def sized(count: int) -> dict[str, tuple[dict[str, Any], str]]:
    """Make pods with `count` entries in a single place each, and name the place."""
    names = [str(number) for number in range(count)]
    mounts = [{"name": "v", "mountPath": f"/{name}"} for name in names]
    networks = {"k8s.v1.cni.cncf.io/networks": ",".join(names)}
    claims = [{"name": f"gpu-{name}"} for name in names]
    amounts = {"nvidia.com/v100": 1}
    keys = [{"key": name, "operator": "Exists"} for name in names]
    values = {"key": "a", "operator": "In", "values": names[1:]}
    return {
        "annotations": (pod(annotations=dict.fromkeys(names, "")), "annotations"),
        "networks": (pod(annotations=networks), "annotation k8s.v1.cni.cncf.io/networks"),
        "env": (pod_with(env=[{"name": name} for name in names]), HERE),
        "mounts": (pod_with(volumeMounts=mounts), HERE),
        "command": (pod_with(command=names), HERE),
        "args": (pod_with(args=names), HERE),
        "limits": (pod_with(limits=dict.fromkeys(names, 1)), HERE),
        "requests": (
            pod_with(resources={"limits": amounts, "requests": dict.fromkeys(names, 1)}),
            HERE,
        ),
        "claims": (pod_with(resources={"limits": amounts, "claims": claims}), HERE),
        "add": (pod_with(securityContext={"capabilities": {"add": names}}), HERE),
        "drop": (pod_with(securityContext={"capabilities": {"drop": names}}), HERE),
        "nodeSelector": (pod(nodeSelector=dict.fromkeys(names, "")), "nodeSelector"),
        "resourceClaims": (pod(resourceClaims=claims), "resourceClaims"),
        "tolerations": (pod(tolerations=[{"key": name} for name in names]), "tolerations"),
        "terms": (pod(affinity=affinity(*[{} for _ in names])), "affinity"),
        "expressions": (pod(affinity=affinity({"matchExpressions": keys[1:]})), "affinity"),
        "fields": (pod(affinity=affinity({"matchFields": keys[1:]})), "affinity"),
        "values": (pod(affinity=affinity({"matchExpressions": [values]})), "affinity"),
        "volumes": (pod(volumes=[{"name": name} for name in names]), "volumes"),
    }


PLACES = sorted(sized(2))
#: Corrections to the count: an expression that has values also counts itself.
FREE = {"values": -1}


@pytest.mark.parametrize("place", PLACES)
def test_a_pod_of_the_largest_size_is_decided(place: str) -> None:
    """A pod exactly at the bound is decided, whichever list has the entries."""
    manifest, _ = sized(SPARE + FREE.get(place, 0))[place]
    assert decide_on(manifest).reason.code != "PodTooLarge"


def test_a_second_call_is_decided() -> None:
    """What the first call added does not count against the bound; much more does."""
    manifest, _ = sized(SPARE)["tolerations"]
    patched = decide_on(manifest).pod
    assert decide_on(patched).reason.code == "AlreadyPatched"
    patched["spec"]["tolerations"] = [{"key": "a"}] * (MAX_ENTRIES + 25 * MAX_CONTAINERS)
    assert decide_on(patched).reason.code == "PodTooLarge"


@pytest.mark.parametrize("place", PLACES)
def test_one_entry_more_is_refused(place: str) -> None:
    """The denial has the number of entries, the place with the most, and the remedy."""
    manifest, largest_place = sized(SPARE + 1 + FREE.get(place, 0))[place]
    decision = decide_on(manifest)
    assert (decision.allowed, decision.reason.code) == (False, "PodTooLarge")
    begin, end = (
        f"the pod's lists have more than {MAX_ENTRIES} entries, ",
        f" of them in {largest_place}; {REMEDY}",
    )
    assert decision.message.startswith(begin)
    assert decision.message.endswith(end)
    reported = int(decision.message.removeprefix(begin).removesuffix(end))
    assert 0 < reported <= MAX_ENTRIES + 1


@pytest.mark.parametrize("place", PLACES)
def test_far_too_many_are_refused_too(place: str) -> None:
    """A pod far above the bound is denied without looking at each entry."""
    decision = decide_on(sized(2 * MAX_ENTRIES)[place][0])
    assert (decision.allowed, decision.reason.code) == (False, "PodTooLarge")


def test_entries_of_all_lists_count_together() -> None:
    """The message names the container with the most entries, and the sum of all its lists."""
    env = [{"name": str(number)} for number in range(3_000)]
    decision = decide_on(pod(gpu("a", env=env), gpu("b", env=env, args=["x"] * 2_000)))
    assert decision.message == (
        f"the pod's lists have more than 5000 entries, 5001 of them in spec.containers[1]; {REMEDY}"
    )


@pytest.mark.parametrize("field", ["containers", "initContainers", "ephemeralContainers"])
def test_containers_of_all_kinds_are_bounded(field: str) -> None:
    """Containers of all kinds count together, including the one in every pod here."""

    def having(count: int) -> dict[str, Any]:
        additional = [container(f"c{index}") for index in range(count)]
        if field == "containers":
            return pod(gpu(), *additional)
        manifest = pod()
        manifest["spec"][field] = additional
        return manifest

    assert decide_on(having(MAX_CONTAINERS - 1)).allowed
    decision = decide_on(having(MAX_CONTAINERS))
    assert (decision.allowed, decision.reason.code, decision.message) == (
        False,
        "PodTooLarge",
        f"the pod has 101 containers, but at most 100 are read; {REMEDY}",
    )


def test_who_did_not_opt_in_is_not_counted() -> None:
    """A pod that did not opt in is never denied for its size."""
    manifest = pod(*[gpu(f"c{index}") for index in range(MAX_CONTAINERS + 1)])
    del manifest["metadata"]["annotations"]["rdma.lab/enable"]
    assert decide_on(manifest).reason.code == "NotOptedIn"


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": {"a": {"projected": []}}},
        {"volumes": ["x", {"projected": "x"}, {"projected": {"sources": ["x"]}}]},
        {"affinity": affinity("x", {"matchExpressions": ["x"]})},
        {"affinity": affinity({"matchExpressions": 5, "matchFields": "x"})},
        {"affinity": 5},
        {"containers": ["x"]},
        {"containers": "x"},
        {"containers": [gpu(env={"a": "b"})]},
        {"containers": [gpu(securityContext={"capabilities": None})]},
    ],
    ids=case_name,
)
def test_what_is_no_list_is_left_to_its_reader(spec: dict[str, Any]) -> None:
    """A value that is not a list is left to the code that reads it, whose message has the place."""
    manifest = pod()
    manifest["spec"] |= spec
    assert decide_on(manifest).reason.code in ("InvalidPod", "Patched")


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"env": 1}, "env must be a list, but is a number (1)"),
        ({"volumeMounts": True}, "volumeMounts must be a list, but is a boolean (True)"),
        ({"command": 1}, "command must be a list, but is a number (1)"),
        ({"args": 1.5}, "args must be a list, but is a number (1.5)"),
        ({"resources": "x"}, "resources must be a mapping, but is a string ('x')"),
        ({"resources": {"limits": 1}}, "resources.limits must be a mapping, but is a number (1)"),
        ({"resources": {"requests": 1}}, "resources.requests must be a mapping, but is a number"),
        ({"resources": {"claims": 1}}, "resources.claims must be a list, but is a number (1)"),
        ({"securityContext": "x"}, "securityContext must be a mapping, but is a string ('x')"),
        (
            {"securityContext": {"capabilities": 1}},
            "securityContext.capabilities must be a mapping, but is a number (1)",
        ),
        (
            {"securityContext": {"capabilities": {"add": 1}}},
            "securityContext.capabilities.add must be a list, but is a number (1)",
        ),
        (
            {"securityContext": {"capabilities": {"drop": 1}}},
            "securityContext.capabilities.drop must be a list, but is a number (1)",
        ),
    ],
    ids=case_name,
)
def test_what_cannot_be_counted_is_refused_with_its_place(
    fields: dict[str, Any], place: str
) -> None:
    """A container whose lists cannot be counted is not read any further."""
    decision = decide_on(pod(gpu(), container("b", **fields)))
    assert (decision.allowed, decision.reason.code) == (False, "InvalidPod")
    assert decision.message.startswith(f"spec.containers[1].{place}")


@pytest.mark.parametrize("spec", [{}, {"spec": None}, {"spec": {}}, {"spec": {"containers": None}}])
def test_a_pod_without_a_spec_has_nothing_to_count(spec: dict[str, Any]) -> None:
    """The API server rejects such a pod; the webhook has nothing to do."""
    decision = decide_on({"metadata": pod()["metadata"], **spec})
    assert (decision.allowed, decision.reason.code) == (True, "NoTarget")


def projecting(count: int) -> list[dict[str, Any]]:
    """Make pods that lose their memory limit and have `count` entries to read in their volumes."""
    entries = [{"path": str(number)} for number in range(count)]
    half = [{"downwardAPI": {"items": [file]}} for file in entries[: count // 2]]
    volumes = (
        [{"name": "v", "downwardAPI": {"items": entries}}],
        [{"name": "v", "projected": {"sources": [{"secret": {}} for _ in entries]}}],
        [{"name": "v", "projected": {"sources": half}}],
        [{"name": "v", "downwardAPI": {"items": [file]}} for file in entries[:2000]]
        + [{"name": "w", "downwardAPI": {"items": entries[2000:]}}],
    )
    return [pod(gpu(limits={"memory": "1Gi"}), volumes=list(variant)) for variant in volumes]


def test_what_volumes_project_is_bounded_where_it_is_read() -> None:
    """This bound is separate: volumes are read only for pods that lose their memory limit."""
    for manifest in projecting(MAX_ENTRIES):
        assert decide_on(manifest).allowed
    for manifest in projecting(MAX_ENTRIES + 2):
        decision = decide_on(manifest)
        assert (decision.allowed, decision.reason.code) == (False, "PodTooLarge")
        reported = int(decision.message.partition(", ")[2].partition(" ")[0])
        assert decision.message == (
            f"the pod's lists have more than {MAX_ENTRIES} entries, "
            f"{reported} of them in projected volume items; {REMEDY}"
        )
        assert MAX_ENTRIES < reported <= MAX_ENTRIES + 2
        assert decide_on(manifest, decision_input(defaults={"memory_limit": "keep"})).allowed


@pytest.mark.parametrize(
    ("manifest", "place"),
    [
        (pod(gpu("x" * 64)), "spec.containers[0].name"),
        (pod(gpu(), initContainers=[container("x" * 64)]), "spec.initContainers[0].name"),
        (pod(gpu(), resourceClaims=[{}, {"name": "x" * 64}]), "spec.resourceClaims[1].name"),
    ],
    ids=["container", "init container", "claim"],
)
def test_a_long_name_is_refused(manifest: dict[str, Any], place: str) -> None:
    """The API server would refuse it later, but messages repeat it."""
    decision = decide_on(manifest)
    assert (decision.allowed, decision.reason.code) == (False, "InvalidPod")
    assert decision.message == f"{place} must have at most 63 characters, but has 64"


def test_a_name_of_the_largest_length_is_decided() -> None:
    """A name may have 63 characters; the type of a name is checked elsewhere."""
    claims = [{"name": "x" * 63}, {"name": None}]
    assert decide_on(pod(gpu("x" * 63), resourceClaims=claims)).allowed
