"""Names in a fabrics file: which forms are valid, and which names look misspelled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from webhook.model.annotations import JSON_CHARACTERS
from webhook.model.libraries import WEBHOOK_VARIABLES
from webhook.model.names import MAX_SUBDOMAIN_LENGTH

# The forms of names that Kubernetes, Multus, the device plugins and Linux accept.
#
# Sources: apimachinery's util/validation (labels, qualified names, DNS names),
# core/v1's IsExtendedResourceName, Linux's IFNAMSIZ and dev_valid_name(),
# rdma-core's IBV_SYSFS_NAME_MAX, k8s-rdma-shared-dev-plugin's resource names.

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_ENV = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")
_GLOB = re.compile(r"[A-Za-z0-9_.*?\[\]!-]+")
_PLUGIN_NAME = re.compile(r"[A-Za-z0-9_]+")
_HCA = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,62})(?::([0-9]{1,3})(?::[0-9]{1,5}){0,2})?")
#: The maximum length of an interface's name in bytes: IFNAMSIZ is 16 with the final NUL.
_MAX_INTERFACE_BYTES = 15
#: A quota counts the resource as `requests.DOMAIN/NAME`, which must be a qualified name itself.
_MAX_DOMAIN_BYTES = MAX_SUBDOMAIN_LENGTH - len("requests.")
_MAX_PORT = 254
#: A label value has at most 63 bytes, but the brackets of a glob are longer than what they match.
_MAX_GLOB_BYTES = 253


#: The form of an RFC 1123 label, in words.
LABEL_FORM = "at most 63 lowercase letters, digits and -, without a - at either end"


def is_dns_label(name: str) -> bool:
    """Return whether `name` is an RFC 1123 label, such as the name of a namespace."""
    return bool(_LABEL.fullmatch(name))


def is_dns_subdomain(name: str) -> bool:
    """Return whether `name` is an RFC 1123 subdomain, such as the name of most objects."""
    return len(name) <= MAX_SUBDOMAIN_LENGTH and bool(_SUBDOMAIN.fullmatch(name))


def is_extended_resource(name: str) -> bool:
    """Return whether nodes can offer a resource `name`: `domain/name`, not in kubernetes.io."""
    domain, slash, short = name.partition("/")
    return (
        bool(slash)
        and "kubernetes.io" not in domain
        and len(domain) <= _MAX_DOMAIN_BYTES
        and is_dns_subdomain(domain)
        and bool(_NAME.fullmatch(short))
    )


def is_plugin_resource(name: str) -> bool:
    """Return whether the RDMA shared device plugin accepts it as `resourceName`: no `-`, no `/`."""
    return bool(_PLUGIN_NAME.fullmatch(name))


def is_label_key(key: str) -> bool:
    """Return whether `key` is a label key: `name` or `domain/name`."""
    domain, slash, name = key.rpartition("/")
    return bool(_NAME.fullmatch(name)) and (not slash or is_dns_subdomain(domain))


def is_label_value(value: str) -> bool:
    """Return whether it is a label value: empty, or at most 63 letters, digits, `-`, `_`, `.`."""
    return not value or bool(_NAME.fullmatch(value))


def is_label_glob(glob: str) -> bool:
    """Return whether `glob` has only characters of label values and globs, and not too many."""
    return len(glob) <= _MAX_GLOB_BYTES and bool(_GLOB.fullmatch(glob))


def is_env_name(name: str) -> bool:
    """Return whether every Kubernetes version accepts `name` as the name of a variable."""
    return bool(_ENV.fullmatch(name)) and name not in (".", "..")


def is_interface(name: str) -> bool:
    """Return whether Linux accepts `name` for an interface.

    It must also be a name that no library reads as a list or a glob.
    """
    if not name or name in (".", "..") or len(name.encode()) > _MAX_INTERFACE_BYTES:
        return False
    return not any(char.isspace() or char in "/:,^=*%" for char in name)


def is_network(name: str) -> bool:
    """Return whether Multus accepts it: `name`, with an optional `namespace/` and `@interface`."""
    network, at, interface = name.partition("@")
    namespace, slash, short = network.rpartition("/")
    return (
        is_dns_subdomain(short)
        and (not slash or is_dns_label(namespace))
        and (not at or (is_interface(interface) and JSON_CHARACTERS.isdisjoint(interface)))
    )


def split_hca(written: str) -> tuple[str, int | None] | None:
    """Return name and port of `name[:port[:rail[:plane]]]`; None if it is not an RDMA device.

    Rail and plane, which NCCL 2.30 and newer read (env.rst, NCCL_IB_HCA), are left out.
    """
    match = _HCA.fullmatch(written)
    if not match or (match[2] and not 1 <= int(match[2]) <= _MAX_PORT):
        return None
    return match[1], int(match[2]) if match[2] else None


def is_hca_prefix(written: str) -> bool:
    """Return whether the name of an RDMA device can begin with `written`."""
    return ":" not in written and split_hca(written + "0") is not None


# The environment variables of RDMA libraries, besides those that the webhook writes, to recognize
# misspelled names.
#
# A name that is not listed may be valid: sites set their own variables, and libraries get new
# ones. Sources: NCCL's env.rst and the NCCL_PARAM names in its source, UCX's `ucx_info
# -c`, NVSHMEM's env_defs.h, Gloo, PyTorch's ProcessGroupNCCL, Mooncake, libfabric, Open MPI.

_NCCL = """
ALGO ALLOC_P2P_NET_LL_BUFFERS ASYNC_ERROR_HANDLING BLOCKING_WAIT BUFFSIZE CGA_CLUSTER_SIZE
CHECKS_DISABLE CHECK_POINTERS CHUNK_SIZE COLLNET_ENABLE COLLNET_NODE_THRESHOLD COMM_BLOCKING COMM_ID
CONF_FILE CREATE_THREAD_CONTEXT CROSS_NIC CTA_POLICY CUMEM_ENABLE CUMEM_HOST_ENABLE DEBUG DEBUG_FILE
DEBUG_SUBSYS DEBUG_TIMESTAMP_FORMAT DEBUG_TIMESTAMP_LEVELS DESYNC_DEBUG DMABUF_ENABLE ENV_PLUGIN
FASTRAK_CTRL_DEV FASTRAK_IFNAME FASTRAK_LLCM_DEVICE_DIRECTORY FASTRAK_NUM_FLOWS GDRCOPY_ENABLE
GDRCOPY_FIFO_ENABLE GDRCOPY_FLUSH_ENABLE GDRCOPY_SYNC_ENABLE GIN_ENABLE GIN_TYPE GRAPH_DUMP_FILE
GRAPH_FILE GRAPH_MIXING_SUPPORT GRAPH_REGISTER HOSTID IB_ADAPTIVE_ROUTING IB_ADDR_FAMILY
IB_ADDR_RANGE IB_AR_THRESHOLD IB_CUDA_SUPPORT IB_DATA_DIRECT IB_DISABLE IB_ECE_ENABLE IB_MERGE_NICS
IB_MERGE_VFS IB_MQP_RETRY_ALL IB_MQP_RETRY_CNT IB_NET_LATENCY IB_OOO_RQ IB_PCI_RELAXED_ORDERING
IB_PKEY IB_QPS_PER_CONNECTION IB_RETRY_CNT IB_RETURN_ASYNC_EVENTS IB_ROCE_VERSION_NUM
IB_SPLIT_DATA_ON_QPS IB_TIMEOUT IB_USE_INLINE IB_WARN_RAIL_LOCAL IGNORE_CPU_AFFINITY
IGNORE_DISABLED_P2P IPC_USE_ABSTRACT_SOCKET L1_SHARED_MEMORY_CARVEOUT LAUNCH_MODE
LAUNCH_ORDER_IMPLICIT LAUNCH_RACE_FATAL LEGACY_CUDA_REGISTER LL128_BUFFSIZE LL_BUFFSIZE LL_THRESHOLD
LOCAL_REGISTER MAX_CTAS MAX_NCHANNELS MAX_P2P_NCHANNELS MEM_SYNC_DOMAIN MIN_CTAS MIN_NCHANNELS
MIN_P2P_NCHANNELS MNNVL_CLIQUE_ID MNNVL_ENABLE MNNVL_UUID NCHANNELS_PER_NET_PEER NET NETDEVS_POLICY
NET_DISABLE_INTRA NET_FORCE_FLUSH NET_GDR_C2C NET_GDR_LEVEL NET_GDR_READ
NET_OPTIONAL_RECV_COMPLETION NET_OVERHEAD NET_PLUGIN NET_SHARED_BUFFERS NET_SHARED_COMMS
NSOCKS_PERTHREAD NTHREADS NVB_DISABLE NVLSTREE_MAX_CHUNKSIZE NVLS_CHUNKSIZE NVLS_ENABLE
NVLS_NCHANNELS OOB_NET_ENABLE OOB_NET_IFNAME P2P_DIRECT_DISABLE P2P_DISABLE P2P_LEVEL
P2P_LL_THRESHOLD P2P_NET_CHUNKSIZE P2P_NVL_CHUNKSIZE P2P_PCI_CHUNKSIZE P2P_PXN_LEVEL P2P_READ_ENABLE
P2P_USE_CUDA_MEMCPY PROFILER_PLUGIN PROFILE_EVENT_MASK PROGRESS_APPENDOP_FREQ PROTO
PROXY_APPEND_BATCH_SIZE PROXY_CPUSET PXN_C2C PXN_DISABLE RAS_ADDR RAS_ENABLE RAS_TIMEOUT_FACTOR
RUNTIME_CONNECT SET_CPU_STACK_SIZE SET_STACK_SIZE SET_THREAD_NAME SHM_DISABLE SHM_LOCALITY
SHM_MEMCPY_MODE SHM_USE_CUDA_MEMCPY SINGLE_PROC_MEM_REG_ENABLE SINGLE_RING_THRESHOLD SOCKET_FAMILY
SOCKET_INLINE SOCKET_MIN_TASKSIZE SOCKET_NTHREADS SOCKET_POLL_TIMEOUT_MSEC SOCKET_RETRY_CNT
SOCKET_RETRY_SLEEP_MSEC SPLIT_SHARE SYM_CTAS SYM_KERNEL THREAD_THRESHOLDS TOPO_DUMP_FILE
TOPO_DUMP_FILE_RANK TOPO_FILE TREE_THRESHOLD TUNER_CONFIG_FILE TUNER_PLUGIN UID_STAGGER_RATE
UID_STAGGER_THRESHOLD WARN_ENABLE_DEBUG_INFO WIN_ENABLE WIN_STRIDE WORK_ARGS_BYTES WORK_FIFO_BYTES
WORK_FIFO_DEPTH
"""
_UCX = """
CUDA_COPY_DMABUF CUDA_IPC_ENABLE_MNNVL DC_MLX5_NUM_DCI HANDLE_ERRORS IB_ADDR_TYPE IB_AR_ENABLE
IB_DEVICE_SPECS IB_GPU_DIRECT_RDMA IB_MLX5_DEVX IB_NUM_PATHS IB_PCI_BW IB_PCI_RELAXED_ORDERING
IB_PREFER_NEAREST_DEVICE IB_REG_METHODS IB_ROCE_LOCAL_SUBNET IB_ROCE_REACHABILITY_MODE
IB_SUBNET_PREFIX KEEPALIVE_INTERVAL LOG_FILE LOG_LEVEL MAX_EAGER_LANES MAX_EAGER_RAILS MAX_RMA_LANES
MAX_RMA_RAILS MAX_RNDV_LANES MAX_RNDV_RAILS MEMTYPE_CACHE MEMTYPE_REG_WHOLE_ALLOC_TYPES MODULE_DIR
MODULES NUM_EPS PROTO_ENABLE PROTO_INFO RCACHE_ENABLE RCACHE_MAX_REGIONS RCACHE_MAX_SIZE
RC_GID_INDEX RC_IB_GID_INDEX RC_MLX5_TM_ENABLE RC_RETRY_COUNT RC_RNR_RETRY_COUNT RC_RNR_TIMEOUT
RC_SL RC_TIMEOUT RC_TRAFFIC_CLASS RC_TX_POLL REG_NONBLOCK_MEM_TYPES RNDV_FRAG_MEM_TYPE
RNDV_FRAG_MEM_TYPES RNDV_FRAG_SIZE RNDV_PIPELINE_ERROR_HANDLING RNDV_SCHEME RNDV_THRESH SELF_DEVICES
SHM_DEVICES SOCKADDR_TLS_PRIORITY STATS_DEST STATS_TRIGGER TCP_CM_REUSEADDR TCP_MAX_CONN_RETRIES
TCP_PUT_ENABLE TLS UNIFIED_MODE VFS_ENABLE WARN_UNUSED_ENV_VARS ZCOPY_THRESH
"""
_NVSHMEM = """
BOOTSTRAP BOOTSTRAP_PMI BOOTSTRAP_UID_SESSION_ID BOOTSTRAP_UID_SOCK_FAMILY CUMEM_GRANULARITY DEBUG
DEBUG_ATTACH_DELAY DEBUG_FILE DEBUG_SUBSYS DISABLE_CUDA_VMM DISABLE_GDRCOPY
DISABLE_IB_NATIVE_ATOMICS DISABLE_MNNVL DISABLE_NCCL DISABLE_NVLS DISABLE_P2P ENABLE_NIC_PE_MAPPING
HCA_PE_MAPPING IBGDA_NIC_HANDLER IBGDA_NUM_DCI IBGDA_NUM_DCT IBGDA_NUM_RC_PER_PE
IBGDA_NUM_SHARED_DCI IB_ADDR_FAMILY IB_ADDR_RANGE IB_DISABLE_DMABUF IB_ENABLE_IBGDA
IB_ENABLE_RELAXED_ORDERING IB_NUM_RC_PER_DEVICE IB_ROCE_VERSION_NUM INFO MAX_PEER_STREAMS MAX_TEAMS
QP_DEPTH REMOTE_TRANSPORT SYMMETRIC_SIZE
"""
_OTHER_VARIABLES = """
TP_SOCKET_IFNAME GLOO_DEVICE_TRANSPORT MASTER_ADDR MASTER_PORT WORLD_SIZE
TORCH_NCCL_ASYNC_ERROR_HANDLING TORCH_NCCL_AVOID_RECORD_STREAMS TORCH_NCCL_BLOCKING_WAIT
TORCH_NCCL_DUMP_ON_TIMEOUT TORCH_NCCL_ENABLE_MONITORING TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC
TORCH_NCCL_TRACE_BUFFER_SIZE TORCH_DISTRIBUTED_DEBUG TORCH_CPP_LOG_LEVEL
MC_IB_PORT MC_IB_TC MC_MS_AUTO_DISC MC_TE_METRIC
FI_EFA_USE_DEVICE_RDMA FI_EFA_FORK_SAFE FI_LOG_LEVEL FI_PROVIDER
CUDA_DEVICE_MAX_CONNECTIONS CUDA_DEVICE_ORDER CUDA_VISIBLE_DEVICES
NVIDIA_DRIVER_CAPABILITIES NVIDIA_GDRCOPY NVIDIA_IMEX_CHANNELS NVIDIA_VISIBLE_DEVICES
OMP_NUM_THREADS OMPI_MCA_btl OMPI_MCA_btl_tcp_if_exclude
OMPI_MCA_coll_hcoll_enable OMPI_MCA_oob_tcp_if_exclude OMPI_MCA_pml
SHARP_COLL_LOG_LEVEL HCOLL_MAIN_IB
"""

KNOWN_VARIABLES = frozenset(
    (
        *WEBHOOK_VARIABLES,
        *(f"NCCL_{name}" for name in _NCCL.split()),
        *(f"UCX_{name}" for name in _UCX.split()),
        *(f"NVSHMEM_{name}" for name in _NVSHMEM.split()),
        *_OTHER_VARIABLES.split(),
    )
)


# Find a known word that differs from a word by one letter, in time linear in the word's length.
#
# Two words that differ by one letter (changed, missing, added, or swapped with its neighbor) are
# equal once at most one letter is removed from each. So all known words are indexed by themselves
# and by their forms without one letter. difflib, in comparison, reads every known word, and a file
# may contain tens of thousands of misspelled ones.

#: Longer words are not compared.
_MAX_LENGTH = 80


class OneLetterIndex:
    """An index of known words, to look up misspelled ones."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)
        self._index: dict[str, str] = {}
        for word in sorted(self._words):
            for shorter in _shorter_forms(word):
                self._index.setdefault(shorter, word)
        self._index |= {word: word for word in self._words}

    def neighbor_of(self, word: str) -> str:
        """Return the known word that differs by one letter; "" without one, or for a known word."""
        if word in self._words or len(word) > _MAX_LENGTH:
            return ""
        forms = _shorter_forms(word)
        return next((self._index[form] for form in forms if form in self._index), "")


