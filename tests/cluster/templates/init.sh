#!/bin/sh
# Pid 1 of a cluster: arranges its mounts and cgroups, says "ready", and from then on only exists.
#
# usage: init.sh DIRECTORY CGROUP, in mount, network and pid namespaces of its own.
#
# Nothing here can reach the machine: the mounts are this namespace's, and all ends with pid 1.
set -eu
directory=$1 cgroup=$2 stage=${3:-join}

hierarchies() { # the hierarchies of cgroup v1, or the one of v2
    awk '$2 ~ "^/sys/fs/cgroup" && $3 ~ /^cgroup2?$/ { print $2 }' /proc/mounts | sort -u
}

if [ "$stage" = join ]; then
    for hierarchy in $(hierarchies); do echo 0 >"$hierarchy/$cgroup/cgroup.procs"; done
    exec unshare --cgroup sh "$0" "$directory" "$cgroup" mount
fi

# /run, and what programs write below /var, are the cluster's own, on the paths of a real node.
# /run comes first: the directory may lie below any of them, and is /run/cluster from there on.
mkdir -p "$directory/mounts"
mount -t tmpfs -o mode=755 cluster "$directory/mounts"
mkdir "$directory/mounts/cluster"
mount --bind "$directory" "$directory/mounts/cluster"
mount --rbind "$directory/mounts" /run
for path in lib log; do
    mkdir -p "/run/mounts/$path" "/run/mounts/$path.work"
    upper=upperdir=/run/mounts/$path,workdir=/run/mounts/$path.work
    mount -t overlay -o "lowerdir=/var/$path,$upper" cluster "/var/$path"
done
for path in /var/lib/kubelet /var/lib/containerd /var/lib/cni /var/log/pods /var/log/containers; do
    mkdir -p "$path" "/run/cluster/node$path"
    mount --bind "/run/cluster/node$path" "$path"
done

# The kubelet sets these, and they are the whole machine's: it finds them as it wants them.
while read -r name value; do
    file=/run/mounts/sysctl.$(echo "$name" | tr / .)
    echo "$value" >"$file"
    mount --bind "$file" "/proc/sys/$name"
done <<SYSCTLS
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
vm/overcommit_memory 1
vm/panic_on_oom 0
SYSCTLS

# /sys/fs/cgroup begins at the cluster's own cgroup, as it does in a container.
mkdir /run/mounts/cgroup
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mount --bind "/sys/fs/cgroup/$cgroup" /run/mounts/cgroup
else
    mount -t tmpfs -o mode=755 cgroup /run/mounts/cgroup
    for hierarchy in /sys/fs/cgroup/*; do
        name=${hierarchy##*/}
        if [ -L "$hierarchy" ]; then
            cp -P "$hierarchy" /run/mounts/cgroup/
        elif [ -d "$hierarchy/$cgroup" ]; then
            mkdir "/run/mounts/cgroup/$name"
            mount --bind "$hierarchy/$cgroup" "/run/mounts/cgroup/$name"
        fi
    done
fi
umount -R -l /sys/fs/cgroup
mount --rbind /run/mounts/cgroup /sys/fs/cgroup
umount -R /run/mounts/cgroup
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    # Version 2: a cgroup with children that have controllers has no processes of its own.
    mkdir -p /sys/fs/cgroup/init
    echo 0 >/sys/fs/cgroup/init/cgroup.procs
    # shellcheck disable=SC2013  # one line of words
    for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
        echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
    done
fi
mount --make-rshared /

echo ready
# Orphans are reaped by the kernel where their parent ignores their end.
exec env --ignore-signal=CHLD sleep infinity </dev/null >/dev/null 2>&1
