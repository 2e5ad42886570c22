#!/bin/sh
# The first process of the emulated machine: run the experiment that the host shares, then power off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t cgroup2 cgroup /sys/fs/cgroup
modprobe 9pnet_virtio
mkdir -p /run/share
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 share /run/share
ip link set lo up
cd /run/share || exit 1
sh ./experiment.sh >output.txt 2>&1
echo $? >status
cd /
umount /run/share
sync
echo o >/proc/sysrq-trigger
sleep 60
