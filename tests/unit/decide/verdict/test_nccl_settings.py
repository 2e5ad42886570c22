from __future__ import annotations

import pytest

from tests.builders import V100, container, decision_input, env, fabric, gpu, pod
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.model.fabric import FabricEnv

EQUIPPED = ("yes", "Equipped")


@pytest.mark.parametrize("value", ["1", "2", " 1", "-1", "01", "0x1"])
def test_infiniband_switched_off_is_no_rdma(value: str) -> None:
    """NCCL reads any number but 0 as on."""
    verdict = verdict_on(pod(gpu(env=env(NCCL_IB_DISABLE=value))))
    assert (verdict.rdma, verdict.because.code) == ("no", "NcclIbDisabled")
    assert verdict.message == f"container trainer sets NCCL_IB_DISABLE={value}; remove the variable"


@pytest.mark.parametrize("value", ["0", "", "0x0", "00", "false", "no"])
def test_infiniband_not_switched_off_is_fine(value: str) -> None:
    """NCCL uses the default, 0, for a value that is not a number."""
    assert judged(pod(gpu(env=env(NCCL_IB_DISABLE=value)))) == EQUIPPED


@pytest.mark.parametrize("value", ["Socket", "socket"])
def test_sockets_by_name_are_no_rdma(value: str) -> None:
    """NCCL_NET names the only transport that NCCL may use."""
    verdict = verdict_on(pod(gpu(env=env(NCCL_NET=value))))
    assert (verdict.rdma, verdict.because.code) == ("no", "NcclNetSocket")
    assert verdict.message == f"container trainer sets NCCL_NET={value}; remove the variable"


@pytest.mark.parametrize(
    ("name", "value"), [("NCCL_NET", "AWS Libfabric"), ("NCCL_NET_PLUGIN", "fastrak")]
)
def test_a_plugin_decides_for_itself(name: str, value: str) -> None:
    """Its transport is not visible."""
    verdict = verdict_on(pod(gpu(env=env(**{name: value}))))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "NcclNetPlugin")
    assert (
        verdict.message
        == f"container trainer sets {name}={value}, and that plugin might not use RDMA"
    )


@pytest.mark.parametrize(
    "values", [{"NCCL_NET": "IB"}, {"NCCL_NET_PLUGIN": "none"}, {"NCCL_NET": "", "X": "y"}]
)
def test_the_own_transport_is_fine(values: dict[str, str]) -> None:
    """It is what the fabric's settings are for."""
    assert judged(pod(gpu(env=env(**values)))) == EQUIPPED


@pytest.mark.parametrize("value", ["mlx5_9", "=mlx5_2:1", "^mlx5"])
def test_devices_that_the_fabric_lacks_are_no_rdma(value: str) -> None:
    """NCCL then finds no device, and uses sockets; a device of the fabric is enough."""
    verdict = verdict_on(pod(gpu(env=env(NCCL_IB_HCA=value))))
    assert (verdict.rdma, verdict.because.code) == ("no", "NcclIbHcaElsewhere")
    assert verdict.message == (
        f'container trainer sets NCCL_IB_HCA="{value}", but the fabric\'s value is "=mlx5_0,mlx5_1"'
    )
    assert judged(pod(gpu(env=env(NCCL_IB_HCA="mlx5_1,mlx5_9")))) == EQUIPPED


@pytest.mark.parametrize("value", ["mlx5_0:2", "=mlx5_0:2,mlx5_1:2", "^mlx5:1"])
def test_ports_that_the_fabric_does_not_name_are_not_certain(value: str) -> None:
    """NCCL reads hcas without a port as any port, and devices may have only port 1."""
    verdict = verdict_on(pod(gpu(env=env(NCCL_IB_HCA=value))))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "DevicePortUnseen")
    assert verdict.message == (
        f'container trainer sets NCCL_IB_HCA="{value}", but the fabric may have only '
        "mlx5_0:1,mlx5_1:1"
    )
    for right in ("mlx5_0:1", "=mlx5_0:2,mlx5_1:1", "^mlx5:2", "^=mlx5_0:1", "mlx5_1:"):
        assert judged(pod(gpu(env=env(NCCL_IB_HCA=right)))) == EQUIPPED
    plugin = env(NCCL_IB_HCA=value, NCCL_NET_PLUGIN="fastrak")
    assert judged(pod(gpu(env=plugin))) == ("unsure", "NcclNetPlugin")


