"""The names of MPI launchers: one table, from which all sought words are derived.

`mpirun.real` is what a site's own `mpirun` wraps, as in Horovod's images. horovodrun, deepspeed,
torchrun and srun are not listed, since they accept none of mpirun's options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

#: "" if the name does not tell: `mpirun` is Open MPI's, MPICH's, Intel MPI's or a site's script.
Family = Literal["", "Open MPI", "another MPI"]

FAMILIES: Mapping[str, Family] = {
    "mpirun": "",
    "mpiexec": "",
    "mpirun.real": "",
    "prterun": "",
    "orterun": "Open MPI",
    "mpirun.openmpi": "Open MPI",
    "mpiexec.openmpi": "Open MPI",
    "mpirun.mpich": "another MPI",
    "mpiexec.mpich": "another MPI",
    "mpiexec.hydra": "another MPI",
    "mpirun_rsh": "another MPI",
}

#: The server by which ranks are reached; its children do not inherit the container's environment.
SSHD = "sshd"

#: The names that contain no other name: a text without any of these contains no launcher.
STEMS = tuple(
    word for word in FAMILIES if not any(other in word for other in FAMILIES if other != word)
)
#: The words by which commands are found in scripts.
SOUGHT = (*STEMS, SSHD)


def may_launch(text: str) -> bool:
    """Return whether a text may name a launcher; runs on every command, so it parses nothing."""
    return any(map(text.__contains__, STEMS))
