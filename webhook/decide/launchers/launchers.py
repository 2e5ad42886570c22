"""The names of launchers: one table for MPI's, from which all sought words are derived.

`mpirun.real` is what a site's own `mpirun` wraps, as in Horovod's images. Torchrun and srun are not
listed: the first starts processes in its own container, the second runs on no pod.
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

#: Launchers of other frameworks, which accept none of mpirun's options. Without hosts, horovodrun
#: starts its processes in its own container; deepspeed reads /job/hostfile (launcher/runner.py,
#: DLTS_HOSTFILE), and a container without a GPU is of no use to it.
HOROVOD = "horovodrun"
DEEPSPEED = "deepspeed"
#: The head of a Ray cluster. Its option is sought, since "ray" is part of many words.
RAY_HEAD = ("ray", "start", "--head")

#: The server by which ranks are reached; its children do not inherit the container's environment.
SSHD = "sshd"

#: The names that contain no other name: a text without any of these contains no launcher.
STEMS = tuple(
    word for word in FAMILIES if not any(other in word for other in FAMILIES if other != word)
)
#: The words by which commands are found in scripts.
SOUGHT = (*STEMS, SSHD)
#: The same for the launchers of other frameworks.
SOUGHT_STARTERS = (HOROVOD, DEEPSPEED, RAY_HEAD[-1])


def may_launch(text: str) -> bool:
    """Return whether a text may name a launcher; runs on every command, so it parses nothing."""
    return any(map(text.__contains__, STEMS))
