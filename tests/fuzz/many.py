"""Many copies of one thing: a loop inside a loop over users' lists would take long."""

from __future__ import annotations

from typing import Any

import orjson

from tests.fuzz.dice import Dice
from tests.fuzz.scripts import OPENINGS

_TERMS = (
    "spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"
)
_LABEL = {"key": "k@", "operator": "In", "values": ["x"]}
#: Places, with items to repeat there: `@` becomes a number. `c/` is the last container.
_LISTS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("c/env", ({"name": "A@"}, {"name": "NCCL_@", "value": "x"}, {"name": "A", "value": "$(@)"})),
    ("c/env", ({"name": "A", "value": "$(A)$(A)x"}, {"name": "B", "value": "$(A" * 9})),
    ("c/env", ({"name": "A@", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},)),
    ("c/envFrom", ({"configMapRef": {"name": "m@"}}, {})),
    ("c/volumeMounts", ({"name": "v@", "mountPath": "/m@"}, {"name": "v"}, {})),
    ("c/command", ("a@", "-x", "mpirun", "sshd", "A=@", "env", "timeout")),
    ("c/args", ("a@", "-x", "mpirun -x A", "--", "-mca")),
    ("c/startupProbe/exec/command", ("NCCL_NET=@", "tee a", "cp nccl.conf", ">nccl.conf")),
    ("c/args", ("$(A)$$(B)", "NCCL_NET=$(")),
    ("c/resources/claims", ({"name": "nic@"}, {"name": "x@"})),
    ("c/securityContext/capabilities/add", ("C@", "ALL@")),
    ("spec/containers", ({"name": "c@"}, {"name": "c@", "env": [{"name": "A"}]}, {"name": ""})),
    ("spec/containers", ({"name": "c@", "volumeMounts": [{"name": "v@", "mountPath": "/tmp"}]},)),
    ("spec/containers", ({"name": "c@", "resources": {"limits": {"nvidia.com/gpu": 1}}},)),
    ("spec/containers", ({"name": "c@", "command": ["mpirun", "-x", "A@"]},)),
    ("spec/containers", ({"name": "c@", "command": ["sh", "-c", "mpirun -x A@"]},)),
    ("spec/initContainers", ({"name": "i@"}, {"name": "i@", "restartPolicy": "Always"})),
    ("spec/ephemeralContainers", ({"name": "e@"},)),
    ("spec/volumes", ({"name": "v@"}, {"name": "v@", "emptyDir": {"medium": "Memory"}}, {})),
    ("spec/volumes", ({"name": "v@", "downwardAPI": {"items": [{"path": "m"}]}},)),
    ("spec/resourceClaims", ({"name": "nic@"}, {"name": "x@"}, {})),
    ("spec/tolerations", ({"key": "t@"},)),
    (_TERMS, ({"matchExpressions": [_LABEL]}, {}, {"matchExpressions": [{}]})),
)
_MAPPINGS: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = (
    ("metadata/annotations", (("a@", "x"), ("rdma.lab/@", ""), ("site.lab/@", ""), ("é@", "é"))),
    ("metadata/labels", (("l@", "x"),)),
    ("spec/nodeSelector", (("k@", "x"), ("nvidia.com/gpu.product@", "x"))),
    (
        "c/resources/limits",
        (("x/r@", 1), ("rdma/r@", "1"), ("nvidia.com/mig-@", 1), ("a/sriov@", 1)),
    ),
    ("c/resources/requests", (("x/r@", 1), ("rdma/r@", "1"), ("y@", "é"))),
)
_SCRIPTS: tuple[tuple[str, str, str], ...] = (
    *(("", "mpirun -x A@\n", ""), ("", "mpirun -x A; ", ""), ("mpirun ", "a@ ", "")),
    *(("mpirun -x A\n", opening, "") for opening in OPENINGS),
    *(("", opening, "mpirun -x A") for opening in OPENINGS),
    *(
        ("mpirun -x A ", "\\\n", "b"),
        ("mpirun -x A ", "\ta[é", "\nmpirun x"),
        ("", "# mpirun\n", ""),
    ),
    *(
        ("", "cat <<E@\nmpirun\nE@\n", ""),
        ("", "cat <<E@\n", "mpirun -x A"),
        ("mpirun ", "'a'", ""),
    ),
    *(
        ("", "a|", "mpirun -x A"),
        ("", "[[~", "mpirun"),
        ("mpirun -x ", "$A", ""),
        ("", "x=(", "mpirun"),
    ),
    *(("", "if mpirun -x A; then\n", ""), ("", "case x in mpirun)\n", ""), ("", "mpirun", "")),
)
_TEXTS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "metadata/annotations/k8s.v1.cni.cncf.io~networks",
        (
            ("", "n@,", "x"),
            ("[", '{"name":"n@"},', '{"name":"x"}]'),
            ("", "a,", "a"),
            ("[", "[", ""),
        ),
    ),
    ("metadata/annotations/rdma.lab~containers", (("", "c@,", "c1"), ("", " ,", ""))),
    ("metadata/annotations/rdma.lab~skip", (("", "env,", "env"), ("", "x@,", "x"))),
    (
        "metadata/annotations/rdma.lab~status",
        (("[", "[", ""), ('{"applied":["env"', ',"x@"', "]}")),
    ),
    ("c/command/2", _SCRIPTS),
)


def fill_with_copies(dice: Dice, pod: dict[str, Any], size: int) -> None:
    """Put many copies of one thing into a pod, about `size` bytes; edit the pod in place."""
    kind = dice.below(8)
    if kind < 5:
        path, items = dice.pick(_LISTS)
        _put(pod, path, _copies(dice.pick(items), size))
    elif kind < 7:
        path, pairs = dice.pick(_MAPPINGS)
        _put(pod, path, dict(_copies(dice.pick(pairs), size)))
    else:
        path, texts = dice.pick(_TEXTS)
        _put(pod, path, _long(dice.pick(texts), size))


def much_text(dice: Dice, size: int) -> str:
    """Make a long script that mostly repeats one thing."""
    return _long(dice.pick(_SCRIPTS), size)


def _long(text: tuple[str, str, str], size: int) -> str:
    head, piece, tail = text
    return head + "".join(_copies(piece, size)) + tail


def _copies(pattern: Any, size: int) -> list[Any]:
    written = orjson.dumps(pattern).decode()
    count = size // (len(written) + 2)
    copies = (written.replace("@", str(number)) for number in range(count))
    repeated: list[Any] = orjson.loads(f"[{','.join(copies)}]")
    return repeated


def _put(pod: dict[str, Any], path: str, value: Any) -> None:
    """Put the value there, next to existing ones; replace values of another type on the way."""
    steps = [step.replace("~", "/") for step in path.split("/")]
    node: Any = pod
    if steps[0] == "c":
        node, steps = pod["spec"]["containers"][-1], steps[1:]
    if steps == ["command", "2"]:
        node["command"] = ["bash", "-c", value]
        return
    for step in steps[:-1]:
        if node.get(step).__class__ is not dict:
            node[step] = {}
        node = node[step]
    old = node.get(steps[-1])
    if old.__class__ is not value.__class__ or value.__class__ is str:
        node[steps[-1]] = value
    elif value.__class__ is list:
        node[steps[-1]] = [*old, *value]
    else:
        node[steps[-1]] = {**old, **value}
