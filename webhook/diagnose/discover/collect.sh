#!/bin/sh
# Shows what this node has for RDMA: network cards, ports, GPUs, drivers and limits, for
# `rdma-webhook discover`. It prints to standard output, changes and installs nothing, and sends
# nothing over a network. It needs neither root nor any of the tools; notes list what it could not
# read. Run it with sh, `ansible -m script`, pdsh, or the manifest of `rdma-webhook discover
# daemonset`, which sets DISCOVER_NODE.

LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/rocm/bin
export LC_ALL PATH
unset GREP_OPTIONS GREP_COLORS
absent='' ids='' seconds=20

note() { printf '### note: %s\n' "$*"; }

# bounded COMMAND...: run it, but not for longer than $seconds
if timeout -k 1 5 cat </dev/null 2>/dev/null; then
  bounded() { timeout -k 2 "$seconds" "$@"; }
elif timeout 5 cat </dev/null 2>/dev/null; then
  bounded() { timeout "$seconds" "$@"; }
else
  bounded() { "$@"; }
  unbounded=1
fi

# ran TITLE STATUS OUTPUT
ran() {
  printf '### ran: %s (exit %s)\n' "$1" "$2"
  [ -z "$3" ] || printf '%s\n' "$3"
}

# tool COMMAND...: run a tool if it is installed
tool() {
  if command -v "$1" >/dev/null 2>&1; then
    out=$(bounded "$@" 2>&1 </dev/null)
    ran "$*" "$?" "$out"
  else
    case " $absent " in *" $1 "*) ;; *) absent="$absent $1" ;; esac
  fi
}

# files TITLE EXPRESSION PATH...: the matching lines of files, each after its path and a colon.
# Many files of /sys cannot be read while they have no meaning, so grep's exit status is not shown.
files() {
  title=$1 expression=$2
  shift 2
  out=$(bounded grep -HE -e "$expression" -- "$@" 2>/dev/null </dev/null)
  [ -z "$out" ] || ran "grep -HE '$expression' $title" 0 "$out"
}

echo '### rdma-webhook discover: 2'
host=${DISCOVER_NODE:-}
[ -n "$host" ] || host=$(cat /proc/sys/kernel/hostname 2>/dev/null) || host=$(uname -n 2>/dev/null)
printf '### host: %s\n' "${host:-unknown}"
[ -z "${unbounded-}" ] || note "timeout is not installed, so a tool that hangs makes this script hang"
[ "$(id -u 2>/dev/null)" = 0 ] || note "not run as root: some tools show less"

# The node
files '/sys/class/dmi/id' . /sys/class/dmi/id/product_name /sys/class/dmi/id/sys_vendor \
  /sys/class/dmi/id/chassis_asset_tag
files '/proc/sys/kernel' . /proc/sys/kernel/osrelease

# Network cards, and whether there is any GPU: NVIDIA's and AMD's displays, all 3D controllers and
# accelerators. The display of a BMC does not count.
gpus=unknown
for device in /sys/bus/pci/devices/*; do
  { read -r class <"$device/class"; } 2>/dev/null || continue
  { read -r vendor <"$device/vendor"; } 2>/dev/null || vendor=unknown
  [ "$gpus" = some ] || gpus=none
  case $class-$vendor in
    0x0302* | 0x12* | 0x03*-0x10de | 0x03*-0x1002 | 0x03*-unknown)
      gpus=some
      files "$device" . "$device/class" "$device/vendor" "$device/device" "$device/numa_node"
      ;;
  esac
  case $class in 0x02* | 0x0c06*) ;; *) continue ;; esac
  files "$device" . "$device/class" "$device/vendor" "$device/device" "$device/numa_node" \
    "$device/current_link_speed" "$device/current_link_width" "$device/max_link_speed" \
    "$device/max_link_width" "$device/sriov_totalvfs" "$device/physfn/device"
done
[ "$gpus" != none ] || ran "ls /sys/bus/pci/devices" 0 "/sys/bus/pci/devices:no GPU"
tool lspci -Dnn
tool mst status -v

# RDMA devices and their ports
none=1
for device in /sys/class/infiniband/*; do
  [ -e "$device" ] || continue
  none=
  files "$device" . "$device/node_type" "$device/node_guid" "$device/fw_ver" "$device/hca_type" \
    "$device/board_id" "$device/device/vendor" "$device/device/device" "$device/device/numa_node" \
    "$device"/device/net/*/operstate "$device"/device/net/*/dev_port \
    "$device"/device/net/*/mtu
  for port in "$device"/ports/*; do
    files "$port" . "$port/state" "$port/phys_state" "$port/rate" "$port/link_layer" "$port/lid" \
      "$port/sm_lid"
    files "$port/counters" . "$port/counters/symbol_error" "$port/counters/link_error_recovery" \
      "$port/counters/link_downed" "$port/counters/port_rcv_errors" \
      "$port/counters/port_rcv_remote_physical_errors" "$port/counters/port_xmit_discards" \
      "$port/counters/local_link_integrity_errors" \
      "$port/counters/excessive_buffer_overrun_errors" "$port/counters/port_xmit_wait"
    # Not the zeros of empty entries.
    files "$port/gids" '[1-9a-z]' "$port"/gids/* "$port"/gid_attrs/types/* "$port"/gid_attrs/ndevs/*
  done
done
[ -z "$none" ] || note "no RDMA device in /sys/class/infiniband: no such card, or its driver is not loaded"
[ -n "$none" ] || tool ls -l /sys/class/infiniband
tool ibstat
tool ibv_devinfo
tool ibdev2netdev -v
tool ibdev2netdev
tool rdma link
tool show_gids
if ip -br a >/dev/null 2>&1; then tool ip -br a; else absent="$absent iproute2"; fi

# GPUs
files /proc/driver/nvidia/gpus '^(Model|GPU UUID):' /proc/driver/nvidia/gpus/*/information
tool nvidia-smi -L
tool nvidia-smi --query-gpu=index,name,uuid,pci.bus_id --format=csv
tool nvidia-smi topo -m
tool amd-smi list
tool amd-smi static --asic --bus
tool rocm-smi --showproductname

# Drivers and their settings
files /sys/module . /sys/module/mlx5_core/version /sys/module/ib_core/parameters/netns_mode \
  /sys/module/nvidia_peermem/initstate /sys/module/nv_peer_mem/initstate
tool grep -E '^(nvidia|nv_peer_mem|ib_|rdma|mlx|irdma|bnxt_re|efa|ionic)' /proc/modules
tool rdma system show
tool ofed_info -s
tool modinfo mlx5_core

# The memory that a container may lock: the limit of this container, or else of containerd
if [ -n "${DISCOVER_NODE:-}" ]; then
  tool grep 'Max locked memory' /proc/self/limits
else
  for process in /proc/[0-9]*; do
    { read -r name <"$process/comm"; } 2>/dev/null || continue
    case $name in containerd | crio) ids="$ids $process" ;; esac
  done
  for process in $ids; do tool grep 'Max locked memory' "$process/limits"; done
  [ -n "$ids" ] || note "neither containerd nor CRI-O is running, so LimitMEMLOCK is unknown"
fi

[ -z "$absent" ] || note "not installed:$absent"
echo '### end'
exit 0
