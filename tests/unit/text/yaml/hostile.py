"""Documents of any size that only an attacker would write, to keep a preview busy."""

from __future__ import annotations

import json
from collections.abc import Callable

_POD = (
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations: {rdma.lab/enable: 'true'}\n"
    "spec:\n"
)
_SINGLE_POD = _POD + "  containers:\n  - {name: a, resources: {limits: {nvidia.com/v100: 1}}}\n"
_CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\ndata:\n"
_BLOCK = (
    "  - name: cN\n    # of this one\n    command: [mpirun, x]\n    resources:\n      limits:\n"
    "        nvidia.com/v100: 1\n        memory: 1Gi\n        # below\n    env:\n    - name: A\n"
    "      value: b\n"
)
_FLOW = "{name: cN, command: [mpirun], resources: {limits: {nvidia.com/v100: 1}}},"


def _repeated(head: str, unit: str, tail: str = "") -> Callable[[int], str]:
    return lambda n: head + "".join(unit.replace("N", str(at)) for at in range(n)) + tail


def _json(indent: int | None) -> Callable[[int], str]:
    def written(n: int) -> str:
        listed = [
            {"name": f"c{at}", "resources": {"limits": {"nvidia.com/v100": 1}}} for at in range(n)
        ]
        metadata = {"name": "p", "annotations": {"rdma.lab/enable": "true"}}
        pod = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}
        return json.dumps({**pod, "spec": {"containers": listed}}, indent=indent)

    return written


def _outer(n: int) -> str:
    keys = "".join(f"    rdma.lab/enabld{at}: a\n" for at in range(n))
    pods = "- {spec: {containers: [{name: a}]}}\n" * n
    return f"apiVersion: v1\nkind: L\nmetadata:\n  annotations:\n{keys}items:\n{pods}"


#: Name → a function that makes a document with `n` of something.
GROWING: dict[str, Callable[[int], str]] = {
    "containers in block style": _repeated(_POD + "  containers:\n", _BLOCK),
    "containers in block style, CRLF": lambda n: GROWING["containers in block style"](n).replace(
        "\n", "\r\n"
    ),
    "containers on one line": _repeated(_POD + "  containers: [", _FLOW, "]\n"),
    "containers in JSON on one line": _json(None),
    "containers in JSON": _json(2),
    "keys around many pods": _outer,
    "pods of a list": _repeated(
        "apiVersion: v1\nkind: List\nitems:\n",
        "- {apiVersion: v1, kind: Pod, metadata: {name: pN, annotations: {rdma.lab/enable: 'true'}}"
        ", spec: {containers: [{name: a, resources: {limits: {nvidia.com/v100: 1}}}]}}\n",
    ),
    "documents": _repeated("", f"---\n{_SINGLE_POD}"),
    "empty documents": _repeated(_SINGLE_POD, "---\n"),
    "manifests in strings": _repeated(_CONFIG_MAP, "  kN: 'kind: a, containers: apiVersion: '\n"),
    "annotations": _repeated(
        "spec: {containers: [{name: a, resources: {limits: {nvidia.com/v100: 1}}}]}\n"
        "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    rdma.lab/enable: 'true'\n",
        "    kN: v\n",
    ),
    "keys written twice": _repeated(_SINGLE_POD + "x: {", "a: 1,", "}\n"),
    "merged mappings": _repeated(_SINGLE_POD + "x: {", "<<: {a: 1},", "}\n"),
    "anchors": _repeated(_SINGLE_POD + "x: [", "&aN b,", "]\n"),
    "aliases": _repeated(_SINGLE_POD + "x: [&a b,", "*a,", "]\n"),
    "comments": _repeated(_POD + "  containers:\n", "  # a\n", "  - {name: a}\n"),
    "comments below": _repeated(_SINGLE_POD, "    # a\n"),
    "containers outside of pods": _repeated(
        "apiVersion: v1\nkind: X\nspec:\n", "  kN: {c: {image: a, name: b}}\n"
    ),
    "open brackets": _repeated("", "["),
    "open braces": _repeated("", "{a: "),
    "dashes": _repeated("", "- "),
    "question marks": _repeated("", "? "),
}
GROWING["variables"] = _repeated(
    _POD + "  containers:\n  - name: a\n    resources: {limits: {nvidia.com/v100: 1}}\n    env:\n",
    "    - {name: aN, value: b}\n",
)

#: Short documents that expand to very long ones.
EXPANDING = {
    "text behind aliases": _CONFIG_MAP
    + f"  a: &a '{'kind: containers: apiVersion: ' * 4000}'\n"
    + "".join(f"  k{at}: *a\n" for at in range(200)),
    "a script behind aliases": f"{_SINGLE_POD}x: [&a {'y' * 200_000}, {'*a, ' * 50}]\n",
    "pods behind aliases": "apiVersion: v1\nkind: List\nitems:\n- &p\n  spec: {containers: [{name: "
    + "y" * 100_000
    + "}]}\n"
    + "- *p\n" * 100,
}
