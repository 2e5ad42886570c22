#!/bin/sh
# A node of the cluster outside: containerd, a kubelet, and the RDMA shared device plugin.
# The host gives node.env (ADDRESS, PREFIX, GATEWAY, NODE, PAUSE), the programs, images and the
# kubeconfig; later plugin.json; and ends it all with a file `stop`.
# shellcheck source=common.sh
. ./common.sh
# shellcheck disable=SC1091,SC2153 # written by the host
. ./node.env
share=$PWD

for module in overlay rdma_rxe ib_uverbs rdma_ucm ib_umad; do
    modprobe "$module" || exit 1
done
hostname "$NODE"
ip link set eth0 up
# shellcheck disable=SC2153 # of node.env
ip addr add "$ADDRESS/$PREFIX" dev eth0
ip route add default via "$GATEWAY"
rdma link add rxe0 type rxe netdev eth0 || exit 1
wait_for 'grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state'
versions >versions.txt
sh ./collect.sh >collected.new && mv collected.new collected.txt

# A kubelet refuses a file system of another machine, so all that it writes is on the disk.
cat >/etc/containerd.toml <<TOML
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
TOML
mkdir -p /etc/cni/net.d /var/lib/kubelet /opt/node
# Pods here are in the host's network; the kubelet wants a pod network all the same.
cat >/etc/cni/net.d/10-loopback.conflist <<JSON
{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}
JSON
cp kubelet k8s-rdma-shared-dp kubelet.yaml node.kubeconfig ca.crt resolv.conf /opt/node/

# The limit that containers of a systemd machine get: what IPC_LOCK is for.
# shellcheck disable=SC3045 # dash has it
(ulimit -l 8192 && exec containerd --config /etc/containerd.toml >"$share/containerd.log" 2>&1) &
wait_for 'ctr version >/dev/null 2>&1'
for image in images/*.tar; do
    ctr --namespace k8s.io images import "$image" || exit 1
done
/opt/node/kubelet --config=/opt/node/kubelet.yaml --kubeconfig=/opt/node/node.kubeconfig \
    --hostname-override="$NODE" --node-ip="$ADDRESS" --node-labels="rdma.lab/test=soft-roce" \
    >kubelet.log 2>&1 &
wait_for '[ -S /var/lib/kubelet/device-plugins/kubelet.sock ]'
touch ready

until [ -e stop ]; do
    if [ -e plugin.json ] && [ ! -e /run/plugin ]; then
        touch /run/plugin
        unshare --mount sh ./plugin.sh >plugin.log 2>&1 &
    fi
    sleep 0.5
done
