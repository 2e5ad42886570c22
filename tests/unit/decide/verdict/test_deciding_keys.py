"""The key of a ConfigMap that decides a verdict, or whose value is not known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import V100, container, decision_input, env, gpu, pod
from tests.case_names import case_name
from tests.unit.decide.verdict.judging import verdict_on
from webhook.model.config_maps import DataKey
from webhook.model.decision import Verdict
from webhook.model.facts import NamespaceFacts

ENTRY, NCCL = DataKey("entry", "a.sh"), DataKey("nccl", "nccl.conf")
MOUNTS = [
    {"name": "entry", "mountPath": "/scripts"},
    {"name": "nccl", "mountPath": "/etc/nccl.conf", "subPath": "nccl.conf"},
]
VOLUMES = [{"name": name, "configMap": {"name": name}} for name in ("entry", "nccl")]
SITE: dict[str, Any] = {"envFrom": [{"configMapRef": {"name": "site"}}]}


def judged(maps: dict[str, dict[str, str]], *words: str, **fields: Any) -> Verdict:
    """Return the verdict on a pod that runs words; its other ConfigMaps are empty."""
    facts = NamespaceFacts(config_maps={"entry": {}, "nccl": {}, "site": {}, **maps})
    main = gpu(command=list(words) or ["./train"], volumeMounts=MOUNTS, **fields)
    return verdict_on(pod(main, volumes=VOLUMES), decision_input(V100)._replace(namespace=facts))


@pytest.mark.parametrize(
    ("variables", "words", "code"),
    [
        ({"NCCL_IB_DISABLE": "1"}, (), "NcclIbDisabled"),
        ({"NCCL_NET": "Socket"}, (), "NcclNetSocket"),
        ({"NCCL_NET": "own"}, (), "NcclNetPlugin"),
        ({"NCCL_NET_PLUGIN": "own"}, (), "NcclNetPlugin"),
        ({"NCCL_NET_PLUGIN": "ofi", "FI_PROVIDER": "tcp"}, (), "NcclOfiOverTcp"),
        ({"UCX_TLS": "tcp"}, ("vllm", "NixlConnector"), "NixlWithoutRdma"),
        ({"SGLANG_DISAGGREGATION_NIXL_BACKEND": "LIBFABRIC"}, ("nixl",), "NixlBackend"),
        ({"MC_FORCE_TCP": "1"}, ("mooncake_master",), "MooncakeOverTcp"),
        (
            {"NVSHMEM_REMOTE_TRANSPORT": "ucx", "UCX_TLS": "tcp"},
            ("import deep_ep",),
            "NvshmemUcxTls",
        ),
        ({"MORI_RDMA_DEVICES": "eth0"}, ("import mori",), "DevicesOfNoFabric"),
        ({"NCCL_IB_HCA": "=eth0"}, (), "NcclIbHcaElsewhere"),
        ({"NCCL_IB_HCA": "mlx5_0:2"}, (), "DevicePortUnseen"),
    ],
    ids=case_name,
)
def test_a_variable_of_env_from(
    variables: dict[str, str], words: tuple[str, ...], code: str
) -> None:
    """Its key decides, and env would override it."""
    verdict = judged({"site": variables}, *words, **SITE)
    assert verdict.because.code == code
    assert verdict.key == DataKey("site", list(variables)[-1])
    assert not verdict.overrides_env


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("UCX_TLS", "tcp", "MPIUcxTls"),
        ("I_MPI_OFI_PROVIDER", "tcp", "MPIProviderOverTCP"),
        ("I_MPI_FABRICS", "shm:tcp", "MPIPerhapsOverTCP"),
    ],
)
def test_a_variable_of_mpi(variable: str, value: str, code: str) -> None:
    """As for the other libraries, in ranks without GPUs."""
    facts = NamespaceFacts(config_maps={"site": {variable: value}})
    ranks = container(command=["mpirun", "-np", "4", "a"], **SITE)
    manifest = pod(ranks, annotations={"rdma.lab/fabric": "v100-ib", "rdma.lab/devices": "1"})
    verdict = verdict_on(manifest, decision_input(V100)._replace(namespace=facts))
    assert (verdict.because.code, verdict.key) == (code, DataKey("site", variable))


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("export NCCL_IB_DISABLE=1\n./train\n", "NcclIbDisabled"),
        ("[ $X ] && export NCCL_IB_DISABLE=1\n./train\n", "SettingPossible"),
        ("(export NCCL_IB_DISABLE=1; ./a); ./train\n", "SettingPossible"),
        ("NCCL_IB_DISABLE=1 ./a | ./train\n", "SettingPossible"),
        ("echo NCCL_IB_DISABLE=1 >/etc/environment; ./train\n", "SettingPossible"),
        ("export NCCL_IB_DISABLE=$(x)\n./train\n", "SettingComputed"),
    ],
    ids=case_name,
)
def test_a_script(script: str, code: str) -> None:
    """It overrides env, whatever the setting is."""
    verdict = judged({"entry": {"a.sh": script}}, "bash", "/scripts/a.sh")
    assert (verdict.because.code, verdict.key, verdict.overrides_env) == (code, ENTRY, True)


def test_a_default_in_a_script() -> None:
    """Env overrides it."""
    script = "export NCCL_IB_DISABLE=${NCCL_IB_DISABLE:-1}\n./train\n"
    verdict = judged({"entry": {"a.sh": script}}, "bash", "/scripts/a.sh")
    assert (verdict.key, verdict.overrides_env) == (ENTRY, False)
    possible = judged({"entry": {"a.sh": f"[ $X ] && {script}"}}, "bash", "/scripts/a.sh")
    assert (possible.because.code, possible.key) == ("SettingPossible", ENTRY)
    assert not possible.overrides_env


def test_a_script_of_a_script() -> None:
    """The inner one decides."""
    maps = {"entry": {"a.sh": ". /scripts/b.sh\n./train\n", "b.sh": "export NCCL_NET=Socket\n"}}
    assert judged(maps, "bash", "/scripts/a.sh").key == DataKey("entry", "b.sh")


def test_a_file_of_nccl() -> None:
    """Env overrides it."""
    verdict = judged({"nccl": {"nccl.conf": "NCCL_IB_DISABLE=1\n"}})
    assert (verdict.key, verdict.overrides_env) == (NCCL, False)


def net_of(source: str) -> dict[str, Any]:
    """Return a container's fields with a variable whose value is in another object."""
    reference = {source: {"name": "late", "key": "net"}}
    return {"env": [{"name": "NCCL_NET", "valueFrom": reference}]}


