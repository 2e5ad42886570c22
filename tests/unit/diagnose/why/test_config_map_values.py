"""The values that admission could not see: those of ConfigMaps."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import V100, decide_on, decision_input, env, gpu
from tests.builders import pod as new_pod
from tests.unit.diagnose.why.pods import CREATED, EARLIER, LATER, explain, pod_in_cluster, status
from tests.unit.diagnose.why.test_answer import RDMA, log
from tests.unit.diagnose.why.test_comparison import (
    KNOWN_CONFIGURATION,
    changes,
    equipped,
    explain_with,
    main,
)
from webhook.decide.analysis import DecisionInput
from webhook.diagnose.why.config_map_values import changed_config_maps, unchanged_config_maps
from webhook.diagnose.why.evidence import ContainerProcesses, MemoryRights
from webhook.diagnose.why.file_collector import collect_from_objects
from webhook.diagnose.why.reasons import REASONS
from webhook.kube.objects import PodRecord
from webhook.model.fabric import FabricEnv
from webhook.model.facts import Facts
from webhook.model.nodes import node_of

ALL = {"envFrom": [{"configMapRef": {"name": "tuning"}}]}
SECRET = {"secretRef": {"name": "tuning"}}
OFF, ON = {"tuning": {"NCCL_IB_DISABLE": "1"}}, {"tuning": {"NCCL_IB_DISABLE": "0"}}
DISABLED = (
    "No RDMA, because of ConfigMap tuning: container trainer sets NCCL_IB_DISABLE=1 "
    "(key NCCL_IB_DISABLE of ConfigMap tuning); remove that setting."
)


def from_config_map(**fields: Any) -> dict[str, Any]:
    """Return a pod as the webhook leaves it, which gets all variables of a ConfigMap."""
    pod = equipped(gpu("trainer", **{**ALL, **fields}))
    assert '"EnvUnseen"' in pod["metadata"]["annotations"]["rdma.lab/status"]
    return pod


def test_a_value_that_turns_rdma_off() -> None:
    """It decides, whether the configuration of the admission is known or not."""
    for cluster_configuration in (KNOWN_CONFIGURATION, None):
        explanation = explain_with(from_config_map(), cluster_configuration, config_maps=OFF)
        assert (explanation.rdma, explanation.answer.code) == ("no", "NcclIbDisabled")
        assert (explanation.answer.text, explanation.answer.level) == (DISABLED, "error")
        assert explanation.answer.remedy == (
            "Correct NCCL_IB_DISABLE in ConfigMap tuning, or set the variable in the container's "
            "env, which overrides it. Then create the pod again."
        )
        assert changes(explanation) == []


def test_values_that_turn_nothing_off() -> None:
    """Then the pod is equipped, if the rest is known."""
    explanation = explain_with(from_config_map(), KNOWN_CONFIGURATION, config_maps=ON)
    assert (explanation.rdma, explanation.answer.level) == ("yes", "ok")
    assert explanation.answer.text == (
        "The pod is equipped for RDMA over v100-ib: device, memory, network and environment are "
        "right for RDMA, assuming that the image runs as root. The values in its ConfigMaps do not "
        "turn RDMA off."
    )
    assert explanation.answer.remedy == ""
    unknown = explain_with(from_config_map(), None, config_maps=ON)
    assert (unknown.rdma, unknown.answer.code) == ("unsure", "EnvUnseen")


def test_one_value() -> None:
    """ValueFrom is as envFrom."""
    reference = {"configMapKeyRef": {"name": "tuning", "key": "off"}}
    item = {"name": "NCCL_IB_DISABLE", "valueFrom": reference}
    pod = equipped(gpu("trainer", env=[item]))
    for value, rdma in (("1", "no"), ("0", "yes")):
        explanation = explain_with(pod, KNOWN_CONFIGURATION, config_maps={"tuning": {"off": value}})
        assert explanation.rdma == rdma


@pytest.mark.parametrize(
    "config_maps", [{}, {"other": {"NCCL_IB_DISABLE": "1"}}], ids=["none", "another"]
)
def test_config_maps_that_are_not_known(config_maps: dict[str, Any]) -> None:
    """The verdict stays."""
    explanation = explain_with(from_config_map(), KNOWN_CONFIGURATION, config_maps=config_maps)
    assert (explanation.rdma, explanation.answer.code) == ("unsure", "EnvUnseen")


def test_a_secret_beside_it() -> None:
    """It stays unknown, unless the ConfigMap alone turns RDMA off."""
    pod = from_config_map(envFrom=[*ALL["envFrom"], SECRET])
    assert explain_with(pod, KNOWN_CONFIGURATION, config_maps=ON).rdma == "unsure"
    assert explain_with(pod, KNOWN_CONFIGURATION, config_maps=OFF).rdma == "no"


def test_other_reasons_stay() -> None:
    """A ConfigMap does not remove another reason for `unsure`, nor a verdict that was certain."""
    pod = equipped(gpu("trainer", env=env(NCCL_NET_PLUGIN="own")))
    assert explain_with(pod, KNOWN_CONFIGURATION, config_maps=ON).answer.code == "NcclNetPlugin"
    assert explain(pod_in_cluster(status()), config_maps=OFF).rdma == "yes"


def test_stronger_evidence() -> None:
    """The log decides before ConfigMaps, and so does what was changed afterwards."""
    assert (
        explain_with(
            from_config_map(), KNOWN_CONFIGURATION, config_maps=OFF, logs=(log(RDMA),)
        ).rdma
        == "yes"
    )
    maps = scripts("export NCCL_IB_DISABLE=1\n")
    assert (
        explain_with(with_script(), KNOWN_CONFIGURATION, config_maps=maps, logs=(log(RDMA),)).rdma
        == "yes"
    )
    pod = from_config_map()
    main(pod)["securityContext"] = {}
    assert explain_with(pod, KNOWN_CONFIGURATION, config_maps=ON).rdma == "unsure"


def test_a_pod_of_no_shape() -> None:
    """Nothing is said about it."""
    pod = pod_in_cluster(status("unsure", "EnvUnseen"), spec={"containers": "x"})
    assert explain(pod, config_maps=OFF).answer.code == "EnvUnseen"


def test_what_is_still_unseen() -> None:
    """The answer names it, not what was read."""
    pod = from_config_map(envFrom=[*ALL["envFrom"], SECRET])
    answer = explain_with(pod, KNOWN_CONFIGURATION, config_maps=ON).answer
    assert "may set variables that turn RDMA off (Secret tuning)" in answer.text


CONF = {"name": "v", "mountPath": "/etc/nccl.conf", "subPath": "nccl.conf"}


def with_conf() -> dict[str, Any]:
    """Return a pod as the webhook leaves it, with the file of NCCL."""
    volume = {"name": "v", "configMap": {"name": "nccl"}}
    return equipped(gpu("trainer", volumeMounts=[CONF]), volumes=[volume])


def test_the_file_of_nccl() -> None:
    """It decides: off, or the doubt ends."""
    maps = {"nccl": {"nccl.conf": "NCCL_DEBUG=INFO\nNCCL_IB_DISABLE=1\n"}}
    explanation = explain_with(with_conf(), KNOWN_CONFIGURATION, config_maps=maps)
    assert (explanation.rdma, explanation.answer.code) == ("no", "NcclIbDisabled")
    assert explanation.answer.text.startswith("No RDMA, because of ConfigMap nccl: container")
    assert explanation.answer.remedy.startswith("Correct nccl.conf in ConfigMap nccl, or set the ")
    maps["nccl"]["nccl.conf"] = "NCCL_DEBUG=INFO\n"
    assert explain_with(with_conf(), KNOWN_CONFIGURATION, config_maps=maps).rdma == "yes"
    unknown = explain_with(with_conf(), KNOWN_CONFIGURATION)
    assert (unknown.rdma, unknown.answer.code) == ("unsure", "FileUnseen")
    assert "envFrom" not in f"{unknown.answer.text}{unknown.answer.remedy}"


SCRIPTS = {"name": "v", "mountPath": "/scripts"}
COMMAND_REASON = REASONS["SettingPossible"][0].reason
NODE_OF_NONE = node_of({"metadata": {"labels": {}}, "spec": {}, "status": {}})
NODE_OF_H100 = node_of(
    {
        "metadata": {"labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
        "spec": {},
        "status": {"allocatable": {"nvidia.com/h100": "8", "nvidia.com/rail0": "8"}},
    }
)


def by_reference(config_map: str) -> dict[str, Any]:
    """Return a pod as the webhook leaves it, with a variable from a ConfigMap."""
    reference = {"configMapKeyRef": {"name": config_map, "key": "NCCL_IB_DISABLE"}}
    return equipped(gpu("trainer", env=[{"name": "NCCL_IB_DISABLE", "valueFrom": reference}]))


def with_script(*command: str, cluster: DecisionInput | None = None) -> dict[str, Any]:
    """Return a pod as the webhook leaves it, with the scripts of a ConfigMap."""
    main_container = gpu(
        "trainer", command=[*command] or ["bash", "/scripts/entry.sh"], volumeMounts=[SCRIPTS]
    )
    volume = {"name": "v", "configMap": {"name": "entry"}}
    pod: dict[str, Any] = deepcopy(
        decide_on(new_pod(main_container, volumes=[volume]), cluster).pod
    )
    assert '"rdma":"yes"' in pod["metadata"]["annotations"]["rdma.lab/status"]
    return pod


def scripts(text: str) -> dict[str, dict[str, str]]:
    """Return the ConfigMap with a script."""
    return {"entry": {"entry.sh": text}}


NOT_READ = "that key entry.sh of ConfigMap entry, which was not read, does not turn RDMA off."


def test_a_script_that_turns_rdma_off() -> None:
    """It decides against a verdict that assumed it to be harmless."""
    for cluster_configuration in (KNOWN_CONFIGURATION, None):
        maps = scripts("export NCCL_IB_DISABLE=1\ntorchrun train.py\n")
        explanation = explain_with(with_script(), cluster_configuration, config_maps=maps)
        assert (explanation.rdma, explanation.answer.code) == ("no", "NcclIbDisabled")
        assert explanation.answer.text == (
            "No RDMA, because of ConfigMap entry: container trainer sets NCCL_IB_DISABLE=1 "
            "(export in key entry.sh of ConfigMap entry); remove that setting."
        )
        assert explanation.answer.remedy == (
            "Correct entry.sh in ConfigMap entry. Then create the pod again."
        )


def test_a_script_that_may_turn_rdma_off() -> None:
    """The doubt is that of the script."""
    maps = scripts("[ $X ] && export NCCL_IB_DISABLE=1\ntorchrun train.py\n")
    answer = explain_with(with_script(), KNOWN_CONFIGURATION, config_maps=maps).answer
    assert (answer.level, answer.code) == ("unsure", "SettingPossible")
    assert answer.text.startswith("RDMA over v100-ib is not certain, because of ConfigMap entry: ")
    assert answer.remedy == "Correct entry.sh in ConfigMap entry. Then create the pod again."


def test_a_harmless_script() -> None:
    """The assumption ends; a script that could not be read is named."""
    harmless = explain_with(
        with_script(), KNOWN_CONFIGURATION, config_maps=scripts("torchrun train.py\n")
    )
    assert harmless.rdma == "yes"
    assert harmless.answer.text.endswith(", assuming that the image runs as root.")
    unknown: list[dict[str, Any]] = [{}, {"other": {}}]
    for config_maps in unknown:
        unread = explain_with(with_script(), KNOWN_CONFIGURATION, config_maps=config_maps)
        assert (unread.rdma, unread.answer.level) == ("yes", "ok")
        assert unread.answer.text.endswith(f" assuming that the image runs as root and {NOT_READ}")


def test_an_assumption_alone() -> None:
    """Without that on the user of the image."""
    pod = with_script()
    pod["spec"]["securityContext"] = {"runAsUser": 0}
    written = pod["metadata"]["annotations"]["rdma.lab/status"]
    pod["metadata"]["annotations"]["rdma.lab/status"] = written.replace("RootAssumed", "")
    assert explain_with(pod, KNOWN_CONFIGURATION).answer.text.endswith(
        f"right for RDMA, assuming {NOT_READ}"
    )


def test_use_settles_every_assumption() -> None:
    """A pod that uses RDMA has a harmless script, read or not."""
    text = explain_with(with_script(), KNOWN_CONFIGURATION, logs=(log(RDMA),)).answer.text
    assert text.endswith("right for RDMA.")


def test_a_launcher_with_a_script() -> None:
    """What it sets for its ranks decides."""
    launcher = {"name": "main", "command": ["bash", "/scripts/entry.sh"], "volumeMounts": [SCRIPTS]}
    labels = {"training.kubeflow.org/job-role": "launcher"}
    volumes = [{"name": "v", "configMap": {"name": "entry"}}]
    annotations = {"rdma.lab/fabric": "v100-ib"}
    pod = equipped(launcher, labels=labels, volumes=volumes, annotations=annotations)
    assert '"rdma":"none"' in pod["metadata"]["annotations"]["rdma.lab/status"]
    maps = scripts("mpirun -x NCCL_IB_DISABLE=1 -H a,b ./train\n")
    explanation = explain_with(pod, KNOWN_CONFIGURATION, config_maps=maps)
    assert (explanation.rdma, explanation.answer.code) == ("no", "RanksWithoutRdma")
    assert (
        explain_with(pod, KNOWN_CONFIGURATION, config_maps=scripts("mpirun -H a,b ./train\n")).rdma
        == "none"
    )


def test_what_another_thing_makes_worse() -> None:
    """A ConfigMap is not blamed for that, such as for a plugin that the site chooses."""
    site_env = FabricEnv(site_variables=(("NCCL_NET_PLUGIN", "own"),))
    site = decision_input(replace(V100, env=site_env))
    pod = with_script(cluster=site)
    main(pod)["env"] += env(NCCL_NET_PLUGIN="own")
    for configuration in (site.configuration, None):
        explanation = explain_with(pod, configuration, config_maps=scripts("torchrun train.py\n"))
        assert (explanation.rdma, explanation.answer.code) == ("yes", "Equipped")


POSSIBLE = ["sh", "-c", "[ $X ] && export NCCL_IB_DISABLE=1; torchrun train.py"]


def test_a_doubt_behind_a_config_map() -> None:
    """The ConfigMap turns nothing off, so it is not blamed for what the command may do."""
    answer = explain_with(
        from_config_map(command=POSSIBLE), KNOWN_CONFIGURATION, config_maps=ON
    ).answer
    assert (answer.level, answer.code) == ("unsure", "SettingPossible")
    assert "ConfigMap" not in answer.text
    assert answer.text.startswith(
        "RDMA over v100-ib is not certain: container trainer may set NCCL_IB_DISABLE=1 "
    )
    assert answer.remedy == COMMAND_REASON.remedy


def test_a_script_that_chooses_a_library() -> None:
    """No single value decides, so the answer is the verdict with its own remedy."""
    explanation = explain_with(
        with_script(),
        KNOWN_CONFIGURATION,
        config_maps=scripts("torchrun train.py --backend=gloo\n"),
    )
    assert (explanation.rdma, explanation.answer.code) == ("no", "GlooOverTcp")
    assert explanation.answer.text.startswith("No RDMA: container trainer chooses PyTorch's")
    assert explanation.answer.remedy.startswith("Choose the backend nccl")


def test_a_default_in_a_script() -> None:
    """The container's env overrides it."""
    maps = scripts("export NCCL_IB_DISABLE=${NCCL_IB_DISABLE:-1}\ntorchrun train.py\n")
    answer = explain_with(with_script(), KNOWN_CONFIGURATION, config_maps=maps).answer
    assert answer.remedy == (
        "Correct entry.sh in ConfigMap entry, or set the variable in the container's env, which "
        "overrides it. Then create the pod again."
    )


