"""The configuration changes again and again while pods are created, each with two calls.

Another webhook changes each pod after ours, and takes its time. So the API server calls ours again,
often at another replica, and often after a change has come into use.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.cluster.binaries import binary
from tests.cluster.fabrics import OBJECT, apply_fabrics, wait_until_in_use
from tests.cluster.install import Webhook
from tests.e2e.admission.neighbor import AFTER, Ops, limits_memory, running
from tests.e2e.documents import Document, make_namespaces, namespace
from tests.e2e.fabrics_bypass import patch_fabrics, unchecked
from tests.e2e.installed.load import Creations, creating
from tests.e2e.installed.space import Space
from tests.faults.conftest import Figure
from tests.faults.counts import killed_with
from tests.faults.expected_pods import Expectation, leaves, without_server_fields
from tests.faults.replicas import kill, processes, settled
from tests.faults.scale import SCALE
from tests.waiting import until
from webhook.config import EXAMPLE
from webhook.config.load import parse_object
from webhook.model.fabric import CompiledConfiguration
from webhook.serve.sources.configuration_object import DELAY

#: Seconds between the first and the second call for each pod.
BETWEEN = 0.4
#: Pods that a configuration must have decided before the next pair of changes.
ENOUGH = 5
NAME, PLAIN = "changes", "changes-plain"
FABRIC: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())["spec"]["fabrics"][0]


class Answered(NamedTuple):
    """A pod as it would have been stored, and when it was answered, in seconds since the epoch."""

    pod: Document
    at: float

    @property
    def config(self) -> str:
        """The hash of the configuration that decided."""
        return _config(self.pod)


def _config(pod: Document) -> str:
    return str(json.loads(pod["metadata"]["annotations"]["rdma.lab/status"])["config"])


@pytest.fixture
def space(webhook: Webhook) -> Iterator[Space]:
    """Make a labeled namespace, and one without the label; restore the fabrics afterwards."""
    space = Space(webhook.cluster, NAME, "example.com/none")
    make_namespaces(space.cluster, namespace(NAME, "true"), namespace(PLAIN, None))
    yield space
    wait_until_in_use(webhook, apply_fabrics(webhook.cluster, webhook.fabrics.read_text()))
    space.cluster.kubectl("delete", "namespace", NAME, PLAIN, "--wait=false")


def fabric(number: int) -> Document:
    """Write a fabric that differs from the one before in many fields: set, unset and renamed."""
    names = ("NCCL_DEBUG", "SITE_EVEN" if number % 2 == 0 else "SITE_ODD", f"SITE_{number % 3}")
    spec = FABRIC | {
        "hcas": [f"mlx5_{number % 8}", f"mlx5_{number % 8 + 1}"],
        "resources": [{"name": f"rdma/rdma_{number % 4}", "count": number % 3 + 1}],
        "socketInterface": f"eth{number % 2}",
        "env": dict.fromkeys(names, str(number)),
    }
    return spec | ({"sharedMemory": "8Gi"} if number % 5 == 0 else {})


class Changes:
    """The configurations that came into use, by their hashes."""

    def __init__(self, webhook: Webhook) -> None:
        self._webhook = webhook
        self.used: dict[str, CompiledConfiguration] = {}
        #: When each of them was replaced, at the latest.
        self.replaced: dict[str, float] = {}
        self.last = ""
        #: The pods for which each of them answered the first call.
        self.first_calls = Counter[str]()
        #: The configurations that must have decided pods.
        self.decided = set[str]()

    def habit(self, pod: Document) -> Ops:
        """Act as the other webhook, and count the pods."""
        self.first_calls[_config(pod)] += 1
        return limits_memory(pod)

    def wait_for_pods(self) -> None:
        """Wait until the last one has decided pods."""
        until(lambda: self.first_calls[self.last] >= ENOUGH)
        self.decided.add(self.last)

    def make(self, number: int) -> None:
        """Change the configuration."""
        response = patch_fabrics(self._webhook.cluster, [fabric(number)])
        assert response.code == 200, response.object
        self.replaced[self.last] = time.time() + DELAY
        now = parse_object(response.object, OBJECT).compiled
        self.last = now.config_hash
        self.used[self.last] = now

    def wait_until_in_use(self) -> None:
        """Wait until all replicas use the last one."""
        wait_until_in_use(self._webhook, self.last)


def answered(results: Path) -> Iterator[Answered]:
    """Yield the pods of a load."""
    command: tuple[str | Path, ...] = (binary("vegeta"), "encode", "-to=json", results)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as encode:
        assert encode.stdout is not None
        for line in encode.stdout:
            hit = json.loads(line)
            if hit["code"] == 201:
                body = json.loads(b64decode(hit["body"]))
                yield Answered(
                    without_server_fields(body), _seconds(hit["timestamp"]) + hit["latency"] / 1e9
                )


def _seconds(timestamp: str) -> float:
    """Read a time with nine decimals."""
    parts = re.fullmatch(r"(.{19})(\.\d+)?(Z|[+-]\d\d:\d\d)", timestamp)
    assert parts is not None, timestamp
    return datetime.fromisoformat(parts[1] + parts[3]).timestamp() + float(f"0{parts[2] or '.0'}")


def test_each_pod_has_a_single_configuration(
    webhook: Webhook, space: Space, figure: Figure, tmp_path: Path
) -> None:
    """All values come from it, whichever replica answers which call, even if it has just started.

    Changes come in pairs. The second is made while the first usually still waits to be used, so
    the first may decide no pod.
    """
    webhook.cluster.skip_if_existing("a replica that can be killed")
    pod = space.pod("", "nvidia.com/v100", automountServiceAccountToken=False)
    pod["metadata"] |= {"name": None, "generateName": "changed-"}
    changes = Changes(webhook)
    creations = _while_it_changes(webhook, space, pod, tmp_path, changes)
    settled(webhook)
    expected = _expected(webhook, pod, changes.used)
    counts, late, mixed = Counter[str](), 0, []
    for answer in answered(tmp_path / "results.bin"):
        counts[answer.config] += 1
        late += answer.at > changes.replaced.get(answer.config, answer.at) + 0.1
        if leaves(answer.pod) not in expected.get(answer.config, []):
            mixed.append((answer.config, _difference(answer.pod, expected)))
    assert not mixed, (len(mixed), mixed[:3])
    assert changes.decided <= counts.keys() <= changes.used.keys()
    assert late > 0
    figure(
        f"{2 * SCALE.pairs} changes of the configuration, two calls a pod, a replica killed",
        f"each of {counts.total()} pods by one of {len(counts)} configurations, {late} after it "
        f"was replaced; {killed_with(creations)}",
    )


def _while_it_changes(
    webhook: Webhook, space: Space, pod: Document, folder: Path, changes: Changes
) -> Creations:
    """Create pods while the configuration changes and a replica is killed."""
    victim = processes(webhook)[min(webhook.replicas())]
    with ExitStack() as stack:
        # The check runs with the lowest priority, and has no time while so many pods are created.
        stack.enter_context(unchecked(webhook))
        neighbor = stack.enter_context(running(webhook.cluster, folder))
        neighbor.space, neighbor.takes = NAME, BETWEEN
        changes.make(0)
        changes.wait_until_in_use()
        stack.enter_context(neighbor.moved_in(AFTER, changes.habit, "Never"))
        until(lambda: space.proposed(pod) and neighbor.answered)
        creations = stack.enter_context(creating(space, pod, folder, SCALE.changed))
        for pair in range(SCALE.pairs):
            changes.make(2 * pair + 1)
            time.sleep(SCALE.pace)
            changes.make(2 * pair + 2)
            if pair == SCALE.pairs // 2:
                kill(webhook, victim)
            changes.wait_for_pods()
        changes.wait_until_in_use()
        time.sleep(1)
    return creations


def _expected(
    webhook: Webhook, pod: Document, used: dict[str, CompiledConfiguration]
) -> dict[str, list[dict[str, Any]]]:
    """Return the leaves of the pods by the hash of each configuration."""
    expectation = Expectation(webhook.cluster, NAME, PLAIN, limits_memory)
    return {
        key: [leaves(stored) for stored in expectation.pods(pod, configuration)]
        for key, configuration in used.items()
    }


def _difference(pod: Document, expected: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the leaves that differ from the configuration that comes nearest."""
    actual = leaves(pod)
    differences = [
        {
            key: (actual.get(key), candidate.get(key))
            for key in actual.keys() | candidate.keys()
            if actual.get(key) != candidate.get(key)
        }
        for candidates in expected.values()
        for candidate in candidates
    ]
    return min(differences, key=len)
