"""Outages of API server and etcd; the replicas themselves are not touched."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.cluster.install import Webhook
from tests.e2e.live.lab import MAXIMUM, ChangingNamespace
from tests.e2e.live.outage import cut_off, wait_for_api_server
from tests.e2e.live.replica import Cost, replicas
from tests.faults.conftest import Figure, Load
from tests.faults.counts import check_none_lost
from tests.faults.replicas import processes
from tests.faults.scale import SCALE
from tests.waiting import until

GROWTH = 16 << 20


def _ended(webhook: Webhook, program: str) -> AbstractContextManager[None]:
    # With open watches, the API server would take a minute to end by itself.
    return webhook.cluster.processes.without(program, seconds=3.0)


@contextmanager
def _frozen(webhook: Webhook, program: str) -> Iterator[None]:
    """Freeze a program; its connections stay open, so nothing notices that it is gone."""
    with webhook.cluster.processes.frozen(program):
        yield


FAULTS = {
    "API server restarted": ("kube-apiserver", _ended),
    "etcd stopped": ("etcd", _ended),
    **({"etcd frozen": ("etcd", _frozen)} if SCALE.frozen else {}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_replicas_recover_by_themselves(
    webhook: Webhook, lab: ChangingNamespace, load: Load, figure: Figure, fault: str
) -> None:
    """No process is restarted, memory does not grow, and later changes count again."""
    program, broken = FAULTS[fault]
    with load() as warm:
        warm.continue_for(1)
    check_none_lost(warm)
    running, before = processes(webhook), _costs(webhook)
    with load() as meanwhile:  # clients keep creating pods
        meanwhile.continue_for(0.5)
        with broken(webhook, program):
            meanwhile.continue_for(0.5 + SCALE.outage)
        back = time.monotonic()
        wait_for_api_server(webhook.cluster)
        until(lambda: lab.ask().refusal == "")
        recovered = time.monotonic() - back
    until(lambda: not any(cut_off(replica) for replica in replicas(webhook)))
    lab.put("LimitRange", limits=MAXIMUM)
    took = lab.wait_for_answers(
        lambda answer: bool(answer.object) and answer.memory().limit == "64Gi"
    )
    with load() as creations:
        creations.continue_for(SCALE.after_repair)
    measured = check_none_lost(creations)

    assert processes(webhook) == running
    after = _costs(webhook)
    grown = max(
        late.resident_bytes - early.resident_bytes
        for early, late in zip(before, after, strict=True)
    )
    assert grown < GROWTH
    figure(
        f"{fault} for {SCALE.outage:.0f} s",
        f"a pod patched {recovered:.1f} s after it was back, a LimitRange counted after "
        f"{took:.2f} s, {grown / (1 << 20):+.1f} MiB, no restart; then {measured}",
    )


def _costs(webhook: Webhook) -> list[Cost]:
    return [replica.cost() for replica in replicas(webhook)]
