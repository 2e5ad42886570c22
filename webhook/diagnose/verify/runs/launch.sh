#!/bin/sh
# The launcher of a run of nccl-tests: launch.sh RANKS LIMIT TEST LARGEST
#
# Its own messages begin with "rdma-verify: ". mpirun comes first, since an image that lacks it
# usually lacks everything.
ranks=$1 limit=$2 test=$3 largest=$4
for program in mpirun ssh "$test"; do
    if ! command -v "$program" >/dev/null; then
        echo "rdma-verify: this image has no $program"
        exit 127
    fi
done
set -x
# NCCL's log shows which network carried the results. Each GPU has a process. The workers' sshd
# listens on 2222, which leaves port 22 to the node's sshd if the pods use the node's network.
exec timeout "$limit" mpirun --allow-run-as-root -np "$ranks" --map-by slot \
    --mca plm_rsh_args "-p 2222 -o ConnectionAttempts=10 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR" \
    -x NCCL_DEBUG=INFO -x PATH -x LD_LIBRARY_PATH \
    "$test" -b 8 -e "$largest" -f 2 -g 1
