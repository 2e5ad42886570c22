"""Readers for GPUs: nvidia-smi -L, --query-gpu and topo -m, and NVIDIA's files in /proc."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.tools.observations import (
    Cut,
    DistanceObservation,
    GpuObservation,
    Line,
    Origin,
    Reading,
)
from webhook.diagnose.tools.readers.layouts import RECOGNIZED, LineByLineReader, Reader, RowReading
from webhook.diagnose.tools.readers.notation import DEVICE, PCI, number, pci_of_gpu

# nvidia-smi -L, which lists the GPUs.
#
#   GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-2d9e0f7c-6f13-4b1f-9f0c-9f5d2f2a7d10)
#     MIG 1g.10gb     Device  0: (UUID: MIG-1c0e3f5a-0f2b-5d1c-8a5e-3d9f7b2e6a41)
#
# A MIG device is a part of the GPU above it. Source: NVIDIA, nvidia-smi manual, -L, and the MIG
# User Guide.

_NVIDIA_SMI_GPUS = "nvidia-smi -L"

_NVIDIA_SMI_GPUS_GPU = re.compile(
    r"\s{0,40}GPU (\d{1,3}): (\S.{0,80}?) \(UUID: (GPU-[0-9a-fA-F-]{8,40})\)\s*", re.ASCII
)
_MIG = re.compile(r"\s{0,40}MIG \S{1,30}\s{1,40}Device\s{1,8}\d{1,3}: \(UUID: MIG-\S{1,80}\)\s*")


def _nvidia_smi_gpus_row(line: Line) -> RowReading | None:
    """Read the rows, one for each GPU."""
    gpu = _NVIDIA_SMI_GPUS_GPU.fullmatch(line.text)
    if gpu is None:
        return RECOGNIZED if _MIG.fullmatch(line.text) else None
    return RowReading(
        (GpuObservation(Origin(_NVIDIA_SMI_GPUS, line.number), number(gpu[1]), gpu[2], gpu[3]),)
    )


read_nvidia_smi_gpus = LineByLineReader(_nvidia_smi_gpus_row)
NVIDIA_SMI_GPUS = Reader(_NVIDIA_SMI_GPUS, read_nvidia_smi_gpus)


# /proc/driver/nvidia/gpus/*/information, which describes the GPUs without nvidia-smi.
#
#   /proc/driver/nvidia/gpus/0000:18:00.0/information:Model:           NVIDIA H100 80GB HBM3
#   /proc/driver/nvidia/gpus/0000:18:00.0/information:GPU UUID:        GPU-2d9e0f7c-6f13-4b1f-[...]
#
# This is the output of `grep . PATH`. Device Minor is not nvidia-smi's number of a GPU. Source:
# NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia/nv-procfs.c.

_NVIDIA_PROC = "/proc/driver/nvidia"

_FILE = re.compile(
    r"\s{0,40}/proc/driver/nvidia/gpus/(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/information:"
    r"(?P<name>[A-Z][A-Za-z ]{1,30}):\s{0,40}(?P<value>.{0,100}?)\s*"
)
_UUID = re.compile(r"GPU-[0-9a-f-]{8,40}")
#: The driver's value until it has queried the GPU; the UUID is GPU-????????-... then.
_NO_MODEL = "Unknown"


def read_nvidia_proc(lines: Sequence[Line]) -> Reading:
    """Read the GPUs, one for each path."""
    gpus: dict[str, GpuObservation] = {}
    recognized: set[int] = set()
    for line in lines:
        field = _FILE.fullmatch(line.text)
        if field is None:
            continue
        recognized.add(line.number)
        gpu = gpus.get(
            field["pci"], GpuObservation(Origin(_NVIDIA_PROC, line.number), pci=field["pci"])
        )
        value = field["value"]
        if field["name"] == "Model" and not _NO_MODEL.startswith(value):
            gpu = gpu._replace(product=value)
        elif field["name"] == "GPU UUID" and _UUID.fullmatch(value):
            gpu = gpu._replace(uuid=value)
        gpus[field["pci"]] = gpu
    return Reading(tuple(gpus.values()), frozenset(recognized))


NVIDIA_PROC = Reader(_NVIDIA_PROC, read_nvidia_proc)


# nvidia-smi --query-gpu=... --format=csv, whose first line names the columns.
#
#   index, name, uuid, pci.bus_id, memory.total [MiB]
#   0, NVIDIA H100 80GB HBM3, GPU-2d9e0f7c-6f13-4b1f-9f0c-9f5d2f2a7d10, 00000000:18:00.0, 81559 MiB
#
# With `noheader`, the columns are unknown, so nothing is read. Source: NVIDIA, nvidia-smi
# --help-query-gpu.

_NVIDIA_SMI_QUERY = "nvidia-smi --query-gpu"

#: The columns that are read, with their synonyms.
_COLUMNS = {
    "index": "index",
    "name": "name",
    "gpu_name": "name",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "pci.bus_id": "pci",
    "gpu_bus_id": "pci",
}
_HEADER = re.compile(r"[a-z][a-z0-9_.]{1,60}(?: \[[A-Za-z%/]{1,8}\])?")
_VALUES = {
    "index": re.compile(r"\d{1,3}", re.ASCII),
    "name": re.compile(r"\S.{0,80}"),
    "uuid": re.compile(r"GPU-[0-9a-fA-F-]{8,40}"),
    "pci": re.compile(PCI),
}
#: The maximum fields of a line; nvidia-smi has fewer.
_MAX_FIELDS = 250


def read_nvidia_smi_query(lines: Sequence[Line]) -> Reading:
    """Read each header, and the rows that follow it."""
    gpus: list[GpuObservation] = []
    recognized: set[int] = set()
    header: list[str] = []
    for line in lines:
        if "," not in line.text:
            header = []
            continue
        fields = [field.strip() for field in line.text.split(",", _MAX_FIELDS)]
        if _is_header(fields):
            header = [_COLUMNS.get(field, "") for field in fields]
            recognized.add(line.number)
            continue
        gpu = _gpu(Origin(_NVIDIA_SMI_QUERY, line.number), header, fields)
        if gpu is None:
            header = []
        else:
            gpus.append(gpu)
            recognized.add(line.number)
    return Reading(tuple(gpus), frozenset(recognized))


def _is_header(fields: Sequence[str]) -> bool:
    """Return whether these are names of columns; a single name could be anything."""
    columns = [field for field in fields if field in _COLUMNS]
    return bool(columns) and all(map(_HEADER.fullmatch, fields))


def _gpu(origin: Origin, header: Sequence[str], fields: Sequence[str]) -> GpuObservation | None:
    if not header or len(header) != len(fields):
        return None
    cells = {
        column: field
        for column, field in zip(header, fields, strict=True)
        if column and field != "[N/A]"
    }
    if not cells or not all(_VALUES[column].fullmatch(field) for column, field in cells.items()):
        return None
    return GpuObservation(
        origin,
        number(cells.get("index", "")),
        cells.get("name"),
        cells.get("uuid"),
        pci_of_gpu(cells.get("pci")),
    )


NVIDIA_SMI_QUERY = Reader(_NVIDIA_SMI_QUERY, read_nvidia_smi_query)


# nvidia-smi topo -m, which shows the distance of each GPU from each NIC.
#
#           GPU0    GPU1    NIC0    NIC1    CPU Affinity    NUMA Affinity   GPU NUMA ID
#   GPU0     X      NV18    PIX     SYS     0-55,112-167    0               N/A
#   GPU1    NV18     X      SYS     PIX     56-111,168-223  1               N/A
#   NIC0    PIX     SYS      X      SYS
#   NIC1    SYS     PIX     SYS      X
#
#   Legend:
#     X    = Self
#     PIX  = Connection traversing at most a single PCIe bridge
#   NIC Legend:
#     NIC0: mlx5_0
#     NIC1: mlx5_1
#
# Older drivers write mlx5_0 for NIC0 and have no NIC Legend. The X of a row marks its own column,
# so a row with an X elsewhere is damaged, and is not read. Source: NVIDIA, nvidia-smi manual, topo.

_NVIDIA_SMI_TOPO = "nvidia-smi topo -m"

#: The underline of a terminal, also without its escape character.
_UNDERLINE = re.compile(r"\x1b?\[[0-9;]{0,5}m")
_COLUMN = re.compile(r"(GPU|NIC)?(?(1)\d{1,3}|[a-z]\w{0,40}\d\w{0,20})", re.ASCII)
_NVIDIA_SMI_TOPO_GPU = re.compile(r"GPU\d{1,3}", re.ASCII)
#: The columns after the devices.
_AFFINITIES = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_CELL = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|PSB|NV\d{1,3}|C2C", re.ASCII)
#: The possible distances between a GPU and a NIC.
_DISTANCES = frozenset({"SYS", "NODE", "PHB", "PXB", "PIX"})
_LEGEND = re.compile(
    r"\s{0,40}(?:Legend:|NIC Legend:|(?:X|SYS|NODE|PHB|PXB|PIX|PSB|NV#|C2C)\s{1,20}= \S.{0,300})\s*"
)
_NIC_NAME = re.compile(rf"\s{{0,40}}(NIC\d{{1,3}}): ({DEVICE})\s*", re.ASCII)
#: The maximum columns of a matrix; a node has fewer.
_MAX_COLUMNS = 200


class _Matrix(NamedTuple):
    #: Names of devices: GPU0, NIC0.
    columns: list[str]
    affinities: list[str]
    #: The words of each row, the first being its name.
    rows: list[tuple[Line, list[str]]]
    #: NIC0 → its device, by the legend.
    names: dict[str, str]
    #: The first words of rows, also of damaged ones → their lines.
    heads: dict[str, int]


def read_nvidia_smi_topo(lines: Sequence[Line]) -> Reading:
    """Read each matrix, with the legend that follows it."""
    recognized: set[int] = set()
    observations: list[DistanceObservation | GpuObservation] = []
    cuts: list[Cut] = []
    for matrix in _matrices(lines, recognized):
        cuts += filter(None, [_missing_rows(matrix)])
        for line, words in matrix.rows:
            if _NVIDIA_SMI_TOPO_GPU.fullmatch(words[0]):
                observations.extend(_of_gpu(Origin(_NVIDIA_SMI_TOPO, line.number), words, matrix))
    return Reading(tuple(observations), frozenset(recognized), tuple(cuts))


def _missing_rows(matrix: _Matrix) -> Cut | None:
    """Return how many rows a matrix lacks: it has one for each of its columns."""
    if len(matrix.heads) == len(matrix.columns):
        return None
    counts = []
    for kind, name in ((True, "GPUs"), (False, "NICs")):
        columns = [column for column in matrix.columns if column.startswith("GPU") == kind]
        rows = sum(column in matrix.heads for column in columns)
        counts += [f"{rows} of {len(columns)} {name}"] if rows < len(columns) else []
    line = max(matrix.heads.values(), default=0)
    return Cut(_NVIDIA_SMI_TOPO, line, f"rows of {' and '.join(counts)}", is_table=True)


def _matrices(lines: Sequence[Line], recognized: set[int]) -> list[_Matrix]:
    """Return the matrices, and add the numbers of their lines to `recognized`."""
    matrices: list[_Matrix] = []
    for line in lines:
        text = _UNDERLINE.sub(" ", line.text) if "[" in line.text else line.text
        words = text.split(maxsplit=_MAX_COLUMNS)
        if matrix := _header(words):
            matrices.append(matrix)
            recognized.add(line.number)
        elif matrices:
            if words and words[0] in matrices[-1].columns:
                matrices[-1].heads.setdefault(words[0], line.number)
            if _take(matrices[-1], line, text, words):
                recognized.add(line.number)
    return matrices


def _header(words: Sequence[str]) -> _Matrix | None:
    """Return an empty matrix if the words are a header; without "CPU", the last word may be cut."""
    if not words or not _NVIDIA_SMI_TOPO_GPU.fullmatch(words[0]):
        return None
    end = words.index("CPU") if "CPU" in words else len(words) - 1
    names, trailing = list(words[:end]), " ".join(words[end:])
    affinities = [name for name in _AFFINITIES if name in trailing]
    if not names or len(words) < 3 - 2 * ("CPU" in words) or ("CPU" in words and not affinities):
        return None
    if not all(map(_COLUMN.fullmatch, names)) or len(set(names)) < len(names):
        return None
    return _Matrix(names, affinities, [], {}, {})


def _take(matrix: _Matrix, line: Line, text: str, words: Sequence[str]) -> bool:
    name = _NIC_NAME.fullmatch(text)
    if name and name[1] in matrix.columns:
        matrix.names[name[1]] = name[2]
        return True
    if _LEGEND.fullmatch(text):
        return True
    row = _nvidia_smi_topo_row(words, matrix)
    if row:
        matrix.rows.append((line, row))
    return bool(row)


def _nvidia_smi_topo_row(words: Sequence[str], matrix: _Matrix) -> list[str]:
    """Return the words of a row, without a cut one; [] if the X is not in its column."""
    if not words or words[0] not in matrix.columns:
        return []
    cells = list(words[1 : 1 + len(matrix.columns)])
    if len(words) <= 1 + len(matrix.columns) and cells and not _CELL.fullmatch(cells[-1]):
        cells.pop()
    position = matrix.columns.index(words[0])
    right = all((cell == "X") == (column == position) for column, cell in enumerate(cells))
    if not cells or not right or not all(map(_CELL.fullmatch, cells)):
        return []
    return [words[0], *cells, *words[1 + len(matrix.columns) :]]


def _of_gpu(
    origin: Origin, words: Sequence[str], matrix: _Matrix
) -> Iterator[DistanceObservation | GpuObservation]:
    gpu, columns = words[0], matrix.columns
    for column, cell in zip(columns, words[1:], strict=False):
        if not _NVIDIA_SMI_TOPO_GPU.fullmatch(column) and cell in _DISTANCES:
            yield DistanceObservation(origin, gpu, matrix.names.get(column, column), cell)
    numa = _numa(matrix.affinities, words[1 + len(columns) :])
    yield GpuObservation(origin, number(gpu.removeprefix("GPU")), numa=numa)


def _numa(names: Sequence[str], values: Sequence[str]) -> int | None:
    """Return the NUMA node if there is exactly one; None if a column is empty."""
    if _AFFINITIES[1] not in names or len(values) != len(names):
        return None
    return number(values[names.index(_AFFINITIES[1])])


NVIDIA_SMI_TOPO = Reader(_NVIDIA_SMI_TOPO, read_nvidia_smi_topo)
