"""The files of NCCL and Open MPI: which are read, and what they set."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import env
from tests.builders import pod as pod_of
from tests.case_names import case_name
from webhook.decide.settings.library_files import (
    config_maps_with_library_files,
    nccl_files,
    openmpi_files,
    unseen_file,
    with_library_files,
)
from webhook.decide.settings.mounted_files import MountedFile
from webhook.decide.settings.setting import NO_SETTINGS, CommandSettings, Setting
from webhook.model.config_maps import ConfigMaps, DataKey
from webhook.model.pod import Container, Pod


def file_of(path: str, key: str) -> MountedFile:
    """Return a file that a key of the ConfigMap `m` has."""
    return MountedFile(path, (DataKey("m", key),))


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


Mounts = list[dict[str, Any]]


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ([], []),
        ([mount(SYSTEM)], [file_of(SYSTEM, "conf")]),
        ([mount("/etc/rccl.conf")], [file_of("/etc/rccl.conf", "conf")]),
        ([mount("/root/.rccl.conf")], [file_of("/root/.rccl.conf", "conf")]),
        (
            [mount(SYSTEM), mount(ROOT, "b")],
            [file_of(ROOT, "b"), file_of(SYSTEM, "conf")],
        ),
        ([mount(SYSTEM, None)], []),
        ([mount("/etc", None)], []),
        ([mount(SYSTEM, name="x")], []),
    ],
    ids=case_name,
)
def test_the_files_that_nccl_reads(mounts: Mounts, expected: list[MountedFile]) -> None:
    """In its order; a mount without subPath is a directory, and a file of the image is not seen."""
    assert list(nccl_files(*mounting(*mounts))) == expected


@pytest.mark.parametrize(
    ("source", "key", "expected"),
    [
        (ITEMS, "conf", [file_of(SYSTEM, "k")]),
        (ITEMS, "b", [MountedFile(SYSTEM)]),
        (MANY, "conf", [MountedFile(SYSTEM)]),
        ({"configMap": {"name": "m", "items": 5}}, "b", [file_of(SYSTEM, "b")]),
        ({"configMap": {"name": "m", "items": [{"path": "b"}]}}, "b", [MountedFile(SYSTEM)]),
        ({"secret": {"secretName": "m"}}, "conf", [MountedFile(SYSTEM)]),
        ({"downwardAPI": {}}, "conf", []),
    ],
    ids=case_name,
)
def test_the_sources_of_a_file(
    source: dict[str, Any], key: str, expected: list[MountedFile]
) -> None:
    """The items of a ConfigMap rename its keys; of other sources, only ours is known."""
    assert list(nccl_files(*mounting(mount(SYSTEM, key), source=source))) == expected


@pytest.mark.parametrize(
    ("mounts", "file", "expected"),
    [
        ([mount(ROOT)], SYSTEM, [MountedFile(SYSTEM)]),
        ([mount("/conf", None)], "/conf//a", [file_of("/conf/a", "a")]),
        ([mount("/conf", "dir")], "/conf/a", [file_of("/conf/a", "dir/a")]),
        ([mount("/conf/a", "b")], "/conf/a", [file_of("/conf/a", "b")]),
        ([mount("/conf", None, "x")], "/conf/a", [MountedFile("/conf/a")]),
        (
            [mount(SYSTEM), mount(ROOT)],
            "/x/y",
            [MountedFile("/x/y"), file_of(SYSTEM, "conf")],
        ),
        ([mount(ROOT)], "", [file_of(ROOT, "conf")]),
        ([], "$(DB_PORT)", [MountedFile("$NCCL_CONF_FILE")]),
    ],
    ids=case_name,
)
def test_the_file_that_a_variable_names(
    mounts: Mounts, file: str, expected: list[MountedFile]
) -> None:
    """It takes the place of the user's, and its content is unknown if no ConfigMap has it."""
    assert list(nccl_files(*mounting(*mounts, NCCL_CONF_FILE=file))) == expected


TEXT = "# NCCL_NET=X\nNCCL_NET=Socket\nNCCL_NET=IB\nPATH=/x\n NCCL_DEBUG=INFO\nNCCL_IB_HCA==a\nx\n"


def test_what_the_files_set() -> None:
    """The first line with a name counts, behind the command; a removed variable is not set."""
    parts = mounting(mount(SYSTEM), mount(ROOT, "b"))
    maps = {"m": {"conf": TEXT, "b": "NCCL_IB_HCA==b\n"}}
    settings = with_library_files(NO_SETTINGS, *parts, maps)
    assert {
        name: (setting.value, setting.source) for name, setting in settings.certain.items()
    } == {
        "NCCL_IB_HCA": ("=b", f"{ROOT}, key b of ConfigMap m"),
        "NCCL_NET": ("Socket", f"{SYSTEM}, key conf of ConfigMap m"),
    }
    assert all(setting.yields_to_env for setting in settings.certain.values())
    removed = CommandSettings({"NCCL_NET": Setting("NCCL_NET", None, "unset", removed=True)})
    assert with_library_files(removed, *parts, maps).certain["NCCL_NET"].value == "Socket"
    given = CommandSettings({"NCCL_NET": Setting("NCCL_NET", "IB", "export")})
    assert with_library_files(given, *parts, maps).certain["NCCL_NET"].value == "IB"


