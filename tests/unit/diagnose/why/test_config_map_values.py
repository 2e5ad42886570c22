"""The values that admission could not see: those of ConfigMaps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import env, gpu
from tests.unit.diagnose.why.pods import CREATED, EARLIER, LATER, explain, live, status
from tests.unit.diagnose.why.test_answer import RDMA, log
from tests.unit.diagnose.why.test_comparison import KNOWN, changes, compared, equipped, main
from webhook.diagnose.why.config_map_values import config_maps_of
from webhook.diagnose.why.file_collector import collect_from_objects
from webhook.kube.objects import PodRecord

ALL = {"envFrom": [{"configMapRef": {"name": "tuning"}}]}
SECRET = {"secretRef": {"name": "tuning"}}
OFF, ON = {"tuning": {"NCCL_IB_DISABLE": "1"}}, {"tuning": {"NCCL_IB_DISABLE": "0"}}
DISABLED = (
    "No RDMA, because of a value in a ConfigMap: container trainer sets NCCL_IB_DISABLE=1: remove "
    "the variable."
)


def from_config_map(**fields: Any) -> dict[str, Any]:
    """Return a pod as the webhook leaves it, which gets all variables of a ConfigMap."""
    pod = equipped(gpu("trainer", **{**ALL, **fields}))
    assert '"EnvUnseen"' in pod["metadata"]["annotations"]["rdma.lab/status"]
    return pod


def test_a_value_that_turns_rdma_off() -> None:
    """It decides, whether the configuration of the admission is known or not."""
    for installed in (KNOWN, None):
        explanation = compared(from_config_map(), installed, config_maps=OFF)
        assert (explanation.rdma, explanation.answer.code) == ("no", "NcclIbDisabled")
        assert (explanation.answer.text, explanation.answer.level) == (DISABLED, "error")
        assert explanation.answer.remedy.startswith("Correct the value in the ConfigMap, or set")
        assert changes(explanation) == []


def test_values_that_turn_nothing_off() -> None:
    """Then the pod is equipped, if the rest is known."""
    explanation = compared(from_config_map(), KNOWN, config_maps=ON)
    assert (explanation.rdma, explanation.answer.level) == ("yes", "ok")
    assert explanation.answer.text == (
        "The pod is equipped for RDMA over v100-ib, with the values in ConfigMaps: device, memory, "
        "network and environment are right for RDMA, assuming that the image runs as root."
    )
    assert explanation.answer.remedy == ""
    unknown = compared(from_config_map(), None, config_maps=ON)
    assert (unknown.rdma, unknown.answer.code) == ("unsure", "EnvUnseen")


def test_one_value() -> None:
    """ValueFrom is as envFrom."""
    reference = {"configMapKeyRef": {"name": "tuning", "key": "off"}}
    item = {"name": "NCCL_IB_DISABLE", "valueFrom": reference}
    pod = equipped(gpu("trainer", env=[item]))
    for value, rdma in (("1", "no"), ("0", "yes")):
        explanation = compared(pod, KNOWN, config_maps={"tuning": {"off": value}})
        assert explanation.rdma == rdma


@pytest.mark.parametrize(
    "config_maps", [{}, {"other": {"NCCL_IB_DISABLE": "1"}}], ids=["none", "another"]
)
def test_config_maps_that_are_not_known(config_maps: dict[str, Any]) -> None:
    """The verdict stays."""
    explanation = compared(from_config_map(), KNOWN, config_maps=config_maps)
    assert (explanation.rdma, explanation.answer.code) == ("unsure", "EnvUnseen")


def test_a_secret_beside_it() -> None:
    """It stays unknown, unless the ConfigMap alone turns RDMA off."""
    pod = from_config_map(envFrom=[*ALL["envFrom"], SECRET])
    assert compared(pod, KNOWN, config_maps=ON).rdma == "unsure"
    assert compared(pod, KNOWN, config_maps=OFF).rdma == "no"


def test_other_reasons_stay() -> None:
    """A ConfigMap does not remove another reason for `unsure`, nor a verdict that was certain."""
    pod = equipped(gpu("trainer", env=env(NCCL_NET_PLUGIN="own")))
    assert compared(pod, KNOWN, config_maps=ON).answer.code == "NcclNetPlugin"
    assert explain(live(status()), config_maps=OFF).rdma == "yes"


def test_stronger_evidence() -> None:
    """The log decides before ConfigMaps, and so does what was changed afterwards."""
    assert compared(from_config_map(), KNOWN, config_maps=OFF, logs=(log(RDMA),)).rdma == "yes"
    pod = from_config_map()
    main(pod)["securityContext"] = {}
    assert compared(pod, KNOWN, config_maps=ON).rdma == "unsure"


def test_a_pod_of_no_shape() -> None:
    """Nothing is said about it."""
    pod = live(status("unsure", "EnvUnseen"), spec={"containers": "x"})
    assert explain(pod, config_maps=OFF).answer.code == "EnvUnseen"


def config_map(name: str = "tuning", written: str = EARLIER, **metadata: Any) -> dict[str, Any]:
    """Return a ConfigMap of the pod's namespace."""
    fields = {
        "name": name,
        "namespace": "lab",
        "creationTimestamp": EARLIER,
        "managedFields": [{"time": EARLIER}, {"time": written}],
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
        (config_map(namespace=""), True),
        (config_map(namespace="other"), False),
        ({**config_map(), "kind": "Secret"}, False),
    ],
)
def test_config_maps_of_the_time_of_creation(manifest: dict[str, Any], is_used: bool) -> None:
    """What was changed after the pod was created does not show what its containers got."""
    config_maps = config_maps_of(PodRecord.read(live()), [manifest])
    assert config_maps == ({"tuning": {"a": "b"}} if is_used else {})


def test_config_maps_in_files() -> None:
    """They count as those of a cluster."""
    objects = [live(), config_map(), config_map("late", written=LATER)]
    (evidence,) = collect_from_objects(objects, "lab", None)
    assert evidence.config_maps == {"tuning": {"a": "b"}}
    assert set(evidence.facts.namespace("lab").config_maps) == {"tuning", "late"}