def _shorter_forms(word: str) -> Iterator[str]:
    """Yield the word, and each word with one letter less."""
    yield word
    for index in range(len(word)):
        yield word[:index] + word[index + 1 :]


# GPU feature discovery's names of GPUs (the label nvidia.com/gpu.product), to recognize mistakes.
#
# The value is the driver's name, with `-` for spaces. Drivers before 470 leave out the `NVIDIA-`
# prefix. A product that is not listed may be valid: there are new ones.
# Sources: k8s-device-plugin's internal/lm; the labels of such nodes.

_PRODUCT_NAMES = """
Tesla-K80 Tesla-M40 Tesla-M60 Tesla-P4 Tesla-P40 Tesla-P100-PCIE-12GB Tesla-P100-PCIE-16GB
Tesla-P100-SXM2-16GB Tesla-T4 Tesla-V100-DGXS-32GB Tesla-V100-FHHL-16GB Tesla-V100-PCIE-16GB
Tesla-V100-PCIE-32GB Tesla-V100-SXM2-16GB Tesla-V100-SXM2-32GB Tesla-V100-SXM2-32GB-LS
Tesla-V100-SXM3-32GB Tesla-V100S-PCIE-32GB A100-PCIE-40GB A100-PCIE-80GB A100-SXM4-40GB
A100-SXM4-80GB NVIDIA-A10 NVIDIA-A100-80GB-PCIe NVIDIA-A100-PCIE-40GB NVIDIA-A100-SXM4-40GB
NVIDIA-A100-SXM4-80GB NVIDIA-A100-SXM-64GB NVIDIA-A10G NVIDIA-A16 NVIDIA-A2 NVIDIA-A30
NVIDIA-A40 NVIDIA-A800-80GB-PCIe NVIDIA-A800-SXM4-80GB NVIDIA-H100-80GB-HBM3
NVIDIA-H100-80GB-HBM2e NVIDIA-H100-NVL NVIDIA-H100-PCIe NVIDIA-H20 NVIDIA-H20-3e NVIDIA-H200
NVIDIA-H200-NVL NVIDIA-H800 NVIDIA-H800-PCIe NVIDIA-GH200-120GB NVIDIA-GH200-144G-HBM3e
NVIDIA-GH200-480GB NVIDIA-B200 NVIDIA-B300-SXM6-AC NVIDIA-GB200 NVIDIA-GB300 NVIDIA-L4
NVIDIA-L20 NVIDIA-L40 NVIDIA-L40S NVIDIA-RTX-A4000 NVIDIA-RTX-A5000 NVIDIA-RTX-A6000
NVIDIA-RTX-4000-Ada-Generation NVIDIA-RTX-5000-Ada-Generation NVIDIA-RTX-6000-Ada-Generation
NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition
Quadro-RTX-5000 Quadro-RTX-6000 Quadro-RTX-8000 NVIDIA-GeForce-GTX-1080-Ti
NVIDIA-GeForce-RTX-2080-Ti NVIDIA-GeForce-RTX-3080 NVIDIA-GeForce-RTX-3090
NVIDIA-GeForce-RTX-4080 NVIDIA-GeForce-RTX-4090 NVIDIA-GeForce-RTX-4090-D
NVIDIA-GeForce-RTX-5080 NVIDIA-GeForce-RTX-5090 NVIDIA-GB10 NVIDIA-Thor NVIDIA-TITAN-V
"""
_PRODUCTS = tuple(_PRODUCT_NAMES.split())
#: One product per line, with a line break before the first and after the last.
_LINES = "\n".join(["", *_PRODUCTS, ""])
_LOWER_LINES = _LINES.lower()
_PRODUCT_INDEX = OneLetterIndex(_PRODUCTS)
#: The minimum length for the search: shorter words have too many neighbors.
_MIN_LENGTH = 6


