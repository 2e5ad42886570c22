#!/bin/sh
# Run the RDMA shared device plugin where it finds rxe0, in a mount namespace of its own.
#
# The plugin looks for RDMA devices below PCI functions, and rxe0 has none: it belongs to a network
# interface. So the interface's own PCI function is shown with what a ConnectX card would have there:
# infiniband/ and net/. All else, such as the ids, is the virtual card's; the devices that a pod
# gets are rxe0's own.
set -eu
mount --make-rprivate /
device=$(readlink -f /sys/class/net/eth0/device) # .../0000:00:03.0/virtio0
function=${device%/virtio*}
shown=/run/function
mkdir -p "$shown"
for file in "$function"/*; do
    if [ -f "$file" ]; then cp "$file" "$shown/" 2>/dev/null || true; fi
done
ln -s "$(readlink -f "$function/driver")" "$shown/driver"
mkdir -p "$shown/net/eth0" "$shown/infiniband/rxe0"
mount --bind "$shown" "$function"
cp plugin.json /run/plugin.json
exec /opt/node/k8s-rdma-shared-dp --config-file /run/plugin.json