def test_ports_that_the_fabric_names_are_certain() -> None:
    """Its other ports are not for the pod."""
    variables = (("NCCL_IB_HCA", "=mlx5_0:2"),)
    named = fabric(
        gpu_resources=V100.gpu_resources,
        resources=V100.resources,
        env=FabricEnv(library_variables=variables, ucx_devices="mlx5_0:2"),
    )
    verdict = verdict_on(pod(gpu(env=env(NCCL_IB_HCA="mlx5_0:1"))), decision_input(named))
    assert (verdict.rdma, verdict.because.code) == ("no", "NcclIbHcaElsewhere")
    assert verdict.message.endswith(
        'sets NCCL_IB_HCA="mlx5_0:1", but the fabric\'s value is "=mlx5_0:2"'
    )


OFF = env(IB_OFF="1", NCCL_IB_DISABLE="$(IB_OFF)")
LABEL = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['off']"}}}


@pytest.mark.parametrize(
    ("items", "code", "message"),
    [
        (OFF, "NcclIbDisabled", "NCCL_IB_DISABLE=1 ($(IB_OFF) in env); remove that setting"),
        (
            [{"name": "NCCL_IB_DISABLE", **LABEL}],
            "NcclIbDisabled",
            "NCCL_IB_DISABLE=1 (metadata.labels['off'] in env); remove that setting",
        ),
        (
            env(NCCL_IB_HCA="=$(HCAS)", HCAS="mlx5_0"),
            "NcclIbHcaElsewhere",
            (
                'NCCL_IB_HCA="=$(HCAS)" ($(HCAS) is not expanded, since env defines it only '
                'later), but the fabric\'s value is "=mlx5_0,mlx5_1"'
            ),
        ),
        (
            env(NCCL_IB_HCA="mlx5_$(N)"),
            "NcclIbHcaElsewhere",
            (
                'NCCL_IB_HCA="mlx5_$(N)" ($(N) is not expanded, since env defines it nowhere '
                'before), but the fabric\'s value is "=mlx5_0,mlx5_1"'
            ),
        ),
    ],
)
def test_references_count_as_kubernetes_expands_them(
    items: list[dict[str, str]], code: str, message: str
) -> None:
    """The message says where the value comes from, or why `$(NAME)` stays."""
    verdict = verdict_on(pod(gpu(env=items), labels={"off": "1"}))
    assert (verdict.rdma, verdict.because.code) == ("no", code)
    assert verdict.message == f"container trainer sets {message}"


@pytest.mark.parametrize(
    "items",
    [
        env(IB_OFF="0", NCCL_IB_DISABLE="$(IB_OFF)"),
        env(HCAS="mlx5_0,mlx5_1", NCCL_IB_HCA="=$(HCAS)"),
        env(NCCL_IB_DISABLE="$(IB_OFF)", IB_OFF="1"),
    ],
)
def test_references_that_leave_rdma_on_are_fine(items: list[dict[str, str]]) -> None:
    """NCCL takes its default for a value that is no number, such as `$(IB_OFF)`."""
    assert judged(pod(gpu(env=items))) == EQUIPPED


def test_a_label_that_leaves_rdma_on_is_fine() -> None:
    """The remedy for a label of 1 is a label of 0."""
    trainer = gpu(env=[{"name": "NCCL_IB_DISABLE", **LABEL}])
    assert judged(pod(trainer, labels={"off": "0"})) == EQUIPPED
    assert judged(pod(trainer)) == ("unsure", "ValueUnseen")


def test_a_command_gets_the_values_too() -> None:
    """The kubelet expands `$(NAME)` in `command` and `args`, and the shell what is left."""
    script = ["sh", "-c", "export NCCL_NET=$(NET); torchrun train.py"]
    verdict = verdict_on(pod(gpu(env=env(NET="Socket"), command=script)))
    assert (verdict.rdma, verdict.because.code) == ("no", "NcclNetSocket")
    assert judged(pod(gpu(env=env(NET="IB"), command=script))) == EQUIPPED
    assert judged(pod(gpu(command=script))) == ("unsure", "SettingComputed")
    setup = ["sh", "-c", "$(SETUP)\ntorchrun train.py"]
    assert judged(pod(gpu(env=env(SETUP="export NCCL_IB_DISABLE=1"), command=setup))) == (
        "no",
        "NcclIbDisabled",
    )


