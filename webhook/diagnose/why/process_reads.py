"""What a shell in a container shows: its right to lock memory, interfaces, processes with RDMA."""

from __future__ import annotations

import re

from webhook.diagnose.why.evidence import ContainerProcesses, MemoryRights, RdmaProcess

#: Prints the user, the capabilities and the limit on locked memory of a new process, the network
#: interfaces, then the processes that have an RDMA device open. Only `ls` is not built into the
#: shell.
PROCESS_SCRIPT = """\
while read -r key value rest; do
  case $key in Uid:) user=$value ;; CapEff:) capabilities=$value ;; esac
done </proc/self/status
while read -r first second third soft rest; do
  [ "$first $second $third" = "Max locked memory" ] && limit=$soft
done </proc/self/limits
echo "memory $user $capabilities $limit"
for p in /sys/class/net/*; do echo "interface ${p##*/}"; done
command -v ls >/dev/null || { echo no-ls; exit 0; }
hidden=0
for p in /proc/[0-9]*; do
  if ! seen=$(ls -l "$p/fd" 2>/dev/null); then
    [ -d "$p/fd" ] && hidden=$((hidden + 1))
    continue
  fi
  case $seen in *"/dev/infiniband/uverbs"*)
    name=? pin=0
    while read -r key value rest; do
      case $key in Name:) name=$value ;; VmPin:) pin=$value ;; esac
    done <"$p/status"
    echo "process ${p#/proc/} $pin $name" ;;
  esac
done
echo "hidden $hidden"
"""

_PROCESS = re.compile(r"^process (\d{1,10}) (\d{1,15}) (.+)$", re.ASCII | re.MULTILINE)
_INTERFACE = re.compile(r"^interface ([^\s*]{1,15})$", re.MULTILINE)
_HIDDEN = re.compile(r"^hidden (\S+)$", re.MULTILINE)
_MEMORY = re.compile(r"^memory (\d{1,10}) ([0-9a-f]{1,16}) (\d{1,20}|unlimited)$", re.MULTILINE)
#: The bit of CAP_IPC_LOCK in CapEff. Source: linux, include/uapi/linux/capability.h.
_IPC_LOCK = 1 << 14


def read_processes(container: str, output: str) -> ContainerProcesses:
    """Read the output of PROCESS_SCRIPT in a container."""
    rights = _memory_rights(output)
    rdma_processes = [
        RdmaProcess(int(number), name, int(registered))
        for number, registered, name in _PROCESS.findall(output)
    ]
    hidden = next(iter(_HIDDEN.findall(output)), None)
    problem = _problem(output, hidden, has_processes=bool(rdma_processes))
    processes = () if problem else tuple(rdma_processes)
    interfaces = tuple(_INTERFACE.findall(output))
    return ContainerProcesses(container, processes, problem, rights, interfaces)


def _problem(output: str, hidden: str | None, *, has_processes: bool) -> str:
    """Return why the processes are unknown, or ""."""
    if hidden is None:
        printed = f"the script printed {output.strip()!r:.120}"
        return "the image has no ls" if "no-ls" in output else printed
    if hidden != "0" and not has_processes:
        return f"{hidden} of its processes belong to another user and cannot be inspected"
    return ""


def _memory_rights(output: str) -> MemoryRights | None:
    match = _MEMORY.search(output)
    if match is None:
        return None
    user, capabilities, limit = match.groups()
    return MemoryRights(
        user=int(user),
        has_ipc_lock=bool(int(capabilities, 16) & _IPC_LOCK),
        limit_kib=None if limit == "unlimited" else int(limit) // 1024,
    )
