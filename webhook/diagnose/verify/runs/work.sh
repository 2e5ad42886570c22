#!/bin/sh
# A worker of a run of nccl-tests: sshd, by which mpirun starts the ranks.
#
# sshd wants its folder, keys of the host, and its own path. A Secret's files belong to root but lie
# behind links in a folder that a group may write, which StrictModes rejects.
sshd=$(command -v sshd || echo /usr/sbin/sshd)
if [ ! -x "$sshd" ]; then
    echo "rdma-verify: this image has no sshd"
    exit 127
fi
mkdir -p /run/sshd
ssh-keygen -A >/dev/null
exec "$sshd" -De -p 2222 -o StrictModes=no