def test_rights_that_a_config_map_leaves_open() -> None:
    """A shell settles what the verdict with the ConfigMaps assumes."""
    for rights, rdma in ((MemoryRights(7, False, 64), "no"), (MemoryRights(0, True, 0), "yes")):
        shell = ContainerProcesses("trainer", rights=rights)
        explanation = explain_with(
            from_config_map(), KNOWN_CONFIGURATION, config_maps=ON, processes=(shell,)
        )
        assert explanation.rdma == rdma
        assert "assuming" not in explanation.answer.text
    limited = ContainerProcesses("trainer", rights=MemoryRights(7, False, 64))
    off = explain_with(
        from_config_map(), KNOWN_CONFIGURATION, config_maps=OFF, processes=(limited,)
    )
    assert off.answer.text == DISABLED


def test_a_node_of_no_fabric() -> None:
    """It is a doubt of its own, but no more than that."""
    facts = {"node-1": NODE_OF_NONE}
    pod = from_config_map()
    pod["spec"]["nodeName"] = "node-1"
    assert (
        explain_with(pod, KNOWN_CONFIGURATION, config_maps=ON, placement_nodes=facts).answer.code
        == "NodeOutsideFabric"
    )
    off = explain_with(pod, KNOWN_CONFIGURATION, config_maps=OFF, placement_nodes=facts)
    assert off.answer.code == "NcclIbDisabled"


