"""The limit on the memory of a decision."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from tests.builders import decision_input, gpu, pod
from tests.families import FAMILIES, Family, busy_decision_input
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.model.decision import Decision
from webhook.model.pod import PodManifest
from webhook.serve import memory_limit
from webhook.serve.memory_limit import MAX_DECISION_BYTES, limit_memory

#: Bytes.
LIMIT = 32 << 20
#: Entries of the largest pods that are decided.
LARGE = 4_000


def _repeat(_pod: PodManifest, _decision_input: DecisionInput) -> Decision:
    """Keep texts, in steps of 1 MiB."""
    texts = [str(number) * (1 << 20) for number in range(4 * LIMIT >> 20)]
    raise AssertionError(f"not ended: {len(texts)}")


def _at_once(_pod: PodManifest, _decision_input: DecisionInput) -> Decision:
    raise AssertionError(f"not ended: {len('x' * 4 * LIMIT)}")


@pytest.mark.parametrize("endless", [_repeat, _at_once])
def test_a_decision_that_needs_much_memory_is_ended(endless: object) -> None:
    """The next pod is decided, and the process may use as much memory as before."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    for _ in range(2):
        with pytest.raises(MemoryError):
            limit_memory(endless, LIMIT)(pod(gpu()), decision_input())  # type: ignore[arg-type]
    assert limit_memory(decide, LIMIT)(pod(gpu()), busy_decision_input()).allowed
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_the_largest_pods_need_a_quarter(family: Family) -> None:
    """The limit is there for defects alone."""
    quarter = limit_memory(decide, MAX_DECISION_BYTES // 4)
    manifest = json.loads(json.dumps(family(LARGE)))
    assert quarter(manifest, busy_decision_input()).reason.code


def test_without_the_size_of_the_process_there_is_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside Linux, decisions are made as before."""

    def fail() -> int:
        raise FileNotFoundError("/proc/self/statm")

    monkeypatch.setattr(memory_limit, "_data_bytes", fail)
    assert limit_memory(decide) is decide


def test_a_limit_of_the_process_holds() -> None:
    """The limit for a decision is not above the process's own, which nobody may raise."""
    program = f"""
import resource
from tests.builders import decision_input, gpu, pod
from webhook.decide import decide
from webhook.serve.memory_limit import limit_memory
own = {2 << 30}
resource.setrlimit(resource.RLIMIT_DATA, (own, own))
assert limit_memory(decide, 2 * own)(pod(gpu()), decision_input()).reason
assert resource.getrlimit(resource.RLIMIT_DATA) == (own, own)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
