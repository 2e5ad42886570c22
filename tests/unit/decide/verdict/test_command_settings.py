from __future__ import annotations

from typing import Any

import pytest

from tests.builders import env, gpu, pod
from tests.unit.decide.verdict.judging import judged, verdict_on

EQUIPPED = ("yes", "Equipped")


def running(script: str, **variables: str) -> dict[str, object]:
    """Make a pod whose container runs a script."""
    return pod(gpu(command=["bash", "-c", script], env=env(**variables)))


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("export NCCL_IB_DISABLE=1; torchrun a", "NcclIbDisabled", "export in its command"),
        ("NCCL_IB_DISABLE=1 torchrun a", "NcclIbDisabled", "assignment in its command"),
        ("env NCCL_IB_DISABLE=1 python a", "NcclIbDisabled", "env in its command"),
        ("mpirun -x NCCL_IB_DISABLE=1 a", "NcclIbDisabled", "mpirun -x in its command"),
        ("mpirun -x NCCL_NET=Socket a", "NcclNetSocket", "mpirun -x in its command"),
        ("export UCX_TLS=tcp; serve --backend nixl", "NixlWithoutRdma", "export in its command"),
    ],
)
def test_what_a_command_sets_is_as_env(script: str, code: str, message: str) -> None:
    """The message names what to remove."""
    verdict = verdict_on(running(script))
    assert (verdict.rdma, verdict.because.code) == ("no", code)
    assert f" ({message})" in verdict.message
    assert verdict.message.endswith("; remove that setting")


def test_devices_that_a_command_names() -> None:
    """A device of another fabric is as one in env."""
    verdict = verdict_on(running("export NCCL_IB_HCA=mlx5_9; a"))
    assert (verdict.rdma, verdict.because.code) == ("no", "NcclIbHcaElsewhere")
    assert verdict.message == (
        'container trainer sets NCCL_IB_HCA="mlx5_9" (export in its command), but the fabric\'s '
        'value is "=mlx5_0,mlx5_1"'
    )
    assert judged(running("export NCCL_IB_HCA=mlx5_0; a")) == EQUIPPED


def test_devices_of_serving_engines() -> None:
    """SGLang moves data with Mooncake, whose devices an option names."""
    serve = "python -m sglang.launch_server --disaggregation-mode prefill"
    verdict = verdict_on(running(f"{serve} --disaggregation-ib-device mlx5_9"))
    assert (verdict.rdma, verdict.because.code) == ("no", "DevicesOfNoFabric")
    assert '"mlx5_9" (--disaggregation-ib-device in its command), but' in verdict.message
    assert judged(running(f"{serve} --disaggregation-ib-device mlx5_0")) == EQUIPPED
    computed = judged(running(f"{serve} --disaggregation-ib-device $DEVICE"))
    assert computed == ("unsure", "SettingComputed")


KV = 'vllm serve --kv-transfer-config "{{\\"kv_connector\\": \\"{}\\", {}}}"'
KV_SOURCE = "(--kv-transfer-config in its command)"
EXTRA = '\\"kv_connector_extra_config\\": {{\\"{}\\": {}}}'


@pytest.mark.parametrize(
    ("key", "value", "code", "message"),
    [
        (
            "mooncake_protocol",
            "tcp",
            "MooncakeOverTcp",
            f"makes Mooncake use TCP; remove MOONCAKE_PROTOCOL=tcp {KV_SOURCE}",
        ),
        (
            "device_name",
            "mlx5_9",
            "DevicesOfNoFabric",
            (
                f'sets MOONCAKE_DEVICE="mlx5_9" {KV_SOURCE}, but the fabric\'s NCCL_IB_HCA is '
                '"=mlx5_0,mlx5_1"'
            ),
        ),
    ],
)
def test_what_a_connector_of_vllm_names(key: str, value: str, code: str, message: str) -> None:
    """The transport or the devices of Mooncake, in the JSON of its configuration."""
    extra = EXTRA.format(key, f'\\"{value}\\"')
    verdict = verdict_on(running(KV.format("MooncakeConnector", extra)))
    assert (verdict.rdma, verdict.because.code) == ("no", code)
    assert verdict.message == f"container trainer {message}"
    assert judged(running(KV.format("MooncakeConnector", extra.replace(key, "x")))) == EQUIPPED