@pytest.mark.parametrize(
    ("fields", "code", "key"),
    [
        ({"envFrom": [{"configMapRef": {"name": "late"}}]}, "EnvUnseen", DataKey("late", "")),
        ({"envFrom": [{"secretRef": {"name": "late"}}]}, "EnvUnseen", None),
        (net_of("configMapKeyRef"), "ValueUnseen", DataKey("late", "net")),
        (net_of("secretKeyRef"), "ValueUnseen", None),
        ({"env": env(NCCL_NET="Socket")}, "NcclNetSocket", None),
        ({}, "Equipped", None),
    ],
    ids=case_name,
)
def test_what_is_not_known(fields: dict[str, Any], code: str, key: DataKey | None) -> None:
    """The key is that of the value, or of all values."""
    verdict = judged({}, **fields)
    assert (verdict.because.code, verdict.key, verdict.overrides_env) == (code, key, False)


def test_a_file_that_is_not_known() -> None:
    """Its key may have what turns RDMA off."""
    verdict = verdict_on(pod(gpu(volumeMounts=MOUNTS), volumes=VOLUMES))
    assert (verdict.because.code, verdict.key) == ("FileUnseen", NCCL)


def test_a_setting_in_the_command_itself() -> None:
    """No ConfigMap decides."""
    verdict = judged({}, "sh", "-c", "export NCCL_IB_DISABLE=1; ./train")
    assert (verdict.because.code, verdict.key, verdict.overrides_env) == (
        "NcclIbDisabled",
        None,
        False,
    )


@pytest.mark.parametrize(
    ("script", "overrides_env"),
    [
        ("mpirun -x NCCL_IB_DISABLE=1 -H a,b ./train\n", True),
        ("mpirun -x UCX_TLS=tcp -H a,b osu_bw\n", True),
        (
            "export NCCL_IB_DISABLE=${NCCL_IB_DISABLE:-1}\nmpirun -H a,b -x NCCL_IB_DISABLE a\n",
            False,
        ),
    ],
)
def test_a_launcher_with_a_script(script: str, *, overrides_env: bool) -> None:
    """What it sets for its ranks decides; only a default yields to its env."""
    facts = NamespaceFacts(config_maps={"entry": {"a.sh": script}, "nccl": {}})
    launcher = container(command=["bash", "/scripts/a.sh"], volumeMounts=MOUNTS)
    labels = {"training.kubeflow.org/job-role": "launcher"}
    annotations = {"rdma.lab/fabric": "v100-ib"}
    cluster = decision_input(V100)._replace(namespace=facts)
    manifest = pod(launcher, labels=labels, annotations=annotations, volumes=VOLUMES)
    verdict = verdict_on(manifest, cluster)
    assert verdict.because.code == "RanksWithoutRdma"
    assert (verdict.key, verdict.overrides_env) == (ENTRY, overrides_env)
    own = {**launcher, "env": env(NCCL_IB_DISABLE="1")}
    manifest = pod(own, labels=labels, annotations=annotations, volumes=VOLUMES)
    assert verdict_on(manifest, cluster).key == (ENTRY if overrides_env else None)


def test_a_launcher_that_passes_on_a_variable_of_env_from() -> None:
    """Its env overrides that."""
    facts = NamespaceFacts(config_maps={"site": {"NCCL_IB_DISABLE": "1"}})
    labels = {"training.kubeflow.org/job-role": "launcher"}
    manifest = pod(container(command=["deepspeed", "a.py"], **SITE), labels=labels)
    verdict = verdict_on(manifest, decision_input(V100)._replace(namespace=facts))
    assert verdict.message == (
        "container trainer starts its ranks with NCCL_IB_DISABLE=1 (key NCCL_IB_DISABLE of "
        "ConfigMap site); remove that setting"
    )
    assert (verdict.key, verdict.overrides_env) == (DataKey("site", "NCCL_IB_DISABLE"), False)