def test_a_node_of_another_fabric() -> None:
    """It is worse than the doubt about a script."""
    maps = scripts("[ $X ] && export NCCL_IB_DISABLE=1\ntorchrun train.py\n")
    pod = with_script()
    pod["spec"]["nodeName"] = "node-1"
    explanation = explain_with(
        pod, KNOWN_CONFIGURATION, config_maps=maps, placement_nodes={"node-1": NODE_OF_H100}
    )
    assert (explanation.rdma, explanation.answer.code) == ("no", "NodeOutsideFabric")


def changed(
    pod: dict[str, Any], present: dict[str, dict[str, str]], **evidence: Any
) -> tuple[str, str, str]:
    """Explain a pod whose ConfigMaps were changed later; return level, text and remedy."""
    objects = [{**config_map(name), "data": data} for name, data in present.items()]
    facts = Facts().with_objects(objects, "lab")
    times = dict.fromkeys(present, LATER)
    explanation = explain_with(
        pod, KNOWN_CONFIGURATION, facts=facts, changed_config_maps=times, **evidence
    )
    return explanation.answer.level, explanation.answer.text, explanation.answer.remedy


CHANGED = (
    "RDMA over v100-ib is not certain: ConfigMap {} was changed at 2026-11-22T11:00:00Z, after the "
    "pod was created, so it is unknown which version the pod got."
)
CREATE_AGAIN = "Create the pod again, so that it gets the ConfigMap's current data."


