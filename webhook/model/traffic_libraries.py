"""Which libraries move a container's data between nodes, by the signs of each.

    library    variables           command                                 image
    -------    ---------           -------                                 -----
    NIXL       *NIXL*              nixl, NixlConnector, Dynamo's workers   nixlbench
                                     for prefill or decode on their own
    Mooncake   MOONCAKE*, MC_MS_*  mooncake, MooncakeConnector, SGLang's   mooncake
                                     --disaggregation-mode on its own
    MoRI       MORI_*              mori, MoRIIOConnector
    NVSHMEM    NVSHMEM_*, DEEPEP*  nvshmem, deepep, pplx
    ps-lite    DMLC_ROLE, DMLC_PS_ROOT_URI  bpslaunch; MXNet's kvstore dist_*

An image may contain a library and not use it, so few images are signs. Comments are no signs, nor
are variables that this webhook may have set, nor folders (`/opt/nixl/lib`). NCCL needs no sign: it
moves the data of a container with a GPU, unless another library does; MPI does so without GPUs, and
in its own benchmarks.
Scripts of PyTorch choose Gloo or MPI in place of NCCL, mostly by an option `--backend`.

Sources: vLLM docs/features/nixl_connector_usage.md and mooncake_connector_usage.md; SGLang
docs/advanced_features/pd_disaggregation.md (Mooncake is the default) and
expert_parallelism.md; Dynamo 0.7, components/src/dynamo/vllm/args.py (NIXL is the default);
Mooncake docs/source/deployment; ROCm/mori docs; BytePS docs/env.md; MXNet src/kvstore/kvstore.cc
(names with "dist" are ps-lite's); PyTorch 2.9, docs/source/distributed.md (backends).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from webhook.model.libraries import WEBHOOK_VARIABLES

TrafficLibrary = Literal["NCCL", "NIXL", "Mooncake", "MoRI", "NVSHMEM", "MPI", "ps-lite", "Gloo"]
UserEnv = Mapping[str, str | None]


class _Signs(NamedTuple):
    """The signs of a library: a text for each, and patterns of lower-case texts."""

    library: TrafficLibrary
    #: In the names of variables, each after a newline.
    names_pattern: re.Pattern[str]
    #: In a command.
    words_pattern: re.Pattern[str]
    #: Texts that any match in a command contains: a search for these is fast.
    terms: tuple[str, ...]
    #: In the values of variables: connectors' classes, as in vLLM's JSON.
    connector: str = ""
    #: In the name of an image.
    image: str = ""
    #: In a command that uses another library in spite of the signs.
    unless: str = ""

    def shown_by(self, names: str, values: str, text: str, image: str) -> bool:
        """Return whether a container has a sign; its texts are in lower case."""
        if self.unless and self.unless in text:
            return False
        return bool(
            self.names_pattern.search(names)
            or (any(map(text.__contains__, self.terms)) and self.words_pattern.search(text))
            or (self.connector and self.connector in values)
            or (self.image and self.image in image)
        )


#: MXNet's kvstore over several nodes: an option of its examples, an argument, or JSON.
_MXNET_KVSTORE = re.compile(
    r"\bkv(?:[-_]?store)?(?:\.create\(|\\?[\"']?[ ]?[\s=:][ ]?)\\?[\"']?"
    r"(?:p3(?:store)?_)?dist(?:_|\b)"
)
_MXNET_TERMS = ("kvstore", "kv-store", "kv_store", "kv.create")

_SIGNS = (
    _Signs(
        "NIXL",
        re.compile("nixl"),
        re.compile(r"(?<![/\w])nixl|_nixl_"),
        ("nixl",),
        connector="nixlconnector",
        image="nixlbench",
    ),
    _Signs(
        "Mooncake",
        re.compile(
            r"mooncake|\nmc_(?:ms_|force_|te_|store_|ib_|num_|mtu|workers_|slice_|transfer_)"
        ),
        re.compile(r"(?<![/\w])mooncake|_mooncake_"),
        ("mooncake",),
        connector="mooncake",
        image="mooncake",
    ),
    _Signs(
        "MoRI",
        re.compile(r"\nmori_"),
        re.compile(r"(?<![/\w])mori(?:io(?:connector)?|-io|-ep|_ep)?(?!\w)|\bmori_\w+="),
        ("mori",),
        connector="moriioconnector",
    ),
    _Signs(
        "NVSHMEM",
        re.compile(r"\nnvshmem_|deep_?ep"),
        re.compile(r"(?<![/\w])(?:nvshmem|deep_?ep|pplx)"),
        ("nvshmem", "deepep", "deep_ep", "pplx"),
        connector="deepep",
    ),
    _Signs(
        "ps-lite",
        re.compile(r"\ndmlc_(?:role|ps_root_uri)(?=\n|$)"),
        re.compile(rf"bpslaunch|{_MXNET_KVSTORE.pattern}"),
        ("bpslaunch", *_MXNET_TERMS),
        unless="horovod",
    ),
)
#: Parts of the names, in lower case, of variables whose values name a connector or a backend.
_CONNECTORS = ("connector", "backend", "config", "args", "transfer", "a2a", "all2all")
_MODE = "--disaggregation-mode"
_SERVER_ROLE = re.compile(rf"{_MODE}[=\s]+(?:prefill|decode)\b")
_SGLANG_BACKEND = "--disaggregation-transfer-backend"
_DYNAMO = ("dynamo.vllm", "dynamo.trtllm")
#: Options that choose a connector, which may be another library's.
_DYNAMO_CONNECTORS = ("--connector", "--kv-transfer-config")
_DYNAMO_ROLE = re.compile(rf"--is-(?:prefill|decode)-worker\b|{_SERVER_ROLE.pattern}")
_COMMENT = "#"
#: Each sign has at least one of these texts.
_ALL_TERMS = (
    *("nixl", "mooncake", "mc_", "mori", "nvshmem", "deepep", "deep_ep", "pplx", "dmlc_"),
    *("bpslaunch", *_MXNET_TERMS, _MODE, *_DYNAMO),
)


def libraries_in(command: str, user_env: UserEnv, image: str = "") -> tuple[TrafficLibrary, ...]:
    """List the libraries whose signs a container has, in the order of the table above.

    `command` has its words, one per line.
    """
    names = "\n".join(("", *(user_env.keys() - WEBHOOK_VARIABLES))).lower()
    values = "\n".join(_connectors(user_env)).lower() if _names_connector(names) else ""
    text, image_text = _uncommented(command.lower()), image.lower()
    if not any(map(f"{names}{values}{text}{image_text}".__contains__, _ALL_TERMS)):
        return ()  # as for most pods, at a quarter of the cost
    return tuple(
        signs.library
        for signs in _SIGNS
        if signs.shown_by(names, values, text, image_text)
        or (signs.library == "Mooncake" and _is_sglang_default(text))
        or (signs.library == "NIXL" and _is_dynamo_default(text))
    )


def uses_mxnet_kvstore(command: str) -> bool:
    """Return whether a command chooses MXNet's kvstore over several nodes."""
    text = command.lower()
    if not any(map(text.__contains__, _MXNET_TERMS)):
        return False
    return _MXNET_KVSTORE.search(_uncommented(text)) is not None