def test_another_backend_of_nixl_leaves_it_open() -> None:
    """UCX's variables do not matter then, and a NIC that no fabric lists may need the backend."""
    extra = EXTRA.format("backends", '[\\"LIBFABRIC\\"]')
    script = KV.format("NixlConnector", extra)
    verdict = verdict_on(running(script, UCX_TLS="tcp"))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "NixlBackend")
    assert verdict.message == (
        f"container trainer makes NIXL use LIBFABRIC {KV_SOURCE} instead of UCX, and that backend "
        "might not use the fabric's devices"
    )
    assert judged(running(script.replace("LIBFABRIC", "UCX"))) == EQUIPPED
    by_variable = verdict_on(running("sglang", SGLANG_DISAGGREGATION_NIXL_BACKEND="LIBFABRIC"))
    assert "LIBFABRIC (SGLANG_DISAGGREGATION_NIXL_BACKEND)" in by_variable.message
    efa = gpu(command=["bash", "-c", script], limits={"vpc.amazonaws.com/efa": "1"})
    assert "NixlBackend" not in judged(pod(efa))


def test_a_command_may_repair_env() -> None:
    """It wins over the container's variables."""
    for script in ("unset NCCL_IB_DISABLE; a", "NCCL_IB_DISABLE=0 a", "env -u NCCL_IB_DISABLE a"):
        assert judged(running(script, NCCL_IB_DISABLE="1")) == EQUIPPED


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("export NCCL_IB_DISABLE=$X; a", "NCCL_IB_DISABLE"),
        ("export NCCL_NET=$X; a", "NCCL_NET"),
        ("export NCCL_IB_HCA=$(ls /sys/class/infiniband); a", "NCCL_IB_HCA"),
        ("export UCX_TLS=$X; serve --backend nixl", "UCX_TLS"),
        ("export NCCL_NET_PLUGIN=$X; a", "NCCL_NET_PLUGIN"),
        ("export TRTLLM_NIXL_KVCACHE_BACKEND=$X; a", "TRTLLM_NIXL_KVCACHE_BACKEND"),
        ("export MC_TE_FILTERS=$X; a", "MC_TE_FILTERS"),
        ("export MC_MS_FILTERS=$X; a --mooncake", "MC_MS_FILTERS"),
        ("export MORI_RDMA_DEVICES=$X; a", "MORI_RDMA_DEVICES"),
        ("export NVSHMEM_HCA_LIST=$X; a --deepep", "NVSHMEM_HCA_LIST"),
        ("export NVSHMEM_REMOTE_TRANSPORT=$X UCX_TLS=tcp; a", "NVSHMEM_REMOTE_TRANSPORT"),
    ],
)
def test_a_computed_value_leaves_it_open(script: str, name: str) -> None:
    """The variable could turn RDMA off."""
    verdict = verdict_on(running(script))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "SettingComputed")
    assert verdict.message == (
        f"container trainer sets a computed {name} (export in its command); write a literal value"
    )


def test_a_possible_setting_leaves_it_open() -> None:
    """It is judged as if it were certain; one that does no harm does not matter."""
    verdict = verdict_on(running("if true; then export NCCL_NET=Socket; fi; a"))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "SettingPossible")
    assert verdict.message == (
        "container trainer may set NCCL_NET=Socket (export in its command); remove that setting "
        "if it is "
        "not needed"
    )
    assert judged(running("if true; then export NCCL_NET=IB; fi; a")) == EQUIPPED


@pytest.mark.parametrize(
    "script", ["export UCX_TLS=$X; a", "export NCCL_DEBUG=$X; a", "export UCX_TLS=tcp; a"]
)
def test_what_does_not_decide(script: str) -> None:
    """NCCL reads no variable of UCX, and its own debugging has no influence."""
    assert judged(running(script)) == EQUIPPED


