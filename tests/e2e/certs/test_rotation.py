"""A complete rotation of the CA, with lifetimes of seconds, while the API server keeps calling."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.certs.command import certs
from tests.e2e.certs.conftest import Start
from tests.e2e.certs.lab import FLAGS, NAME, SERVER_NAME, Installation, all_ready
from tests.faults.scale import SCALE
from tests.integration.replica import Replica
from tests.waiting import until

REPLICAS = 3
#: Seconds for which clients may use the CAs that they have read.
PROPAGATION = 5.0
#: A leaf is replaced after 20 s; a CA is removed two minutes after the next one issues.
TIMES = (
    *("--ca-propagation", f"{PROPAGATION:g}s"),
    *("--ca-interval", "1s", "--leaf-lifetime", "30s"),
)


@contextmanager
def calling(lab: Installation, replicas: list[Replica]) -> Iterator[Counter[str]]:
    """Create pods (dry run) and do handshakes with each replica, until the block ends.

    A handshake does not count if the machine was so slow that its CAs are too old by now.
    """
    counts: Counter[str] = Counter()
    over = threading.Event()

    def look() -> tuple[str, float]:
        when = time.monotonic()
        return lab.bundle, when

    def run() -> None:
        latest = look()
        while not over.is_set():
            counts["pods"] += 1
            counts["pods failed"] += not lab.patched()
            before, latest = latest, look()
            for replica in replicas:
                for bundle, when in (before, latest):
                    trusted = _is_trusted(replica, bundle)
                    if time.monotonic() - when < PROPAGATION:
                        counts["handshakes"] += 1
                        counts["handshakes failed"] += not trusted
            time.sleep(0.1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield counts
    finally:
        over.set()
        thread.join()


def _is_trusted(replica: Replica, bundle: str) -> bool:
    try:
        replica.handshake(bundle, SERVER_NAME)
    except OSError:
        return False
    return True


def _certs(lab: Installation, *arguments: str) -> tuple[int, dict[str, Any]]:
    access = ("--kubeconfig", str(lab.cluster.kubeconfig), "--namespace", NAME, *FLAGS)
    return certs(*arguments, *access)


def test_no_call_fails_during_a_rotation(lab: Installation, start: Start) -> None:
    """A revocation follows, until the last CA issues; in long runs, until only that one is left."""
    lab.configure()
    replicas = start(REPLICAS, *TIMES)
    all_ready(replicas)
    until(lab.patched)
    code, report = _certs(lab, "status")
    assert (code, report["phase"], len(report["handshakes"])) == (0, "settled", REPLICAS), report
    with calling(lab, replicas) as counts:
        began = time.monotonic()
        for flags, trusted in (((), 2), (("--revoke",), 3)):
            issuer = _issuer(lab)
            began = time.monotonic()
            assert _certs(lab, "rotate", *flags)[0] == 0
            until(lambda old=issuer: _issuer(lab) != old)  # type: ignore[misc]
            took = time.monotonic() - began
            print(f"{' '.join(('rotate', *flags))}: the next CA issues after {took:.0f} s")  # noqa: T201
            _, report = _certs(lab, "status")
            assert (report["phase"], len(report["authorities"])) == ("draining", trusted)
        until(lambda: _issuers(lab) == {"current"})
        if SCALE.waits_for_retirement:
            until(lambda: lab.bundle == _issuer(lab))
        print(f"{time.monotonic() - began:.0f} s; {dict(counts)}")  # noqa: T201
    assert counts["handshakes"] > 0
    assert counts["pods failed"] == counts["handshakes failed"] == 0
    code, report = _certs(lab, "status")
    assert (code, report["phase"]) == (
        0,
        "settled" if SCALE.waits_for_retirement else "draining",
    ), report


def _issuers(lab: Installation) -> set[str]:
    """Return the roles of the CAs that issued the served leaves."""
    return {handshake["issuer"] for handshake in _certs(lab, "status")[1]["handshakes"]}


def _issuer(lab: Installation) -> str:
    return str(lab.secret["data"]["ca.crt"])