def torch_backend(command: str) -> TrafficLibrary | None:
    """Return the library that a command chooses for PyTorch in place of NCCL; None if none."""
    if "backend" not in command:
        return None
    chosen = _TORCH_BACKEND.search(_uncommented(command.lower()))
    return _TORCH_BACKENDS[chosen[1]] if chosen else None


_TORCH_BACKENDS: dict[str, TrafficLibrary] = {"gloo": "Gloo", "mpi": "MPI"}
_TORCH_BACKEND = re.compile(
    rf"--(?:dist(?:ributed)?[-_])?backend[=\s]++[\"']?+({'|'.join(_TORCH_BACKENDS)})(?![\w,:.-])"
)


#: MPI's own benchmarks: OSU's, except for those of NCCL and OpenSHMEM, and Intel's. With a blank or
#: a slash in front, since a folder or a variable may have such a name as well.
_MPI_BENCHMARKS = re.compile(
    r"(?<![\w.-])(?:osu_(?!nccl|xccl|oshm|upc)[a-z]\w*+(?![\w.=/-])"
    r"|imb-(?:mpi1|p2p|rma|nbc|ext|io|mt)\b)|-m[ \n]mpi4py\.bench\b"
)
_MPI_TERMS = ("osu_", "imb-", "mpi4py.bench")
#: What uses NCCL, or very likely does so: its tests, frameworks, and any other script of Python.
_NCCL_USERS = re.compile(
    r"nccl|rccl|_perf\b|horovod|torch|deepspeed|megatron|accelerate|tensorflow"
    r"|\bpython[\d.]*+\b(?![ \n]-m[ \n]mpi4py)"
)


