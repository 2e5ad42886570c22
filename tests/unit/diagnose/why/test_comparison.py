"""The status compared with what the pod carries now: `why` compares, it does not believe."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import (
    H100,
    V100,
    container,
    decide_on,
    decision_input,
    env,
    fabric,
    fabrics,
    gpu,
    quantities,
)
from tests.builders import pod as new_pod
from tests.unit.diagnose.why.pods import chapter_findings, explain, namespace
from tests.unit.diagnose.why.test_answer import RDMA, log
from webhook.diagnose.why.explanation import Explanation
from webhook.model.claims import ClaimFacts
from webhook.model.fabric import ClaimTemplateReference, CompiledConfiguration, FabricEnv
from webhook.model.facts import PSA_ENFORCE, Facts, NamespaceFacts
from webhook.model.finding import Finding
from webhook.model.nodes import FabricIndex, Node, build_fabric_index

Item = dict[str, Any]
KNOWN_CONFIGURATION = fabrics()
KEEP = {"rdma.lab/memory-limit": "keep"}
each_knowledge = pytest.mark.parametrize(
    "cluster_configuration", [KNOWN_CONFIGURATION, None], ids=["known", "unknown"]
)


def equipped(*containers: Item, **fields: Any) -> Item:
    """Return a pod as the webhook leaves it."""
    pod: Item = deepcopy(decide_on(new_pod(*containers, **fields)).pod)
    pod["kind"] = "Pod"
    return pod


def main(pod: Item) -> Item:
    """Return the pod's container."""
    container: Item = pod["spec"]["containers"][0]
    return container


def explain_with(
    pod: Item, cluster_configuration: CompiledConfiguration | None, **evidence: Any
) -> Explanation:
    """Explain a pod in a labeled namespace, with the cluster's configuration or without."""
    return explain(
        pod, namespace=namespace(), cluster_configuration=cluster_configuration, **evidence
    )


def changes(explanation: Explanation) -> list[Finding]:
    """Return the findings on what was changed afterwards."""
    findings = chapter_findings(explanation, "applied")
    return [finding for finding in findings if finding.code == "ChangedAfterwards"]


@each_knowledge
@pytest.mark.parametrize(
    "pod",
    [
        equipped(),
        equipped(gpu("trainer", limits={"memory": "8Gi"})),
        equipped(gpu("trainer", env=env(NCCL_IB_HCA="=mlx5_0"))),
        equipped(gpu("trainer", command=["/usr/sbin/sshd", "-D"])),
        equipped(annotations={"rdma.lab/skip": "ipc-lock,env,hcoll"}),
        equipped(annotations={"rdma.lab/devices": "0"}),
        equipped(
            gpu("trainer", limits={"memory": "8Gi"}), annotations={"rdma.lab/memory-limit": "keep"}
        ),
        equipped({"name": "cpu", "image": "x"}),
    ],
    ids=str,
)
def test_a_pod_as_it_was_left(
    pod: Item, cluster_configuration: CompiledConfiguration | None
) -> None:
    """Nothing was changed, whether the configuration is known or not."""
    explanation = explain_with(pod, cluster_configuration)
    status = decide_on(pod).verdict
    assert status is not None
    assert changes(explanation) == []
    assert (explanation.rdma, explanation.answer.code) == (status.rdma, status.because.code)


def remarks(pod: Item, cluster_configuration: CompiledConfiguration | None) -> dict[str, str]:
    """Return the findings on what the webhook did, by code."""
    findings = chapter_findings(explain_with(pod, cluster_configuration), "applied")
    return {finding.code: finding.text for finding in findings}


