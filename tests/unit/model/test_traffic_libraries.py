from __future__ import annotations

from typing import Any

import pytest

from tests.case_names import case_name
from webhook.model.traffic_libraries import (
    libraries_in,
    may_use_nccl,
    moves_data_by_mpi,
    spans_nodes,
    torch_backend,
    uses_mxnet_kvstore,
)


@pytest.mark.parametrize(
    ("command", "user_env", "library"),
    [
        ("sglang\n--disaggregation-transfer-backend\nnixl", {}, "NIXL"),
        ('--kv-transfer-config={"kv_connector":"NixlConnector"}', {}, "NIXL"),
        ("python\n-m\ndynamo.vllm\n--is-prefill-worker", {}, "NIXL"),
        ("python -m dynamo.vllm --model x --is-decode-worker", {}, "NIXL"),
        ("python -m dynamo.trtllm --disaggregation-mode decode", {}, "NIXL"),
        ("export VLLM_NIXL_SIDE_CHANNEL_PORT=5600; vllm serve", {}, "NIXL"),
        ("", {"VLLM_NIXL_SIDE_CHANNEL_PORT": "5600"}, "NIXL"),
        ("", {"NIXL_LOG_LEVEL": None}, "NIXL"),
        ("", {"KV_CONFIG": '{"kv_connector":"NixlConnector"}'}, "NIXL"),
        ("", {"MOONCAKE_MASTER": "a:1"}, "Mooncake"),
        ("", {"MC_TE_METRIC": "1"}, "Mooncake"),
        ("", {"KV_BACKEND": "mooncake"}, "Mooncake"),
        ("mooncake_master\n--port=1", {}, "Mooncake"),
        ("export TRTLLM_USE_MOONCAKE_KVCACHE=1", {}, "Mooncake"),
        ('{"kv_connector": "MooncakeStoreConnector"}', {}, "Mooncake"),
        ("python\n-m\nsglang.launch_server\n--disaggregation-mode\nprefill", {}, "Mooncake"),
        ("sglang serve --disaggregation-mode=decode", {}, "Mooncake"),
        ("", {"MORI_SOCKET_IFNAME": "eth0"}, "MoRI"),
        ("sglang --disaggregation-transfer-backend mori", {}, "MoRI"),
        ("MORI_IB_GID_INDEX=3 vllm serve", {}, "MoRI"),
        ("", {"KV_TRANSFER": '{"kv_connector":"MoRIIOConnector"}'}, "MoRI"),
        ("vllm --all2all-backend mori_ep", {}, "MoRI"),
        ("", {"NVSHMEM_QP_DEPTH": "1024"}, "NVSHMEM"),
        ("", {"VLLM_ALL2ALL_BACKEND": "deepep_low_latency"}, "NVSHMEM"),
        ("sglang --moe-a2a-backend deepep", {}, "NVSHMEM"),
        ("sglang --enable-deepep-moe", {}, "NVSHMEM"),
        ("torchrun -m deep_ep.tests", {}, "NVSHMEM"),
        ("vllm --all2all-backend pplx", {}, "NVSHMEM"),
        ("", {"DMLC_ROLE": "worker"}, "ps-lite"),
        ("", {"DMLC_PS_ROOT_URI": None}, "ps-lite"),
        ("bpslaunch\npython", {}, "ps-lite"),
        ("python\ntrain_mnist.py\n--kv-store\ndist_device_sync", {}, "ps-lite"),
    ],
    ids=case_name,
)
def test_signs_of_a_library(command: str, user_env: dict[str, str | None], library: str) -> None:
    """A word of the command, a variable, or a connector in a variable."""
    assert libraries_in(command, user_env) == (library,)


@pytest.mark.parametrize(
    ("command", "user_env"),
    [
        ("vllm serve", {}),
        ("# pip install nixl\nvllm serve", {}),
        ("vllm serve # with nixl, mooncake, deepep some day", {"A": "b", "C": None}),
        ("LD_LIBRARY_PATH=/opt/nvidia/nvda_nixl/lib:/opt/mooncake vllm", {}),
        ("", {"LD_LIBRARY_PATH": "/opt/nixl/lib:/opt/mooncake"}),
        ("", {"NVSHMEM_HCA_LIST": "mlx5_0:1", "MC_MS_FILTERS": "mlx5_0", "MC_GID_INDEX": "3"}),
        ("", {"MC_HOST_s3": "https://storage"}),
        ("memorize --memory 1; ./morid", {}),
        ("sglang --disaggregation-mode null", {}),
        ("other --disaggregation-mode prefill", {}),
        ("python -m dynamo.vllm --model x", {}),
        ("python -m dynamo.vllm --is-prefill-workers", {}),
        ("python -m dynamo.vllm --is-prefill-worker --connector none", {}),
        ("python -m dynamo.vllm --disaggregation-mode=decode --kv-transfer-config {}", {}),
        ("horovodrun python", {"DMLC_ROLE": "worker"}),
        ("", {"DMLC_ENABLE_RDMA": "1", "DMLC_ROLES": "x"}),
    ],
    ids=case_name,
)
def test_no_signs(command: str, user_env: dict[str, str | None]) -> None:
    """Comments, folders, other words, and what this webhook may have set."""
    assert libraries_in(command, user_env) == ()


