"""nvidia-smi topo -m, which says how far each GPU is from each NIC.

            GPU0    GPU1    NIC0    NIC1    CPU Affinity    NUMA Affinity   GPU NUMA ID
    GPU0     X      NV18    PIX     SYS     0-55,112-167    0               N/A
    GPU1    NV18     X      SYS     PIX     56-111,168-223  1               N/A
    NIC0    PIX     SYS      X      SYS
    NIC1    SYS     PIX     SYS      X

    Legend:
      X    = Self
      PIX  = Connection traversing at most a single PCIe bridge
    NIC Legend:
      NIC0: mlx5_0
      NIC1: mlx5_1

Older drivers write mlx5_0 for NIC0 and have no NIC Legend. A row tells where its own column is by
the X, so a row whose X stands elsewhere was damaged, and is not read. Source: NVIDIA, nvidia-smi
manual, topo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.tools.observations import DistanceSighting, GpuSighting, Line, Origin, Reading
from webhook.diagnose.tools.readers.notation import DEVICE, number
from webhook.diagnose.tools.readers.rows import Reader

_NVIDIA_SMI_TOPO = "nvidia-smi topo -m"

#: Underlined in a terminal; what is left of that where the escape character was lost.
_UNDERLINE = re.compile(r"\x1b?\[[0-9;]{0,5}m")
_COLUMN = re.compile(r"(GPU|NIC)?(?(1)\d{1,3}|[a-z]\w{0,40}\d\w{0,20})", re.ASCII)
_NVIDIA_SMI_TOPO_GPU = re.compile(r"GPU\d{1,3}", re.ASCII)
#: What may follow the columns of devices.
_AFFINITIES = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_CELL = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|PSB|NV\d{1,3}|C2C", re.ASCII)
#: The distances that exist between a GPU and a NIC.
_DISTANCES = frozenset({"SYS", "NODE", "PHB", "PXB", "PIX"})
_LEGEND = re.compile(
    r"\s{0,40}(?:Legend:|NIC Legend:|(?:X|SYS|NODE|PHB|PXB|PIX|PSB|NV#|C2C)\s{1,20}= \S.{0,300})\s*"
)
_NIC_NAME = re.compile(rf"\s{{0,40}}(NIC\d{{1,3}}): ({DEVICE})\s*", re.ASCII)
#: Rows and columns of a matrix; a machine has fewer.
_MOST_COLUMNS = 200


class _Matrix(NamedTuple):
    #: Names of devices: GPU0, NIC0.
    columns: list[str]
    affinities: list[str]
    #: The words of each row, the first being its name.
    rows: list[tuple[Line, list[str]]]
    #: What the legend says: the device of NIC0.
    names: dict[str, str]


def read_nvidia_smi_topo(lines: Sequence[Line]) -> Reading:
    """Read each matrix, with the legend that follows it."""
    taken: set[int] = set()
    sightings: list[DistanceSighting | GpuSighting] = []
    for matrix in _matrices(lines, taken):
        for line, words in matrix.rows:
            if _NVIDIA_SMI_TOPO_GPU.fullmatch(words[0]):
                sightings.extend(_of_gpu(Origin(_NVIDIA_SMI_TOPO, line.number), words, matrix))
    return Reading(tuple(sightings), frozenset(taken))


def _matrices(lines: Sequence[Line], taken: set[int]) -> list[_Matrix]:
    """Return the matrices; `taken` receives the numbers of the lines that belong to one."""
    matrices: list[_Matrix] = []
    for line in lines:
        text = _UNDERLINE.sub(" ", line.text) if "[" in line.text else line.text
        words = text.split(maxsplit=_MOST_COLUMNS)
        if matrix := _header(words):
            matrices.append(matrix)
            taken.add(line.number)
        elif matrices and _take(matrices[-1], line, text, words):
            taken.add(line.number)
    return matrices


def _header(words: Sequence[str]) -> _Matrix | None:
    """Return an empty matrix if the words are a header; without "CPU", the last one may be cut."""
    if not words or not _NVIDIA_SMI_TOPO_GPU.fullmatch(words[0]):
        return None
    end = words.index("CPU") if "CPU" in words else len(words) - 1
    names, rest = list(words[:end]), " ".join(words[end:])
    affinities = [name for name in _AFFINITIES if name in rest]
    if not names or len(words) < 3 - 2 * ("CPU" in words) or ("CPU" in words and not affinities):
        return None
    if not all(map(_COLUMN.fullmatch, names)) or len(set(names)) < len(names):
        return None
    return _Matrix(names, affinities, [], {})


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
    """Return the words of a row without one that was cut; [] if the X is not in its column."""
    if not words or words[0] not in matrix.columns:
        return []
    cells = list(words[1 : 1 + len(matrix.columns)])
    if len(words) <= 1 + len(matrix.columns) and cells and not _CELL.fullmatch(cells[-1]):
        cells.pop()
    own = matrix.columns.index(words[0])
    right = all((cell == "X") == (place == own) for place, cell in enumerate(cells))
    if not cells or not right or not all(map(_CELL.fullmatch, cells)):
        return []
    return [words[0], *cells, *words[1 + len(matrix.columns) :]]


def _of_gpu(
    origin: Origin, words: Sequence[str], matrix: _Matrix
) -> Iterator[DistanceSighting | GpuSighting]:
    gpu, columns = words[0], matrix.columns
    for column, cell in zip(columns, words[1:], strict=False):
        if not _NVIDIA_SMI_TOPO_GPU.fullmatch(column) and cell in _DISTANCES:
            yield DistanceSighting(origin, gpu, matrix.names.get(column, column), cell)
    numa = _numa(matrix.affinities, words[1 + len(columns) :])
    yield GpuSighting(origin, number(gpu.removeprefix("GPU")), numa=numa)


def _numa(names: Sequence[str], values: Sequence[str]) -> int | None:
    """Return the NUMA node if it is one, and not several; None if a column was left empty."""
    if _AFFINITIES[1] not in names or len(values) != len(names):
        return None
    return number(values[names.index(_AFFINITIES[1])])


NVIDIA_SMI_TOPO = Reader(_NVIDIA_SMI_TOPO, read_nvidia_smi_topo)
