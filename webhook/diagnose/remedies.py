"""The remedy for each reason code: one or two sentences for the author of a pod.

A code with the same name in several mutations has one remedy. The empty string means that no action
is needed: the code reports a change, or that none was needed.
"""

from __future__ import annotations

_NODES = (
    "Ask whoever runs the nodes to set LimitMEMLOCK=infinity for containerd, or to run the NRI "
    "ulimit-adjuster, and to say so in the fabrics file (`memlock`)."
)
_ROOT = f"Run the container as root, without hostUsers: false. If that is not possible: {_NODES}"
_SITE = "Ask whoever maintains the fabrics file"
_BESIDE = (
    "Request the GPU of the fabric's nodes, or ask whoever runs the nodes whether the GPU's device "
    "plugin and the RDMA device plugin run on the same nodes."
)
_FEWER = (
    "Request fewer devices (rdma.lab/devices), or divide the work among more pods: all containers "
    "of a pod share what one node has."
)

REMEDIES: dict[str, str] = {
    # The verdict.
    "Equipped": "",
    "Launcher": "Ask about the pods of its workers: rdma-webhook why POD.",
    "HostNetworkWrong": (
        "Remove hostNetwork: true from the pod, or choose a fabric that works in the host's "
        "network with the annotation rdma.lab/fabric."
    ),
    "HostNetworkMissing": (
        "Add hostNetwork: true and dnsPolicy: ClusterFirstWithHostNet to the pod, or choose "
        "another fabric with the annotation rdma.lab/fabric."
    ),
    "RoceWithoutNetworks": (
        f"{_SITE} for a secondary network (`networks`). Until then, check NCCL's log for NET/IB: "
        "rdma-webhook why POD --logs."
    ),
    "NetworksNotAdded": (
        "Write the pod's annotation k8s.v1.cni.cncf.io/networks in a form that Multus reads, or "
        "remove it, and create the pod again."
    ),
    "DeviceMissing": (
        "If the pod's rdma.lab/skip names rdma-resources, remove it from there. Otherwise "
        "request the fabric's RDMA resource in an app container (spec.containers)."
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
        "Check that the fabric is the one you mean. If it is, ask whoever runs the nodes whether "
        "they are down, or lack the labels that the fabrics file names."
    ),
    "ResourceNotOffered": (
        "Ask whoever runs the nodes whether the RDMA device plugin is running there: "
        "kubectl get nodes -o yaml shows what each node offers."
    ),
    "ResourceNotBesideGpu": _BESIDE,
    "ResourceExceedsNodes": _FEWER,
    "MemlockLimited": _ROOT,
    "MemlockUnknown": (
        f"{_ROOT} If the nodes raise memlock already, the fabrics file should say `memlock: "
        "unlimited` or `nri`."
    ),
    "ClaimTemplateMissing": (
        "Create the ResourceClaimTemplate in the pod's namespace, or ask whoever runs the cluster "
        "for it. The pod then starts by itself, but Kubernetes looks for the template in ever "
        "longer intervals, of up to 17 minutes: it is quicker to create the pod again."
    ),
    "ClaimRequestMissing": (
        "Ask whoever runs the cluster: the template in the namespace and `claims` of the fabrics "
        "file must name the same request. Then create the pod again."
    ),
    "ClaimTemplateUnknown": (
        "See whether the template exists: kubectl get resourceclaimtemplates. For a preview, use "
        "--live, or add the template to the facts."
    ),
    "RanksUnknown": (
        "If the container's own ranks use RDMA, name it in rdma.lab/containers. If it only "
        "starts ranks in other pods, there is nothing to do."
    ),
    "FabricNowhere": (
        "Choose another fabric with rdma.lab/fabric, or ask whether its nodes are down, or lack "
        "the labels that the fabrics file names."
    ),
    "ResourceNowhere": (
        "Ask whoever runs the nodes whether the RDMA device plugin is running there: "
        "kubectl get nodes -o yaml shows what each node offers."
    ),
    "ResourceNeverBesideGpu": _BESIDE,
    "ResourceExceedsStaticNodes": _FEWER,
    "MPIOverTCP": (
        "Remove pml and btl from the options of mpirun and from OMPI_MCA_* in env, so that Open "
        "MPI uses UCX."
    ),
    "MPIOb1": (
        "Remove pml from the options of mpirun and from OMPI_MCA_* in env, so that Open MPI uses "
        "UCX."
    ),
    "MPIUcxTls": "Add rc to UCX_TLS, or remove the variable.",
    "PsLiteOverTcp": (
        "Set DMLC_ENABLE_RDMA=ibverbs, with an image whose ps-lite is built with RDMA, in the "
        "workers, the servers and the scheduler."
    ),
    "GPUModelUnknown": (
        "If such nodes are on the fabric, set rdma.lab/fabric: NAME on the pod, or ask for the "
        "label in the fabric's nodeLabels."
    ),
    "NotCalled": (
        'Label the namespace rdma.lab/enable: "true", or create the pod in a namespace that has '
        "the label."
    ),
    "GvisorSandbox": "Remove runtimeClassName, or choose a class that is not gVisor.",
    "KataSandbox": (
        "Remove runtimeClassName, or ask whoever runs the nodes whether its virtual machines get "
        "their own NIC."
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
        "Remove one of the two that contradict each other; the denial's message names both: "
        "annotation, RDMA resource, GPU resource or nodeSelector."
    ),
    "ForeignNIC": (
        "If that NIC belongs to one of your fabrics, set rdma.lab/fabric: NAME and "
        'rdma.lab/devices: "0". If the pod is meant for a NIC of another kind, there is '
        "nothing to do. Otherwise remove its resource, claim or annotation."
    ),
    "InvalidAnnotation": (
        "Correct the annotation that the denial's message names: docs/annotations.md lists the "
        "values."
    ),
    "ContainersRequired": "Name the containers: rdma.lab/containers: NAME,NAME.",
    "InvalidPod": "Correct the field that the denial's message names.",
    "PodTooLarge": (
        "Split the pod, or shorten its lists: a pod may have 100 containers, and 5,000 "
        "entries in its lists."
    ),
    "MutationFailed": (
        "Correct what the denial's message names, or turn that mutation off with rdma.lab/skip."
    ),
    "NcclIbDisabled": "Remove NCCL_IB_DISABLE from the container's env, or set it to 0.",
    # The decision on a pod, and the pod's requests.
    "Patched": "",
    "AlreadyPatched": "",
    "NotOptedIn": 'Add the annotation rdma.lab/enable: "true" to the pod, or to its template.',
    "SkippedByUser": (
        "If you do not provide that part yourself, remove the mutation from the annotation "
        "rdma.lab/skip."
    ),
    "UnknownAnnotation": "Correct the key, or remove it: docs/annotations.md lists all keys.",
    "NamespaceUnknown": "Create the pod again, now that its namespace is known.",
    "ClaimUnknown": (
        "Check that the namespace has the ResourceClaim: until it does, the pod stays Pending. If "
        "it has, and the webhook did not know it yet, create the pod again. For a preview, use "
        "--live, or add the claim to the facts."
    ),
    "NamespaceFabric": "Correct the namespace's annotation rdma.lab/fabric, or remove it.",
    "OtherConfiguration": (
        "If the pod was created from the manifest of an older one, remove rdma.lab/status and what "
        "the webhook had added from that manifest. Otherwise there is nothing to do."
    ),
    "OtherInjector": "Remove the annotation that asks the other webhook for RDMA.",
    "TakenForLauncher": (
        "If the container's own ranks use RDMA, name it in rdma.lab/containers. Otherwise "
        "there is nothing to do."
    ),
    "FabricNotNeeded": "",
    "SelectorUnknown": (
        "Compare the nodeSelector and the affinity with the nodes: kubectl get nodes --show-labels."
    ),
    "HostNetworkDNS": "Set dnsPolicy: ClusterFirstWithHostNet.",
    "IstioSidecar": 'Set the label sidecar.istio.io/inject: "false" on the pod.',
    # ipc-lock
    "Added": "",
    "Present": "",
    "Privileged": "",
    "MemlockRaised": "",
    "DroppedByUser": "Remove IPC_LOCK from securityContext.capabilities.drop; ALL may stay there.",
    "PodSecurity": (
        "Run the pod in a namespace with the Pod Security level privileged: baseline and "
        f"restricted forbid IPC_LOCK. If that is not possible: {_NODES}"
    ),
    "CapPrefix": "Write IPC_LOCK instead of CAP_IPC_LOCK.",
    "NonRoot": _ROOT,
    "UserNamespace": _ROOT,
    "MemlockNotRaised": (
        "Remove your own ulimit annotation, give the container a name of at most 63 "
        "characters, or shorten the pod's annotations: together they may have 256 KiB."
    ),
    # rdma-resources
    "Renamed": "",
    "NoDevices": "",
    "NotConfigured": "",
    "InjectedElsewhere": "",
    "HostPathDevices": "Remove the hostPath volume: the device plugin brings the devices.",
    "NotAppContainer": "If the init container needs RDMA, move that work into an app container.",
    "OtherResource": "Remove the resource, so that the webhook requests the fabric's own.",
    "FewDevices": "Remove the resource, so that the webhook requests as many as the GPUs need.",
    "VirtualGPU": "Request whole GPUs if the job needs GPUDirect RDMA.",
    # claims
    "ClaimNameTaken": "Rename the pod's own claim: rdma-lab-* are names of the webhook.",
    "GPUTwice": (
        "Remove the GPU resource, or the claim for a GPU, from the container: the fabric's "
        "template brings the GPU together with its NIC."
    ),
    "DevicesByTemplate": "Remove rdma.lab/devices.",
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
        "Make sure that the limit covers the job's memory and all memory that it registers, or "
        "use a namespace without that LimitRange or quota."
    ),
    "LimitRead": (
        "Make sure that the limit covers the job's memory and all memory that it registers, or "
        "remove the field that reads limits.memory by the downward API."
    ),
    "Guaranteed": (
        "Make sure that the limit covers the job's memory and all memory that it registers."
    ),
    "SharedGPU": (
        "Request whole GPUs. To remove the memory limit all the same, set rdma.lab/memory-limit: "
        "drop."
    ),
    "PodLimitShared": (
        "Set limits.memory on each container instead of on the pod, so that the webhook can "
        "remove those of the targets."
    ),
    "GuaranteedLost": (
        "If the job needs exclusive CPUs, set rdma.lab/memory-limit: keep. Otherwise there "
        "is nothing to do."
    ),
    "UnboundedMemory": "Set sizeLimit on the pod's emptyDir volumes of medium Memory.",
    "NoGPU": (
        "If the container sizes a memory pool by its limit, set rdma.lab/memory-limit: keep. For "
        "NVLink, request whole GPUs."
    ),
    # env
    "EnvFrom": (
        "Check whether the ConfigMaps and Secrets of envFrom set these variables; if not, write "
        "them in env."
    ),
    "UserValue": "If you do not mean to differ from the fabric, remove your value.",
    "UcxTlsWithoutRdma": "Remove UCX_TLS, or name an RDMA transport in it, such as rc.",
    "OtherFabricsValue": "Remove the value: the webhook then writes that of the pod's fabric.",
    "NcclIbHcaElsewhere": (
        "Remove NCCL_IB_HCA from the container's env: the webhook then writes the fabric's devices."
    ),
    "NixlWithoutRdma": "Remove UCX_TLS, or name an RDMA transport in it, such as rc.",
    "NotForwarded": "Add -x UCX_NET_DEVICES to mpirun.",
    # config-files
    "Mounted": "",
    "NotNeeded": "",
    "UserMount": (
        "For /etc/nccl.conf: write the fabric's NCCL variables into your file, or remove "
        "that mount. For /dev/shm: check that your volume is as large as the fabric's."
    ),
    "MentionedInCommand": "Write the fabric's NCCL variables into your own nccl.conf.",
    "VolumeNameTaken": "Give your volume another name.",
    "AnnotationsTooLarge": "Shorten the pod's annotations: Kubernetes allows 256 KiB for all.",
    "LeftOut": (
        "Set the variable to the same literal value in all containers in which sshd starts "
        "processes."
    ),
    "AnnotationDiffers": "Remove the annotation rdma.lab/nccl-conf: the webhook writes it.",
    "AnnotationKept": (
        "If the pod was created from the manifest of an older one, remove the annotation "
        "rdma.lab/nccl-conf from that manifest. Otherwise there is nothing to do."
    ),
    "AnnotationUnused": "Remove the annotation rdma.lab/nccl-conf.",
    # hcoll
    "AddedInCase": "",
    "Off": "",
    "NoMPI": "",
    "CPURanks": (
        "To keep hcoll, set OMPI_MCA_coll_hcoll_enable=1 in env. Otherwise there is nothing to do."
    ),
    "OtherUser": "If the job hangs, add -mca coll_hcoll_enable 0 to mpirun.",
    "ScriptTooLarge": "If the job hangs, add -mca coll_hcoll_enable 0 to mpirun.",
    "ScriptUnclear": "If the job hangs, add -mca coll_hcoll_enable 0 to mpirun.",
    # nvlink
    "Wrapped": "",
    "NotRequested": "",
    "HostPIDMissing": "If UCX is to share GPU memory between pods, add hostPID: true.",
    "NamespaceNotAllowed": f"{_SITE} to list the namespace in nvlink.allowNamespaces.",
    "ComputeDomain": "",
    "HostIPCMissing": "Add hostIPC: true to the pod.",
    "NotPrivileged": "Add privileged: true to the securityContext of each container with GPUs.",
    "PartOfNode": (
        "Request all GPUs of the node. If your nodes do not use CDI, there is nothing to do: "
        "docs/nvlink.md."
    ),
    "OwnRemap": "",
    "CommandMissing": "Write the container's command into the pod's spec.",
    "WrappedDifferently": "Remove the remap from the command: the webhook writes a new one.",
    "RunsSshd": "Start the ranks without sshd, or remove rdma.lab/nvlink.",
    "SharedMemoryMounted": "Remove the volume at /dev/shm: NVLink needs the node's own.",
    "VisibleDevicesSet": "Remove CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES from env.",
    "SocketsNotShared": "Add hostNetwork: true, or mount a /tmp that the pods share.",
    # shared-memory and placement
    "HostIPC": "",
    "NVLinkRequested": "",
    "Pinned": "",
    "UserSelects": "",
}
