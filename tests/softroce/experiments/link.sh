#!/bin/sh
# One of two machines on one network: perftest with a wire between its ends.
# The host gives link.env (END: server or client, OWN and PEER: addresses), and a folder that both
# machines share.
# shellcheck source=common.sh
. ./common.sh
# shellcheck disable=SC1091 # written by the host
. ./link.env

# shellcheck disable=SC2153
hostname "$END"
for module in rdma_rxe ib_uverbs rdma_ucm ib_umad; do
    modprobe "$module" || exit 1
done
mkdir -p /run/both
mount -t 9p -o trans=virtio,version=9p2000.L both /run/both || exit 1
ip link set eth0 up
# shellcheck disable=SC2153 # of link.env
ip addr add "$OWN/24" dev eth0
rdma link add rxe0 type rxe netdev eth0 || exit 1
wait_for 'grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state'
wait_for 'grep -q ffff:c0a8 /sys/class/infiniband/rxe0/ports/1/gids/1'
sh ./collect.sh >collected.txt

# Run this machine's end, again if one of the two could not measure the clock:
# run NAME PROGRAM OPTIONS...
run() {
    name=$1 prefix='' again=yes
    shift
    while [ "$again" = yes ]; do
        turn=$((turn + 1))
        "at_$END" "$@"
        echo "$name: $END $?"
        said=no
        without_clock "$name.txt" && said=yes
        echo "$said" >"/run/both/said.$END" && mv "/run/both/said.$END" "/run/both/$turn.$END"
        wait_for "[ -s /run/both/$turn.server ] && [ -s /run/both/$turn.client ]"
        again=$(sort "/run/both/$turn.server" "/run/both/$turn.client" | tail -n 1)
    done
}
turn=0

at_server() {
    "$@" -p 18515 >"$name.txt" 2>&1 &
    server=$!
    wait_for "listens || ! kill -0 $server 2>/dev/null"
    touch "/run/both/$turn.listens"
    wait "$server"
}

at_client() {
    wait_for "[ -e /run/both/$turn.listens ]"
    timeout 600 "$@" -p 18515 "$PEER" >"$name.txt" 2>&1
}

# One queue pair: with four, rxe of Linux 6.1 failed with status 9.
set -- -d rxe0 -x 1 -F
run bandwidth ib_write_bw "$@" --report_gbits -n 50 -s 1048576
run both-ways ib_write_bw "$@" --report_gbits -n 20 -s 1048576 -b
run latency ib_write_lat "$@" -n 200 -s 8
