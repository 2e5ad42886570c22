"""modinfo mlx5_core, which says where the driver of NVIDIA's cards comes from.

    filename:       /lib/modules/5.15.0-134-generic/updates/dkms/mlx5_core.ko
    version:        24.10-0.7.0
    vermagic:       5.15.0-134-generic SMP mod_unload modversions

The drivers of the kernel lie in its folder kernel/, those that somebody installed in updates/ or
extra/ (kernel.org, Documentation/kbuild/modules.rst); those of kernels from 5.11 on have no
version. Source: kmod, tools/modinfo.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line, Origin, Reading, SettingSighting
from webhook.diagnose.tools.readers.driver_versions import mlx5_driver
from webhook.diagnose.tools.readers.rows import Reader

_MODINFO = "modinfo mlx5_core"

_FILE = re.compile(
    r"filename:\s{1,20}\S{0,100}/lib/modules/([^/\s]{1,100})/(?P<place>kernel|updates|extra|weak-updates)/"
    r"\S{0,200}(?<=/)(?P<module>[\w-]{1,60})\.ko(?:\.(?:gz|xz|zst))?\s*",
    re.ASCII,
)
_MODINFO_FIELD = re.compile(
    r"(?P<name>[a-z][\w-]{1,30}):\s{1,20}(?P<value>\S.{0,400})|sig_\w{1,20}:.{0,400}|\t\t\S.{0,200}"
)


def read_modinfo(lines: Sequence[Line]) -> Reading:
    """Read the description of the module mlx5_core, not those of others."""
    sightings: list[SettingSighting] = []
    taken: set[int] = set()
    module = ""
    for line in lines:
        start, field = _FILE.fullmatch(line.text), _MODINFO_FIELD.fullmatch(line.text)
        if start:
            module = start["module"]
        elif field is None:
            module = ""
        if module:
            taken.add(line.number)
        if module == "mlx5_core":
            sightings.extend(_driver(line, start, field))
    return Reading(tuple(sightings), frozenset(taken))


def _driver(
    line: Line, start: re.Match[str] | None, field: re.Match[str] | None
) -> tuple[SettingSighting, ...]:
    driver = None
    if start and start["place"] == "kernel":
        driver = "inbox"
    elif field and field["name"] == "version":
        driver = mlx5_driver(field["value"].strip())
    return (SettingSighting(Origin(_MODINFO, line.number), "driver", driver),) if driver else ()


MODINFO = Reader(_MODINFO, read_modinfo)