@pytest.mark.parametrize(
    ("pod", "present"),
    [
        (from_config_map(), ON),
        (with_conf(), {"nccl": {"nccl.conf": ""}}),
        (with_script(), scripts("torchrun train.py\n")),
        (from_config_map(), {**ON, "tun": {}}),
        (by_reference("tuning"), ON),
    ],
    ids=["envFrom", "NCCL's file", "script", "a name that begins alike", "valueFrom"],
)
def test_a_config_map_that_was_changed(
    pod: dict[str, Any], present: dict[str, dict[str, str]]
) -> None:
    """It is named: what it has now is not what the pod got."""
    name = next(iter(present))
    assert changed(pod, present) == ("unsure", CHANGED.format(name), CREATE_AGAIN)


def test_a_changed_config_map_that_is_still_wrong() -> None:
    """It is to be corrected first."""
    level, text, remedy = changed(from_config_map(), OFF)
    assert level == "unsure"
    assert text == (
        f"{CHANGED.format('tuning')} With what it has now, there is no RDMA: container trainer "
        "sets NCCL_IB_DISABLE=1 (key NCCL_IB_DISABLE of ConfigMap tuning); remove that setting."
    )
    assert remedy == (
        "Correct NCCL_IB_DISABLE in ConfigMap tuning, or set the variable in the container's env, "
        "which overrides it. Then create the pod again."
    )