def test_nixl_needs_an_rdma_transport() -> None:
    """It moves data over UCX; if NCCL carries the traffic, UCX_TLS does not matter."""
    tcp = env(UCX_TLS="tcp")
    verdict = verdict_on(pod(gpu(env=tcp, command=["serve", "--backend", "nixl"])))
    assert (verdict.rdma, verdict.because.code) == ("no", "NixlWithoutRdma")
    assert verdict.message == (
        "container trainer uses NIXL with UCX_TLS=tcp, which has no RDMA transport; "
        "remove the variable"
    )
    assert judged(pod(gpu(env=tcp))) == EQUIPPED


SETTINGS = {"NCCL_IB_DISABLE": "0", "NCCL_NET": "IB", "NCCL_NET_PLUGIN": "none"}


@pytest.mark.parametrize("missing", [None, "NCCL_IB_DISABLE", "NCCL_NET_PLUGIN", "NCCL_IB_HCA"])
def test_env_overrides_env_from(missing: str | None) -> None:
    """If env has all variables that may decide, envFrom cannot turn RDMA off."""
    values = {**SETTINGS, "NCCL_IB_HCA": "=mlx5_0,mlx5_1"}
    values.pop(missing or "", None)
    manifest = pod(gpu(envFrom=[{"secretRef": {"name": "s"}}], env=env(**values)))
    assert judged(manifest) == (("unsure", "EnvUnseen") if missing else EQUIPPED)


def test_env_from_of_a_container_that_shows_no_library() -> None:
    """It may use any."""
    main = container(command=["ucx_perftest"], envFrom=[{"secretRef": {"name": "s"}}])
    manifest = pod(main, annotations={"rdma.lab/fabric": "v100-ib"})
    assert judged(manifest) == ("unsure", "EnvUnseen")


def test_env_of_a_program_that_may_use_mpi() -> None:
    """UCX's variables may decide as well."""
    values = {**SETTINGS, "NCCL_IB_HCA": "=mlx5_0,mlx5_1"}
    source = [{"secretRef": {"name": "s"}}]
    main = gpu(command=["mpirun", "./solver"], envFrom=source, env=env(**values))
    assert judged(pod(main)) == EQUIPPED  # NCCL_NET shows that NCCL moves the data
    ranks = container(command=["mpirun", "./solver"], envFrom=source, env=env(**values))
    assert judged(pod(ranks, annotations={"rdma.lab/fabric": "v100-ib"})) == ("unsure", "EnvUnseen")


def test_what_env_from_holds_is_not_seen() -> None:
    """A ConfigMap or a Secret may set NCCL_IB_DISABLE; the first of these is named."""
    for source, title in (
        ({"configMapRef": {"name": "site"}}, "ConfigMap site"),
        ({"secretRef": {"name": "s"}}, "Secret s"),
    ):
        verdict = verdict_on(pod(gpu(envFrom=[source, {"configMapRef": {"name": "more"}}])))
        assert (verdict.rdma, verdict.because.code) == ("unsure", "EnvUnseen")
        assert verdict.message == (
            f"envFrom of container trainer may set variables that turn RDMA off ({title})"
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_NET", "AWS Libfabric"),
        ("NCCL_NET", "OFI"),
        ("NCCL_NET_PLUGIN", "aws-ofi"),
        ("NCCL_NET_PLUGIN", "libnccl-net-ofi.so"),
    ],
)
def test_a_provider_without_rdma_for_the_plugin_for_libfabric(name: str, value: str) -> None:
    """FI_PROVIDER decides for that plugin, and for nothing else of NCCL."""
    verdict = verdict_on(pod(gpu(env=env(FI_PROVIDER="tcp", **{name: value}))))
    assert (verdict.rdma, verdict.because.code) == ("no", "NcclOfiOverTcp")
    assert verdict.message == (
        "container trainer sets FI_PROVIDER=tcp, so NCCL's libfabric plugin uses no RDMA; remove "
        "the variable"
    )
    exported = ["sh", "-c", "export FI_PROVIDER=tcp; torchrun a"]
    assert verdict_on(pod(gpu(command=exported, env=env(**{name: value})))).message == (
        "container trainer sets FI_PROVIDER=tcp (export in its command), so NCCL's libfabric "
        "plugin uses no RDMA; remove that setting"
    )
    efa = pod(gpu(env=env(FI_PROVIDER="verbs", **{name: value})))
    assert judged(efa) == ("unsure", "NcclNetPlugin")
    other = pod(gpu(env=env(FI_PROVIDER="tcp", NCCL_NET_PLUGIN="fastrak")))
    assert judged(other) == ("unsure", "NcclNetPlugin")
    assert judged(pod(gpu(env=env(FI_PROVIDER="tcp")))) == EQUIPPED
