"""Damage to certificates is repaired, and the tests print how long that takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from certs.issue import issue_ca
from tests.e2e.certs.conftest import Start
from tests.e2e.certs.lab import PATHS, SERVER_NAME, Installation, all_ready
from tests.waiting import until
from webhook.kube.client import Client
from webhook.kube.permission_probe import DryRunResult, probe_permissions


def test_damage_is_repaired(lab: Installation, start: Start) -> None:
    """It is repaired with the same CA, so trust is never lost, and no replica becomes unready."""
    lab.configure()
    replicas = start(2)
    all_ready(replicas)
    bundle, data = lab.bundle, lab.secret["data"]
    until(lab.patched)

    def repaired() -> bool:
        return lab.bundle == lab.validating_bundle == bundle and lab.secret.get("data") == data

    def recreate() -> None:
        lab.delete("configuration")
        lab.delete_validating_configuration()
        lab.configure()

    changes: dict[str, Callable[[], None]] = {
        "Secret deleted": lambda: lab.delete("secret"),
        "Secret garbage": lab.overwrite,
        "caBundle emptied": lambda: lab.trust(None),
        "caBundle replaced by another CA": lambda: lab.trust(issue_ca().certificate),
        "caBundle garbage": lambda: lab.trust(b"garbage"),
        "webhook configurations made anew": recreate,
    }
    for damage, change in changes.items():
        change()
        took = until(repaired)
        reached = until(lab.patched)
        print(f"{damage}: healed after {took:.1f} s, a pod patched {reached:.1f} s later")  # noqa: T201
        assert all(replica.ready()[0] == 200 for replica in replicas)
        assert all(replica.handshake(bundle, SERVER_NAME) for replica in replicas)


def test_an_account_without_a_guard_finds_out(lab: Installation, account: Path) -> None:
    """The policy does not match its name: dry runs show what it may change, and change nothing.

    It has the shipped rights, and so it may change no other configuration.
    """
    lab.configure()
    before = lab.published(), lab.validation()
    api = Client(account)
    assert [probe_permissions(api, path) for path in PATHS] == [DryRunResult(allowed=True)] * 2
    assert [probe_permissions(api, f"{path}-other") for path in PATHS] == [
        DryRunResult(allowed=False)
    ] * 2
    assert (lab.published(), lab.validation()) == before


def test_an_immutable_secret_is_reported(lab: Installation, start: Start) -> None:
    """Replicas report a Secret that somebody made immutable, keep serving, and repair the rest.

    Once it is deleted, they make it again with the same CA; they may not delete it themselves.
    """
    lab.configure()
    (replica,) = start(1)
    all_ready([replica])
    bundle, data = lab.bundle, lab.secret["data"]
    lab.freeze()
    until(lambda: "Secret" in replica.ready()[1] and "it is immutable" in replica.ready()[1])
    assert replica.ready()[0] == 200
    until(
        lambda: any("immutable" in line["problem"] for line in replica.lines("certificate at risk"))
    )
    lab.trust(None)
    until(lambda: lab.bundle == bundle)
    until(lab.patched)
    (late,) = start(1)  # now the Service's only endpoint
    all_ready([late])
    until(lab.patched)

    lab.delete("secret")
    until(lambda: lab.secret.get("data") == data)
    assert "immutable" not in lab.secret
    until(lambda: "immutable" not in replica.ready()[1])
