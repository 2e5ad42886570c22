#!/bin/sh
# The launcher of a run of nccl-tests: launch.sh RANKS LIMIT TEST LARGEST
#
# What it says itself begins with "rdma-verify: ". mpirun is looked for first, since an image that
# lacks one part usually lacks all of them.
ranks=$1 limit=$2 test=$3 largest=$4
for program in mpirun ssh "$test"; do
    if ! command -v "$program" >/dev/null; then
        echo "rdma-verify: this image has no $program"
        exit 127
    fi
done
set -x
# NCCL's log says over which network the results came. One process a GPU. sshd of the workers listens
# on 2222, so that it does not meet that of a node whose network the pods use.
exec timeout "$limit" mpirun --allow-run-as-root -np "$ranks" --map-by slot \
    --mca plm_rsh_args "-p 2222 -o ConnectionAttempts=10 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR" \
    -x NCCL_DEBUG=INFO -x PATH -x LD_LIBRARY_PATH \
    "$test" -b 8 -e "$largest" -f 2 -g 1