def test_the_webhooks_value_wins_over_a_default() -> None:
    """`${NAME:-x}` is x only where nobody sets NAME."""
    assert judged(running("export NCCL_IB_HCA=${NCCL_IB_HCA:-mlx5_9}; a")) == EQUIPPED
    script = "export NCCL_IB_DISABLE=${NCCL_IB_DISABLE:-1}; a"
    assert judged(running(script)) == ("no", "NcclIbDisabled")
    assert judged(running(script, NCCL_IB_DISABLE="0")) == EQUIPPED


def test_settings_that_do_harm_together() -> None:
    """Open MPI's ob1 has no RDMA with these BTLs only."""
    script = "export OMPI_MCA_btl=tcp,self; [ $X ] && export OMPI_MCA_pml=ob1; mpirun a"
    ranks = pod(
        {"name": "trainer", "command": ["sh", "-c", script]},
        annotations={"rdma.lab/fabric": "v100-ib"},
    )
    assert judged(ranks) == ("unsure", "SettingPossible")


def test_a_line_of_a_file_after_an_escape() -> None:
    """`printf` ends each line with an escape, and the next name follows it."""
    script = r'printf "NCCL_DEBUG=INFO\nNCCL_IB_DISABLE=1\n" > /etc/nccl.conf; torchrun a'
    verdict = verdict_on(running(script))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "SettingPossible")
    assert "NCCL_IB_DISABLE=1" in verdict.message


def hooked(script: str, **fields: Any) -> dict[str, object]:
    """Make a pod whose postStart hook runs a script."""
    hook = {"postStart": {"exec": {"command": ["sh", "-c", script]}}}
    return pod(gpu(lifecycle=hook, **fields))


def test_what_a_hook_writes_leaves_it_open() -> None:
    """Nobody guarantees that the hook comes before or after the command."""
    verdict = verdict_on(hooked("echo NCCL_IB_DISABLE=1 >> /etc/nccl.conf"))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "SettingPossible")
    assert verdict.message == (
        "container trainer may set NCCL_IB_DISABLE=1 (text in its postStart hook); remove that "
        "setting if "
        "it is not needed"
    )
    sourced = "echo export NCCL_NET=Socket >> /etc/profile.d/site.sh"
    assert judged(hooked(sourced)) == ("unsure", "SettingPossible")
    assert judged(hooked(sourced, env=env(NCCL_NET="IB"))) == ("unsure", "SettingPossible")


def test_what_a_hook_does_in_vain() -> None:
    """Its exports reach no other process, and NCCL's file never overrides env, also not ours."""
    assert judged(hooked("export NCCL_IB_DISABLE=1; ./warm-up > /tmp/log")) == EQUIPPED
    assert judged(hooked("echo NCCL_IB_HCA==mlx5_9 >> /etc/nccl.conf")) == EQUIPPED
    off = "echo NCCL_IB_DISABLE=1 >> /etc/nccl.conf"
    assert judged(hooked(off, env=env(NCCL_IB_DISABLE="0"))) == EQUIPPED
    dropping = hooked(off, env=env(NCCL_IB_DISABLE="0"), command=["env", "-i", "./train"])
    assert judged(dropping) == ("unsure", "SettingPossible")


def test_a_file_that_a_command_or_a_hook_copies() -> None:
    """Its content is not known, and it may turn NCCL's RDMA off."""
    copy = "cp /settings/nccl.conf /etc/nccl.conf"
    for manifest in (hooked(copy), running(f"{copy}; torchrun a")):
        verdict = verdict_on(manifest)
        assert (verdict.rdma, verdict.because.code) == ("unsure", "FileUnseen")
        assert verdict.message == ("/etc/nccl.conf in container trainer may turn RDMA off")
    args = pod(gpu(command=["cp"], args=["/a/nccl.conf", "/etc"]))
    assert judged(args) == ("unsure", "FileUnseen")
