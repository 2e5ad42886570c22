"""The files of volumes: which ConfigMap and key have their content."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import pod as pod_of
from tests.case_names import case_name
from webhook.decide.settings.mounted_files import (
    FileText,
    MountedFile,
    config_map_mounts,
    mounted_file,
)
from webhook.model.config_maps import DataKey
from webhook.model.pod import Container, Pod

TOKEN = {"serviceAccountToken": {"path": "token"}}


def mounting(*mounts: dict[str, Any], **source: Any) -> tuple[Pod, Container]:
    """Make a pod whose container has mounts of the volume `v`."""
    container = {"name": "a", "volumeMounts": [{"name": "v", **mount} for mount in mounts]}
    pod = Pod(pod_of(container, volumes=[{"name": "v", **source}]))
    return pod, pod.container(("spec", "containers", 0))


def config_map(name: str = "m", *items: tuple[str, str]) -> dict[str, Any]:
    """Make a source with the files of a ConfigMap; `items` are keys and paths."""
    written = [{"key": key, "path": path} for key, path in items]
    return {"configMap": {"name": name, **({"items": written} if items else {})}}


def secret(*items: tuple[str, str]) -> dict[str, Any]:
    """Make a projected source with the files of a Secret."""
    written = [{"key": key, "path": path} for key, path in items]
    return {"secret": {"name": "s", **({"items": written} if items else {})}}


DIRECTORY = {"mountPath": "/d"}


@pytest.mark.parametrize(
    ("mount", "path", "source", "keys"),
    [
        (DIRECTORY, "/d/a.sh", config_map(), [DataKey("m", "a.sh")]),
        (DIRECTORY, "/d/b/a.sh", config_map("m", ("k", "b/a.sh")), [DataKey("m", "k")]),
        (DIRECTORY, "/d/b", config_map("m", ("k", "a"), ("l", "b"), ("n", "b")), ["l"]),
        (DIRECTORY, "/d/x", config_map("m", ("k", "a")), [None]),
        (DIRECTORY, "/d/x", config_map("m", *[("k", "a")] * 32, ("k", "x")), [None]),
        (DIRECTORY, "/d/x", config_map("m", *[("k", "a")] * 31, ("k", "x")), ["k"]),
        ({"mountPath": "/d/a", "subPath": "k"}, "/d/a", config_map(), ["k"]),
        ({"mountPath": "/d", "subPath": "s"}, "/d/a", config_map(), ["s/a"]),
        ({"mountPath": "/d", "subPath": "./s/"}, "/d/a", config_map(), ["s/a"]),
        ({"mountPath": "/d", "subPathExpr": "$(A)"}, "/d/a", config_map(), [None]),
        (DIRECTORY, "/d/a", {"emptyDir": {}}, [None]),
        (DIRECTORY, "/d/a", {"configMap": {"name": 7}}, [None]),
        (DIRECTORY, "/d/a", {"configMap": {"name": "m", "items": [{"path": "a"}]}}, [None]),
        (DIRECTORY, "/d/a", {"configMap": {"name": "m", "items": [{"key": "a"}]}}, [None]),
        (DIRECTORY, "/d/a", {"projected": {"sources": [config_map()]}}, ["a"]),
        (
            DIRECTORY,
            "/d/a",
            {"projected": {"sources": [7, config_map("n"), TOKEN, config_map()]}},
            ["a", DataKey("n", "a")],
        ),
        (
            DIRECTORY,
            "/d/a",
            {"projected": {"sources": [config_map(), secret()]}},
            [None, "a"],
        ),
        (
            DIRECTORY,
            "/d/a",
            {"projected": {"sources": [config_map(), secret(("k", "a"))]}},
            [None, "a"],
        ),
        (
            DIRECTORY,
            "/d/a",
            {"projected": {"sources": [config_map(), secret(("k", "b"))]}},
            ["a"],
        ),
        (
            DIRECTORY,
            "/d/a",
            {"projected": {"sources": [config_map(), {"secret": {"items": 7}}]}},
            ["a"],
        ),
        (
            DIRECTORY,
            "/d/a",
            {"configMap": {"name": "m", "items": [{"path": [], "key": "k"}]}},
            [None],
        ),
        (
            DIRECTORY,
            "/d/a",
            {"projected": {"sources": [config_map("m", ("k", "b")), config_map("n")]}},
            [DataKey("n", "a")],
        ),
        (
            DIRECTORY,
            "/d/a",
            {"projected": {"sources": [*[TOKEN] * 31, config_map(), config_map("n")]}},
            ["a"],
        ),
    ],
    ids=case_name,
)
def test_the_keys_that_may_have_a_file(
    mount: dict[str, Any], path: str, source: dict[str, Any], keys: list[Any]
) -> None:
    """The last source of a projected volume comes first, and None is what is not known."""
    written = tuple(DataKey("m", key) if isinstance(key, str) else key for key in keys)
    assert mounted_file(*mounting(mount, **source), path) == MountedFile(path, written)


@pytest.mark.parametrize(
    ("mount", "path", "source"),
    [
        (DIRECTORY, "/d", config_map()),
        (DIRECTORY, "/e/a", config_map()),
        (DIRECTORY, "/d2/a", config_map()),
        (DIRECTORY, "/d/a", {"downwardAPI": {}}),
        (DIRECTORY, "/d/a", {"projected": {"sources": [TOKEN]}}),
        (DIRECTORY, "/d/a", {"projected": {"sources": "x"}}),
        ({"mountPath": "/d", "name": "x"}, "/d/a", config_map()),
        (DIRECTORY, "/d/" + "a" * 1022, config_map()),
        (DIRECTORY, "/d" + "/a" * 32, config_map()),
    ],
    ids=lambda value: case_name(value)[:40],
)
def test_no_file(mount: dict[str, Any], path: str, source: dict[str, Any]) -> None:
    """A directory, a path in no volume, what has no content of others, and a very long path."""
    assert mounted_file(*mounting(mount, **source), path) is None


@pytest.mark.parametrize("path", ["/d/" + "a" * 1021, "/d" + "/a" * 31])
def test_the_longest_path(path: str) -> None:
    """Its file is looked for."""
    assert mounted_file(*mounting(DIRECTORY, **config_map()), path) is not None


def test_the_nearest_mount_decides() -> None:
    """It hides what the mount above has."""
    parts = mounting(DIRECTORY, {"mountPath": "/d/e", "subPath": "s"}, **config_map())
    file = mounted_file(*parts, "/d/e/a")
    assert file == MountedFile("/d/e/a", (DataKey("m", "s/a"),))


FIRST, SECOND = DataKey("m", "a"), DataKey("n", "a")


@pytest.mark.parametrize(
    ("keys", "config_maps", "expected"),
    [
        ((FIRST,), {"m": {"a": "1"}}, FileText("1", FIRST)),
        ((FIRST,), {}, FileText(None, FIRST)),
        ((FIRST,), {"m": {}}, FileText("", None)),
        ((None, FIRST), {"m": {"a": "1"}}, FileText(None, None)),
        ((FIRST, SECOND), {"m": {}, "n": {"a": "2"}}, FileText("2", SECOND)),
        ((FIRST, SECOND), {"n": {"a": "2"}}, FileText(None, FIRST)),
    ],
    ids=case_name,
)
def test_the_content_of_a_file(
    keys: tuple[DataKey | None, ...], config_maps: dict[str, dict[str, str]], expected: FileText
) -> None:
    """The first key that exists has it; before, one in a ConfigMap that is not known may."""
    assert MountedFile("/d/a", keys).read(config_maps) == expected


def test_the_mounts_of_config_maps() -> None:
    """Not of other volumes, nor the certificates in the volume with the token."""
    mounts = [{"mountPath": "//d/"}, {"mountPath": "/x", "name": "other"}, {"name": "v"}]
    assert list(config_map_mounts(*mounting(*mounts, **config_map()))) == [("/d", ["m"])]
    volume = {"projected": {"sources": [config_map(), config_map("n"), secret()]}}
    assert list(config_map_mounts(*mounting(DIRECTORY, **volume))) == [("/d", ["m", "n"])]
    certificates = [config_map(n) for n in ("kube-root-ca.crt", "openshift-service-ca.crt")]
    token = {"projected": {"sources": [TOKEN, *certificates]}}
    with_token = {"projected": {"sources": [TOKEN, *certificates, config_map()]}}
    assert list(config_map_mounts(*mounting(DIRECTORY, **with_token))) == [("/d", ["m"])]
    sources: list[dict[str, Any]] = [
        {"emptyDir": {}},
        token,
        {"configMap": {"name": 7}},
    ]
    for source in sources:
        assert list(config_map_mounts(*mounting(DIRECTORY, **source))) == []
