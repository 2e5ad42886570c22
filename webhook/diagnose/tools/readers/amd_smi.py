"""Readers for AMD's GPUs: amd-smi list and static, and rocm-smi."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from webhook.diagnose.tools.gpus import AMD_ID, amd_product
from webhook.diagnose.tools.observations import GpuObservation, Line, Origin, Reading
from webhook.diagnose.tools.readers.layouts import RECOGNIZED, LineByLineReader, Reader, RowReading
from webhook.diagnose.tools.readers.notation import PCI, hexadecimal, number

# amd-smi list and amd-smi static, a block for each GPU.
#
#   GPU: 0
#       BDF: 0000:05:00.0
#       UUID: 2eff74a1-0000-1000-8067-6cbd4a2f9d31
#       KFD_ID: 63274
#   GPU: 1
#       ASIC:
#           MARKET_NAME: AMD Instinct MI300X
#           DEVICE_ID: 0x74a1
#
# The first block is of `list`, the second of `static`, which has the product. A key that occurs
# twice belongs to another GPU, whose header is missing. Source: ROCm/amdsmi, amdsmi_cli, and "AMD
# SMI CLI tool usage" of ROCm's documentation.

_AMD_SMI = "amd-smi"

_HEAD = re.compile(r"\s{0,20}GPU: (\d{1,3})\s*", re.ASCII)
_KEY = re.compile(r"\s{0,40}([A-Z][A-Z_]{2,40}):\s{0,8}(.{0,200}?)\s*")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BDF = re.compile(PCI)
#: The keys that nothing is read of.
_OTHER_KEYS = frozenset(
    (
        *("KFD_ID", "NODE_ID", "PARTITION_ID", "ASIC", "VENDOR_ID", "VENDOR_NAME", "SUBVENDOR_ID"),
        *("SUBSYSTEM_ID", "REV_ID", "ASIC_SERIAL", "OAM_ID", "NUM_COMPUTE_UNITS", "BUS"),
        *("TARGET_GRAPHICS_VERSION", "MAX_PCIE_WIDTH", "MAX_PCIE_SPEED", "PCIE_INTERFACE_VERSION"),
        "SLOT_TYPE",
    )
)
_ABSENT = "N/A"


def _is_name(text: str) -> bool:
    """Return whether a product is a name, not absent, an id, or the beginning of either."""
    return not _ABSENT.startswith(text) and not text.startswith("0")


@dataclass
class _Gpu:
    """The block of a GPU."""

    head: Line
    number: int | None
    #: Key → value.
    keys: dict[str, str] = field(default_factory=dict)

    def observation(self) -> GpuObservation:
        """Return what the keys show."""
        name, uuid, bdf = (self.keys.get(key, "") for key in ("MARKET_NAME", "UUID", "BDF"))
        by_id = amd_product(hexadecimal(self.keys.get("DEVICE_ID", "").lower()))
        return GpuObservation(
            Origin(_AMD_SMI, self.head.number),
            self.number,
            name if _is_name(name) else by_id,
            uuid or None,
            bdf.lower() or None,
            vendor_id=AMD_ID,
        )


def read_amd_smi(lines: Sequence[Line]) -> Reading:
    """Read the blocks; a GPU without any known key may be another tool's."""
    gpus: list[_Gpu] = []
    recognized: set[int] = set()
    gpu: _Gpu | None = None
    for line in lines:
        head, key = _HEAD.fullmatch(line.text), _KEY.fullmatch(line.text)
        if head:
            gpu = _Gpu(line, number(head[1]))
        elif gpu is not None and key and _is_known(key[1], key[2]):
            if key[1] in gpu.keys:
                gpu = None
                continue
            if not gpu.keys:
                gpus.append(gpu)
                recognized.add(gpu.head.number)
            gpu.keys[key[1]] = key[2]
            recognized.add(line.number)
    return Reading(tuple(gpu.observation() for gpu in gpus), frozenset(recognized))


def _is_known(key: str, value: str) -> bool:
    """Return whether a key is the tool's, and its value in the form that is read."""
    if key == "BDF":
        return _BDF.fullmatch(value) is not None
    if key == "UUID":
        return _UUID.fullmatch(value) is not None
    if key in ("MARKET_NAME", "DEVICE_ID"):
        return bool(value)
    return key in _OTHER_KEYS


AMD_SMI = Reader(_AMD_SMI, read_amd_smi)


# rocm-smi, and rocm-smi --showproductname.
#
#   Device  Node  IDs              Temp        Power     Partitions          SCLK    [...]
#                 (DID,     GUID)  (Junction)  (Socket)  (Mem, Compute, ID)
#   0       1     0x74a1,   28851  41.0°C      138.0W    NPS1, SPX, 0        132Mhz  [...]
#   GPU[0]          : Card Series:          AMD Instinct MI300X
#
# Earlier versions write the subsystem's id in brackets in the place of DID and GUID, and "Card
# series". Source: ROCm/rocm_smi_lib, python_smi_tools/rocm_smi.py, showAllConcise and
# showProductName.

_ROCM_SMI = "rocm-smi"

_CONCISE = re.compile(
    r"\s{0,40}(?P<number>\d{1,3})\s{2,12}(?:\d{1,4}\s{2,12}0x(?P<did>[0-9a-f]{4}),\s{1,12}\d{1,6}"
    r"|\[0x[0-9a-f]{4} : 0x[0-9a-f]{2}\])\s{1,12}(?:[\d.]{1,6}°C|N/A)\s.{0,300}"
)
_FIELD = re.compile(r"\s{0,40}GPU\[(?P<number>\d{1,3})\]\s{0,20}: (?P<field>[A-Z].{0,200})")
_SERIES = re.compile(r"Card [Ss]eries:\s{1,20}(\S.{0,80}?)\s*")
_FRAME = re.compile(
    r"\s{0,40}={3,80} {1,4}(?:ROCm System Management Interface|Concise Info|Product Info"
    r"|End of ROCm SMI Log) {1,4}={3,80}\s*"
    r"|\s{0,40}Device  \S.{10,200}GPU%\s*|\s{1,60}\(DID, .{10,200}"
)


def _rocm_smi_row(line: Line) -> RowReading | None:
    """Read a row, which shows a GPU."""
    origin = Origin(_ROCM_SMI, line.number)
    row, field_row = _CONCISE.fullmatch(line.text), _FIELD.fullmatch(line.text)
    if row:
        product = amd_product(int(row["did"], 16)) if row["did"] else None
        gpu = GpuObservation(origin, int(row["number"]), product, vendor_id=AMD_ID)
        return RowReading((gpu,))
    if field_row is None:
        return RECOGNIZED if _FRAME.fullmatch(line.text) else None
    series = _SERIES.fullmatch(field_row["field"])
    if series is None or not _is_name(series[1]):
        return RECOGNIZED
    gpu = GpuObservation(origin, int(field_row["number"]), series[1], vendor_id=AMD_ID)
    return RowReading((gpu,))


read_rocm_smi = LineByLineReader(_rocm_smi_row)
ROCM_SMI = Reader(_ROCM_SMI, read_rocm_smi)
