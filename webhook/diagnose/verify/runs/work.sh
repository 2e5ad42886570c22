#!/bin/sh
# A worker of a run of nccl-tests: sshd, through which mpirun starts the ranks.
#
# sshd needs its folder, host keys, and its own absolute path. A Secret's files belong to root, but
# are links into a folder that a group may write, which StrictModes rejects.
#
# The pod may use its node's network, and root of the container may be root of the node. So sshd
# listens on a single address, accepts only the key that mpi-operator makes for each job, lets in
# only its own user, and forwards nothing. It ends with the pod.
sshd=$(command -v sshd || echo /usr/sbin/sshd)
if [ ! -x "$sshd" ]; then
    echo "rdma-verify: this image has no sshd"
    exit 127
fi
mkdir -p /run/sshd
ssh-keygen -A >/dev/null
exec "$sshd" -De -p 2222 -o "ListenAddress=$SSHD_ADDRESS" -o StrictModes=no \
    -o AuthenticationMethods=publickey -o "AllowUsers=$(id -un)" -o DisableForwarding=yes -o PermitTTY=no
