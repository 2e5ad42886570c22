"""Names that a user chose, in the paths that a command of an administrator reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.unit.diagnose.why.pods import REFERENCE, pod_in_cluster, status
from tests.unit.diagnose.why.test_collector import LAB, FakeCluster, collect, everything
from webhook.diagnose import why
from webhook.kube import cluster_reads
from webhook.kube.api import path_segment
from webhook.kube.cluster_reads import FactsReader
from webhook.kube.watched_resources import CLAIMS

#: The API server accepts these as the name of an owner, and most of them as that of a claim.
HOSTILE = [
    "../../../nodes/n/proxy/logs",
    "train/proxy/quit",
    "train?watch=true",
    "train#",
    "train%2Fproxy",
    "%2e%2e",
    "train\n",
    "..",
    ".",
]
FILES = [Path(str(cluster_reads.__file__)), *sorted(Path(str(why.__file__)).parent.glob("*.py"))]
#: Names from the command line, from the API server itself, or made by the program.
_TRUSTED = {
    "kind.plural",
    "namespace",
    "pod_only.name",
    "resource.name",
    "self._namespace",
    "self.api_version",
}


@pytest.mark.parametrize("name", ["train-0", "a.b", "system:node", "~a_b@c"])
def test_an_ordinary_name_stays(name: str) -> None:
    """Names of all kinds, also those with a colon, are read as they are."""
    assert path_segment(name) == name


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_one_segment(name: str) -> None:
    """Also after the API server has decoded it; no object has a name with a percent sign."""
    decoded = unquote(path_segment(name))
    assert "%" in decoded
    assert not set("/?#\n") & set(decoded)
    assert unquote(decoded) == name or unquote(decoded) == unquote(name)


def _assert_harmless(paths: list[str]) -> None:
    for path in paths:
        assert not set("?#\n") & set(path), path
        assert not {".", ".."} & set(unquote(path).split("/")), path
        assert unquote(path).count("/") == path.count("/"), path
        assert "proxy" not in unquote(path).split("/"), path


@pytest.mark.parametrize("name", HOSTILE)
def test_the_names_in_a_pod_lead_to_nothing_else(name: str) -> None:
    """Its owner, claims, volumes, RuntimeClass and ConfigMaps are read under their own paths."""
    owner = {"ownerReferences": [{**REFERENCE, "name": name}]}
    spec = {
        "nodeName": "",
        "runtimeClassName": name,
        "resourceClaims": [{"name": "nic", "resourceClaimName": name}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
    }
    pod = pod_in_cluster(metadata=owner, spec=spec, phase="Pending")
    api = FakeCluster(everything(pod))
    collect(api)
    paths = [path for path, _ in api.asked]
    for collection in (
        "/apis/batch/v1/namespaces/lab/jobs",
        "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims",
        f"{LAB}/persistentvolumeclaims",
    ):
        assert f"{collection}/{path_segment(name)}" in paths
    _assert_harmless(paths)


@pytest.mark.parametrize("version", ["../logs", "..%2F..%2Fapi/v1%2Fnodes", "x?/v1", ".."])
def test_the_version_of_an_owner_leads_to_nothing_else(version: str) -> None:
    """The API server accepts any text with at most one slash."""
    pod = pod_in_cluster(
        status(), metadata={"ownerReferences": [{**REFERENCE, "apiVersion": version}]}
    )
    api = FakeCluster(everything(pod))
    collect(api)
    _assert_harmless([path for path, _ in api.asked])


@pytest.mark.parametrize("name", HOSTILE)
def test_the_names_in_a_document_lead_to_nothing_else(name: str) -> None:
    """`preview --live` reads the namespaces and ConfigMaps that manifests of others name."""
    api: Any = FakeCluster({})
    reader = FactsReader(api)
    reader.read_namespace(name)
    reader.read_claims(name)
    reader.read_config_map(name, name)
    paths = [path for path, _ in api.asked]
    segment = path_segment(name)
    assert f"/api/v1/namespaces/{segment}/configmaps/{segment}" in paths
    assert f"/apis/resource.k8s.io/v1/namespaces/{segment}/{CLAIMS.resource}" in paths
    _assert_harmless(paths)


def _plain_segments(tree: ast.AST) -> Iterator[str]:
    """Yield the values after a slash in texts that look like paths of an API server."""
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        text = "".join(
            ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else str(part.value)
            for part in parts
            if isinstance(part, (ast.FormattedValue, ast.Constant))
        )
        is_path = text.startswith(("/", "root/", "collection/", "_RUNTIME_CLASSES/"))
        before = ""
        for part in parts:
            if isinstance(part, ast.Constant):
                before = str(part.value)
            elif isinstance(part, ast.FormattedValue):
                value = ast.unparse(part.value)
                if is_path and before.endswith("/") and not value.startswith("path_segment("):
                    yield value
                before = ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_name_in_a_path_is_a_segment(file: Path) -> None:
    """A name that is put into a path as it is may lead anywhere."""
    assert {*_plain_segments(ast.parse(file.read_text(encoding="utf-8")))} <= _TRUSTED


def test_the_search_finds_a_plain_name() -> None:
    """In the middle of a path and at its end."""
    source = 'f"/api/v1/nodes/{path_segment(a)}/{b}"; f"/x/{c}/y"; f"{d} and/or {e}"'
    assert {*_plain_segments(ast.parse(source))} == {"b", "c"}