def test_a_changed_config_map_that_is_still_in_doubt() -> None:
    """To create the pod again would end in the same doubt."""
    _, text, remedy = changed(with_script(), scripts("[ $X ] && export NCCL_IB_DISABLE=1\nt\n"))
    assert "With what it has now, RDMA is not certain: container trainer may set" in text
    assert remedy == "Correct entry.sh in ConfigMap entry. Then create the pod again."
    with_secret = from_config_map(envFrom=[*ALL["envFrom"], SECRET])
    _, text, remedy = changed(with_secret, ON)
    assert text.endswith("may set variables that turn RDMA off (Secret tuning).")
    assert remedy.startswith(
        "Check that the ConfigMaps and Secrets of envFrom do not turn RDMA off for any library"
    )
    assert remedy.endswith(" Then create the pod again.")
    with_late = from_config_map(envFrom=[*ALL["envFrom"], {"configMapRef": {"name": "late"}}])
    _, text, remedy = changed(with_late, ON)
    assert "(ConfigMap late)" in text
    assert remedy.startswith(
        "Check that the ConfigMaps and Secrets of envFrom do not turn RDMA off for any library"
    )


def test_a_changed_config_map_beside_one_that_is_not_known() -> None:
    """The one that is not known is in doubt, although its name begins with that of the other."""
    sources = [{"configMapRef": {"name": name}} for name in ("tuning-2", "tuning")]
    assert "was changed" not in changed(from_config_map(envFrom=sources), ON)[1]
    volume = {"name": "v", "configMap": {"name": "entry-2"}}
    pod = with_script()
    pod["spec"]["volumes"] = [volume]
    assert "was changed" not in changed(pod, scripts("torchrun train.py\n"))[1]


