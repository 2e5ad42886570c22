from __future__ import annotations

import pytest

from tests.case_names import case_name
from webhook.decide.launchers.launches import hosts_option, sets_hosts


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("mpirun -np 4 --hostfile h a", "--hostfile"),
        ("mpirun -hostfile h a", "-hostfile"),
        ("mpirun --allow-run-as-root --host a:8,b:8 -np 2 x", "--host"),
        ("mpirun -H localhost:4,b:4 x", "-H"),
        ("mpirun -x A=b -mca btl tcp,self --machinefile m x", "--machinefile"),
        ("mpirun -mca plm_rsh_args '' x", "-mca plm_rsh_args"),
        ("mpirun --prtemca plm_ssh_agent ssh x", "--prtemca plm_ssh_agent"),
        ("mpirun -mca orte_default_hostfile h x", "-mca orte_default_hostfile"),
        ("mpiexec -n 4 -ppn 2 -f hosts x", "-f"),
        ("mpiexec -genv A B -genvall -hosts a,b x", "-hosts"),
        ("mpiexec -env A B -bootstrap ssh -host a x", "-host"),
        ("mpirun_rsh -np 2 -hostfile h x", "-hostfile"),
        ("horovodrun -np 4 --hosts a:2,b:2 python x", "--hosts"),
        ("horovodrun --hostfile=h python x", "--hostfile"),
        ("horovodrun --min-np 1 --host-discovery-script d.sh python x", "--host-discovery-script"),
        ("mpirun --new-option 1 -H a x", "-H"),
        ("mpiexec --new-flag -f hosts x", "-f"),
        ("mpiexec --new-option=1 -f hosts x", "-f"),
        ("mpirun ? --hostfile h x", "--hostfile"),
        ("mpirun --host ? x", "--host"),
        ("mpirun --hostfile", "--hostfile"),
    ],
    ids=case_name,
)
def test_other_hosts_are_recognized(line: str, option: str) -> None:
    """Each family's options count; `?` is an unknown word."""
    words = [None if word == "?" else word.strip("'") for word in line.split()]
    assert hosts_option(words) == option


@pytest.mark.parametrize(
    "line",
    [
        *("mpirun", "mpirun -np 64 a", "mpirun -np 64 ./osu_bw --hostfile h"),
        *("mpirun -H localhost a", "mpirun --host localhost:4,127.0.0.1:4 a"),
        *("mpirun -np 2 all_reduce_perf -b 8 -f 2", "mpirun ? a -f 2", "mpirun -np ? a"),
        *("mpirun -mca btl_tcp_if_include eth0 a", "mpirun -mca plm_rsh_agent /bin/false a"),
        *("mpirun -mca plm_rsh_agent '' a", "mpirun -mca", "mpirun -mca ? a"),
        *("mpirun --new-option 1 ./server --host 0.0.0.0 -f x", "mpiexec -n 4 -ppn 4 a"),
        *("horovodrun -np 4 -H localhost:4 python x", "horovodrun --gloo -np 4 python x"),
        *("horovodrun --log-level DEBUG --hosts=localhost:4 python x", "mpirun --new ? -f"),
    ],
    ids=case_name,
)
def test_without_other_hosts_ranks_run_here(line: str) -> None:
    """The container itself is not a remote host, and a program's options are not the launcher's."""
    words = [None if word == "?" else word.strip("'") for word in line.split()]
    assert hosts_option(words) == ""


@pytest.mark.parametrize(
    ("variable", "value", "sets"),
    [
        ("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile", True),
        ("PRTE_MCA_prte_default_hostfile", None, True),
        ("OMPI_MCA_plm_rsh_agent", "/etc/mpi/kubexec.sh", True),
        ("OMPI_MCA_plm_rsh_agent", "ssh -q", True),
        ("OMPI_MCA_plm_rsh_agent", None, True),
        ("OMPI_MCA_plm_rsh_agent", "", False),
        ("OMPI_MCA_plm_rsh_agent", "sh", False),
        ("PRTE_MCA_plm_ssh_agent", "/bin/false -x", False),
        ("PRTE_MCA_plm_ssh_args", "", True),
        ("OMPI_MCA_btl", "tcp", False),
        ("OMPI_MCA_plm", "rsh", False),
    ],
    ids=case_name,
)
def test_parameters_that_lead_elsewhere(variable: str, value: str | None, sets: bool) -> None:
    """A hostfile, or a real agent for ssh; `sh` and `false` replace ssh where it is missing."""
    assert sets_hosts(variable, value) is sets
