"""An outage of the API server: replicas stay up, and find it again by themselves."""

from __future__ import annotations

import time

import pytest

from certs.clock import MAX_PAUSE
from tests.cluster.install import Webhook
from tests.e2e.live.lab import MAXIMUM, ChangingNamespace
from tests.e2e.live.outage import cut_off, wait_for_api_server
from tests.e2e.live.replica import replicas
from tests.waiting import until

#: Seconds: long enough for a loop without a pause to fail hundreds of times.
OUTAGE = 5.0


@pytest.mark.parametrize("patience", [3.0, 0.0], ids=["stopped", "killed"])
def test_replicas_outlive_the_api_server(
    webhook: Webhook, lab: ChangingNamespace, patience: float
) -> None:
    """They stay ready without a busy loop or growing memory; afterwards changes count as before."""
    running = replicas(webhook)
    before, began = [replica.cost() for replica in running], time.monotonic()
    with webhook.cluster.processes.without("kube-apiserver", patience):
        until(lambda: all(cut_off(replica) for replica in running))
        time.sleep(OUTAGE)
        assert [replica.get("/readyz")[0] for replica in running] == [200] * len(running)
        after = [replica.cost() for replica in running]
        outage = time.monotonic() - began
    wait_for_api_server(webhook.cluster)
    back = time.monotonic()
    until(lambda: not any(cut_off(replica) for replica in running))
    noticed = time.monotonic() - back
    until(lambda: lab.ask().refusal == "")
    lab.put("LimitRange", limits=MAXIMUM)
    took = lab.wait_for_answers(
        lambda answer: bool(answer.object) and answer.memory().limit == "64Gi"
    )

    assert {replica.name for replica in replicas(webhook)} == {replica.name for replica in running}
    for name, early, late in zip((replica.name for replica in running), before, after, strict=True):
        failures = late.failures - early.failures
        cpu = late.cpu_seconds - early.cpu_seconds
        grown = (late.resident_bytes - early.resident_bytes) / (1 << 20)
        print(f"{name}: {failures} failures, {cpu:.2f} s of CPU, {grown:.1f} MiB in {outage:.0f} s")  # noqa: T201
        # For each of the five watches: first pauses grow; the longest are at least MAX_PAUSE / 2.
        assert failures <= 5 * (8 + 2 * outage / MAX_PAUSE)
        assert cpu < outage / 10
        assert grown < 8
    print(f"found again after {noticed:.1f} s; a new LimitRange counted after {took:.2f} s")  # noqa: T201