def test_a_changed_config_map_that_decides_nothing() -> None:
    """Of another verdict, or where something else decides."""
    plugin = equipped(gpu("trainer", env=env(NCCL_NET_PLUGIN="own"), **ALL))
    assert "NcclNetPlugin" in plugin["metadata"]["annotations"]["rdma.lab/status"]
    assert "was changed" not in changed(plugin, ON)[1]
    assert "was changed" not in changed(with_script(), ON)[1]
    assert "was changed" not in changed(with_script("torchrun"), scripts(""))[1]
    other = from_config_map(envFrom=[*ALL["envFrom"], SECRET])
    assert "was changed" not in changed(other, {"late": {}}, config_maps=ON)[1]


def owner(time: str, *fields: str) -> dict[str, Any]:
    """Return a manager of fields, with the time of its last write."""
    return {"time": time, "fieldsV1": {field: {"f:a": {}} for field in fields}}


def config_map(name: str = "tuning", written: str = EARLIER, **metadata: Any) -> dict[str, Any]:
    """Return a ConfigMap of the pod's namespace."""
    fields = {
        "name": name,
        "namespace": "lab",
        "creationTimestamp": EARLIER,
        "managedFields": [owner(EARLIER, "f:data"), owner(written, "f:data")],
        **metadata,
    }
    return {"kind": "ConfigMap", "metadata": fields, "data": {"a": "b"}}


@pytest.mark.parametrize(
    ("manifest", "is_used"),
    [
        (config_map(), True),
        (config_map(written=CREATED), True),
        (config_map(written=LATER), False),
        (config_map(creationTimestamp=LATER, managedFields=[]), False),
        (config_map(managedFields=[]), True),
        (config_map(managedFields=[owner(LATER, "f:metadata")]), True),
        (config_map(managedFields=[owner(LATER, "f:binaryData")]), False),
        (config_map(managedFields=[owner(LATER, "f:metadata", "f:data")]), False),
        (config_map(namespace=""), True),
        (config_map(namespace="other"), False),
        ({**config_map(), "kind": "Secret"}, False),
    ],
)
def test_config_maps_of_the_time_of_creation(manifest: dict[str, Any], is_used: bool) -> None:
    """What was changed after the pod was created does not show what its containers got."""
    pod = PodRecord.read(pod_in_cluster())
    assert unchanged_config_maps(pod, [manifest]) == ({"tuning": {"a": "b"}} if is_used else {})
    is_changed = not is_used and manifest["kind"] == "ConfigMap"
    is_changed = is_changed and manifest["metadata"]["namespace"] == "lab"
    assert changed_config_maps(pod, [manifest]) == ({"tuning": LATER} if is_changed else {})


WAITING: dict[str, Any] = {"state": {"waiting": {}}}
RUNNING: dict[str, Any] = {"state": {"running": {}}}


@pytest.mark.parametrize(
    ("state", "is_used"),
    [
        ({"phase": "Pending"}, True),
        ({"phase": "Pending", "containerStatuses": [WAITING]}, True),
        ({"phase": "Pending", "initContainerStatuses": [RUNNING]}, True),
        ({"phase": "Pending", "containerStatuses": [WAITING, RUNNING]}, False),
        ({"phase": "Pending", "containerStatuses": [{"state": {"terminated": {}}}]}, False),
        (
            {
                "phase": "Pending",
                "containerStatuses": [{**WAITING, "lastState": {"terminated": {}}}],
            },
            False,
        ),
        ({"phase": "Running", "containerStatuses": [WAITING]}, False),
    ],
    ids=str,
)
def test_config_maps_of_a_pod_that_has_not_started(state: dict[str, Any], is_used: bool) -> None:
    """Its containers will get what a ConfigMap has now."""
    pod = PodRecord.read(pod_in_cluster(**state))
    manifest = config_map(written=LATER)
    assert bool(unchanged_config_maps(pod, [manifest])) is is_used
    assert bool(changed_config_maps(pod, [manifest])) is not is_used


def test_config_maps_in_files() -> None:
    """They count as those of a cluster."""
    objects = [pod_in_cluster(), config_map(), config_map("late", written=LATER)]
    (evidence,) = collect_from_objects(objects, "lab", None)
    assert evidence.config_maps == {"tuning": {"a": "b"}}
    assert evidence.changed_config_maps == {"late": LATER}
    assert set(evidence.facts.namespace("lab").config_maps) == {"tuning", "late"}