def test_several_libraries() -> None:
    """They have an order of their own; SGLang's backend replaces its default."""
    command = "sglang --disaggregation-mode prefill --disaggregation-transfer-backend nixl"
    assert libraries_in(command, {"NVSHMEM_QP_DEPTH": "1"}) == ("NIXL", "NVSHMEM")


@pytest.mark.parametrize(
    ("image", "libraries"),
    [
        ("registry.lab/nixlbench:1", ("NIXL",)),
        ("Mooncake-store", ("Mooncake",)),
        ("registry.lab/vllm-nixl:1", ()),
    ],
    ids=case_name,
)
def test_images(image: str, libraries: tuple[str, ...]) -> None:
    """Only a tool's own image is a sign; others may contain a library and not use it."""
    assert libraries_in("", {}, image) == libraries


@pytest.mark.parametrize(
    ("fields", "group"),
    [
        ({}, False),
        ({"labels": {"leaderworkerset.sigs.k8s.io/name": "a"}}, True),
        (
            {
                "labels": {"leaderworkerset.sigs.k8s.io/name": "a"},
                "annotations": {"leaderworkerset.sigs.k8s.io/size": "1"},
            },
            False,
        ),
        ({"labels": {"ray.io/cluster": "a"}}, True),
        ({"labels": {"app": "a"}}, False),
        ({"env": {"LWS_GROUP_SIZE": "2"}}, True),
        ({"env": {"LWS_GROUP_SIZE": "1", "MASTER_ADDR": "a"}}, False),
        ({"env": {"MASTER_ADDR": "a-0.a"}}, True),
        ({"env": {"MASTER_ADDR": None}}, True),
        ({"env": {"MASTER_ADDR": "localhost", "WORLD_SIZE": "1"}}, False),
        ({"env": {"NODE_RANK": "1"}}, True),
        ({"env": {"JOB_COMPLETION_INDEX": "0"}}, True),
        ({"env": {"PET_NODE_RANK": "0", "LWS_GROUP_SIZE": "1"}}, False),
        ({"command": "torchrun\n--nnodes\n2\ntrain.py"}, True),
        ({"command": "torchrun --nnodes=1:4 train.py"}, True),
        ({"command": "torchrun --nnodes=1:1 train.py"}, False),
        ({"command": "torchrun --nnodes  1 train.py"}, False),
        ({"command": "torchrun --nnodes=1"}, False),
        ({"command": "torchrun --nnodes=16"}, True),
        ({"command": "accelerate --num_machines 4"}, True),
        ({"command": "sglang --dist-init-addr $(LWS_LEADER_ADDRESS):1"}, True),
        ({"command": "sglang --node-rank $LWS_WORKER_INDEX"}, True),
        ({"command": "vllm serve --headless"}, True),
        ({"command": "ray start --address=a"}, True),
        ({"command": "x --size ${LWS_GROUP_SIZE}"}, True),
        ({"command": "# ray start\nvllm serve"}, False),
    ],
    ids=case_name,
)
def test_groups_over_several_nodes(fields: dict[str, Any], *, group: bool) -> None:
    """A controller's label, or a variable or an option with the other nodes' place."""
    given = (
        fields.get("labels", {}),
        fields.get("annotations", {}),
        fields.get("command", ""),
        fields.get("env", {}),
    )
    assert spans_nodes(*given) is group


@pytest.mark.parametrize(
    ("command", "library"),
    [
        ("python train.py --backend gloo", "Gloo"),
        ("python\ntrain.py\n--backend=mpi", "MPI"),
        ("torchrun train.py --backend='GLOO'", "Gloo"),
        ('python train.py --dist-backend "gloo"', "Gloo"),
        ("python train.py --distributed_backend=gloo --x", "Gloo"),
        ("python train.py --dist_backend gloo; sleep 1", "Gloo"),
        ("python train.py --backend nccl", None),
        ("python train.py --backend cpu:gloo,cuda:nccl", None),
        ("python train.py --backend gloo,nccl", None),
        ("python train.py --backend mpich", None),
        ("python train.py --rdzv-backend gloo", None),
        ("# --backend gloo\npython train.py", None),
        ("horovodrun --gloo python train.py", None),
        ("serve --backend-gloo", None),
    ],
    ids=case_name,
)
def test_the_backend_of_pytorch(command: str, library: str | None) -> None:
    """An option of the script chooses it in place of NCCL; several are for several devices."""
    assert torch_backend(command) == library


