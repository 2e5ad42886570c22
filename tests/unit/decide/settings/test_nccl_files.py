"""The files with NCCL's variables: which are read, and what they set."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import env
from tests.builders import pod as pod_of
from tests.case_names import case_name
from webhook.decide.settings.nccl_files import (
    NcclFile,
    config_maps_with_nccl_files,
    nccl_files,
    unseen_nccl_file,
    with_nccl_files,
)
from webhook.decide.settings.setting import NO_SETTINGS, CommandSettings, Setting
from webhook.model.config_maps import ConfigMaps
from webhook.model.pod import Container, Pod

SYSTEM, ROOT = "/etc/nccl.conf", "/root/.nccl.conf"


def mount(path: str, key: str | None = "conf", name: str = "v") -> dict[str, Any]:
    """Make a mount of a file, or of a whole volume."""
    return {"name": name, "mountPath": path, **({} if key is None else {"subPath": key})}


def mounting(
    *mounts: dict[str, Any], source: Any = None, **variables: str
) -> tuple[Pod, Container]:
    """Make a pod whose container has mounts of a volume, by default of the ConfigMap `m`."""
    volume = {"name": "v", **(source or {"configMap": {"name": "m"}})}
    container = {"name": "a", "volumeMounts": list(mounts), "env": env(**variables)}
    pod = Pod(pod_of(container, volumes=[{"name": "other", "emptyDir": {}}, volume]))
    return pod, pod.container(("spec", "containers", 0))


ITEMS = {"configMap": {"name": "m", "items": [{"key": "k", "path": "conf"}]}}
MANY = {"configMap": {"name": "m", "items": [{"key": "k", "path": "x"}] * 32 + [ITEMS]}}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (mounting(), []),
        (mounting(mount(SYSTEM)), [NcclFile(SYSTEM, "m", "conf")]),
        (
            mounting(mount(SYSTEM), mount(ROOT, "b")),
            [NcclFile(ROOT, "m", "b"), NcclFile(SYSTEM, "m", "conf")],
        ),
        (mounting(mount(SYSTEM, None)), []),
        (mounting(mount("/etc", None)), []),
        (mounting(mount(SYSTEM), source=ITEMS), [NcclFile(SYSTEM, "m", "k")]),
        (mounting(mount(SYSTEM, "b"), source=ITEMS), [NcclFile(SYSTEM)]),
        (mounting(mount(SYSTEM), source=MANY), [NcclFile(SYSTEM)]),
        (
            mounting(mount(SYSTEM), source={"configMap": {"name": "m", "items": 5}}),
            [NcclFile(SYSTEM, "m", "conf")],
        ),
        (
            mounting(mount(SYSTEM), source={"secret": {"secretName": "m"}}),
            [NcclFile(SYSTEM, "", "conf")],
        ),
        (mounting(mount(SYSTEM), source={"downwardAPI": {}}), []),
        (mounting(mount(SYSTEM, name="x")), []),
        (mounting(mount(ROOT), NCCL_CONF_FILE=SYSTEM), [NcclFile(SYSTEM)]),
        (
            mounting(mount("/conf", None), NCCL_CONF_FILE="/conf//a"),
            [NcclFile("/conf/a", "m", "a")],
        ),
        (
            mounting(mount("/conf", "dir"), NCCL_CONF_FILE="/conf/a"),
            [NcclFile("/conf/a", "m", "dir/a")],
        ),
        (
            mounting(mount("/conf/a", "b"), NCCL_CONF_FILE="/conf/a"),
            [NcclFile("/conf/a", "m", "b")],
        ),
        (
            mounting(mount("/conf", None), source={"downwardAPI": {}}, NCCL_CONF_FILE="/conf/a"),
            [NcclFile("/conf/a")],
        ),
        (
            mounting(mount(SYSTEM), mount(ROOT), NCCL_CONF_FILE="/x/y"),
            [NcclFile("/x/y"), NcclFile(SYSTEM, "m", "conf")],
        ),
        (mounting(mount(ROOT), NCCL_CONF_FILE=""), [NcclFile(ROOT, "m", "conf")]),
        (mounting(NCCL_CONF_FILE="$(X)"), [NcclFile("$NCCL_CONF_FILE")]),
    ],
    ids=case_name,
)
def test_the_files_that_nccl_reads(parts: tuple[Pod, Container], expected: list[NcclFile]) -> None:
    """In its order; a file of the image is not seen, unless NCCL_CONF_FILE names it."""
    assert list(nccl_files(*parts)) == expected


TEXT = "# NCCL_NET=X\nNCCL_NET=Socket\nNCCL_NET=IB\nPATH=/x\n NCCL_DEBUG=INFO\nNCCL_IB_HCA==a\nx\n"


def test_what_the_files_set() -> None:
    """The first line with a name counts, behind the command; a removed variable is not set."""
    parts = mounting(mount(SYSTEM), mount(ROOT, "b"))
    maps = {"m": {"conf": TEXT, "b": "NCCL_IB_HCA==b\n"}}
    settings = with_nccl_files(NO_SETTINGS, *parts, maps)
    assert {
        name: (setting.value, setting.source) for name, setting in settings.certain.items()
    } == {
        "NCCL_IB_HCA": ("=b", ROOT),
        "NCCL_NET": ("Socket", SYSTEM),
    }
    assert all(setting.default for setting in settings.certain.values())
    removed = CommandSettings({"NCCL_NET": Setting("NCCL_NET", None, "unset", removed=True)})
    assert with_nccl_files(removed, *parts, maps).certain["NCCL_NET"].value == "Socket"
    given = CommandSettings({"NCCL_NET": Setting("NCCL_NET", "IB", "export")})
    assert with_nccl_files(given, *parts, maps).certain["NCCL_NET"].value == "IB"


def test_files_without_variables_change_nothing() -> None:
    """Neither do unknown ones."""
    parts = mounting(mount(SYSTEM))
    unknown: ConfigMaps = {}
    for maps in (unknown, {"m": {}}, {"m": {"conf": "# x\n"}}, {"": {"": TEXT}}):
        assert with_nccl_files(NO_SETTINGS, *parts, maps) is NO_SETTINGS


def test_files_whose_content_is_not_known() -> None:
    """A ConfigMap that is known may lack the key: then the file is not there."""
    parts = mounting(mount(SYSTEM), mount(ROOT, "b"))
    assert unseen_nccl_file(*parts, {}) == ROOT
    assert unseen_nccl_file(*parts, {"m": {}}) == ""
    assert unseen_nccl_file(*mounting(mount(SYSTEM), source={"secret": {}}), {"m": {}}) == SYSTEM


def test_the_config_maps_of_a_pod() -> None:
    """Those with a file for NCCL, and none of a malformed pod."""
    pod, _ = mounting(mount(SYSTEM))
    assert list(config_maps_with_nccl_files(pod.manifest)) == ["m"]
    pod, _ = mounting(mount("/x"))
    assert list(config_maps_with_nccl_files(pod.manifest)) == []
    assert list(config_maps_with_nccl_files({"spec": {"containers": "x"}})) == []
