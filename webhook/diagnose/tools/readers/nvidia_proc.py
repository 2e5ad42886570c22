"""/proc/driver/nvidia/gpus/*/information, which describes the GPUs without nvidia-smi.

    /proc/driver/nvidia/gpus/0000:18:00.0/information:Model:           NVIDIA H100 80GB HBM3
    /proc/driver/nvidia/gpus/0000:18:00.0/information:GPU UUID:        GPU-2d9e0f7c-6f13-4b1f-[...]

That is what `grep . PATH` writes. Device Minor is not the number that nvidia-smi gives to a GPU.
Source: NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia/nv-procfs.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import GpuSighting, Line, Origin, Reading
from webhook.diagnose.tools.readers.rows import Reader

_NVIDIA_PROC = "/proc/driver/nvidia"

_FILE = re.compile(
    r"\s{0,40}/proc/driver/nvidia/gpus/(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/information:"
    r"(?P<name>[A-Z][A-Za-z ]{1,30}):\s{0,40}(?P<value>.{0,100}?)\s*"
)
_UUID = re.compile(r"GPU-[0-9a-f-]{8,40}")
#: What the driver writes until it has asked the GPU; the UUID is GPU-????????-... then.
_NO_MODEL = "Unknown"


def read_nvidia_proc(lines: Sequence[Line]) -> Reading:
    """Read the GPUs, one for each path."""
    gpus: dict[str, GpuSighting] = {}
    taken: set[int] = set()
    for line in lines:
        field = _FILE.fullmatch(line.text)
        if field is None:
            continue
        taken.add(line.number)
        gpu = gpus.get(
            field["pci"], GpuSighting(Origin(_NVIDIA_PROC, line.number), pci=field["pci"])
        )
        value = field["value"]
        if field["name"] == "Model" and not _NO_MODEL.startswith(value):
            gpu = gpu._replace(product=value)
        elif field["name"] == "GPU UUID" and _UUID.fullmatch(value):
            gpu = gpu._replace(uuid=value)
        gpus[field["pci"]] = gpu
    return Reading(tuple(gpus.values()), frozenset(taken))


NVIDIA_PROC = Reader(_NVIDIA_PROC, read_nvidia_proc)
