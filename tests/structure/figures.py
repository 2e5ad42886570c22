"""Figures of the structure of the code: reads by path, and borders between rooms.

A room is a folder directly below `webhook`.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from tests.builders import container, decide_on, env, gpu, pod
from webhook.model.pod import PodManifest

#: The readers by path, the checks of a value, and what `diagnose` and `preview` build on them.
READERS = frozenset(
    {
        "at",
        "read_flag",
        "read_mapping",
        "read_mappings",
        "read_sequence",
        "read_strings",
        "read_string",
    }
    | {"as_flag", "as_mappings", "as_mapping", "as_sequence", "as_strings", "as_string"}
    | {"items_at", "word", "word_at"}
)
#: Where a pod is read: calls here do not count.
_HOME = "model/pod"

#: Decided on to count borders: a training pod, an MPI launcher, a privileged pod that shares
#: NVLink, and a pod on a fabric of attached devices.
PODS: tuple[PodManifest, ...] = (
    pod(gpu(count=8, command=["sh", "-c", "torchrun train.py"])),
    pod(container(command=["mpirun", "-np", "16", "--hostfile", "/etc/mpi/hostfile", "train"])),
    pod(
        gpu(command=["train"], env=env(NCCL_DEBUG="INFO"), securityContext={"privileged": True}),
        annotations={"rdma.lab/nvlink": "share"},
    ),
    pod(container(resources={"limits": {"nvidia.com/h100": 1, "memory": "64Gi"}})),
)


def reads_by_path(root: Path) -> Counter[str]:
    """Count the calls of the readers outside of the pod's own reading: room → calls.

    `root` is the folder `webhook`. A function of the same name that a module has neither imported
    nor defined is not counted.
    """
    reads: Counter[str] = Counter()
    for file in sorted(root.rglob("*.py")):
        place = file.relative_to(root)
        if not place.as_posix().startswith(_HOME):
            reads[place.parts[0]] += _calls(ast.parse(file.read_text(encoding="utf-8")))
    return +reads


def _calls(module: ast.Module) -> int:
    readers = READERS & (_imported(module) | {function.name for function in _functions(module)})
    return sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in readers
        for node in ast.walk(module)
    )


def _imported(module: ast.Module) -> set[str]:
    return {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("webhook.")
        for alias in node.names
    }


def _functions(module: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in module.body if isinstance(node, ast.FunctionDef)]


def border_crossings(root: Path) -> set[tuple[str, str]]:
    """Return the pairs (caller, called) of functions in different rooms that decide on `PODS`."""
    pairs: set[tuple[str, str]] = set()
    folder = f"{root.resolve()}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_back is not None:
            caller, called = _place(frame.f_back, folder), _place(frame, folder)
            if called and caller and called.partition("/")[0] != caller.partition("/")[0]:
                pairs.add((caller, called))

    sys.setprofile(note)
    try:
        for manifest in PODS:
            decide_on(manifest)
    finally:
        sys.setprofile(None)
    return pairs


def _place(frame: FrameType, folder: str) -> str:
    """Return `decide/draft.py:set`, "" for a function that is not ours."""
    file = frame.f_code.co_filename
    return f"{file.removeprefix(folder)}:{frame.f_code.co_name}" if file.startswith(folder) else ""