def moves_data_by_mpi(command: str) -> bool:
    """Return whether a command runs MPI's own benchmarks, and nothing that uses NCCL."""
    text = command.lower()
    if not any(map(text.__contains__, _MPI_TERMS)):
        return False
    text = _uncommented(text)
    return _MPI_BENCHMARKS.search(text) is not None and not _NCCL_USERS.search(text)


def may_use_nccl(command: str, user_env: UserEnv) -> bool:
    """Return whether anything shows that a container uses NCCL."""
    if any(name.startswith("NCCL_") for name in user_env):
        return True
    return _NCCL_USERS.search(_uncommented(command.lower())) is not None


def shows_no_library(command: str, user_env: UserEnv) -> bool:
    """Return whether nothing shows which library moves a container's data: NCCL or MPI may."""
    return not (
        may_use_nccl(command, user_env)
        or moves_data_by_mpi(command)
        or libraries_in(command, user_env)
        or torch_backend(command)
    )


def _connectors(user_env: UserEnv) -> Iterator[str]:
    named = ((name.lower(), value) for name, value in user_env.items() if value)
    return (value for name, value in named if _names_connector(name))


def _names_connector(names: str) -> bool:
    return any(map(names.__contains__, _CONNECTORS))


def _is_sglang_default(text: str) -> bool:
    """Return whether SGLang separates prefill and decode and moves data by its default."""
    if _MODE not in text or _SGLANG_BACKEND in text:
        return False
    return "sglang" in text and _SERVER_ROLE.search(text) is not None


def _is_dynamo_default(text: str) -> bool:
    """Return whether Dynamo separates prefill and decode and moves data by its default."""
    if not any(map(text.__contains__, _DYNAMO)) or any(map(text.__contains__, _DYNAMO_CONNECTORS)):
        return False
    return _DYNAMO_ROLE.search(text) is not None


def _uncommented(text: str) -> str:
    if _COMMENT not in text:
        return text
    return "\n".join(line.partition(_COMMENT)[0] for line in text.splitlines())


# Whether the container is a part of a group over several nodes, whose parts NCCL connects.

_GROUP_LABELS = (
    *("leaderworkerset.sigs.k8s.io/name", "ray.io/cluster", "jobset.sigs.k8s.io/jobset-name"),
    *("training.kubeflow.org/job-name", "volcano.sh/job-name", "mpi-job-role", "mpi_role_type"),
    *("trainer.kubeflow.org/trainjob-ancestor-step", "batch.kubernetes.io/job-completion-index"),
)
#: The size of a LeaderWorkerSet's groups.
_GROUP_SIZE = "leaderworkerset.sigs.k8s.io/size"
#: Variables with the index of a pod in its group; they show a group by any value.
_INDEX_VARIABLES = ("JOB_COMPLETION_INDEX", "NODE_RANK", "PET_NODE_RANK")
#: Variables with the size of a group, or with an address in it.
_GROUP_VARIABLES = (
    *("LWS_GROUP_SIZE", "LWS_LEADER_ADDRESS", "MASTER_ADDR", "NNODES", "NUM_NODES", "PET_NNODES"),
    *("WORLD_SIZE", "VC_WORKER_HOSTS"),
)
#: Values of these with which the group is one node.
_ALONE = ("", "1", "localhost", "127.0.0.1")
_GROUP_OPTIONS = re.compile(
    r"--(?:nnodes|num[-_]nodes|num[-_]machines)[=\s]++(?!1(?:\s|$|:1\b))"
    r"|--(?:dist-init-addr|node[-_]rank|headless|data-parallel-address|master[-_]addr)\b"
    r"|\bray\s+start\b|\blws_(?:group_size|leader_address)\b"
)


def spans_nodes(
    labels: Mapping[str, object], annotations: Mapping[str, object], command: str, env: UserEnv
) -> bool:
    """Return whether a pod's container is visibly a part of a group over several nodes."""
    if annotations.get(_GROUP_SIZE) == "1" or env.get("LWS_GROUP_SIZE") == "1":
        return False
    if any(label in labels for label in _GROUP_LABELS):
        return True
    if any(name in env for name in _INDEX_VARIABLES):
        return True
    if any(name in env and env[name] not in _ALONE for name in _GROUP_VARIABLES):
        return True
    return _GROUP_OPTIONS.search(_uncommented(command.lower())) is not None
