"""The settings that keep MPI's messages on TCP.

    setting                                       MPI                 effect
    -------                                       ---                 ------
    pml ob1, and btl lists no openib, uct or ofi  Open MPI            TCP
    pml ob1, or pml ^ucx                          Open MPI            perhaps: some BTLs have RDMA
    pml cm with a provider without RDMA           Open MPI            no RDMA: TCP, or no start
    mtl ofi with such a provider                  Open MPI            perhaps: pml ucx goes first
    I_MPI_OFI_PROVIDER, a provider without RDMA   Intel MPI           TCP
    FI_PROVIDER, the same                         Intel MPI           TCP
    FI_PROVIDER, the same                         MPICH, or unknown   perhaps: as it was built
    I_MPI_FABRICS, such as shm:tcp                Intel MPI           perhaps: only before 2019

`btl ^openib` alone is no obstacle: Open MPI then uses UCX. Its available components depend on its
version and build: 4.0 and later ignore InfiniBand in openib unless configured otherwise, 5.0 has no
openib. Its OFI MTL leaves out the providers tcp and sockets by default.

Sources: README of Open MPI 4.0; docs of 5.0, "InfiniBand / RoCE support"; open-mpi/ompi PR 5792
(mtl_ofi_provider_exclude); fi_info(1) and fi_provider(7) of libfabric; Intel MPI's Developer
Reference, "OFI-capable Network Fabrics Control", and "Intel MPI Library Over Libfabric" (TMI, DAPL
and OFA ended with 2019); pmodels/mpich issue 4188 (FI_PROVIDER and the device ch4:ofi).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from webhook.decide.launchers.commands import Commands
from webhook.decide.launchers.launches import parameters_of
from webhook.decide.launchers.openmpi import shows_intel_mpi
from webhook.decide.shell.argv import Word
from webhook.model.fabric import Fabric
from webhook.model.libraries import VARIABLE_NAMES
from webhook.model.pod import Path
from webhook.model.transport_variables import provider_without_rdma

#: The BTLs that may use an RDMA device.
_RDMA = frozenset({"openib", "uct", "ofi"})
#: The parameters that choose Open MPI's transport.
_CHOOSING = frozenset({"pml", "btl", "mtl"})
_PROVIDER, _INTELS_PROVIDER, _FABRICS = "FI_PROVIDER", "I_MPI_OFI_PROVIDER", "I_MPI_FABRICS"
#: The variables that may keep MPI on TCP.
MPI_VARIABLES = frozenset({"OMPI_MCA_pml", _PROVIDER, _INTELS_PROVIDER, _FABRICS})


class TcpSetting(NamedTuple):
    """A setting that keeps MPI's messages on TCP."""

    kind: Literal["btl", "pml", "variable"]
    text: str  #: such as "pml ob1 and btl tcp,self" or "FI_PROVIDER=tcp"
    certain: bool  #: whether MPI certainly has no RDMA
    variable: str = ""  #: of the kind "variable"


def tcp_settings(
    commands: Commands, path: Path, user_env: Mapping[str, Word], fabric: Fabric | None
) -> Iterator[TcpSetting]:
    """Yield the settings of the container at `path`, whose variables are `user_env`.

    Those that an earlier call may have set for `fabric` do not count.
    """
    of_site = fabric.env.site_variables if fabric else ()
    user_env = {
        name: value
        for name, value in user_env.items()
        if name not in VARIABLE_NAMES and (name, value) not in of_site
    }
    all_parameters = [*parameters_of(commands, path, user_env)]
    provider = provider_without_rdma(user_env, _PROVIDER)
    for parameters in all_parameters:
        yield from _of_open_mpi(parameters, provider)
    intels = provider_without_rdma(user_env, _INTELS_PROVIDER)
    if intels:
        yield _variable(_INTELS_PROVIDER, intels, certain=True)
    is_open_mpi = len(all_parameters) > 1 or not _CHOOSING.isdisjoint(all_parameters[0])
    is_intel = shows_intel_mpi(commands.text(path), user_env)
    if provider and (is_intel or not is_open_mpi):
        yield _variable(_PROVIDER, provider, certain=is_intel)
    fabrics = user_env.get(_FABRICS) or ""
    if "tcp" in fabrics.split(":"):
        yield _variable(_FABRICS, fabrics, certain=False)


def _of_open_mpi(parameters: Mapping[str, Word], provider: str) -> Iterator[TcpSetting]:
    pml, btl = parameters.get("pml"), parameters.get("btl") or ""
    if pml == "ob1" and btl and btl[0] != "^" and _RDMA.isdisjoint(btl.split(",")):
        yield TcpSetting("btl", f"pml ob1 and btl {btl:.40}", certain=True)
    elif pml in ("ob1", "^ucx"):
        yield TcpSetting("pml", f"pml {pml}", certain=False)
    elif provider and pml == "cm":
        yield _variable(_PROVIDER, provider, certain=True)
    elif provider and pml != "ucx" and parameters.get("mtl") == "ofi":
        yield _variable(_PROVIDER, provider, certain=False)


def _variable(name: str, value: str, *, certain: bool) -> TcpSetting:
    return TcpSetting("variable", f"{name}={value:.40}", certain, name)
