#!/bin/sh
# perftest, well and ill: what it says where something is wrong on purpose.
# shellcheck source=common.sh
. ./common.sh
soft_roce || exit 1
versions >versions.txt
set -- -d rxe0 -x 1 -F --report_gbits

pair bandwidth "" ib_write_bw "$@" -n 20 -s 1048576
pair all-sizes "" ib_write_bw "$@" -n 5 -a
pair duration "" ib_write_bw "$@" -D 2 -s 65536
pair both-ways "" ib_write_bw "$@" -n 20 -s 65536 -b
pair latency "" ib_write_lat -d rxe0 -x 1 -F -n 200 -s 8
pair json "" ib_write_bw "$@" -n 20 -s 65536 --out_json --out_json_file="$PWD/report.json"

pair other-device "" ib_write_bw -d mlx5_0 -x 1 -F -n 5 -s 65536

ip link set veth0 down
pair port-down "" ib_write_bw "$@" -n 5 -s 65536
ip link set veth0 up
wait_for 'grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state'

# The kernel's own driver lets every network namespace use the host's GIDs.
ip netns add apart
ip -n apart link set lo up
address=127.0.0.1
pair other-namespace "ip netns exec apart" ib_write_bw -d rxe0 -x 1 -F --report_gbits -n 5 -s 65536

# An entry of the GID table that is empty, as all are in a namespace of OFED's drivers.
address=192.168.77.1
pair empty-gid "" ib_write_bw -d rxe0 -x 5 -F -n 5 -s 65536

# 64 MiB, where only 8 MiB may be locked.
# shellcheck disable=SC3045 # dash has it
ulimit -l 8192
pair no-ipc-lock "$without_ipc_lock" ib_write_bw "$@" -n 5 -s 33554432
# shellcheck disable=SC3045
ulimit -l unlimited

# The same where the two may use 48 MiB of memory.
limit_memory 48
pair killed "sh ./limited.sh" ib_write_bw "$@" -n 5 -s 33554432

# Nobody listens; a firewall that rejects looks the same.
client no-server "" ib_write_bw "$@" -n 5 -s 65536

# A firewall that drops what goes to the server's port. The kernel gives up after three seconds.
for module in sch_ingress cls_flower act_gact; do
    modprobe "$module" || exit 1
done
echo 1 >/proc/sys/net/ipv4/tcp_syn_retries
tc qdisc add dev lo clsact
tc filter add dev lo egress protocol ip flower ip_proto tcp dst_port 18515 action drop || exit 1
pair firewall "" ib_write_bw "$@" -n 5 -s 65536
tc qdisc del dev lo clsact
