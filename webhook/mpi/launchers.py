"""The words that start MPI ranks: one table, from which follows all that is looked for.

`mpirun.real` is what a site's own `mpirun` wraps (Horovod's images do so); horovodrun, deepspeed,
torchrun and srun take no options of mpirun.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

#: "" where the word does not say: `mpirun` is Open MPI's, MPICH's, Intel MPI's or a site's script.
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

#: What ranks are reached by; its children do not inherit the container's environment.
SSHD = "sshd"

#: Words of the table that hold no other one: a text without any of these holds no launcher.
STEMS = tuple(
    word for word in FAMILIES if not any(other in word for other in FAMILIES if other != word)
)
#: What commands are looked up by in scripts.
SOUGHT = (*STEMS, SSHD)


def may_launch(text: str) -> bool:
    """Whether a text may hold a launcher's word: asked of every command, so nothing is parsed."""
    return any(map(text.__contains__, STEMS))
