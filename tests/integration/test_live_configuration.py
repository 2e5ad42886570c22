"""The configuration as an object, over HTTP; tests/e2e/live has the same with a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.live_api import LiveApi
from tests.integration.serving import FABRICS, Certificates, Running, pod, review
from tests.unit.kube.cluster import NAMESPACES, Cluster, namespace
from tests.waiting import until
from webhook.admission.registration import NO_FABRICS_MESSAGE
from webhook.kube.watched_resources import CONFIGURATIONS
from webhook.serve.sources import configuration_object
from webhook.serve.sources.configuration_object import NO_OBJECT

PATH = CONFIGURATIONS.path


def fabrics_object(name: str = "ib", **fabric: Any) -> dict[str, Any]:
    """Write the object, with one fabric of this name."""
    manifest: dict[str, Any] = yaml.safe_load(FABRICS)
    manifest["metadata"] = {"name": "default", "generation": 1}
    manifest["spec"]["fabrics"][0] |= {"name": name, **fabric}
    return manifest


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveApi]:
    """Serve a cluster without the object; changes take effect sooner than usual."""
    monkeypatch.setattr(configuration_object, "DELAY", 0.1)
    cluster = Cluster()
    cluster.put(NAMESPACES, namespace("lab"))
    with LiveApi(tmp_path, cluster).serving() as served:
        yield served


def message(server: Running) -> str:
    """Return the message of the answer to a review; "" if the pod was decided."""
    answer = server.post(review(pod()))
    assert "Retry-After" not in answer.headers
    return "" if answer.status == 200 else str(json.loads(answer.body)["message"])


def test_decisions_follow_the_object(api: LiveApi, tls: Certificates) -> None:
    """Answers and `/readyz` follow the object: applied, changed, broken, repaired and deleted."""
    with Running(tls, None, kubeconfig=api.kubeconfig) as server:

        def ready(words: str) -> None:
            until(lambda: words in server.get("/readyz").text)
            assert server.get("/readyz").status == 200

        until(lambda: server.get("/readyz").status == 200)

        ready(f"[+] configuration: {NO_OBJECT}\n")
        assert message(server) == f"{NO_FABRICS_MESSAGE}{NO_OBJECT}"
        assert server.post(b"kind: Pod", "/preview").status == 503
        api.cluster.put(PATH, fabrics_object())
        ready("[+] configuration: load 1, config ")
        assert message(server) == ""
        api.cluster.put(PATH, fabrics_object("roce"))
        ready("(roce)\n")
        assert message(server) == ""
        api.cluster.put(PATH, fabrics_object(rateGbps="fast"))
        ready("(roce); still in use, because a newer one cannot be used: ")
        assert message(server) == ""
        api.cluster.put(PATH, fabrics_object("repaired"))
        ready("(repaired)\n")
        api.cluster.delete(PATH, fabrics_object())
        ready(f"[+] configuration: {NO_OBJECT}\n")
        assert message(server) == f"{NO_FABRICS_MESSAGE}{NO_OBJECT}"


def test_the_preview_decides_by_the_object(api: LiveApi, tls: Certificates) -> None:
    """The object may have characters that YAML does not allow."""
    api.cluster.put(PATH, fabrics_object("odd", env={"SITE": "a\x81b"}))
    with Running(tls, None, kubeconfig=api.kubeconfig) as server:
        until(lambda: server.get("/readyz").status == 200)
        answer = server.post(json.dumps(pod()).encode(), "/preview?enable=true")
        (decision,) = json.loads(answer.body)["decisions"]
        assert decision["fabric"] == "odd"


def test_a_file_goes_before_the_object(api: LiveApi, tls: Certificates, tmp_path: Path) -> None:
    """With `--config`, the object is not even read."""
    api.cluster.put(PATH, fabrics_object("object"))
    file = tmp_path / "fabrics.yaml"
    file.write_text(FABRICS)
    with Running(tls, file, kubeconfig=api.kubeconfig) as server:
        until(lambda: server.get("/readyz").status == 200)
        assert "(ib)\n" in server.get("/readyz").text
    assert PATH not in [path for path, _ in api.cluster.asked]


def test_facts_and_object_are_both_needed(api: LiveApi, tls: Certificates) -> None:
    """A replica that has read only one of them is unready, and names the other."""
    cluster = api.cluster
    get = cluster.get

    def without_quotas(path: str, query: Any) -> Any:
        if path.endswith("resourcequotas"):
            cluster.failures.append(ConnectionError())
        return get(path, query)

    cluster.put(PATH, fabrics_object())
    cluster.get = without_quotas  # type: ignore[method-assign]
    with Running(tls, None, kubeconfig=api.kubeconfig) as server:
        until(lambda: "(ib)\n" in server.get("/readyz").text)
        answer = server.get("/readyz")
        assert (answer.status, "\n[-] facts: " in answer.text) == (503, True)
        del cluster.get
        until(lambda: server.get("/readyz").status == 200)
