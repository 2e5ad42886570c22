#!/bin/sh
# Who may register 64 MiB (32 MiB on each side of the wire, sent and received)?
# shellcheck source=common.sh
. ./common.sh
soft_roce || exit 1
versions >versions.txt
chmod 666 /dev/infiniband/*
set -- ib_write_bw -d rxe0 -x 1 -F --report_gbits -n 5 -s 33554432

# shellcheck disable=SC3045 # dash has it
ulimit -l 8192
pair root-ipc_lock "" "$@"
pair root "$without_ipc_lock" "$@"
pair user "setpriv --reuid 1000 --regid 1000 --clear-groups --" "$@"
pair user-namespace "unshare -U -r --" "$@"
pair small-region "$without_ipc_lock" \
    ib_write_bw -d rxe0 -x 1 -F --report_gbits -n 200 -s 65536

# shellcheck disable=SC3045 # dash has it
ulimit -l unlimited
pair user-unlimited "setpriv --reuid 1000 --regid 1000 --clear-groups --" "$@"

for limit in 48 192; do
    limit_memory "$limit"
    pair "root-${limit}-mib" "sh ./limited.sh" "$@"
    cp "$limited/memory.events" "root-${limit}-mib.events"
done
