"""A limit on the memory of a decision, so that no pod can stop a replica.

The memory that a decision needs grows linearly with the pod. If a defect made that false for some
pod, such as a message that repeats a long name for each entry of a list, the kernel would end the
process, with every request in it. With the limit, only that pod's request fails, as with any other
defect. The limit is RLIMIT_DATA, which Linux applies to all private memory (`man 2 getrlimit`);
setting it for a decision takes about 2 µs.
"""

from __future__ import annotations

import os
import resource
from functools import cache

from webhook.decide.analysis import DecisionInput
from webhook.model.decision import Decision
from webhook.model.pod import PodManifest
from webhook.serve.http.decision_cache import Decide

#: Bytes. The largest pods that an API server accepts take about a tenth of it.
MAX_DECISION_BYTES = 128 << 20
#: The sizes of the process, in pages; the sixth number counts what RLIMIT_DATA limits (man 5 proc).
_SIZES, _DATA = "/proc/self/statm", 5
_PAGE_BYTES = resource.getpagesize()


def limit_memory(decide: Decide, max_bytes: int = MAX_DECISION_BYTES) -> Decide:
    """Return a function that decides as `decide` does, and raises MemoryError at the limit.

    `max_bytes` is beyond what the process uses at the start of a decision. There is no limit where
    the system does not show that (outside Linux).
    """
    try:
        _data_bytes()
    except OSError:
        return decide
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)

    def decide_in_memory(pod: PodManifest, decision_input: DecisionInput) -> Decision:
        limit = _data_bytes() + max_bytes
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
        try:
            return decide(pod, decision_input)
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

    return decide_in_memory


@cache  # opening the file would take most of the time
def _sizes_file() -> int:
    return os.open(_SIZES, os.O_RDONLY | os.O_CLOEXEC)


def _data_bytes() -> int:
    return int(os.pread(_sizes_file(), 256, 0).split()[_DATA]) * _PAGE_BYTES
