"""Variables and scripts in ConfigMaps that a preview knows, under what a command does to them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import decision_input, env, gpu, pod
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.model.facts import NamespaceFacts

EQUIPPED = ("yes", "Equipped")
DISABLED = ("no", "NcclIbDisabled")
SITE = {"configMapRef": {"name": "site"}}


def preview_of(name: str = "site", **data: str) -> Any:
    """Make a decision input with a ConfigMap, as a preview has."""
    return decision_input(namespace=NamespaceFacts(name="lab", config_maps={name: data}))


@pytest.mark.parametrize(
    ("script", "value", "expected"),
    [
        ("torchrun a", "1", DISABLED),
        ("export NCCL_IB_DISABLE=${NCCL_IB_DISABLE:-0}; torchrun a", "1", DISABLED),
        ("export NCCL_IB_DISABLE=${NCCL_IB_DISABLE:-1}; torchrun a", "0", EQUIPPED),
        ("[ $X ] && export NCCL_IB_DISABLE=${NCCL_IB_DISABLE:-1}; torchrun a", "0", EQUIPPED),
        ("NCCL_IB_DISABLE=1; torchrun a", "0", DISABLED),
        ("NCCL_IB_DISABLE=0; torchrun a", "1", EQUIPPED),
        ("unset NCCL_IB_DISABLE; torchrun a", "1", EQUIPPED),
        ("export NCCL_IB_DISABLE=0; torchrun a", "1", EQUIPPED),
        ("exec env -i NCCL_DEBUG=INFO torchrun a", "1", EQUIPPED),
    ],
)
def test_a_command_changes_what_env_from_sets(
    script: str, value: str, expected: tuple[str, str]
) -> None:
    """A shell inherits the variables of envFrom, and exports its assignments to them."""
    manifest = pod(gpu(command=["sh", "-c", script], envFrom=[SITE]))
    assert judged(manifest, preview_of(NCCL_IB_DISABLE=value)) == expected
    reference = {"configMapKeyRef": {"name": "site", "key": "NCCL_IB_DISABLE"}}
    item = {"name": "NCCL_IB_DISABLE", "valueFrom": reference}
    by_key = pod(gpu(command=["sh", "-c", script], env=[item]))
    assert judged(by_key, preview_of(NCCL_IB_DISABLE=value)) == expected


def test_without_its_config_map_an_assignment_exports_nothing() -> None:
    """The variables of envFrom are unknown, and so is the verdict."""
    manifest = pod(gpu(command=["sh", "-c", "NCCL_IB_DISABLE=1; torchrun a"], envFrom=[SITE]))
    assert judged(manifest, preview_of("other")) == ("unsure", "EnvUnseen")
    assert judged(manifest, preview_of("site", HF_HOME="/a")) == EQUIPPED


def test_mpirun_forwards_what_a_config_map_sets() -> None:
    """To ranks in the container itself, and with the value of the key."""
    command = ["mpirun", "-x", "NCCL_IB_DISABLE", "./train"]
    reference = {"configMapKeyRef": {"name": "site", "key": "off"}}
    item = {"name": "NCCL_IB_DISABLE", "valueFrom": reference}
    assert judged(pod(gpu(command=command, env=[item])), preview_of(off="1")) == DISABLED
    assert judged(pod(gpu(command=command, env=[item])), preview_of(off="0")) == EQUIPPED


def test_env_from_wins_over_a_file_of_nccl() -> None:
    """NCCL sets only variables that are not set."""
    mount = {"name": "conf", "mountPath": "/etc/nccl.conf", "subPath": "nccl.conf"}
    volume = {"name": "conf", "configMap": {"name": "nccl"}}
    manifest = pod(gpu(envFrom=[SITE], volumeMounts=[mount]), volumes=[volume])
    for in_env, in_file, expected in (("1", "0", DISABLED), ("0", "1", EQUIPPED)):
        config_maps = {
            "site": {"NCCL_IB_DISABLE": in_env},
            "nccl": {"nccl.conf": f"NCCL_IB_DISABLE={in_file}\n"},
        }
        facts = NamespaceFacts(name="lab", config_maps=config_maps)
        verdict = verdict_on(manifest, decision_input(namespace=facts))
        assert (verdict.rdma, verdict.because.code) == expected
        assert ("key NCCL_IB_DISABLE of ConfigMap site" in verdict.message) is (in_env == "1")


SCRIPTS = {"name": "scripts", "mountPath": "/scripts"}
SCRIPTS_VOLUME = {"name": "scripts", "configMap": {"name": "site"}}


def test_a_script_that_copies_a_file_of_nccl() -> None:
    """As a command that does: the content of the file is not known."""
    manifest = pod(
        gpu(command=["bash", "/scripts/entry"], volumeMounts=[SCRIPTS]), volumes=[SCRIPTS_VOLUME]
    )
    entry = "set -e\ncp /config/nccl.conf /etc/nccl.conf || true\ntorchrun a\n"
    verdict = verdict_on(manifest, preview_of(entry=entry))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "FileUnseen")
    assert judged(manifest, preview_of(entry="set -e\ntorchrun a\n")) == EQUIPPED
    assert judged(manifest, preview_of(other=entry)) == EQUIPPED


def test_a_variable_that_the_webhook_sets_is_present() -> None:
    """Also next to those of a known ConfigMap: a default applies to neither."""
    script = "export NCCL_IB_HCA=${NCCL_IB_HCA:-mlx5_9}; torchrun a"
    command = ["sh", "-c", script]
    assert judged(pod(gpu(command=command)), preview_of()) == EQUIPPED
    devices = env(NCCL_IB_HCA="mlx5_0")
    assert (
        judged(pod(gpu(command=command, env=devices, envFrom=[SITE])), preview_of(A="1"))
        == EQUIPPED
    )
