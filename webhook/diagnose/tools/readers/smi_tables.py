"""Readers for the tables that nvidia-smi and amd-smi print without a command."""

from __future__ import annotations

import re

from webhook.diagnose.tools.gpus import AMD_ID
from webhook.diagnose.tools.observations import GpuObservation, Line, Origin
from webhook.diagnose.tools.readers.layouts import RECOGNIZED, LineByLineReader, Reader, RowReading
from webhook.diagnose.tools.readers.notation import PCI, number, pci_of_gpu

#: A name that does not fit into its column has three dots at one end, and names no product.
_DOTS = "..."


def _name(text: str) -> str | None:
    return None if text.startswith(_DOTS) or text.endswith(_DOTS) else text


# nvidia-smi, with three rows for each GPU.
#
#   | NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |
#   | GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
#   | Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
#   |                                         |                        |               MIG M. |
#   |   0  NVIDIA H100 80GB HBM3          On  |   00000000:18:00.0 Off |                    0 |
#   | N/A   31C    P0             69W /  700W |       1MiB /  81559MiB |      0%      Default |
#   |                                         |                        |             Disabled |
#
# Only the first of them shows the GPU. The first line of all is a date. Both tools write the lines
# without a process. Source: NVIDIA, nvidia-smi manual.

_NVIDIA_SMI = "nvidia-smi"

_NVIDIA_GPU = re.compile(
    r"\s{0,40}\|\s{1,6}(?P<number>\d{1,3})  (?P<name>\S.{0,60}?)\s{1,40}(?:On|Off|N/A)\s{1,4}"
    rf"\|\s{{1,8}}(?P<pci>{PCI}) (?:On|Off|N/A)\s{{1,4}}\|.{{1,40}}\|\s*",
    re.ASCII,
)
_NVIDIA_OTHER = re.compile(
    r"\s{0,40}(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}"
    r"|\| NVIDIA-SMI \d.{1,120}\||\| GPU  Name\s{1,30}Persistence-M\s{0,4}\|.{1,80}\|"
    r"|\| Fan  Temp  .{1,120}\||\|\s{1,60}\|\s{1,60}\|\s{1,40}(?:MIG M\.|Disabled|Enabled|N/A) \|"
    r"|\| {0,3}(?:\d{1,3}%|N/A|ERR!) {1,6}(?:\d{1,3}C|N/A|ERR!)\s.{1,120}\|"
    r"|\| Processes:\s{1,100}\||\|  No running processes found\s{1,80}\|"
    r"|\|  GPU   GI   CI\s.{1,100}\||\|        ID   ID\s.{1,100}\|"
    r"|\|\s{1,6}\d{1,3}\s{1,6}(?:N/A|\d{1,3})\s{1,6}(?:N/A|\d{1,3})\s{1,12}\d{1,9}\s{1,8}\S.{1,120}\|"
    r")\s*",
    re.ASCII,
)


def _nvidia_smi_row(line: Line) -> RowReading | None:
    """Read a row, which shows a GPU."""
    gpu = _NVIDIA_GPU.fullmatch(line.text)
    if gpu is None:
        return RECOGNIZED if _NVIDIA_OTHER.fullmatch(line.text) else None
    origin = Origin(_NVIDIA_SMI, line.number)
    pci = pci_of_gpu(gpu["pci"])
    return RowReading((GpuObservation(origin, number(gpu["number"]), _name(gpu["name"]), pci=pci),))


read_nvidia_smi_table = LineByLineReader(_nvidia_smi_row)
NVIDIA_SMI_TABLE = Reader(_NVIDIA_SMI, read_nvidia_smi_table)


# amd-smi, with two rows for each GPU.
#
#   | AMD-SMI 26.0.1+c11e6492      amdgpu version: 6.14.14  ROCm version: 7.0.1    |
#   | BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
#   | GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
#   | 0000:26:00.0    AMD Instinct MI300X | 0 %      40 °C   0           131/750 W |
#   |   0       3       1        SPX/NPS1 | 0 %        N/A           285/196592 MB |
#
# The number is left out: it is on another line than the address, and may be another GPU's if lines
# are missing. Source: ROCm/amdsmi, amdsmi_cli.

_AMD_SMI_TABLE = "amd-smi (table)"

_AMD_GPU = re.compile(
    rf"\s{{0,40}}\| (?P<pci>{PCI})\s{{1,20}}(?P<name>\S.{{0,40}}?) \| (?:\d{{1,3}} %|N/A)\s"
    r".{1,60}\sW \|\s*"
)
_AMD_OTHER = re.compile(
    r"\s{0,40}(?:\| AMD-SMI \S.{1,120}\||\| VBIOS version: .{1,100}\|"
    r"|\| Platform: .{1,100}\||\| BDF\s{1,40}GPU-Name \|.{1,80}\|"
    r"|\| GPU  HIP-ID  OAM-ID  Partition-Mode \|.{1,80}\|"
    r"|\|\s{1,6}\d{1,3}\s{1,10}(?:\d{1,3}|N/A)\s{1,10}(?:\d{1,3}|N/A)\s{1,20}[\w/]{2,20} \|"
    r".{1,60}\sMB \||\|  GPU\s{1,12}PID  Process Name\s.{1,100}\|"
    r"|\|\s{1,6}\d{1,3}\s{1,10}\d{1,9}\s{1,4}\S.{1,100}\s\d{1,4}(?:\.\d)? % \|"
    r")\s*"
)


def _amd_smi_row(line: Line) -> RowReading | None:
    """Read a row, which shows a GPU."""
    gpu = _AMD_GPU.fullmatch(line.text)
    if gpu is None:
        return RECOGNIZED if _AMD_OTHER.fullmatch(line.text) else None
    origin = Origin(_AMD_SMI_TABLE, line.number)
    name, pci = _name(gpu["name"]), gpu["pci"].lower()
    return RowReading((GpuObservation(origin, product=name, pci=pci, vendor_id=AMD_ID),))


read_amd_smi_table = LineByLineReader(_amd_smi_row)
AMD_SMI_TABLE = Reader(_AMD_SMI_TABLE, read_amd_smi_table)
