"""Accounts with few rights, and the kubeconfigs with which people would use them."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

from tests.e2e.installed.space import Space
from tests.e2e.rights import service_account, wait_for_right


def kubeconfig_of(space: Space, account: str, folder: Path) -> Path:
    """Make a service account, and write its kubeconfig; its context names the namespace."""
    space.kubectl("create", "serviceaccount", account)
    token = space.kubectl("create", "token", account).strip()
    raw = ("config", "view", "--raw", "--minify", "--output=json")
    config = json.loads(space.cluster.kubectl(*raw))
    cluster = config["clusters"][0]["cluster"]
    if path := cluster.pop("certificate-authority", ""):
        authority = (space.cluster.directory / path).read_bytes()
        cluster["certificate-authority-data"] = b64encode(authority).decode()
    config["users"] = [{"name": "u", "user": {"token": token}}]
    context = {"cluster": config["clusters"][0]["name"], "user": "u", "namespace": space.name}
    config["contexts"] = [{"name": "c", "context": context}]
    config["current-context"] = "c"
    file = folder / "config"
    file.write_text(json.dumps(config))
    return file


def allow(space: Space, account: str, verb: str, resource: str) -> None:
    """Let an account do something in the namespace, and wait until it may."""
    name = f"{account}-{verb}-{resource}"
    space.kubectl("create", "role", name, f"--verb={verb}", f"--resource={resource}")
    given = f"--serviceaccount={space.name}:{account}"
    space.kubectl("create", "rolebinding", name, f"--role={name}", given)
    user = service_account(space.name, account)
    wait_for_right(space.cluster, user, verb, resource, space=space.name)
