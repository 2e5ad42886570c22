"""Fabrics files: what check-config reports, and whether accepted files can be used."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import orjson
import yaml

from tests.fuzz.dice import Dice
from tests.fuzz.laws.configurations import FABRICS_LAWS, Loading
from tests.fuzz.spoil import grown, spoilt
from tests.fuzz.target import Parts, Target
from tests.fuzz.worlds import FABRICS
from tests.fuzz.yamls import noisy, swollen, yaml_of

_SIZES = (8_000, 32_000, 64_000)


@cache
def _values() -> tuple[bytes, ...]:
    return tuple(orjson.dumps(yaml.safe_load(text)) for text in FABRICS[1:])


def build(dice: Dice, *, large: bool) -> Parts:
    """Make a file from valid ones."""
    kind = dice.below(10)
    value = configuration(dice, large=large, spoil=kind < 5)
    text = yaml_of(dice, value)
    if kind > 6:
        text = noisy(dice, text)
    elif large:
        text = swollen(dice, text, dice.pick(_SIZES))
    return {"text": text.encode(errors="surrogatepass")}


def configuration(dice: Dice, *, large: bool, spoil: bool) -> Any:
    """Make an object from valid ones."""
    value: Any = orjson.loads(dice.pick(_values()))
    for _ in range(dice.small(6)):
        _fill(dice, value["spec"])
    value = orjson.loads(orjson.dumps(value))  # fields are shared, and the edits are in place
    if spoil and not large:
        value = spoilt(dice, value)
    if large and dice.one_in(1.5):
        _crowd(dice, value["spec"], dice.pick(_SIZES))
    return value


#: Fields of a fabric, with valid, odd and wrong values.
FIELDS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("name", ("ib", "a--b", "IB", "x" * 64, 1, True, "v100-ib", "é")),
    ("mode", ("shared-device", "host-network", "sr-iov", "host-device", "dra", "sriov")),
    ("injectResources", (False, "no")),
    ("transport", ("libfabric", "gib", "verbs", "efa")),
    (
        "annotations",
        ({"example.com/nics": "all"}, {"cdi.k8s.io/x": "y"}, {"a b": "c"}, {"a/b": 1}, "a/b"),
    ),
    ("linkLayer", ("InfiniBand", "Ethernet", "ethernet")),
    ("rateGbps", (100, 0, "100", 100000, 1.5)),
    (
        "hcas",
        (["mlx5_0"], ["mlx5_0", "mlx5_0"], ["mlx5_0:1"], ["mlx5_0:a"], "mlx5_0", [], ["eth0"]),
    ),
    ("excludeHcas", (["mlx5_bond_0"], ["mlx5_0"])),
    ("hcaPrefixes", (["ibp"], ["mlx5"], ["mlx5_1"])),
    ("socketInterface", ("eth0", "=eth0", "^lo", "lo", "x" * 16, "", "net1,net2")),
    ("hostSocketInterface", ("bond0", "eth0")),
    ("networks", (["lab/net"], ["net@net1", "x@net1"], ["a/b/c"], [""], "x")),
    ("libraries", (["nccl"], ["nvshmem", "ucx"], ["mpi"], [])),
    ("sharedMemory", ("64Gi", "1e3", "64G i", 0, "-1", 64)),
    ("pin", ("always", "never", "sometimes")),
    ("nodeSelector", ({"a/b": "c"}, {"a": "é"}, {"a b": "c"}, {"x": 1})),
    ("env", ({"NCCL_DEBUG": "INFO"}, {"nccl_debug": "x"}, {"NCCL_DEBG": 1}, {"A": "x" * 1100})),
    ("qos", ({"trafficClass": 106}, {"pkey": "0x8001"}, {"gidIndex": 3}, {"pkey": 0}, {"x": 1})),
    (
        "resources",
        (
            [{"name": "rdma/a", "aliases": ["rdma/hca"]}],
            [{"name": "rdma/a", "count": "per-gpu", "gpusPerDevice": 2}],
            [{"name": "rdma/a"}, {"name": "rdma/a"}],
            [{"name": "rdma"}],
            [{"name": "rdma/a", "count": 0}],
            [{"name": "nvidia.com/vf", "network": "lab/net@x"}],
        ),
    ),
    (
        "claims",
        (
            [{"template": "nics"}],
            [{"template": "nics", "request": "nic", "per": "pod"}],
            [{"template": "nics"}, {"template": "nics"}],
            [{"template": "Nics", "request": "a/b"}],
            [{"template": f"rail-{rail}"} for rail in range(11)],
            [{"per": "node"}],
        ),
    ),
    (
        "match",
        (
            {"deviceClasses": ["h100.gpu.lab", "GPU", ""]},
            {"gpuProducts": ["Tesla-V100-*"]},
            {"gpuProducts": ["Tesla V100"]},
            {"nodeLabels": {"a/b": "c*"}},
            {"nodeLabels": {"a/b": ["["]}},
            {"gpuResources": []},
            {"gpuResources": ["nvidia.com/gpu", "gpu"]},
        ),
    ),
    ("x-unknown", (1, None)),
)


def _fill(dice: Dice, spec: dict[str, Any]) -> None:
    fabric = dice.pick(spec["fabrics"])
    key, values = dice.pick(FIELDS)
    fabric[key] = dice.pick(values)


def _crowd(dice: Dice, spec: dict[str, Any], size: int) -> None:
    """Repeat a whole fabric, each time with another name, or repeat a part of it."""
    if dice.one_in(2):
        grown(dice, spec, size)
        return
    fabric = dice.pick(spec["fabrics"])
    written = orjson.dumps(fabric)
    spec["fabrics"] += [
        {**orjson.loads(written), "name": f"f{number}"} for number in range(size // len(written))
    ]


def observe(parts: Parts) -> Loading:
    """Load the file."""
    return Loading(parts["text"])


def codes(observed: Loading) -> Iterable[str]:
    """Yield whether the file can be used, and the levels of its findings."""
    yield "refused" if observed.loaded is None else "loaded"
    for level in {finding.level for finding in observed.findings}:
        yield f"with {level}s"


TARGET = Target(
    name="fabrics",
    build=build,
    observe=observe,
    laws=FABRICS_LAWS,
    codes=codes,
    expected=frozenset({"refused", "loaded", "with errors", "with warnings"}),
    weight=2,
)
