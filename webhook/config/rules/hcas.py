"""Rules for the names of RDMA devices in `hcas`, `excludeHcas`, `hcaPrefixes` and NCCL_IB_HCA.

Sources: NCCL's env.rst (NCCL_IB_HCA) and net_ib, which compares names byte by byte; the names from
kernel drivers (`mlx5_%d`, `mlx5_bond_%d`, `bnxt_re%d`), and from rdma-core's
kernel-boot/rdma_rename.c (`ibp14s0`, `rocep32s0f0`, `rdmaP23800p0s2`). A site may rename a device
to anything else, so a name need not have any of these forms.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from webhook.config import names
from webhook.config.environment import nvshmem_prefix
from webhook.config.model import FabricEntry
from webhook.config.names import OneLetterIndex
from webhook.config.rules.rule import Violation, rule
from webhook.model.fabric import MODES_WITH_OWN_DEVICE
from webhook.model.pod import Path
from webhook.model.quoting import quoted

#: MAX_IB_DEVS of NCCL's net_ib.
_MAX_HCAS = 32
_HCA_EXAMPLES = "mlx5_0 or mlx5_0:1"
#: A longer list does not reach NCCL; another rule reports it.
_MAX_LIST_BYTES = 1023
#: The kernel drivers' prefixes of the device's number, and rdma_rename's of the PCI address.
_STEM = (
    r"(?:mlx[45](?:_bond)?|bnxt_re|irdma|i40iw|efa|erdma|hns|hfi1|mana|ionic|qedr|cxgb4"
    r"|(?:ib|iw|opa|rdma|roce)p)"
)
_ONLY_STEM = re.compile(rf"{_STEM}_?", re.IGNORECASE)
_RANGE = re.compile(rf".*\.\..*|{_STEM}.*[0-9]-.*[0-9]", re.IGNORECASE)
#: eth0, ib0, bond0.100, net1, and systemd's eno1, ens1f0np0, enp3s0. Not ibp14s0, which may be an
#: interface or a device.
_INTERFACE = re.compile(
    r"(?:eth|bond|net|team)(?:[0-9].*)?|ib[0-9]+(?:\..+)?|en(?:[ops](?:[0-9].*)?)?|enx[0-9a-f]{12}",
    re.IGNORECASE,
)
#: The only capital letter in such names: rdma_rename puts P before a PCI domain other than 0.
_DOMAIN = re.compile(r"(?<=[a-z])P(?=[0-9])")
_LOWERCASE_DOMAIN = re.compile(r"p(?=[0-9]+p[0-9])")
#: The prefixes of kernel drivers' device numbers that people misspell.
_NUMBERED_PREFIXES = ("mlx4_", "mlx5_", "mlx5_bond_", "bnxt_re", "irdma", "efa_", "erdma_", "hfi1_")
_PREFIX_INDEX = OneLetterIndex(_NUMBERED_PREFIXES)
_MISSING_UNDERSCORE = re.compile(r"^mlx([45])(?=[0-9])")  # mlx50
#: Common names of renamed devices; some of them differ by one letter from a driver's name.
_SITE_NAMES = frozenset({"hca", "ib", "nic", "rail", "rdma", "roce"})
#: Prefixes that differ by more than a letter, but are clear: a bare number, and the vendor.
_PREFIX_OF_STEM = {"": "mlx5_", "mlx": "mlx5_", "mlx_": "mlx5_", "mlnx": "mlx5_", "mlnx_": "mlx5_"}
#: Libraries that get the names of devices, and variables that a site may use instead.
_NAMING_VARIABLES = {"nccl": "NCCL_IB_HCA", "ucx": "UCX_NET_DEVICES", "nvshmem": "NVSHMEM_HCA_LIST"}


@rule(
    "error",
    "Write each device as name[:port[:rail[:plane]]], such as mlx5_0 or mlx5_0:1; list exclusions "
    "in excludeHcas, and prefixes in hcaPrefixes.",
    tolerates_other_errors=True,
)
def hca_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that lists a device that is not written as `name[:port[:rail[:plane]]]`.

    An error: NCCL finds no device and silently falls back to sockets.
    """
    for key, index, written in _hcas(fabric):
        if key == "hcaPrefixes":
            fits, expected, example = names.is_hca_prefix(written), "a prefix", "ibp"
        else:
            fits, expected, example = bool(names.split_hca(written)), "a device", _HCA_EXAMPLES
        if not fits:
            yield Violation(
                (key, index),
                f"{quoted(written)} is not {expected}",
                f"Write {example} (exclusions go in excludeHcas, prefixes in hcaPrefixes).",
            )


