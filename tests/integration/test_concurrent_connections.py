"""Connections to the API server that several threads of a starting replica make at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.integration.kubeconfig import KUBECONFIG

#: The functions by which a replica's threads connect; each imports the Kubernetes client. The short
#: switch interval makes their imports overlap.
THREADS = """\
import sys
import threading
from functools import partial
from pathlib import Path
from webhook.kube import access, informers
from webhook.serve.sources import certificate_api
from webhook.serve.status import lease
sys.setswitchinterval(1e-5)
kubeconfig = Path(sys.argv[1])
calls = [
    partial(lease._connect, kubeconfig, "rdma-webhook", "pod-1"),
    partial(access.connect, kubeconfig),
    partial(certificate_api.connect, kubeconfig),
    partial(informers.connect_reads, kubeconfig),
]
threads = [threading.Thread(target=call) for call in calls]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_connect_at_once(tmp_path: Path) -> None:
    """No thread fails while another one imports the Kubernetes client."""
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(KUBECONFIG % 1)
    command = [sys.executable, "-c", THREADS, str(kubeconfig)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stderr == ""
