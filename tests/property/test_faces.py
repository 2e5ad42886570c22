"""The command line, the HTTP preview and `/mutate` agree on the same pod."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings

from tests.api_server import defaulted, patched, post, review_of, without_status
from tests.fabrics_file import load_fabrics
from tests.property.strategies import pods
from tests.server_state import configured
from webhook.cli import main
from webhook.decide import decide
from webhook.serve import worker_supervisor
from webhook.serve.http.mutate import Mutate
from webhook.serve.http.preview import PreviewApp
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.worker_supervisor import WorkerSupervisor

_FABRICS = """\
apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration
spec:
  defaults: {fabric: v100-ib}
  nvlink: {allowNamespaces: [lab]}
  fabrics:
  - name: v100-ib
    match: {gpuResources: [nvidia.com/v100, nvidia.com/gpu]}
    resources: [{name: rdma/rdma_v100, aliases: [rdma/hca]}]
    hcas: [mlx5_0, mlx5_1]
    socketInterface: eth0
    sharedMemory: 16Gi
"""


class _Faces:
    """All three interfaces with one configuration."""

    def __init__(self, folder: Path) -> None:
        self._pod = folder / "pod.json"
        self._fabrics = folder / "fabrics.yaml"
        self._fabrics.write_text(_FABRICS)
        metrics, log = Metrics(), Log("error")
        loaded = load_fabrics(self._fabrics)
        state = configured(loaded.compiled, fabrics_text=loaded.fabrics_text)
        self._mutate = Mutate(state, metrics, log, decide)
        self.runner = asyncio.Runner()
        self.worker = WorkerSupervisor(metrics, log, seconds=120.0)
        self._preview = PreviewApp(state, metrics, log, self.worker)

    def command_line(self, pod: dict[str, Any]) -> Any:
        """Return the form that `-o json` prints."""
        self._pod.write_bytes(orjson.dumps(pod))
        buffer = io.BytesIO()
        out = io.TextIOWrapper(buffer, encoding="utf-8", write_through=True)
        with contextlib.redirect_stdout(out):
            main(["preview", "-c", str(self._fabrics), "-o", "json", str(self._pod)])
        return _without_input_names(json.loads(buffer.getvalue()))

    def http(self, pod: dict[str, Any]) -> Any:
        """Return the form that `POST /preview` answers with."""
        status, body = post(self._preview, "/preview", orjson.dumps(pod), run=self.runner.run)
        assert status == 200, body
        return _without_input_names(json.loads(body))

    def mutate(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Return the response to the pod's AdmissionReview."""
        status, body = post(self._mutate, "/mutate", review_of(pod))
        assert status == 200, body
        response: dict[str, Any] = orjson.loads(body)["response"]
        return response


def _without_input_names(preview: Any) -> Any:
    """Remove the names of the inputs: one preview has a file, the other has a body."""
    for change in preview["changes"]:
        del change["input"]
    return preview


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Faces]:
    """Start all three interfaces once."""
    started = _Faces(tmp_path_factory.mktemp("faces"))
    with started.runner, pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_supervisor, "NICEST", 1)  # gets processor time on a busy machine
        yield started
        started.runner.run(started.worker.stop())


@settings(max_examples=30)
@given(pod=pods())
def test_faces_agree(faces: _Faces, pod: dict[str, Any]) -> None:
    """The previews are equal, and the API server's pod is theirs, once both are defaulted."""
    printed = faces.command_line(pod)
    assert faces.http(pod) == printed
    (decision,) = printed["decisions"]
    received = defaulted(pod)
    response = faces.mutate(received)
    assert response["allowed"] is decision["allowed"]
    assert response.get("warnings", []) == decision["warnings"]
    if not decision["allowed"]:
        assert response["status"]["message"] == decision["message"]
        return
    patch = orjson.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    mutated = defaulted(patched(received, patch))
    assert without_status(mutated) == without_status(defaulted(decision["object"]))
