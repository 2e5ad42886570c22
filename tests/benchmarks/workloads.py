"""The pods of a load, as bodies of `/mutate`: of one workload, or each unlike any other.

The pods of one workload differ as those of a real Indexed Job do, so one decision serves all of
them. A pod unlike any other has a variable with a value that no pod had before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import count, cycle
from random import Random
from typing import Any

from tests.benchmarks.decide import TYPICAL
from tests.benchmarks.reviews import TOKEN_VOLUME, pod, review

#: The number of pods in the workload, which are sent in turn.
SIBLINGS = 64
#: Where the new value of a pod goes; it has as many digits as `time.time_ns`.
_VALUE = "1" * 19
#: The letters of the names that Kubernetes generates (apimachinery, util/rand).
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_INDEX = "batch.kubernetes.io/job-completion-index"


def siblings() -> Iterator[bytes]:
    """Yield the pods of one workload, again and again."""
    return cycle([_written(sibling(number), number) for number in range(SIBLINGS)])


def new_pods() -> Iterator[bytes]:
    """Yield pods with a variable that has a new value, in whichever process this is called."""
    manifest = sibling(0)
    manifest["spec"]["containers"][0]["env"][0]["value"] = _VALUE
    before, after = _written(manifest, 0).split(_VALUE.encode())
    return (b"%b%d%b" % (before, value, after) for value in count(time.time_ns()))


#: By the name that a load is started with.
WORKLOADS: dict[str, Callable[[], Iterator[bytes]]] = {
    "siblings": siblings,
    "new-pods": new_pods,
}


def sibling(index: int) -> dict[str, Any]:
    """Make a pod of an Indexed Job, with what the Job controller adds for the index."""
    manifest = pod(variables=TYPICAL)
    metadata, spec = manifest["metadata"], manifest["spec"]
    metadata["generateName"] = f"pretrain-{index}-"
    for texts in (metadata["labels"], metadata["annotations"]):
        texts[_INDEX] = str(index)
    field = {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{_INDEX}']"}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": field}}
    spec["containers"][0]["env"].append(variable)
    spec["hostname"] = f"pretrain-{index}"
    return manifest


def _written(manifest: dict[str, Any], number: int) -> bytes:
    """Write the review of a pod, with a uid and a token volume of its own."""
    document = review(manifest)
    document["request"]["uid"] = f"705ab4f5-6393-11e8-b7cc-{number:012x}"
    volume = "kube-api-access-" + "".join(Random(number).choices(_LETTERS, k=5))
    written = json.dumps(document, separators=(",", ":"))
    return written.replace(TOKEN_VOLUME, volume).encode()
