"""hostnamectl, which names the machine, its product and its kernel.

       Static hostname: node1
        Operating System: Ubuntu 22.04.5 LTS
                  Kernel: Linux 5.15.0-134-generic
         Hardware Vendor: NVIDIA
          Hardware Model: DGXH100

Source: systemd, src/hostname/hostnamectl.c.
"""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import Line, Origin, Setting, SettingSighting
from webhook.diagnose.tools.readers.dmi_values import dmi_value
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

_HOSTNAMECTL = "hostnamectl"

_HOSTNAMECTL_FIELD = re.compile(
    r"\s{0,40}(?:(Static hostname|Hardware Vendor|Hardware Model): (\S.{0,120}?)"
    r"|(Kernel): Linux (\d.{0,120}?))\s*"
)
_HOSTNAMECTL_SETTINGS: dict[str, Setting] = {
    "Static hostname": "hostname",
    "Kernel": "kernel",
    "Hardware Vendor": "vendor",
    "Hardware Model": "product",
}
_OTHER = re.compile(
    r"\s{0,40}(?:Transient hostname|Pretty hostname|Icon name|Chassis|Machine ID|Boot ID"
    r"|Virtualization|Operating System|CPE OS Name|Architecture|Firmware Version|Firmware Date"
    r"|Firmware Age): .{0,200}"
)


def _hostnamectl_row(line: Line) -> RowReading | None:
    """Read the fields."""
    field = _HOSTNAMECTL_FIELD.fullmatch(line.text)
    if field is None:
        return RowReading() if _OTHER.fullmatch(line.text) else None
    name, value = field[1] or field[3], dmi_value(field[2] or field[4])
    if value is None or (name == "Static hostname" and value.startswith("(")):
        return RowReading()
    return RowReading(
        (SettingSighting(Origin(_HOSTNAMECTL, line.number), _HOSTNAMECTL_SETTINGS[name], value),)
    )


read_hostnamectl = ReadsRows(_hostnamectl_row)
HOSTNAMECTL = Reader(_HOSTNAMECTL, read_hostnamectl)
