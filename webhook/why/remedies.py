"""What to do about each reason code: one or two sentences for the author of a pod.

A code with the same name in several mutations has one remedy. The empty string means that there is
nothing to do: the code reports what was done, or what was not needed.
"""

from __future__ import annotations

_NODES = (
    "Ask whoever runs the nodes: containerd needs LimitMEMLOCK=infinity, or the NRI "
    "ulimit-adjuster, and the fabrics file then says so in `memlock`."
)
_ROOT = f"Run the container as root, without hostUsers: false. If it cannot: {_NODES}"
_SITE = "Ask whoever maintains the fabrics file"

REMEDIES: dict[str, str] = {
    # The verdict.
    "Equipped": "",
    "Launcher": "Look at the pods of its workers: rdma-webhook why POD.",
    "HostNetworkWrong": "Remove hostNetwork: true from the pod.",
    "HostNetworkMissing": (
        "Add hostNetwork: true and dnsPolicy: ClusterFirstWithHostNet to the pod, or choose "
        "another fabric with the annotation rdma.lab/fabric."
    ),
    "RoceWithoutNetworks": (
        f"{_SITE} for a secondary network (`networks`). Until then, look for NET/IB in the log "
        "of NCCL: rdma-webhook why POD --logs."
    ),
    "NetworksNotAdded": (
        "Write the pod's annotation k8s.v1.cni.cncf.io/networks in a form that Multus reads, or "
        "remove it, and create the pod again."
    ),
    "DeviceMissing": (
        "Request the fabric's RDMA resource in a container of the pod's spec.containers, and "
        "remove rdma-resources from rdma.lab/skip if it is there."
    ),
    "DeviceByHostPath": (
        "Remove the hostPath volume of /dev/infiniband, so that the webhook requests the device "
        "plugin's resource instead."
    ),
    "DevicesElsewhere": (
        'Remove the annotation rdma.lab/devices: "0", unless the device comes in another way.'
    ),
    "ResourceUnknown": (
        "Check the name of the RDMA resource, or remove it, so that the webhook requests the "
        "one of the pod's fabric."
    ),
    "FabricWithoutNodes": (
        "Check that the fabric is the one you mean; if it is, ask whether its nodes are down, or "
        "lack the labels that the fabrics file names."
    ),
    "ResourceNotOffered": (
        "Ask whoever runs the nodes whether the RDMA device plugin is running there: "
        "kubectl get nodes -o yaml shows what each node offers."
    ),
    "MemlockLimited": _ROOT,
    "MemlockUnknown": (
        f"{_ROOT} If the nodes do that already, the fabrics file should say `memlock: unlimited`."
    ),
    "RanksUnknown": (
        "Say it: rdma.lab/containers names the container if its own ranks use RDMA; a launcher of "
        "other pods needs nothing."
    ),
    "GvisorSandbox": "Remove runtimeClassName, or choose a class that is not gVisor.",
    "KataSandbox": (
        "Remove runtimeClassName, or ask whoever runs the nodes whether its virtual machines get a "
        "NIC of their own."
    ),
    "NcclNetSocket": "Remove NCCL_NET=Socket from the container's env.",
    "NcclNetPlugin": (
        "Remove NCCL_NET and NCCL_NET_PLUGIN, unless the image has the plugin that they name."
    ),
    "EnvUnseen": (
        "Check that the ConfigMaps and Secrets of envFrom set no NCCL_IB_DISABLE, NCCL_NET or "
        "NCCL_IB_HCA."
    ),
    "MirrorPod": "Write what RDMA needs into the static pod's file on the node.",
    "WindowsPod": "Run the job in a Linux container.",
    "NoTarget": (
        "Request a GPU or an RDMA resource in the container that communicates, or name the "
        "container and the fabric: rdma.lab/containers and rdma.lab/fabric."
    ),
    "GPUByClaim": "Name the containers that use the GPUs: rdma.lab/containers: NAME,NAME.",
    "FabricUnknown": (
        "Name the fabric on the pod, rdma.lab/fabric: NAME, or on the namespace as its default."
    ),
    "FabricAmbiguous": (
        "Name the fabric on the pod, rdma.lab/fabric: NAME, or select its nodes with a "
        "nodeSelector."
    ),
    "FabricConflict": (
        "Remove one of the two that contradict each other: the annotation, the RDMA resource, "
        "the GPU resource or the nodeSelector."
    ),
    "ForeignNIC": (
        "Nothing, if the pod is meant for that NIC. Otherwise remove the other vendor's resource "
        "or annotation."
    ),
    "InvalidAnnotation": (
        "Write the annotation as docs/annotations.md says; the message names the value and what "
        "would be right."
    ),
    "ContainersRequired": "Name the containers: rdma.lab/containers: NAME,NAME.",
    "InvalidPod": "Correct the field that the message names.",
    "PodTooLarge": (
        "Split the pod, or shorten its lists: at most 100 containers, and 5,000 entries of lists."
    ),
    "MutationFailed": "Correct what the message names, or turn that mutation off: rdma.lab/skip.",
    "NcclIbDisabled": "Remove NCCL_IB_DISABLE from the container's env, or set it to 0.",
    # The decision on a pod, and the pod's requests.
    "Patched": "",
    "AlreadyPatched": "",
    "NotOptedIn": 'Add the annotation rdma.lab/enable: "true" to the pod or to its template.',
    "SkippedByUser": (
        "Remove the mutation from the annotation rdma.lab/skip, unless you want to do that part "
        "yourself."
    ),
    "UnknownAnnotation": "Correct the key, or remove it: docs/annotations.md lists all keys.",
    "NamespaceUnknown": "Create the pod again a second after its namespace.",
    "NamespaceFabric": "Correct the namespace's annotation rdma.lab/fabric, or remove it.",
    "OtherInjector": "Remove the annotation that asks the other webhook for RDMA.",
    "TakenForLauncher": (
        "Name the container in rdma.lab/containers if its own ranks use RDMA; nothing otherwise."
    ),
    "SelectorUnknown": (
        "Compare the nodeSelector and the affinity with the nodes: kubectl get nodes --show-labels."
    ),
    "HostNetworkDNS": "Set dnsPolicy: ClusterFirstWithHostNet.",
    "IstioSidecar": 'Set the annotation sidecar.istio.io/inject: "false" on the pod.',
    # ipc-lock
    "Added": "",
    "Present": "",
    "Privileged": "",
    "MemlockRaised": "",
    "DroppedByUser": "Remove IPC_LOCK and ALL from securityContext.capabilities.drop.",
    "PodSecurity": (
        "Ask for a namespace whose Pod Security level is privileged; baseline and restricted "
        f"refuse IPC_LOCK. Or: {_NODES}"
    ),
    "CapPrefix": "Write IPC_LOCK instead of CAP_IPC_LOCK.",
    "NonRoot": _ROOT,
    "UserNamespace": _ROOT,
    "MemlockNotRaised": (
        "Remove your own ulimit annotation, or give the container a name of at most 63 characters."
    ),
    # rdma-resources
    "Renamed": "",
    "NoDevices": "",
    "NotConfigured": "",
    "InjectedElsewhere": "",
    "HostPathDevices": "Remove the hostPath volume: the device plugin brings the devices.",
    "NotAppContainer": "Move what needs RDMA from the init container into an app container.",
    "OtherResource": "Remove the resource, so that the webhook requests the fabric's own.",
    "VirtualGPU": "Request whole GPUs if the job needs GPUDirect RDMA.",
    # networks
    "Appended": "",
    "HostNetwork": "Remove hostNetwork: true, or choose a fabric that works in the host's network.",
    "TooManyDevices": "Request fewer devices: rdma.lab/devices.",
    "Unreadable": "Correct the annotation k8s.v1.cni.cncf.io/networks: Multus cannot read it.",
    # memory-limit
    "Dropped": "",
    "NoLimit": "",
    "Kept": "",
    "LimitRequired": (
        "Make sure that the limit holds the job's memory and all that it registers, or ask for a "
        "namespace without that LimitRange or quota."
    ),
    "LimitRead": (
        "Make sure that the limit holds the job's memory and all that it registers, or stop "
        "reading limits.memory by the downward API."
    ),
    "Guaranteed": "Make sure that the limit holds the job's memory and all that it registers.",
    "SharedGPU": "Request whole GPUs.",
    "PodLimitShared": (
        "Set limits.memory on each container instead of on the pod, so that only those of the "
        "other containers stay."
    ),
    "GuaranteedLost": (
        "Nothing, if the job needs no exclusive CPUs. Otherwise set rdma.lab/memory-limit: keep."
    ),
    "UnboundedMemory": "Set sizeLimit on the pod's emptyDir volumes of medium Memory.",
    "NoGPU": "Request whole GPUs for the container that is meant, or ignore this.",
    # env
    "EnvFrom": (
        "Check what the ConfigMaps and Secrets of envFrom set, and write these variables in env "
        "if they do not."
    ),
    "UserValue": "Remove your own value to get the fabric's, unless yours is meant.",
    "UcxTlsWithoutRdma": "Add rc to UCX_TLS, or remove the variable.",
    "OtherFabricsValue": "Remove the value, so that the webhook writes that of the pod's fabric.",
    "NcclIbHcaElsewhere": (
        "Remove NCCL_IB_HCA from the container's env, so that the webhook writes the fabric's."
    ),
    "NixlWithoutRdma": "Add rc to UCX_TLS, or remove the variable.",
    "NotForwarded": "Add -x UCX_NET_DEVICES to mpirun.",
    # config-files
    "Mounted": "",
    "NotNeeded": "",
    "UserMount": (
        "Write the fabric's NCCL variables into your own /etc/nccl.conf, or remove that mount."
    ),
    "MentionedInCommand": "Write the fabric's NCCL variables into your own nccl.conf.",
    "VolumeNameTaken": "Give your volume another name.",
    "AnnotationsTooLarge": "Shorten the pod's annotations: Kubernetes allows 256 KiB for all.",
    "LeftOut": (
        "Set the variable to the same literal value in all containers that sshd starts "
        "processes in."
    ),
    "AnnotationDiffers": "Remove the annotation rdma.lab/nccl-conf: the webhook writes it.",
    "AnnotationUnused": "Remove the annotation rdma.lab/nccl-conf.",
    # hcoll
    "Off": "",
    "NoMPI": "",
    "CPURanks": (
        "Nothing, if the ranks are fast enough. To keep hcoll, set OMPI_MCA_coll_hcoll_enable=1 in "
        "env."
    ),
    "OtherUser": "Add -mca coll_hcoll_enable 0 to mpirun if the job hangs with hcoll.",
    "ScriptTooLarge": "Add -mca coll_hcoll_enable 0 to mpirun yourself if the job hangs.",
    "ScriptUnclear": "Add -mca coll_hcoll_enable 0 to mpirun yourself if the job hangs.",
    # nvlink
    "Wrapped": "",
    "NotRequested": "",
    "HostPIDMissing": "Add hostPID: true to the pod if UCX shares GPU memory between pods.",
    "NamespaceNotAllowed": f"{_SITE} to list the namespace in nvlink.allowNamespaces.",
    "ComputeDomain": "",
    "HostIPCMissing": "Add hostIPC: true to the pod.",
    "NotPrivileged": "Add privileged: true to the securityContext of each container with GPUs.",
    "PartOfNode": "Request all GPUs of the node, or ask how its GPUs come to containers.",
    "OwnRemap": "",
    "CommandMissing": "Write the container's command into the pod's spec.",
    "WrappedDifferently": "Remove the remap from the command: the webhook writes it anew.",
    "RunsSshd": "Start the ranks without sshd, or give up NVLink between pods.",
    "SharedMemoryMounted": "Remove the volume at /dev/shm: NVLink needs the node's own.",
    "VisibleDevicesSet": "Remove CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES from env.",
    "SocketsNotShared": "Add hostNetwork: true, or mount a /tmp that the pods share.",
    # shared-memory and placement
    "HostIPC": "",
    "NVLinkRequested": "",
    "Pinned": "",
    "UserSelects": "",
}