@pytest.mark.parametrize(
    "command",
    [
        "python\ntrain.py\n--kv-store\ndist_device_sync",
        "python train.py --kvstore=dist",
        "python train.py --kv_store Dist_async",
        "python -c \"Trainer(p, 'sgd', kvstore='dist_sync')\"",
        'python -c "Trainer(kvstore = \\"dist_sync\\")"',
        'run {"kvstore": "dist_sync"}',
        "python -c \"mx.kv.create('dist_sync')\"",
        "python -c \"mx.kvstore.create('p3store_dist')\"",
        "python train.py --kv-store p3_dist_sync",
    ],
)
def test_kvstores_of_mxnet_over_nodes(command: str) -> None:
    """As options of its examples, and as arguments in a script."""
    assert uses_mxnet_kvstore(command)
    assert libraries_in(command, {}) == ("ps-lite",)


@pytest.mark.parametrize(
    "command",
    [
        "python train.py --kv-store device",
        "python train.py --kv-store nccl --dist_sync",
        "python train.py --kv-store distance",
        "python train.py --mykvstore dist_sync",
        "dist_sync",
        "# --kv-store dist_sync\npython train.py",
    ],
)
def test_other_kvstores(command: str) -> None:
    """Within a node MXNet has no parameter server."""
    assert not uses_mxnet_kvstore(command)
    assert libraries_in(command, {}) == ()


@pytest.mark.parametrize(
    ("command", "by_mpi"),
    [
        ("mpirun\n-np\n4\n./osu_bw", True),
        ("mpirun /opt/osu/libexec/osu_allreduce -d cuda", True),
        ("osu_mbw_mr; sleep 1", True),
        ("mpiexec.hydra -n 4 IMB-MPI1 PingPong", True),
        ("IMB-P2P", True),
        ("python3 -m mpi4py.bench pingpong", True),
        ("python3\n-m\nmpi4py.bench\npingpong", True),
        ("python3.11 -m mpi4py.bench pingpong", True),
        ("mpirun ./solver", False),
        ("mpirun osu_nccl_allreduce", False),
        ("mpirun osu_xccl_bw", False),
        ("oshrun osu_oshm_put", False),
        ("osu_upc_memput", False),
        ("cat osu_bw.log", False),
        ("cd osu_benchmarks/c; make", False),
        ("osu_dir=/opt/osu", False),
        ("tar xf my-osu_bw", False),
        ("ls IMB-MPI1s", False),
        ("mpirun osu_bw; mpirun all_reduce_perf", False),
        ("mpirun osu_bw; torchrun a", False),
        ("mpirun osu_bw; python3 train.py", False),
        ("# osu_bw\nmpirun a", False),
        ("mpirun osu_bw # all_reduce_perf", True),
    ],
    ids=case_name,
)
def test_what_moves_its_data_by_mpi(command: str, *, by_mpi: bool) -> None:
    """MPI's own benchmarks do, unless the command runs something that uses NCCL."""
    assert moves_data_by_mpi(command) is by_mpi


@pytest.mark.parametrize(
    ("command", "user_env", "expected"),
    [
        ("mpirun ./solver", {}, False),
        ("mpirun ucx_perftest", {}, False),
        ("mpirun ./solver # nccl", {}, False),
        ("mpirun ./solver", {"UCX_TLS": "tcp"}, False),
        ("mpirun ./solver", {"NCCL_DEBUG": "INFO"}, True),
        ("mpirun -x NCCL_DEBUG=INFO ./solver", {}, True),
        ("mpirun ./all_reduce_perf -b 8", {}, True),
        ("mpirun python3.11 train.py", {}, True),
        ("mpirun python -m train", {}, True),
        ("mpirun python -m mpi4py a.py", {}, False),
        ("mpirun python3.11 -m mpi4py a.py", {}, False),
        ("horovodrun ./a", {}, True),
        ("mpirun /opt/rccl-tests/a", {}, True),
    ],
    ids=case_name,
)
def test_what_may_use_nccl(command: str, user_env: dict[str, str], *, expected: bool) -> None:
    """Its variables and tests, and scripts of Python: most are Horovod's or PyTorch's."""
    assert may_use_nccl(command, user_env) is expected