def intended_product(glob: str) -> str:
    """Return the glob that the author probably meant, if `glob` matches no known product.

    Return "" if it matches a product, if no product resembles it, or if it has wildcards in its
    middle: such a glob is not judged.
    """
    head, tail = "" if glob[:1] == "*" else "\n", "" if glob[-1:] == "*" else "\n"
    literal = glob.strip("*")
    if not literal or not _is_literal(literal) or f"{head}{literal}{tail}" in _LINES:
        return ""
    word = literal.strip("-")
    covering = _glob_for(word) if word.lower() in _LOWER_LINES else ""
    return covering or (_PRODUCT_INDEX.neighbor_of(literal) if len(literal) >= _MIN_LENGTH else "")


def _is_literal(literal: str) -> bool:
    return not any(char in "*?[" for char in literal)


def _glob_for(word: str) -> str:
    """Return a glob for the products that have `word` between dashes, in any letter case."""
    matches = [
        (product[:end], product)
        for product in _PRODUCTS
        if (end := _end_of(f"-{word.lower()}-", f"-{product.lower()}-"))
    ]
    beginnings = {beginning for beginning, _ in matches}
    if len(beginnings) != 1:
        return f"*{word if word in _LINES else word.upper()}*" if matches else ""
    (beginning,) = beginnings
    products = [product for _, product in matches]
    if len(products) == 1:
        return products[0]
    return f"{beginning}*" if beginning in products else f"{beginning}-*"


def _end_of(word: str, product: str) -> int:
    """Return the end of a word in a product, both given between dashes; 0 if it is not there."""
    index = product.find(word)
    return index + len(word) - 2 if index >= 0 else 0
