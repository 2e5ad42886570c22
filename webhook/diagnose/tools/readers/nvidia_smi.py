"""nvidia-smi -L, which lists the GPUs.

    GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-2d9e0f7c-6f13-4b1f-9f0c-9f5d2f2a7d10)
      MIG 1g.10gb     Device  0: (UUID: MIG-1c0e3f5a-0f2b-5d1c-8a5e-3d9f7b2e6a41)

A MIG device is a part of the GPU above it. Source: NVIDIA, nvidia-smi manual, -L, and the MIG User
Guide.
"""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import GpuSighting, Line, Origin
from webhook.diagnose.tools.readers.notation import number
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

_NVIDIA_SMI_GPUS = "nvidia-smi -L"

_NVIDIA_SMI_GPUS_GPU = re.compile(
    r"\s{0,40}GPU (\d{1,3}): (\S.{0,80}?) \(UUID: (GPU-[0-9a-fA-F-]{8,40})\)\s*", re.ASCII
)
_MIG = re.compile(r"\s{0,40}MIG \S{1,30}\s{1,40}Device\s{1,8}\d{1,3}: \(UUID: MIG-\S{1,80}\)\s*")


def _nvidia_smi_gpus_row(line: Line) -> RowReading | None:
    """Read the rows, one for each GPU."""
    gpu = _NVIDIA_SMI_GPUS_GPU.fullmatch(line.text)
    if gpu is None:
        return RowReading() if _MIG.fullmatch(line.text) else None
    return RowReading(
        (GpuSighting(Origin(_NVIDIA_SMI_GPUS, line.number), number(gpu[1]), gpu[2], gpu[3]),)
    )


read_nvidia_smi_gpus = ReadsRows(_nvidia_smi_gpus_row)
NVIDIA_SMI_GPUS = Reader(_NVIDIA_SMI_GPUS, read_nvidia_smi_gpus)
