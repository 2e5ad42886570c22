"""nvidia-smi --query-gpu=... --format=csv, whose first line says what the columns are.

    index, name, uuid, pci.bus_id, memory.total [MiB]
    0, NVIDIA H100 80GB HBM3, GPU-2d9e0f7c-6f13-4b1f-9f0c-9f5d2f2a7d10, 00000000:18:00.0, 81559 MiB

With `noheader`, nobody knows what the columns are, so nothing is read. Source: NVIDIA,
nvidia-smi --help-query-gpu.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import GpuSighting, Line, Origin, Reading
from webhook.diagnose.tools.readers.notation import PCI, number
from webhook.diagnose.tools.readers.nvidia_pci import pci_of_gpu
from webhook.diagnose.tools.readers.rows import Reader

_NVIDIA_SMI_QUERY = "nvidia-smi --query-gpu"

#: The names of columns that are read, and their synonyms.
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
#: The fields of a line; nvidia-smi has fewer than this.
_MOST_GPUS = 250


def read_nvidia_smi_query(lines: Sequence[Line]) -> Reading:
    """Read each header, and the rows that follow it."""
    gpus: list[GpuSighting] = []
    taken: set[int] = set()
    header: list[str] = []
    for line in lines:
        if "," not in line.text:
            header = []
            continue
        fields = [field.strip() for field in line.text.split(",", _MOST_GPUS)]
        if _is_header(fields):
            header = [_COLUMNS.get(field, "") for field in fields]
            taken.add(line.number)
            continue
        gpu = _gpu(Origin(_NVIDIA_SMI_QUERY, line.number), header, fields)
        if gpu is None:
            header = []
        else:
            gpus.append(gpu)
            taken.add(line.number)
    return Reading(tuple(gpus), frozenset(taken))


def _is_header(fields: Sequence[str]) -> bool:
    """Return whether these are names of columns; a single name could be anything."""
    known = [field for field in fields if field in _COLUMNS]
    return bool(known) and all(map(_HEADER.fullmatch, fields))


def _gpu(origin: Origin, header: Sequence[str], fields: Sequence[str]) -> GpuSighting | None:
    if not header or len(header) != len(fields):
        return None
    shown = {
        column: field
        for column, field in zip(header, fields, strict=True)
        if column and field != "[N/A]"
    }
    if not shown or not all(_VALUES[column].fullmatch(field) for column, field in shown.items()):
        return None
    return GpuSighting(
        origin,
        number(shown.get("index", "")),
        shown.get("name"),
        shown.get("uuid"),
        pci_of_gpu(shown.get("pci")),
    )


NVIDIA_SMI_QUERY = Reader(_NVIDIA_SMI_QUERY, read_nvidia_smi_query)