def test_the_own_values_of_containers_are_named() -> None:
    """The status has only the code; the configuration shows the variable and both values."""
    own = env(NCCL_IB_HCA="=mlx5_0")
    pod = equipped(gpu("a", env=own), gpu("b", env=[*own, *env(UCX_TLS="tcp")]))
    kept = "kept your NCCL_IB_HCA==mlx5_0; the value of fabric v100-ib is =mlx5_0,mlx5_1"
    sentence = (
        "The container sets a variable to a value other than the fabric's; the container's value "
        "is kept."
    )
    texts = remarks(pod, KNOWN_CONFIGURATION)
    assert texts["UserValue"] == f"{sentence} Container a: {kept}; container b: {kept}."
    tls = "Container b: your UCX_TLS=tcp includes no RDMA transport."
    assert (
        texts["UcxTlsWithoutRdma"] == f"The container's UCX_TLS includes no RDMA transport. {tls}"
    )
    unknown = remarks(pod, None)
    assert unknown["UserValue"] == sentence
    assert unknown["UcxTlsWithoutRdma"].endswith(tls)


def test_only_some_of_many_own_values_are_named() -> None:
    """The remarks on one code are a sentence, not a page."""
    pod = equipped(*(gpu(f"c{i}", env=env(NCCL_IB_HCA="=mlx5_0")) for i in range(6)))
    text = remarks(pod, KNOWN_CONFIGURATION)["UserValue"]
    assert [f"ontainer c{i}: kept" in text for i in range(6)] == [True] * 4 + [False] * 2
    assert text.endswith("; and 2 more.")
    four = equipped(*(gpu(f"c{i}", env=env(NCCL_IB_HCA="=mlx5_0")) for i in range(4)))
    assert "more" not in remarks(four, KNOWN_CONFIGURATION)["UserValue"]


def test_other_remarks_stay_as_they_are() -> None:
    """They are about the pod, and the webhook's sentence says all."""
    pod = equipped(gpu("trainer", securityContext={"runAsUser": 1000}))
    assert "Container trainer" not in remarks(pod, KNOWN_CONFIGURATION)["NonRoot"]


def test_variables_that_a_command_drops_are_named() -> None:
    """What drops them, too."""
    pod = equipped(gpu("trainer", command=["env", "-i", "torchrun", "train.py"]))
    assert remarks(pod, KNOWN_CONFIGURATION)["EnvDropped"].endswith(
        " Container trainer: env -i in its command drops GLOO_SOCKET_IFNAME, UCX_NET_DEVICES; set "
        "them after it."
    )


@each_knowledge
def test_a_pod_that_a_node_kept_from_a_fabric(
    cluster_configuration: CompiledConfiguration | None,
) -> None:
    """Without the node, its GPU implies a fabric: but what it would get there was never applied."""
    index = FabricIndex(by_node={"cpu-0": frozenset()}, inhabited_fabrics=frozenset({"v100-ib"}))
    bound = new_pod(gpu("trainer", limits={"memory": "8Gi"}), nodeName="cpu-0")
    decision = decide_on(bound, decision_input(fabric_index=index))
    assert decision.fabric is None
    assert decision.verdict is not None
    assert decision.outcomes
    pod = {**decision.pod, "kind": "Pod"}
    assert changes(explain_with(pod, cluster_configuration)) == []


@each_knowledge
def test_a_capability_that_was_removed(cluster_configuration: CompiledConfiguration | None) -> None:
    """The field is named, with what it was and is; without it RDMA is not certain."""
    pod = equipped()
    main(pod)["securityContext"] = {}
    explanation = explain_with(pod, cluster_configuration)
    (finding,) = changes(explanation)
    assert finding.text == (
        "In container trainer, securityContext.capabilities.add was IPC_LOCK and is now absent."
    )
    assert (explanation.rdma, explanation.well) == ("unsure", False)
    assert explanation.answer.text == (
        f"RDMA is not certain, although rdma.lab/status says yes: i{finding.text[1:]}"
    )


def test_a_resource_that_was_removed() -> None:
    """Without the device there is no RDMA."""
    pod = equipped()
    for amounts in main(pod)["resources"].values():
        del amounts["rdma/v100"]
    explanation = explain_with(pod, KNOWN_CONFIGURATION)
    assert [finding.text for finding in changes(explanation)] == [
        f"In container trainer, resources.{section}.rdma/v100 was 1 and is now absent."
        for section in ("limits", "requests")
    ]
    assert explanation.rdma == "no"
    unknown = explain_with(pod, None)
    (finding,) = changes(unknown)
    assert finding.text == (
        "rdma-resources added an RDMA resource to resources.limits, but the pod no longer has it."
    )
    assert unknown.rdma == "unsure"


