"""Log lines of programs, transfers and devices that fail."""

from __future__ import annotations

import re

from webhook.diagnose.tools.known_lines.known_line import (
    CHECK_OOM_KILLED,
    KILLED_BY_SIGNAL,
    LIFT_MEMLOCK,
    NET_IB_SOURCE,
    KnownLine,
)
from webhook.diagnose.tools.known_lines.ucx import UCX_FAILURES
from webhook.diagnose.tools.known_lines.work_completions import WORK_COMPLETIONS

# The fields of each row: code, kind, layer, clue, pattern, example, meaning, remedy, source.

FAILURES = (
    KnownLine(
        "NoDeviceFound", "failure", "verbs", "NET/IB : No device found", None,
        "node-0:880:887 [0] NCCL INFO NET/IB : No device found.",
        "NCCL found no RDMA device, so it uses TCP sockets or, with NCCL_NET=IB, fails.",
        "Check whether the container has /dev/infiniband. If it does not, request the RDMA "
        "resource of the fabric. If it does, check whether NCCL_IB_HCA, if set, matches a device "
        "in /sys/class/infiniband, and whether the image has the NIC's userspace driver (on "
        "Debian and Ubuntu, ibverbs-providers).",
        NET_IB_SOURCE,
    ),
    KnownLine(
        "LibraryMissing", "failure", "verbs", "Failed to open libibverbs.so", None,
        "node-0:58239:58245 [0] NCCL INFO Failed to open libibverbs.so[.1]",
        "The image has no libibverbs, so NCCL uses TCP sockets or, with NCCL_NET=IB, fails.",
        "Add the library and its drivers to the image: on Debian and Ubuntu, the packages "
        "libibverbs1 and ibverbs-providers; on Fedora and RHEL, the package libibverbs.",
        "nccl, src/misc/ibvwrap.cc",
    ),
    KnownLine(
        "ProviderMissing", "failure", "verbs", "no userspace device-specific driver found", None,
        "libibverbs: Warning: no userspace device-specific driver found for "
        "/sys/class/infiniband_verbs/uverbs0",
        "The image has libibverbs, but lacks the userspace driver of the NIC.",
        "Add the userspace drivers to the image: on Debian and Ubuntu, they are in the package "
        "ibverbs-providers; on Fedora and RHEL, in the package libibverbs, with the library "
        "itself.",
        "rdma-core, libibverbs/init.c",
    ),
    KnownLine(
        "RegistrationRefused", "failure", "memory", "Cannot allocate memory",
        re.compile(
            r"\bibv_(?:reg_\w{1,20}|create_\w{1,20})\b.{0,200}Cannot allocate memory"
            r"(?! : Please set max locked memory)"
        ),
        "node-0:528:528 [0] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr failed with error "
        "Cannot allocate memory",
        "The kernel refused to register memory, usually because the process would have exceeded "
        "its limit on locked memory (ulimit -l).",
        f"{LIFT_MEMLOCK} The memory limit of the container is not the cause.",
        "linux, drivers/infiniband/core/umem.c",
    ),
    KnownLine(
        "MemlockTooSmall", "failure", "memory", "Please set max locked memory", None,
        "[1765653660.705652] [node-0:640743:0] ib_md.c:287 UCX  ERROR ibv_reg_mr(address="
        "0x15213b956010, length=65536, access=0xf) failed. Please set max locked memory "
        "(ulimit -l) to 'unlimited' (current: 8192 kbytes)",
        "UCX could not register memory, since the limit on locked memory is too low.",
        LIFT_MEMLOCK,
        "openucx/ucx, src/uct/ib/base",
    ),
    KnownLine(
        "PerftestNoMemory", "failure", "memory", "Couldn't allocate MR",
        re.compile(r"Couldn't allocate MR(?! with error=14\b)"),
        "Couldn't allocate MR",
        "perftest could not register memory, most often because the limit on locked memory is too "
        "low.",
        LIFT_MEMLOCK,
        "linux-rdma/perftest, src/perftest_resources.c",
    ),
    KnownLine(
        "LockedMemoryOpenMpi", "failure", "memory", "trying to allocate some locked memory",
        re.compile(r"OpenFabrics|locked memory"),
        "initialize while trying to allocate some locked memory.  This typically can",
        "Open MPI could not register memory, typically because the limit on locked memory is too "
        "low.",
        LIFT_MEMLOCK,
        "open-mpi/ompi, help-mpi-btl-openib.txt",
    ),
    KnownLine(
        "PeerMemoryMissing", "failure", "memory", "Bad address",
        re.compile(r"\bibv_reg_\w{1,20}\b.{0,200}Bad address"),
        "node-0:528:528 [0] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr failed with error "
        "Bad address",
        "The GPU's memory could not be registered for RDMA.",
        "Ask the cluster administrator to load nvidia-peermem on the node, or to install a GPU "
        "driver that supports DMA-BUF.",
        "linux-rdma/perftest, issue 126",
    ),
    KnownLine(
        "PerftestNoGpuMemory", "failure", "memory", "Couldn't allocate MR with error=14", None,
        "Couldn't allocate MR with error=14",
        "The GPU's memory could not be registered for RDMA.",
        "Ask the cluster administrator to load nvidia-peermem on the node, or to install a GPU "
        "driver that supports DMA-BUF. With such a driver, also pass --use_cuda_dmabuf to "
        "perftest.",
        "linux-rdma/perftest, src/perftest_resources.c; issue 126",
    ),
    KnownLine(
        "KilledForMemory", "failure", "memory", "ut of memory: Killed process", None,
        "[   63.657952] Memory cgroup out of memory: Killed process 269 (ib_write_bw) "
        "total-vm:71644kB, anon-rss:25460kB",
        "The kernel killed a process for lack of memory. Registered memory counts against the "
        "container's memory limit.",
        "Raise or remove the container's memory limit or, if the node ran out of memory, request "
        "as much memory as the container uses. IPC_LOCK does not help here.",
        "linux, mm/oom_kill.c",
    ),
    KnownLine(
        "OOMKilled", "failure", "memory", "OOMKilled", None,
        "Reason:       OOMKilled",
        "The container was killed because it used more memory than its limit, or because the "
        "node ran out of memory. Registered memory counts against the limit.",
        "Raise or remove the container's memory limit or, if the node ran out of memory, request "
        "as much memory as the container uses. IPC_LOCK does not help here.",
        "Kubernetes, status of a container",
    ),
    KnownLine(
        "ExitCode137", "failure", "memory", "137",
        re.compile(r"[Ee]xit [Cc]ode:?\s{1,10}137\b"),
        "command terminated with exit code 137",
        KILLED_BY_SIGNAL, CHECK_OOM_KILLED,
        "Kubernetes, kubectl exec and the status of a container",
    ),
    KnownLine(
        "ProcessKilled", "failure", "memory", "Killed",
        re.compile(
            r"(?:^\s{0,40}|<stderr>:|\]\s)Killed\s{0,40}$|:\s{1,40}\d{1,10} Killed\s"
            r"|exited on signal 9 \(Killed\)"
        ),
        "Killed",
        KILLED_BY_SIGNAL, CHECK_OOM_KILLED,
        "output of dash, bash and busybox; open-mpi/ompi, help-orterun.txt",
    ),
    KnownLine(
        "PortDown", "failure", "link", "state is Down",
        re.compile(r"Port number \d{1,3} state is Down"),
        "Port number 1 state is Down",
        "A port of the RDMA device that perftest uses is down.",
        "Use another device of the node (ibstat shows which ports are Active), and report this "
        "port to the cluster administrator.",
        "linux-rdma/perftest, src/perftest_resources.c",
    ),
    KnownLine(
        "PortError", "failure", "link", "Got async event : port error", None,
        "node-0:528:5402 [0] NCCL WARN NET/IB : mlx5_0:1 Got async event : port error",
        "A port that NCCL was using went down.",
        "Read the port's counter link_downed, and report the port to the cluster administrator.",
        NET_IB_SOURCE,
    ),
    KnownLine(
        "DeviceNotFound", "failure", "verbs", "not found",
        re.compile(r"\bIB device [\w.-]{1,64} not found"),
        "IB device mlx5_bond_0 not found",
        "The container has no RDMA device with the name that the output shows.",
        "Pass -d NAME to perftest, with the name of a device that ibv_devinfo lists in the "
        "container.",
        "linux-rdma/perftest, src/perftest_resources.c",
    ),
    KnownLine(
        "NoRdmaDevice", "failure", "verbs", "Unable to find the Infiniband/RoCE device", None,
        "Unable to find the Infiniband/RoCE device",
        "The container has no RDMA device that perftest can use.",
        "Request the fabric's RDMA resource, or a claim from its ResourceClaimTemplate. Without "
        "either, a container may see the names of the devices, but cannot open the devices unless "
        "it is privileged.",
        "linux-rdma/perftest, src/perftest_resources.c",
    ),
    KnownLine(
        "QueuePairRefused", "failure", "gid", "odify",
        re.compile(r"Failed to modify QP\b.{0,80}\bRTR|\bibv_modify_qp failed with"),
        "node-0:528:5379 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with "
        "error Invalid argument",
        "Two nodes could not connect. On RoCE, perhaps the GID does not belong to the pod's "
        "network namespace, or NCCL_IB_GID_INDEX is wrong for one of the nodes.",
        "On RoCE, attach one of the fabric's secondary networks to the pod, or set hostNetwork: "
        "true. With NCCL, use version 2.26 or newer, and do not set NCCL_IB_GID_INDEX; with "
        "perftest, choose a different GID (-x). On InfiniBand, check that both nodes are on the "
        "same fabric.",
        "Mellanox/k8s-rdma-shared-dev-plugin, issues 72, 101 and 112; nccl, issue 1573",
    ),
    KnownLine(
        "MixedLinkTypes", "failure", "nccl", "Try selecting NICs of only one link type", None,
        "node-0:528:528 [0] NCCL WARN NET/IB : Attempted to connect incompatible devices: "
        "[0]mlx5_0:1/IB and [2]mlx5_bond_0:1/RoCE. Try selecting NICs of only one link type "
        "using NCCL_IB_HCA",
        "NCCL tried to connect an InfiniBand device to a RoCE device.",
        "In all pods of the job, set NCCL_IB_HCA to the same value: the exact names of the "
        "devices of one fabric, as in `=mlx5_0,mlx5_1`.",
        NET_IB_SOURCE,
    ),
    KnownLine(
        "PeerClosed", "failure", "nccl", "Connection closed by remote peer", None,
        "node-0:528:5379 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by "
        "remote peer node-1<35396>",
        "Another rank exited, and so closed its connection to this rank.",
        "Look for the cause in the logs of the ranks on the host (a pod or a node) that the line "
        "names; often, a pod of the job lacks IPC_LOCK.",
        "nccl, src/misc/socket.cc",
    ),
    KnownLine(
        "CrashInProxy", "failure", "nccl", "ncclProxyServiceUDS", None,
        "PC: @     0x7ff94e269506  (unknown)  ncclProxyServiceUDS()",
        "NCCL crashed after an earlier error.",
        "Read the NCCL WARN lines above this line, and those in the logs of all other ranks. One "
        "known cause is that NCCL could not register memory because IPC_LOCK was missing.",
        "a published report on vLLM over InfiniBand",
    ),
    KnownLine(
        "SystemError", "failure", "nccl", "unhandled system error", None,
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "A call that NCCL made to the system or to a library failed; the line does not say which "
        "call.",
        "Read the NCCL WARN lines above this line. If there are none, run the job again with "
        "NCCL_DEBUG=INFO.",
        "nccl, src/init.cc",
    ),
    KnownLine(
        "PeerFailedFirst", "failure", "socket", "Couldn't read remote address", None,
        "ethernet_read_keys: Couldn't read remote address",
        "The perftest process at the other end exited first.",
        "Look for the cause in the output of that process.",
        "linux-rdma/perftest, src/perftest_communication.c",
    ),
    KnownLine(
        "HcasNotConnected", "failure", "gid", "Unable to Connect the HCA's through the link", None,
        "Unable to Connect the HCA's through the link",
        "The two ends of perftest could not connect their queue pairs. On RoCE, perhaps the GID "
        "does not belong to the pod's network namespace.",
        "On RoCE, attach one of the fabric's secondary networks to the pod, set hostNetwork: "
        "true, or choose another GID (-x). On InfiniBand, check that both ends are on the same "
        "fabric.",
        "linux-rdma/perftest, src/write_bw.c",
    ),
    KnownLine(
        "GidUnreadable", "failure", "gid", "read sgid of index", None,
        "can't read sgid of index 3",
        "The port has no GID with the requested index in the pod's network namespace.",
        "On RoCE, attach one of the fabric's secondary networks to the pod, or set hostNetwork: "
        "true. Then choose the index of a GID that show_gids lists in the pod.",
        "rdma-core, libibverbs/examples/rc_pingpong.c",
    ),
    KnownLine(
        "IbResourcesMissing", "failure", "verbs", "Couldn't create IB resources", None,
        "Couldn't create IB resources",
        "perftest could not create a queue pair or another verbs object.",
        "Read the lines above this line. If there are none, read the output of perftest at the "
        "other end.",
        "linux-rdma/perftest, src/write_bw.c",
    ),
    KnownLine(
        "RdmaCmFailed", "failure", "verbs", "cma event RDMA_CM_EVENT_",
        re.compile(r"cma event RDMA_CM_EVENT_\w{1,30}, error"),
        "cma event RDMA_CM_EVENT_ADDR_ERROR, error -19",
        "The RDMA connection manager could not connect. With ADDR_ERROR, the server's address "
        "does not lead to an RDMA device; with ROUTE_ERROR, there is no path to the server; with "
        "REJECTED, usually no process is listening on that address.",
        "Use the address of an interface of the RDMA device (ibdev2netdev names these interfaces), "
        "and start the server first.",
        "rdma-core, librdmacm/examples/rping.c",
    ),
    KnownLine(
        "ServerUnreachable", "failure", "socket", "Couldn't connect to",
        re.compile(r"Couldn't connect to \S{1,255}:\d{1,5}\b"),
        "Couldn't connect to 10.244.1.17:18515",
        "The perftest client could not reach the perftest server over TCP, which they use to set "
        "up the test.",
        "Start the server first, and check its address. If the server is running, look for a "
        "firewall or a NetworkPolicy that blocks the port that the line shows.",
        "linux-rdma/perftest, src/perftest_communication.c",
    ),
    KnownLine(
        "SocketNotInitialized", "failure", "socket", "Unable to init the socket connection", None,
        "Unable to init the socket connection",
        "perftest could not set up the TCP connection between its two ends.",
        "Start the server first, check its address and port, and look for a firewall or a "
        "NetworkPolicy between the two ends.",
        "linux-rdma/perftest, src/write_bw.c",
    ),
    KnownLine(
        "DaemonsNotStarted", "failure", "mpi", "unable to reliably start one or more daemons", None,
        "ORTE was unable to reliably start one or more daemons.",
        "Open MPI could not start its daemon on another node.",
        "Check that ssh from the launcher to each worker works without a password, and that the "
        "workers' image has the same version of Open MPI as the launcher's image.",
        "open-mpi/ompi, help-errmgr-base.txt",
    ),
    KnownLine(
        "NoSocketInterface", "failure", "socket", "no socket interface found", None,
        "node-0:528:528 [0] NCCL WARN Bootstrap : no socket interface found",
        "NCCL_SOCKET_IFNAME matches no network interface of the pod.",
        "Set NCCL_SOCKET_IFNAME to an interface of the pod, such as eth0, or remove the variable.",
        "nccl, src/bootstrap.cc",
    ),
    KnownLine(
        "SharedMemoryTooSmall", "failure", "nccl", "/dev/shm/nccl-",  # noqa: S108
        re.compile(r"failed to extend /dev/shm/nccl-|shared memory segment /dev/shm/nccl-"),
        "node-0:168:168 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend "
        "/dev/shm/nccl-UbzKZ9 to 9637892 bytes",
        "The file system at /dev/shm is too small. Without a volume there, its size is 64 MiB.",
        "If a volume is mounted at /dev/shm, raise its sizeLimit. Otherwise, mount an emptyDir "
        "with medium: Memory there, or ask the cluster administrator to set `sharedMemory` for "
        "the fabric in the FabricConfiguration.",
        "NCCL documentation, Troubleshooting",
    ),
    *UCX_FAILURES,
    KnownLine(
        "OtherLauncher", "failure", "mpi", "unrecognized argument",
        re.compile(r"unrecognized argument (?:mca|x|allow-run-as-root)\b"),
        "[mpiexec@node-0] match_arg (lib/utils/args.c:166): unrecognized argument mca",
        "This mpirun belongs to MPICH or Intel MPI, but was given an option of Open MPI.",
        "If the program needs Open MPI, use an image with Open MPI. Otherwise, remove -mca, -x "
        "and --allow-run-as-root from the command.",
        "output of MPICH 5.0 and Intel MPI 2021.18",
    ),
    KnownLine(
        "NcclTestFailed", "failure", "nccl", ": Test NCCL failure ", None,
        "node-0: Test NCCL failure common.cu:1057 'internal error / '",
        "nccl-tests ended with an NCCL error.",
        "Read the NCCL WARN lines above this line. If there are none, run the job again with "
        "NCCL_DEBUG=INFO.",
        "NVIDIA/nccl-tests, src/common.h",
        consequence=True,
    ),
    *WORK_COMPLETIONS,
)  # fmt: skip
