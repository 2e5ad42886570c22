#!/bin/sh
# perftest, well and ill: what it says where something is wrong on purpose.
# shellcheck source=common.sh
. ./common.sh
soft_roce || exit 1
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
