#!/bin/sh
# Who may register 64 MiB (32 MiB on each side of the wire, sent and received)?
# shellcheck source=common.sh
. ./common.sh
soft_roce || exit 1
chmod 666 /dev/infiniband/*
set -- ib_write_bw -d rxe0 -x 1 -F --report_gbits -n 5 -s 33554432

# shellcheck disable=SC3045 # dash has it
ulimit -l 8192
pair root-ipc_lock "" "$@"
pair root "setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock --" "$@"
pair user "setpriv --reuid 1000 --regid 1000 --clear-groups --" "$@"
pair user-namespace "unshare -U -r --" "$@"
pair small-region "setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock --" \
    ib_write_bw -d rxe0 -x 1 -F --report_gbits -n 200 -s 65536

# shellcheck disable=SC3045 # dash has it
ulimit -l unlimited
pair user-unlimited "setpriv --reuid 1000 --regid 1000 --clear-groups --" "$@"

echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/limited
echo 0 >/sys/fs/cgroup/limited/memory.swap.max 2>/dev/null
for limit in 48 192; do
    echo "${limit}M" >/sys/fs/cgroup/limited/memory.max
    pair "root-${limit}-mib" "sh ./limited.sh" "$@"
    cp /sys/fs/cgroup/limited/memory.events "root-${limit}-mib.events"
done
