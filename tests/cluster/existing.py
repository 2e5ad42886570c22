"""A cluster that somebody else runs, such as one from kind or in a lab, given by its kubeconfig.

It is a Cluster without control over its machine: there are no namespaces to enter, no programs to
stop, and no node to load images or resources onto. A test that needs one of these is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import pytest

from tests.cluster.access import Access
from tests.cluster.cluster import Cluster, KubectlError
from tests.cluster.node import NAME
from tests.cluster.processes import ClusterError

#: The variables for its kubeconfig, and for a webhook image that its nodes have or can pull.
KUBECONFIG, IMAGE = "E2E_KUBECONFIG", "E2E_IMAGE"


def existing() -> Path | None:
    """Return the kubeconfig that the environment names; None if the tests make a cluster."""
    named = os.environ.get(KUBECONFIG)
    return Path(named).expanduser().absolute() if named else None


class ExistingCluster(Cluster):
    """The cluster of a kubeconfig's current context, used with the `kubectl` on the PATH.

    Raises ClusterError if there is no kubectl, no answer, or no credential for plain requests.
    """

    def __init__(self, kubeconfig: Path, image: str) -> None:
        self._kubeconfig = kubeconfig
        self._kubectl = shutil.which("kubectl")
        self.image = image
        if self._kubectl is None:
            raise ClusterError(
                "a cluster that exists is asked by kubectl, which is not on the PATH"
            )
        self._access = _access(self._view())
        version = json.loads(self.kubectl("version", "--output=json"))["serverVersion"]
        self.minor = f"{version['major']}.{version['minor'].rstrip('+')}"

    @property
    def kubeconfig(self) -> Path:
        """The given path."""
        return self._kubeconfig

    @property
    def access(self) -> Access:
        """Access with the credentials of the kubeconfig."""
        return self._access

    def kubectl(self, *arguments: str, input: str | None = None, check: bool = True) -> str:  # noqa: A002
        """See `Cluster.kubectl`."""
        argv = [str(self._kubectl), f"--kubeconfig={self._kubeconfig}", *arguments]
        ran = subprocess.run(argv, input=input, capture_output=True, text=True, check=False)
        if check and ran.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {ran.stderr.strip()}")
        return ran.stdout if check else ran.stdout + ran.stderr

    def skip_if_existing(self, ability: str) -> NoReturn:
        """Skip the test, because this cluster cannot provide that."""
        reason = f"not on the cluster of {KUBECONFIG}: it needs {ability}"
        raise pytest.skip.Exception(reason, _use_item_location=True)

    def load(self, archive: Path) -> NoReturn:
        """Skip the test: the images on the nodes are not ours to choose."""
        self.skip_if_existing(f"the image of {archive.name} on its nodes")

    def advertise(self, amounts: Mapping[str, str], node: str = NAME) -> NoReturn:
        """Skip the test: the resources that the nodes report are not ours to choose."""
        self.skip_if_existing(f"a node {node} with {', '.join(amounts)}")

    def __getattr__(self, name: str) -> NoReturn:
        """Skip the test: everything else that a Cluster has controls programs or the machine."""
        if name.startswith("__"):
            raise AttributeError(name)
        self.skip_if_existing(f"power over the cluster's machine ({name})")

    def _view(self) -> dict[str, Any]:
        text = self.kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json")
        config: dict[str, Any] = json.loads(text)
        return config


def _access(config: Mapping[str, Any]) -> Access:
    """Read the output of `kubectl config view --minify --flatten`: one cluster, one user."""
    server, user = (_only(config, kind) for kind in ("cluster", "user"))
    trusted = _decoded(server, "certificate-authority-data")
    contexts = [ssl.create_default_context(cadata=trusted or None) for _ in range(2)]
    token = str(user.get("token", ""))
    if "client-certificate-data" in user:
        _show(contexts[1], user)
    elif not token:
        raise ClusterError(
            f"the user of {KUBECONFIG} has neither a client certificate nor a token: make a"
            " kubeconfig with the token of a ServiceAccount (kubectl create token)"
        )
    return Access(str(server["server"]), contexts[0], contexts[1], token)


def _only(config: Mapping[str, Any], kind: str) -> dict[str, Any]:
    members: Sequence[Mapping[str, Any]] = config.get(f"{kind}s") or ()
    if len(members) != 1:
        raise ClusterError(f"{KUBECONFIG}: its current context names no {kind}")
    body: dict[str, Any] = members[0][kind]
    return body


def _decoded(section: Mapping[str, Any], key: str) -> str:
    return b64decode(section.get(key, "")).decode()


def _show(context: ssl.SSLContext, user: Mapping[str, Any]) -> None:
    """Load the user's certificate into a context; Python reads it only from files."""
    with TemporaryDirectory(prefix="e2e-") as scratch:
        names = {"client-certificate-data": "crt", "client-key-data": "key"}
        for key, name in names.items():
            Path(scratch, name).write_text(_decoded(user, key))
        context.load_cert_chain(Path(scratch, "crt"), Path(scratch, "key"))