@each_knowledge
@pytest.mark.parametrize("before", ["8Gi", None], ids=["dropped", "none before"])
def test_a_limit_that_was_added(
    cluster_configuration: CompiledConfiguration | None, before: str | None
) -> None:
    """A limit counts, if the webhook removed one; or if it would have, by the configuration."""
    pod = equipped(gpu("trainer", limits={"memory": before} if before else {}))
    main(pod)["resources"]["limits"]["memory"] = "1Gi"
    explanation = explain_with(pod, cluster_configuration)
    certain = before is not None or cluster_configuration is not None
    text = "In container trainer, resources.limits.memory was absent and is now 1Gi."
    assert [finding.text for finding in changes(explanation)] == [text] * certain
    assert explanation.rdma == ("unsure" if certain else "yes")


@each_knowledge
def test_a_variable_that_turns_rdma_off(
    cluster_configuration: CompiledConfiguration | None,
) -> None:
    """The status would name it, had it been there at admission."""
    pod = equipped()
    main(pod)["env"].append({"name": "NCCL_IB_DISABLE", "value": "1"})
    explanation = explain_with(pod, cluster_configuration)
    assert explanation.rdma == "no"
    assert explanation.answer.code == "ChangedAfterwards"
    assert explanation.answer.text == (
        "No RDMA, although rdma.lab/status says yes: container trainer sets NCCL_IB_DISABLE=1; "
        "remove the variable. This was not so at admission."
    )


def test_variables_that_differ() -> None:
    """A variable that was removed, and one with another value."""
    pod = equipped()
    variables = main(pod)["env"]
    variables[:] = [item for item in variables if item["name"] != "GLOO_SOCKET_IFNAME"]
    next(item for item in variables if item["name"] == "UCX_NET_DEVICES")["value"] = "eth0"
    assert [finding.text for finding in changes(explain_with(pod, KNOWN_CONFIGURATION))] == [
        "In container trainer, env UCX_NET_DEVICES was mlx5_0:1,mlx5_1:1,eth0 and is now eth0."
    ]
    variables[:] = [item for item in variables if item["name"] != "UCX_NET_DEVICES"]
    assert [finding.text for finding in changes(explain_with(pod, KNOWN_CONFIGURATION))] == [
        "In container trainer, env UCX_NET_DEVICES was mlx5_0:1,mlx5_1:1,eth0 and is now absent."
    ]


def test_a_skipped_mutation_sets_no_values() -> None:
    """The user's own values count only where the webhook has set the others."""
    skipping = {"rdma.lab/skip": "env"}
    pod = equipped(gpu("trainer", env=env(UCX_NET_DEVICES="eth7")), annotations=skipping)
    assert "UserValue" not in pod["metadata"]["annotations"]["rdma.lab/status"]
    assert changes(explain_with(pod, KNOWN_CONFIGURATION)) == []


def test_facts_are_no_change() -> None:
    """Whether the fabric's template exists was known at admission, and need not be known now."""
    template = ClaimTemplateReference(template="nics")
    claimed = fabric(
        "dra", mode="dra", claim_templates=(template,), gpu_resources=V100.gpu_resources
    )
    claim_facts = ClaimFacts(templates={"nics": {}}, has_all_templates=True)
    facts = NamespaceFacts(name="lab", claim_facts=claim_facts)
    pod = deepcopy(decide_on(new_pod(), decision_input(claimed, namespace=facts)).pod)
    assert '"rdma":"yes"' in pod["metadata"]["annotations"]["rdma.lab/status"]
    assert explain_with(pod, fabrics(claimed)).rdma == "yes"


def test_an_own_value_is_no_change() -> None:
    """The status names the user's value, so it was there at admission."""
    pod = equipped(gpu("trainer", env=env(UCX_NET_DEVICES="eth7")))
    assert changes(explain_with(pod, KNOWN_CONFIGURATION)) == []