@rule(
    "error", "List each device by its name, such as mlx5_0 and mlx5_1.", tolerates_other_errors=True
)
def hca_ranges(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that lists a range of devices, such as `mlx5_0..mlx5_7` or `mlx5_0-7`.

    An error: NCCL takes a range for a name, finds no such device and silently falls back to
    sockets.
    """
    for path, name, _ in _device_names(fabric):
        if _RANGE.fullmatch(name):
            yield Violation(path, f"{quoted(name)} is read as one name")


@rule(
    "error",
    "Write each name in full, as `ls /sys/class/infiniband` prints it, such as mlx5_0.",
    tolerates_other_errors=True,
)
def hca_stems(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that lists only the beginning of a device's name, such as `mlx5`.

    An error: no driver gives such a name, so it matches no device.
    """
    for path, name, complete in _device_names(fabric):
        if complete and _ONLY_STEM.fullmatch(name):
            yield Violation(path, f"{quoted(name)} is only the beginning of a name")


@rule(
    "warning",
    "Write the name of the interface's RDMA device, such as mlx5_0: `ibdev2netdev` prints it "
    "before the interface.",
    tolerates_other_errors=True,
)
def hca_interfaces(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that lists devices named like network interfaces, such as `eth0`.

    A warning: NCCL looks for an RDMA device with that name, which probably does not exist; but a
    site may name devices after their interfaces.
    """
    for path, name, _ in _device_names(fabric):
        if _INTERFACE.fullmatch(name):
            yield Violation(path, f"{quoted(name)} looks like a network interface")


@rule(
    "warning",
    "Write the name as `ls /sys/class/infiniband` prints it on a node.",
    tolerates_other_errors=True,
)
def hca_capitals(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that lists a device whose name has capital letters, such as `MLX5_0`.

    A warning: case matters to NCCL, and the names by drivers and udev have hardly any capitals; but
    a site may use them.
    """
    for path, name, _ in _device_names(fabric):
        lower = _DOMAIN.sub("p", name)
        if lower != lower.lower() and not _INTERFACE.fullmatch(name):
            likely = _LOWERCASE_DOMAIN.sub("P", lower.lower())
            yield Violation(
                path, f"{quoted(name)} has capitals, and case matters (did you mean {likely}?)"
            )


@rule(
    "warning",
    "Write the name as `ls /sys/class/infiniband` prints it on a node.",
    tolerates_other_errors=True,
)
def hca_forms(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that lists a device whose name looks misspelled, such as `mxl5_0`.

    A warning: NCCL finds no such device and silently falls back to sockets; but a site may have
    renamed its devices.
    """
    for path, name, complete in _device_names(fabric):
        other_rules = _ONLY_STEM.fullmatch(name) or _INTERFACE.fullmatch(name)
        if other_rules or name != name.lower() or not (likely := _nearest_driver_name(name)):
            continue
        hint = f"(did you mean {likely}?)"
        if complete:
            yield Violation(path, f"{quoted(name)} is not a name that drivers give {hint}")
        elif not likely.startswith(name):
            text = f"no driver's names begin with {quoted(name)} {hint}"
            yield Violation(
                path,
                text,
                "Write the beginning of the names that `ls /sys/class/infiniband` prints.",
            )


def _nearest_driver_name(name: str) -> str:
    """Return the driver's name that a name nearly equals; "" if it resembles no such name."""
    repaired = _MISSING_UNDERSCORE.sub(r"mlx\1_", name)
    stem = repaired.rstrip("0123456789")
    beginning = _PREFIX_OF_STEM.get(stem) or _PREFIX_INDEX.neighbor_of(stem)
    if beginning and stem not in _SITE_NAMES:
        repaired = beginning + repaired[len(stem) :]
    return repaired if repaired != name else ""


@rule(
    "warning",
    "List the fabric's devices in hcas, for example as [mlx5_0, mlx5_1]: `ls "
    "/sys/class/infiniband` on a node prints the names of its devices.",
)
def no_hcas(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that lists no HCAs, although device names are the same in all its pods.

    A warning: NCCL and UCX then use every device that they find, including slow ones, but a node
    may have only the right devices.
    """
    given = any(_hcas(fabric)) or any(name in fabric.env for name in _NAMING_VARIABLES.values())
    if (
        fabric.mode not in MODES_WITH_OWN_DEVICE
        and fabric.transport == "verbs"
        and not given
        and not _NAMING_VARIABLES.keys().isdisjoint(fabric.libraries)
    ):
        yield Violation(
            ("hcas",),
            "hcas is empty, so NCCL and UCX use every device that they find, including slow "
            "Ethernet cards",
        )


@rule("error", "Keep only one of hcas, excludeHcas and hcaPrefixes.")
def combined_hca_lists(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets more than one of `hcas`, `excludeHcas` and `hcaPrefixes`.

    An error: NCCL_IB_HCA is a list of names, of exclusions or of prefixes.
    """
    given = list(dict.fromkeys(key for key, _, _ in _hcas(fabric)))
    for other in given[1:]:
        yield Violation(
            (other,),
            f"{other} cannot be combined with {given[0]}, since NCCL takes one list",
            f"Remove {given[0]} or {other}.",
        )


@rule("error", "Remove hcas, excludeHcas and hcaPrefixes from the fabric.")
def hcas_without_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that lists HCAs in mode `sr-iov`, `host-device` or `dra`: they vary by pod.

    An error: the names differ from pod to pod, so a fixed list would be wrong in most pods.
    """
    if fabric.mode in MODES_WITH_OWN_DEVICE:
        for key in dict.fromkeys(key for key, _, _ in _hcas(fabric)):
            yield Violation(
                (key,),
                f"device names differ between pods in mode {fabric.mode}",
                f"Remove {key}.",
            )


@rule("error", "List at most 32 devices in hcas, and no device twice in one list.")
def hca_limit(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that lists more than 32 devices in `hcas`, or a device twice in one list.

    An error: NCCL reads at most 32 devices, and a repeated one is probably a typing error.
    """
    counts = Counter((key, _device_and_port(written)) for key, _, written in _hcas(fabric))
    for (key, written), times in counts.items():
        if times > 1:
            text = f"{quoted(written)} is listed {times} times"
            yield Violation((key,), text, "List each device once.")
    if len(fabric.hcas) > _MAX_HCAS:
        yield Violation(
            ("hcas",),
            f"{len(fabric.hcas)} devices are too many for NCCL",
            f"List at most {_MAX_HCAS}.",
        )


def _device_and_port(written: str) -> str:
    """Return a device without rail and plane, which do not distinguish devices."""
    return ":".join(written.split(":", 2)[:2])


@rule("warning", "Remove the bond from hcas.")
def bond_on_infiniband(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that lists `mlx5_bond_*` in `hcas`, but has the link layer InfiniBand.

    A warning: such a bond is Ethernet (InfiniBand ports cannot be its members) and often slow, and
    NCCL refuses or mixes link layers. But a site may have renamed a device.
    """
    for index, written in enumerate(fabric.hcas):
        if fabric.link_layer == "InfiniBand" and "_bond_" in written:
            yield Violation(
                ("hcas", index),
                f"{quoted(written)} is an Ethernet bond",
            )


@rule(
    "warning",
    "Set env.NVSHMEM_HCA_PREFIX to the prefix of the names of the devices that NVSHMEM is to use.",
)
def nvshmem_prefixes(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that has devices for NVSHMEM whose names have no common prefix.

    A warning: NVSHMEM_HCA_PREFIX is one prefix, `mlx5` by default, and NVSHMEM leaves out devices
    with other names, but a site may use NVSHMEM with the remaining devices.
    """
    if "nvshmem" not in fabric.libraries or "NVSHMEM_HCA_PREFIX" in fabric.env:
        return
    if nvshmem_prefix(fabric) is None:
        key = "hcaPrefixes" if fabric.hca_prefixes else "hcas"
        yield Violation(
            (key,),
            "the names have no common prefix, so NVSHMEM uses only those that begin with mlx5",
        )


def _hcas(fabric: FabricEntry) -> Iterator[tuple[str, int, str]]:
    for key, written in (
        ("hcas", fabric.hcas),
        ("excludeHcas", fabric.exclude_hcas),
        ("hcaPrefixes", fabric.hca_prefixes),
    ):
        for index, name in enumerate(written):
            yield key, index, name


def _device_names(fabric: FabricEntry) -> Iterator[tuple[Path, str, bool]]:
    """Yield each device without its port, and whether it is a complete name, not a prefix.

    Leave out anything that is not a name: other rules report it.
    """
    for key, index, written in _hcas(fabric):
        name = written.partition(":")[0]
        if names.split_hca(name):
            yield (key, index), name, key != "hcaPrefixes"
    value = fabric.env.get("NCCL_IB_HCA", "").removeprefix("^")
    if len(value) > _MAX_LIST_BYTES:
        return
    for item in value.removeprefix("=").split(","):
        name = item.partition(":")[0]
        if names.split_hca(name):
            yield ("env", "NCCL_IB_HCA"), name, value.startswith("=")
