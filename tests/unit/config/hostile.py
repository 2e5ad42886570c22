"""Fabrics files of any size that only an attacker would write, to keep a server busy."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent

from tests.fabrics_file import below_spec

_ITEMS = below_spec("fabrics:\n")
SINGLE = below_spec("fabrics:\n- name: a\n")


def _per_fabric(unit: str) -> Callable[[int], str]:
    """Make a function that writes `n` fabrics; `N` is replaced by the number of each."""
    return _joined(_ITEMS, indent(unit, "  "))


def _list(head: str, item: str) -> Callable[[int], str]:
    """Make a function that writes one fabric with a list or mapping of `n` lines."""
    return _joined(SINGLE + indent(head, "  "), indent(item, "  "))


def _joined(head: str, item: str, between: str = "", tail: str = "") -> Callable[[int], str]:
    return lambda n: head + between.join(item.replace("N", str(at)) for at in range(n)) + tail


#: Name → a function that makes a file with `n` of something, with few values each.
GROWING: dict[str, Callable[[int], str]] = {
    "fabrics on one GPU resource": _per_fabric("- {name: fN, resources: [{name: rdma/r}]}\n"),
    "fabrics told apart": _per_fabric("- {name: fN, match: {gpuProducts: [pN]}}\n"),
    "fabrics with a glob each": _per_fabric("- {name: fN, match: {nodeLabels: {k: ['pN*']}}}\n"),
    "fabrics with a key each": _per_fabric("- {name: fN, match: {nodeLabels: {kN: [x]}}}\n"),
    "fabrics of one name": _per_fabric("- {name: f}\n"),
    "fabrics without a name": _per_fabric("- {}\n"),
    "no fabrics": _per_fabric("-\n"),
    "prefixes of other fabrics": _per_fabric(
        "- {name: fN, hcaPrefixes: [m]}\n- {name: gN, hcas: [m, mN]}\n"
    ),
    "prefixes of one fabric": lambda n: (
        f"{SINGLE}  - name: b\n    hcaPrefixes: [{'m, ' * n}m]\n"
        f"  - {{name: c, hcas: [{'m, ' * n}m]}}\n"
    ),
    "own prefixes": lambda n: (
        f"{SINGLE}    hcaPrefixes: [{'m, ' * n}m]\n    hcas: [{'m, ' * n}m]\n"
    ),
    "a default like many names": lambda n: (
        f"{_per_fabric('- {name: fabric-N}' + chr(10))(n)}  defaults: {{fabric: fabrik}}\n"
    ),
    "unknown fields": _list("", "  gpuResourceN: 1\n"),
    "unknown fields of the spec": _list("", "gpuResourceN: 1\n"),
    "unknown fields around the spec": _joined(SINGLE, "fabricN: 1\n"),
    "unknown fields of many": _per_fabric("- {name: fN, x: {a: {b: 1}}}\n"),
    "wrong words": _list("  libraries:\n", "  - ncclN\n"),
    "wrong types": _list("  match:\n    nodeLabels:\n", "      kN: [{}, []]\n"),
    "wrong resources": _list("  resources:\n", "  - {name: [], count: 0, aliases: 2}\n"),
    "missing names": _list("  resources:\n", "  - {}\n"),
    "resources": _list("  resources:\n", "  - {name: rdma/rN, network: ns/n@net1}\n"),
    "aliases of resources": _list("  resources:\n  - name: rdma/a\n    aliases:\n", "    - b/N\n"),
    "devices": _list("  hcas:\n", "  - mlx5_N\n"),
    "one device": _list("  hcas:\n", "  - m\n"),
    "almost devices": _list("  hcas:\n", "  - mxl5_N\n"),
    "almost products": _list("  match:\n    gpuProducts:\n", "    - Tesla-V10N-SXM2-32GB\n"),
    "parts of products": _list("  match:\n    gpuProducts:\n", "    - N-SXM2\n"),
    "almost variables": _list("  env:\n", "    UCX_TLLSN: x\n"),
    "almost fields": _list("  qos:\n", "    gidIndx: 1\n    pkeyN: 1\n"),
    "variables as a list": _list("  env:\n", "  - {name: AN, value: x}\n"),
    "capitals": _list("  hcas:\n", "  - MLX5_N\n"),
    "networks": _list("  networks:\n", "  - ns/n@net1\n"),
    "variables": _list("  env:\n", "    NCCL_N: ' '\n"),
    "node labels": _list("  match:\n    nodeLabels:\n", "      kN: a\n"),
    "a selector": _list("  nodeSelector:\n", "    kN: ' '\n"),
    "globs of one key": _joined(
        f"{_ITEMS}  - {{name: a, nodeSelector: {{k: q}}, match: {{nodeLabels: {{k: [",
        "'*aN*b*'",
        ",",
        "]}}}\n  - {name: b, match: {nodeLabels: {k: [q]}}}\n",
    ),
    "GPU resources": _list("  match:\n    gpuResources:\n", "    - a.b/cN\n"),
    "namespaces": lambda n: f"{SINGLE}  nvlink:\n    allowNamespaces:\n" + "    - A\n" * n,
    "repeated keys": _list("", "  name: a\n"),
    "merge keys": _list("", "  <<: 1\n"),
    "tags": _list("", "  xN: !a b\n"),
    "anchors": _list("  hcas:\n", "  - &aN b\n"),
    "aliases": lambda n: f"{SINGLE}    hcas:\n    - &a m\n" + "    - *a\n" * n,
    "documents": lambda n: SINGLE + "--- 1\n" * n,
    "comments": lambda n: SINGLE + "#\n" * n,
}

#: Name → a function that makes a file with about `n` characters in one place.
LONG: dict[str, Callable[[int], str]] = {
    name: lambda n, form=form, word=word: form.replace("WORD", word * (n // len(word)))  # type: ignore[misc]
    for name, form, word in (
        ("a name", f"{_ITEMS}  - name: WORD\n  - name: WORD\n", "a"),
        ("a key", f"{SINGLE}    ? WORD\n    : 1\n", "a"),
        ("an unknown word", f"{SINGLE}    mode: WORD\n", "shared-device"),
        ("a default", f"{_ITEMS}  - name: WORD-b\n  defaults: {{fabric: WORD}}\n", "fabric-"),
        ("a kind", "apiVersion: rdma.lab/v1alpha1\nkind: WORD\n", "Fabric"),
        ("a resource", f"{SINGLE}    resources: [{{name: WORD/x}}]\n", "a."),
        ("a GPU", f'{SINGLE}    resources: [{{name: "nvidia.com/rtx-WORD\\n"}}]\n', "-1"),
        (
            "a GPU's form",
            f"{SINGLE}    resources: [{{name: nvidia.com/h100WORD_}}]\n",
            "-80g",
        ),
        ("a network", f"{SINGLE}    networks: [WORD_]\n", "a-"),
        ("a device", f"{SINGLE}    hcas: [mlx5_WORD]\n", "0-"),
        ("a list of devices", f"{SINGLE}    env: {{NCCL_IB_HCA: 'WORD'}}\n", "mlx5_0,"),
        ("transports", f"{SINGLE}    env: {{UCX_TLS: 'WORD'}}\n", "a,"),
        ("a quantity", f"{SINGLE}    sharedMemory: WORD\n", "1"),
        ("a number", f"{SINGLE}    rateGbps: WORD\n", "1"),
        (
            "a glob",
            f"{SINGLE}    match: {{gpuProducts: ['WORDb', WORD]}}\n  - {{name: b}}\n",
            "*a",
        ),
        ("lines", f'{SINGLE}    mode: "WORD"\n', "a\n "),
        ("escapes", f'{SINGLE}    mode: "WORD"\n', "\\x41"),
        ("open brackets", f"{SINGLE}    hcas: WORD\n", "["),
        ("dashes", f"{SINGLE}    hcas:\n      WORD\n", "- "),
        ("question marks", "WORD", "? "),
    )
}

#: Short files that expand to very long ones.
EXPANDING = {
    "a long name a thousand times": (
        f"{_ITEMS}  - {{name: &s {'x' * 500_000}}}\n" + "  - {name: *s}\n" * 1000
    ),
    "a long device a thousand times": (
        f"{_ITEMS}  - {{name: a, hcas: [&s '{'x ' * 200_000}', {'*s , ' * 1000} y]}}\n"
    ),
    "a long variable a hundred times": (
        f"{_ITEMS}  - &f {{name: a, env: {{A: {'x' * 500_000}}}}}\n" + "  - *f\n" * 100
    ),
    "a list of lists": "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10) if n else 'x'}]\n" for n in range(11)
    ),
}
