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
    UCX_TLS without an RDMA transport             any, over UCX       TCP

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
from typing import NamedTuple

from webhook.decide.launchers.commands import Commands
from webhook.decide.launchers.launches import mca_parameters, parameters_of_launches
from webhook.decide.launchers.openmpi import MCA_PREFIX, shows_intel_mpi
from webhook.decide.shell.argv import Word
from webhook.model.fabric import Fabric
from webhook.model.libraries import WEBHOOK_VARIABLES
from webhook.model.pod import Path
from webhook.model.transport_variables import provider_without_rdma, ucx_tls_without_rdma

#: The BTLs that may use an RDMA device.
_RDMA = frozenset({"openib", "uct", "ofi"})
#: The parameters that choose Open MPI's transport.
_CHOOSING = frozenset({"pml", "btl", "mtl"})
_PROVIDER, _INTELS_PROVIDER, _FABRICS = "FI_PROVIDER", "I_MPI_OFI_PROVIDER", "I_MPI_FABRICS"
_TLS = "UCX_TLS"
PML_VARIABLE = f"{MCA_PREFIX}pml"


class TcpSetting(NamedTuple):
    """A setting that keeps MPI's messages on TCP."""

    text: str  #: such as "pml ob1 and btl tcp,self" or "FI_PROVIDER=tcp"
    certain: bool  #: whether MPI certainly has no RDMA
    #: The variable that sets it; "" for options of mpirun, such as `-mca pml ob1`.
    variable: str = ""


def worst_tcp_setting(
    commands: Commands, path: Path, user_env: Mapping[str, Word], fabric: Fabric | None
) -> TcpSetting | None:
    """Return the setting that most certainly keeps MPI on TCP, UCX_TLS among them, or None."""
    user_env = _of_user(user_env, fabric)
    settings = [*_tcp_settings(commands, path, user_env)]
    tls = ucx_tls_without_rdma(user_env)
    if tls:
        settings.append(_variable(_TLS, tls, certain=True))
    return min(settings, key=lambda setting: not setting.certain, default=None)


def _of_user(user_env: Mapping[str, Word], fabric: Fabric | None) -> Mapping[str, Word]:
    of_site = fabric.env.site_variables if fabric else ()
    return {
        name: value
        for name, value in user_env.items()
        if name not in WEBHOOK_VARIABLES and (name, value) not in of_site
    }


def _tcp_settings(
    commands: Commands, path: Path, user_env: Mapping[str, Word]
) -> Iterator[TcpSetting]:
    inherited = mca_parameters(user_env.items())
    provider = provider_without_rdma(user_env, _PROVIDER)
    # None for a launch that may be another MPI's, and for a command without a launch.
    parameters_of_each = [*parameters_of_launches(commands, path, user_env)] or [None]
    for parameters_or_none in parameters_of_each:
        parameters = inherited if parameters_or_none is None else parameters_or_none
        yield from _of_open_mpi(parameters, inherited, provider)
    if None in parameters_of_each:
        is_intel = shows_intel_mpi(commands.text(path), user_env)
        # If OMPI_MCA_* chooses a transport, the MPI is Open MPI, which does not need the provider.
        may_use_provider = is_intel or _CHOOSING.isdisjoint(inherited)
        yield from _of_other_mpi(user_env, provider if may_use_provider else "", is_intel=is_intel)


def _of_open_mpi(
    parameters: Mapping[str, Word], inherited: Mapping[str, Word], provider: str
) -> Iterator[TcpSetting]:
    """Yield the settings of a launch with these parameters, some inherited from variables."""
    pml, btl = parameters.get("pml"), parameters.get("btl")
    variable = PML_VARIABLE if pml == inherited.get("pml") else ""
    if pml == "ob1" and btl and btl[0] != "^" and _RDMA.isdisjoint(btl.split(",")):
        yield TcpSetting(f"pml ob1 and btl {btl:.40}", certain=True, variable=variable)
    elif pml in ("ob1", "^ucx"):
        yield TcpSetting(f"pml {pml}", certain=False, variable=variable)
    elif provider and pml == "cm":
        yield _variable(_PROVIDER, provider, certain=True)
    elif provider and pml != "ucx" and parameters.get("mtl") == "ofi":
        yield _variable(_PROVIDER, provider, certain=False)


def _of_other_mpi(
    user_env: Mapping[str, Word], provider: str, *, is_intel: bool
) -> Iterator[TcpSetting]:
    """Yield the settings of Intel MPI and MPICH; Open MPI ignores I_MPI_*."""
    intels = provider_without_rdma(user_env, _INTELS_PROVIDER)
    if intels:
        yield _variable(_INTELS_PROVIDER, intels, certain=True)
    if provider:
        yield _variable(_PROVIDER, provider, certain=is_intel)
    fabrics = user_env.get(_FABRICS) or ""
    if "tcp" in fabrics.split(":"):
        yield _variable(_FABRICS, fabrics, certain=False)


def _variable(name: str, value: str, *, certain: bool) -> TcpSetting:
    return TcpSetting(f"{name}={value:.40}", certain, name)
