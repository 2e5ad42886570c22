#!/bin/sh
# What the experiments share; each reads it first: . ./common.sh

# Make an RDMA device rxe0 over a network of its own, 192.168.77.1.
soft_roce() {
    for module in veth rdma_rxe ib_uverbs rdma_ucm ib_umad; do
        modprobe "$module" || return 1
    done
    ip link add veth0 type veth peer name veth1
    ip addr add 192.168.77.1/24 dev veth0
    ip link set veth0 up
    ip link set veth1 up
    rdma link add rxe0 type rxe netdev veth0 || return 1
    wait_for 'grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state'
    # The GID of the address comes a moment after the link.
    wait_for 'grep -q ffff:c0a8 /sys/class/infiniband/rxe0/ports/1/gids/1'
}

# Wait until a command succeeds, for ten minutes and more.
wait_for() {
    tries=0
    until eval "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 6000 ] || { echo "in vain waited for: $1"; return 1; }
        sleep 0.1
    done
}

# Let the commands of limited.sh use so many MiB: limit_memory 48
limit_memory() {
    limited=/sys/fs/cgroup/limited
    if [ ! -d "$limited" ]; then
        echo +memory >/sys/fs/cgroup/cgroup.subtree_control
        mkdir "$limited"
        echo 0 >"$limited/memory.swap.max" 2>/dev/null
    fi
    echo "${1}M" >"$limited/memory.max"
}

# The address that clients connect to.
address=192.168.77.1
# How a process loses IPC_LOCK.
# shellcheck disable=SC2034 # for the experiments
without_ipc_lock="setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock --"

# Run a server and a client of perftest: pair NAME PREFIX PROGRAM OPTIONS...
# PREFIX is a command, in words, that runs both ("" for none). Their output goes to
# NAME.server.txt and NAME.client.txt, the client's exit code to NAME.status.
pair() {
    once "$@"
    while without_clock "$1.server.txt" "$1.client.txt"; do once "$@"; done
}

once() {
    name=$1 prefix=$2
    shift 2
    # shellcheck disable=SC2086 # words
    $prefix "$@" -p 18515 >"$name.server.txt" 2>&1 &
    server=$!
    wait_for "listens || ! kill -0 $server 2>/dev/null"
    client "$name" "$prefix" "$@"
    # A server whose client did not reach it would wait for ever; another ends by itself.
    if listens; then
        pkill -P "$server"
        kill "$server" 2>/dev/null
    fi
    wait "$server"
}

# Whether perftest says in a file that it could not measure the processor's clock, as happens where
# the host is busy. It then prints zeros.
without_clock() {
    grep -q 'Correlation coefficient' "$@"
}

# Run a client alone, in the same way.
client() {
    name=$1 prefix=$2
    shift 2
    # shellcheck disable=SC2086
    timeout 600 $prefix "$@" -p 18515 "$address" >"$name.client.txt" 2>&1
    echo $? >"$name.status"
    echo "$name: client $(cat "$name.status")"
}

# Whether a server waits for its client; 4853 is 18515, and 0A the state LISTEN.
listens() {
    # shellcheck disable=SC2086
    $prefix cat /proc/net/tcp /proc/net/tcp6 | grep -q ':4853 0*:0000 0A'
}

# What runs here, for docs/evidence.md.
versions() {
    echo "kernel $(uname -r)"
    # shellcheck disable=SC2016 # dpkg-query's fields
    dpkg-query --show --showformat '${Package} ${Version}\n' \
        "linux-image-$(uname -r)" containerd containernetworking-plugins ibverbs-utils iproute2 perftest rdma-core runc
}