@pytest.mark.parametrize("name", ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"])
def test_an_own_interface_is_no_change(name: str) -> None:
    """The webhook then adapts UCX's devices to it, and has nothing to report."""
    pod = equipped(gpu("trainer", env=env(**{name: "ib0"})))
    assert {"name": "UCX_NET_DEVICES", "value": "mlx5_0:1,mlx5_1:1,ib0"} in main(pod)["env"]
    assert changes(explain_with(pod, KNOWN_CONFIGURATION)) == []


def test_an_interface_that_was_changed() -> None:
    """The other variable of the two still has the fabric's value."""
    pod = equipped()
    variables = main(pod)["env"]
    next(item for item in variables if item["name"] == "NCCL_SOCKET_IFNAME")["value"] = "lo"
    assert [finding.text for finding in changes(explain_with(pod, KNOWN_CONFIGURATION))] == [
        "In container trainer, env NCCL_SOCKET_IFNAME was eth0 and is now lo."
    ]


@each_knowledge
def test_networks_that_were_removed(cluster_configuration: CompiledConfiguration | None) -> None:
    """The annotation is a field of the pod."""
    amounts = {"limits": {"nvidia.com/h100": "1"}, "requests": {"nvidia.com/h100": "1"}}
    pod = equipped({"name": "main", "image": "x", "resources": amounts})
    del pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"]
    (finding,) = changes(explain_with(pod, cluster_configuration))
    assert "k8s.v1.cni.cncf.io/networks" in finding.text


def test_the_hash_tells_the_configuration_of_the_admission() -> None:
    """With another configuration, values may differ, so only traces count."""
    pod = equipped()
    main(pod)["env"][0]["value"] = "other"
    other = fabrics(V100, H100)
    assert changes(explain_with(pod, other))
    unlike = CompiledConfiguration(fabrics=other.fabrics, config_hash="ffffffffffff")
    assert changes(explain_with(pod, unlike)) == []


@pytest.mark.parametrize(
    ("later", "remedy"),
    [
        (None, "Find out what changed the pod"),
        ((), "No webhook or policy that selects the pod runs after rdma-webhook, so somebody"),
        (("webhook a of b",), "Check what may change the pod after rdma-webhook: webhook a of b."),
    ],
)
def test_who_may_have_changed_it(later: tuple[str, ...] | None, remedy: str) -> None:
    """The remedy names the webhooks and policies that run later, if they are known."""
    pod = equipped()
    main(pod)["securityContext"] = {}
    explanation = explain_with(pod, KNOWN_CONFIGURATION, later_mutators=later)
    assert explanation.answer.remedy.startswith(remedy)
    assert "reate the pod again." in explanation.answer.remedy


def test_traces_count_only_where_nothing_better_is_known() -> None:
    """A resource whose name looks like a GPU's is no change, if the configuration lists it.

    A pod that a call now would deny cannot be inspected: its traces then are all that is known.
    """
    cpu = {"name": "trainer", "image": "x"}
    chosen = {"rdma.lab/fabric": "h100-roce", "rdma.lab/containers": "trainer"}
    pod = equipped(cpu, annotations=chosen)
    assert '"rdma-resources"' in pod["metadata"]["annotations"]["rdma.lab/status"]
    assert changes(explain_with(pod, KNOWN_CONFIGURATION)) == []
    pod["metadata"]["annotations"]["rdma.lab/devices"] = "many"
    main(pod)["securityContext"] = {}
    assert changes(explain_with(pod, KNOWN_CONFIGURATION))[0].text == (
        "ipc-lock added IPC_LOCK to securityContext.capabilities.add, but the pod no longer has it."
    )


def test_what_the_log_shows_is_stronger() -> None:
    """RDMA in use outweighs a change; the change is still named."""
    pod = equipped()
    main(pod)["securityContext"] = {}
    explanation = explain_with(pod, KNOWN_CONFIGURATION, logs=(log(RDMA),))
    assert explanation.rdma == "yes"
    assert changes(explanation)


def test_a_status_without_room_for_names() -> None:
    """What was applied is unknown then, but the verdict of the pod as it is counts."""
    pod = equipped()
    annotations = pod["metadata"]["annotations"]
    applied = '["ipc-lock","rdma-resources","env","hcoll"]'
    assert applied in annotations["rdma.lab/status"]
    annotations["rdma.lab/status"] = annotations["rdma.lab/status"].replace(applied, "4")
    main(pod)["securityContext"] = {}
    assert changes(explain_with(pod, None)) == []
    main(pod)["env"].append({"name": "NCCL_IB_DISABLE", "value": "1"})
    assert explain_with(pod, None).rdma == "no"


def test_the_sites_own_variables_are_no_change() -> None:
    """A user may well set another value for these, and the status has no code for it."""
    env_of_site = FabricEnv(site_variables=(("NCCL_DEBUG", "WARN"),))
    site = replace(V100, env=env_of_site)
    manifest = new_pod(gpu("trainer", env=env(NCCL_DEBUG="INFO")))
    pod = deepcopy(decide_on(manifest, decision_input(site)).pod)
    assert '"env"' in pod["metadata"]["annotations"]["rdma.lab/status"]
    assert changes(explain_with(pod, fabrics(site))) == []


def test_a_launcher_is_compared_too() -> None:
    """It has variables, but no device."""
    command = ["mpirun", "--hostfile", "/etc/hosts.mpi", "train"]
    pod = equipped(
        {"name": "launcher", "image": "x", "command": command},
        annotations={"rdma.lab/fabric": "v100-ib"},
    )
    assert explain_with(pod, KNOWN_CONFIGURATION).rdma == "none"
    variables = main(pod)["env"]
    next(item for item in variables if item["name"] == "NCCL_IB_HCA")["value"] = "mlx5_9"
    assert [finding.text for finding in changes(explain_with(pod, KNOWN_CONFIGURATION))] == [
        "In container launcher, env NCCL_IB_HCA was =mlx5_0,mlx5_1 and is now mlx5_9."
    ]


@pytest.mark.parametrize(
    ("trainer", "cluster_configuration", "text"),
    [
        (
            gpu("trainer", env=env(NCCL_IB_HCA="=mlx5_7")),
            KNOWN_CONFIGURATION,
            (
                'No RDMA: container trainer sets NCCL_IB_HCA="=mlx5_7", but the fabric\'s value is '
                '"=mlx5_0,mlx5_1". NCCL_IB_HCA selects no device of the fabric, so NCCL\'s '
                "traffic uses TCP sockets."
            ),
        ),
        (
            gpu("trainer", env=env(NCCL_IB_HCA="=mlx5_7")),
            None,
            (
                "No RDMA: NCCL_IB_HCA selects no device of the fabric, so NCCL's traffic uses TCP "
                "sockets."
            ),
        ),
        (
            gpu("trainer", command=["sh", "-c", "export NCCL_IB_DISABLE=1; train"]),
            None,
            (
                "No RDMA: container trainer sets NCCL_IB_DISABLE=1 (export in its command); remove "
                "that setting. The container's NCCL_IB_DISABLE=1 turns off RDMA for NCCL, so "
                "NCCL's traffic uses TCP sockets."
            ),
        ),
        (
            gpu("trainer", securityContext={"runAsUser": 1000}),
            KNOWN_CONFIGURATION,
            (
                "RDMA over v100-ib is not certain: container trainer does not run as root; it "
                "needs nodes with LimitMEMLOCK=infinity. A container lacks IPC_LOCK, or IPC_LOCK "
                "has no effect in it; whether the nodes raise the memlock limit is unknown."
            ),
        ),
    ],
    ids=["HCA", "HCA, configuration unknown", "export", "user"],
)
def test_the_container_and_the_value(
    trainer: Item, cluster_configuration: CompiledConfiguration | None, text: str
) -> None:
    """The status has only a code; what the pod carries has the names, if it explains the code."""
    assert explain_with(equipped(trainer), cluster_configuration).answer.text == text


def _on_no_fabric(**spec: Any) -> Item:
    """Return a pod whose GPU no fabric lists, as the webhook leaves it."""
    trainer = container(resources=quantities({"nvidia.com/gpu": "4"}))
    return equipped(trainer, **spec)


def test_a_pod_without_a_fabric() -> None:
    """What the pod requests, and could request, is named if the admission's fabrics are known."""
    unlisted = _on_no_fabric()
    answer = explain_with(unlisted, KNOWN_CONFIGURATION).answer
    assert answer.code == "FabricUnknown"
    assert "container trainer requests nvidia.com/gpu, which no fabric lists; " in answer.text
    start = "No RDMA: neither the pod nor its namespace determines the fabric."
    assert explain_with(unlisted, None).answer.text == start
    changed = replace(KNOWN_CONFIGURATION, config_hash="of-another")
    assert explain_with(unlisted, changed).answer.text == start


def test_a_pod_whose_node_has_no_fabric() -> None:
    """The node counts if nothing else explains the verdict, read now or with all others."""
    facts = {"node-1": Node(labels={}, resources={})}
    index = build_fabric_index(facts, KNOWN_CONFIGURATION)
    decision = decide_on(new_pod(nodeName="node-1"), decision_input(fabric_index=index))
    pod = deepcopy(decision.pod) | {"kind": "Pod"}
    for evidence in ({"placement_nodes": facts}, {"facts": Facts(nodes=facts)}):
        answer = explain_with(pod, KNOWN_CONFIGURATION, **evidence).answer
        assert answer.text.startswith("No RDMA: no fabric matches the node that the pod names; ")
    answer = explain_with(
        _on_no_fabric(nodeName="node-1"), KNOWN_CONFIGURATION, placement_nodes=facts
    ).answer
    assert "requests nvidia.com/gpu, which no fabric lists; " in answer.text
    nowhere = explain_with(pod, KNOWN_CONFIGURATION).answer
    assert nowhere.text == "No RDMA: neither the pod nor its namespace determines the fabric."


@pytest.mark.parametrize("security", [{}, {"runAsUser": 1000}], ids=["root", "non-root"])
def test_pod_security_is_the_cause(security: Item) -> None:
    """A level that forbids IPC_LOCK is named, not the user of the container."""
    place = namespace({"rdma.lab/enable": "true", PSA_ENFORCE: "restricted"})
    cluster = decision_input(
        namespace=NamespaceFacts(name="lab", labels=place["metadata"]["labels"])
    )
    manifest = new_pod(gpu("trainer", securityContext=security))
    pod = deepcopy(decide_on(manifest, cluster).pod) | {"kind": "Pod"}
    explanation = explain(pod, namespace=place, cluster_configuration=KNOWN_CONFIGURATION)
    assert (explanation.rdma, explanation.answer.code) == ("unsure", "PodSecurity")
    assert explanation.answer.text == (
        "RDMA over v100-ib is not certain: container trainer lacks IPC_LOCK, since Pod Security "
        "restricted of the namespace forbids it. The namespace enforces a Pod Security level that "
        "forbids IPC_LOCK; without IPC_LOCK, the memlock limit must be raised."
    )
    assert explanation.answer.remedy.startswith("Run the pod in a namespace with the Pod Security")
    codes = [finding.code for finding in chapter_findings(explanation, "applied")]
    assert "PodSecurity" not in codes
    unread = explain(pod, cluster_configuration=KNOWN_CONFIGURATION).answer
    assert (unread.code, unread.remedy) == ("PodSecurity", explanation.answer.remedy)


@each_knowledge
def test_a_limit_by_default(cluster_configuration: CompiledConfiguration | None) -> None:
    """A limit of a LimitRange is a doubt, as one that was added afterwards is."""
    rejection = "LimitRange bounds sets max.memory"
    place = NamespaceFacts(name="lab", memory_limit_rejection=rejection)
    recorded = "LimitRanger plugin set: memory limit for container trainer"
    manifest = new_pod(
        gpu("trainer", limits={"memory": "4Gi"}),
        annotations={"kubernetes.io/limit-ranger": recorded},
    )
    pod = deepcopy(decide_on(manifest, decision_input(namespace=place)).pod) | {"kind": "Pod"}
    explanation = explain_with(pod, cluster_configuration, facts=Facts(namespaces={"lab": place}))
    assert (explanation.rdma, explanation.answer.code) == ("unsure", "DefaultMemoryLimit")
    assert changes(explanation) == []
    assert explanation.answer.text == (
        "RDMA over v100-ib is not certain: container trainer keeps its default limit of 4Gi, since "
        "LimitRange bounds sets max.memory. A container got its memory limit from the default "
        "of a LimitRange, and all memory that the container registers counts against that limit."
    )
    unread = explain_with(pod, cluster_configuration).answer.text
    assert "container trainer keeps the default memory limit 4Gi of a LimitRange. A" in unread


@pytest.mark.parametrize(
    "pod",
    [
        equipped(gpu("trainer"), annotations={"rdma.lab/devices": "0"}),
        equipped({"name": "trainer", "image": "lab/trainer"}),
    ],
    ids=["DevicesElsewhere", "NoTarget"],
)
def test_a_sentence_that_says_all(pod: Item) -> None:
    """A verdict whose message is the sentence of its reason is not said twice."""
    with_message, by_code = (
        explain_with(pod, KNOWN_CONFIGURATION).answer,
        explain_with(pod, None).answer,
    )
    assert with_message.text == by_code.text
    assert with_message.level in ("unsure", "error")


def test_the_libraries_come_last() -> None:
    """They are at the end of the answer, as without the names."""
    serve = ["vllm", "serve", "m", "--kv-transfer-config", '{"kv_connector": "NixlConnector"}']
    pod = equipped(gpu("trainer", command=serve, env=env(UCX_TLS="tcp")))
    answer = explain_with(pod, KNOWN_CONFIGURATION).answer
    assert answer.text.startswith("No RDMA: container trainer uses NIXL with UCX_TLS=tcp,")
    assert answer.text.endswith(". Libraries: NIXL.")


def test_a_pod_of_another_cluster() -> None:
    """A manifest without the patch, in a namespace without the label: the status was copied."""
    bare = new_pod()
    bare["kind"] = "Pod"
    bare["metadata"]["annotations"]["rdma.lab/status"] = equipped()["metadata"]["annotations"][
        "rdma.lab/status"
    ]
    explanation = explain(bare, namespace=namespace({}))
    assert (explanation.rdma, explanation.answer.code) == ("no", "StatusNotOurs")
    assert chapter_findings(explanation, "applied")[0].code == "Nothing"
    exported = explain(equipped(), namespace=namespace({}))
    assert (exported.rdma, exported.answer.code) == ("unsure", "StatusNotOurs")
    assert "it is not known whether the webhook was called" in exported.answer.text


@pytest.mark.parametrize("spec", [[], {"containers": "x"}, {"containers": [{"env": 5}]}])
def test_any_shape(spec: object) -> None:
    """A file may contain anything; the status then is all that is known."""
    pod = equipped() | {"spec": spec}
    assert changes(explain_with(pod, KNOWN_CONFIGURATION)) == []


@each_knowledge
def test_a_command_that_changes_the_user(
    cluster_configuration: CompiledConfiguration | None,
) -> None:
    """The remedy is in the command, not to run the container as root, as it does."""
    trainer = gpu("trainer", command=["gosu", "1000", "torchrun", "a"])
    pod = equipped(trainer, securityContext={"runAsUser": 0})
    explanation = explain_with(pod, cluster_configuration)
    assert explanation.answer.code == "MemlockUnknown"
    if cluster_configuration is not None:
        assert "loses IPC_LOCK (gosu 1000 in its command)" in explanation.answer.text
        assert explanation.answer.remedy.startswith("Remove what changes the user, or drops")
    user = explain_with(
        equipped(gpu("trainer", securityContext={"runAsUser": 1})), cluster_configuration
    )
    assert "as root (runAsUser: 0," in user.answer.remedy