def test_files_without_variables_change_nothing() -> None:
    """Neither do unknown ones."""
    parts = mounting(mount(SYSTEM))
    unknown: ConfigMaps = {}
    for maps in (unknown, {"m": {}}, {"m": {"conf": "# x\n"}}, {"": {"": TEXT}}):
        assert with_library_files(NO_SETTINGS, *parts, maps) is NO_SETTINGS


def test_files_whose_content_is_not_known() -> None:
    """A ConfigMap that is known may lack the key: then the file is not there."""
    parts = mounting(mount(SYSTEM), mount(ROOT, "b"))
    assert unseen_file(nccl_files(*parts), {}) == file_of(ROOT, "b")
    assert unseen_file(nccl_files(*parts), {"m": {}}) is None
    secret = mounting(mount(SYSTEM), source={"secret": {}})
    assert unseen_file(nccl_files(*secret), {"m": {}}) == MountedFile(SYSTEM)


USER, INSTALLED = "mca-params.conf", "openmpi-mca-params.conf"


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ([mount("/etc/openmpi", None)], [file_of(f"/etc/openmpi/{INSTALLED}", INSTALLED)]),
        (
            [mount("/opt/hpcx/ompi/etc", "d")],
            [file_of(f"/opt/hpcx/ompi/etc/{INSTALLED}", f"d/{INSTALLED}")],
        ),
        (
            [mount(f"/usr/local/etc/{INSTALLED}", "c")],
            [file_of(f"/usr/local/etc/{INSTALLED}", "c")],
        ),
        (
            [mount(f"/opt/openmpi/etc/{INSTALLED}", "c"), mount("/root/.openmpi", None)],
            [
                file_of(f"/root/.openmpi/{USER}", USER),
                file_of(f"/opt/openmpi/etc/{INSTALLED}", "c"),
            ],
        ),
        ([mount(f"/root/.openmpi/{USER}", "c")], [file_of(f"/root/.openmpi/{USER}", "c")]),
        ([mount("/opt/openmpi", None), mount("/etc", None), mount("/etc/openmpi/x", "c")], []),
        ([mount(f"/etc/openmpi/{INSTALLED}", None)], []),
        ([mount("/etc/openmpi", None, "absent")], []),
    ],
    ids=case_name,
)
def test_the_files_that_open_mpi_reads(mounts: Mounts, expected: list[MountedFile]) -> None:
    """That of the user goes before that of the installation."""
    assert list(openmpi_files(*mounting(*mounts))) == expected


#: Lines, and what ompi_info of Open MPI 4.1.4 shows for them (tests/integration/test_mpi.py).
PARAMETER_LINES = {
    "# pml = cm": {},
    "pml = cm\npml = ob1\n": {"pml": "ob1"},
    "btl=tcp,self": {"btl": "tcp,self"},
    'btl = "tcp,self" # x': {"btl": '"tcp,self" # x'},
    " mtl = ofi ": {"mtl": "ofi"},
}


@pytest.mark.parametrize("text", PARAMETER_LINES)
def test_what_open_mpis_files_set(text: str) -> None:
    """The last line with a parameter counts, behind a variable and the user's file."""
    parts = mounting(mount("/etc/openmpi", None), mount(f"/root/.openmpi/{USER}", "own"))
    maps = {"m": {INSTALLED: text}}
    settings = with_library_files(NO_SETTINGS, *parts, maps)
    assert {name: setting.value for name, setting in settings.certain.items()} == {
        f"OMPI_MCA_{name}": value for name, value in PARAMETER_LINES[text].items()
    }
    config_maps = {
        "m": {INSTALLED: text, "own": "".join(f"{name} = x\n" for name in ("pml", "btl", "mtl"))}
    }
    values = with_library_files(NO_SETTINGS, *parts, config_maps).certain.values()
    assert {setting.value for setting in values} == {"x"}
    assert all(setting.yields_to_env for setting in values)


def test_the_config_maps_of_a_pod() -> None:
    """Those with a file of a library, and none of a malformed pod."""
    pod, _ = mounting(mount("/etc/openmpi", None))
    assert list(config_maps_with_library_files(pod.manifest)) == ["m"]
    pod, _ = mounting(mount(SYSTEM))
    assert list(config_maps_with_library_files(pod.manifest)) == ["m"]
    pod, _ = mounting(mount("/x"))
    assert list(config_maps_with_library_files(pod.manifest)) == []
    assert list(config_maps_with_library_files({"spec": {"containers": "x"}})) == []
