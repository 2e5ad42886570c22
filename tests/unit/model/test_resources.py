from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, fabric, fabrics, quantities
from tests.case_names import case_name
from webhook.errors import ShapeError
from webhook.model.fabric import Globs, RdmaResource
from webhook.model.pod import Container
from webhook.model.resources import (
    RequestedDevices,
    is_foreign,
    is_gpu,
    is_rdma,
    other_extended_resources,
    requested_devices,
)

PATH = ("spec", "containers", 0)
NO_DEVICES = RequestedDevices((), 0, False, False, (), ())
CONFIGURATION = fabrics(
    fabric(
        "north",
        gpu_resources=frozenset({"nvidia.com/v100", "amd.com/gpu"}),
        resources=(RdmaResource(name="rdma/north", aliases=("nvidia.com/hostdev",)),),
    )
)


def requested(limits: Any = None, requests: Any = None) -> RequestedDevices:
    """Return the devices of a container with these quantities."""
    return requested_devices(
        Container(PATH, container(resources=quantities(limits, requests))), CONFIGURATION
    )


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"resources": None},
        {"resources": {}},
        {"resources": {"limits": None, "requests": None}},
        {"resources": {"limits": {"cpu": "1", "memory": None}}},
        {"resources": {"limits": {"example.com/fpga": "1"}}},
    ],
    ids=repr,
)
def test_a_container_may_use_nothing_of_ours(manifest: dict[str, Any]) -> None:
    """CPU, memory and other devices are ignored."""
    assert requested_devices(Container(PATH, manifest), CONFIGURATION) == NO_DEVICES


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"nvidia.com/gpu": "2"}, RequestedDevices(("nvidia.com/gpu",), 2, False, False, (), ())),
        ({"nvidia.com/v100": 8}, RequestedDevices(("nvidia.com/v100",), 8, False, False, (), ())),
        ({"amd.com/gpu": "1"}, RequestedDevices(("amd.com/gpu",), 1, False, False, (), ())),
        (
            {"nvidia.com/gpu": "1e18"},
            RequestedDevices(("nvidia.com/gpu",), 10_000, False, False, (), ()),
        ),
        ({"nvidia.com/gpu": "0"}, NO_DEVICES),
        ({"nvidia.com/gpu": 0}, NO_DEVICES),
        ({"nvidia.com/gpu": None}, NO_DEVICES),
        ({"nvidia.com/gpu": "1e0"}, RequestedDevices(("nvidia.com/gpu",), 1, False, False, (), ())),
        ({"nvidia.com/gpu": 1.0}, RequestedDevices(("nvidia.com/gpu",), 1, False, False, (), ())),
        (
            {"nvidia.com/mig-1g.5gb": "3"},
            RequestedDevices(("nvidia.com/mig-1g.5gb",), 0, True, False, (), ()),
        ),
        (
            {"nvidia.com/gpu.shared": "1"},
            RequestedDevices(("nvidia.com/gpu.shared",), 0, True, False, (), ()),
        ),
        (
            {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "1"},
            RequestedDevices(("nvidia.com/gpu", "nvidia.com/mig-1g.5gb"), 0, True, False, (), ()),
        ),
        (
            {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"},
            RequestedDevices(("nvidia.com/gpu",), 0, False, True, (), ()),
        ),
        ({"nvidia.com/gpumem": "3000"}, RequestedDevices((), 0, False, True, (), ())),
        ({"nvidia.com/gputopology": "1"}, NO_DEVICES),
        ({"example.com/gpu": "1"}, NO_DEVICES),
    ],
    ids=repr,
)
def test_gpus_are_known_by_their_exact_names(
    limits: dict[str, Any], expected: RequestedDevices
) -> None:
    """MIG slices, shared GPUs and virtual GPUs are GPUs, but do not count as whole ones."""
    assert requested(limits) == expected


@pytest.mark.parametrize(
    ("limits", "rdma", "foreign", "has_rdma"),
    [
        ({"rdma/north": "1"}, (("rdma/north", "1"),), (), True),
        ({"rdma/anything": 2}, (("rdma/anything", 2),), (), True),
        ({"rdma/north": "0"}, (("rdma/north", "0"),), (), False),
        ({"rdma/north": None}, (("rdma/north", None),), (), False),
        ({"nvidia.com/hostdev": "1"}, (("nvidia.com/hostdev", "1"),), (), True),
        ({"intel.com/hostdev": "1"}, (), ("intel.com/hostdev",), False),
        ({"intel.com/hostdev": "0"}, (), (), False),
        ({"vpc.amazonaws.com/efa": "4"}, (), ("vpc.amazonaws.com/efa",), False),
    ],
    ids=repr,
)
def test_rdma_devices_and_foreign_nics_are_distinguished(
    limits: dict[str, Any], rdma: Any, foreign: Any, has_rdma: bool
) -> None:
    """Resources and aliases of a fabric are RDMA; a quantity of zero is listed but not counted."""
    devices = requested(limits)
    assert devices == RequestedDevices((), 0, False, False, rdma, foreign)
    assert devices.has_rdma is has_rdma


def test_requests_beside_limits_change_nothing() -> None:
    """Kubernetes requires both to be equal, in any notation."""
    assert requested({"rdma/north": "2"}, {"rdma/north": "2000m", "cpu": "1"}) == RequestedDevices(
        (), 0, False, False, (("rdma/north", "2"),), ()
    )


_LIMITS = "spec.containers[0].resources.limits"
MISSING = "is missing, but it must equal the request"


@pytest.mark.parametrize(
    ("limits", "requests", "says"),
    [
        (
            None,
            {"nvidia.com/gpu": "1", "cpu": 2},
            f'{_LIMITS}["nvidia.com/gpu"] {MISSING}, 1',
        ),
        (
            {"cpu": 1},
            {"vpc.amazonaws.com/efa": "0"},
            f'{_LIMITS}["vpc.amazonaws.com/efa"] {MISSING}, 0',
        ),
        (
            {"nvidia.com/gpu": None},
            {"nvidia.com/gpu": 1, "rdma/north": None},
            f'{_LIMITS}["nvidia.com/gpu"] is 0, but it must equal the request, 1',
        ),
        (
            {"cpu": 1},
            {"rdma/north": None},
            f'{_LIMITS}["rdma/north"] {MISSING}, 0',
        ),
        (
            {"nvidia.com/gpu": 8},
            {"nvidia.com/gpu": 1},
            f'{_LIMITS}["nvidia.com/gpu"] is 8, but it must equal the request, 1',
        ),
        (
            {"rdma/north": "2"},
            {"rdma/north": "1"},
            f'{_LIMITS}["rdma/north"] is 2, but it must equal the request, 1',
        ),
        (
            {"rdma/a": "1"},
            {"x.io/b": "1", "x.io/a": "1", "rdma/b": "1"},
            f'{_LIMITS}["x.io/a"] {MISSING}, 1',
        ),
    ],
    ids=("gpu", "zero", "null limit", "null", "unequal gpus", "unequal", "first by name"),
)
def test_extended_resources_need_equal_limits(limits: Any, requests: Any, says: str) -> None:
    """The API server rejects such a pod, so it is denied with the place and both quantities."""
    with pytest.raises(ShapeError) as error:
        requested(limits, requests)
    assert str(error.value) == says


@pytest.mark.parametrize(
    ("limits", "requests"),
    [
        ({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": "1"}),
        ({"nvidia.com/gpu": 1}, {"cpu": 1}),
        ({"rdma/alias": "1"}, {"rdma/north": "2"}),
        ({"rdma/alias": "1"}, {"rdma/alias": "2", "rdma/north": "1"}),
        ({"nvidia.com/gpu": 1}, {"node.kubernetes.io/x": "1", "hugepages-2Mi": "1Gi"}),
    ],
    ids=("equal", "no request", "alias in limits", "both names", "native"),
)
def test_other_resources_may_be_requested_without_a_limit(limits: Any, requests: Any) -> None:
    """An alias in one section and the real name in the other are merged later."""
    assert requested(limits, requests).foreign_resources == ()


@pytest.mark.parametrize(
    ("limits", "requests", "says"),
    [
        (
            {"nvidia.com/gpu": "one"},
            None,
            (
                'spec.containers[0].resources.limits["nvidia.com/gpu"]: '
                "'one' is not a Kubernetes quantity (such as \"1\", 500m or 64Gi)"
            ),
        ),
        (
            {"nvidia.com/gpu": "1" + "0" * 64},
            {"cpu": "x"},
            (
                'spec.containers[0].resources.limits["nvidia.com/gpu"]: '
                f"'1{'0' * 64}' is longer than any quantity (64 characters); "
                "spec.containers[0].resources.requests.cpu: "
                "'x' is not a Kubernetes quantity (such as \"1\", 500m or 64Gi)"
            ),
        ),
        (
            {"nvidia.com/gpu": "${GPUS}", "rdma/x": "${GPUS}", "cpu": "x"},
            {"nvidia.com/gpu": "${GPUS}", "rdma/x": "${GPUS}"},
            (
                'spec.containers[0].resources.limits["nvidia.com/gpu"]: '
                "'${GPUS}' is an unexpanded variable (run envsubst first)"
            ),
        ),
        (
            {"nvidia.com/gpu": True},
            None,
            (
                'spec.containers[0].resources.limits["nvidia.com/gpu"]: '
                'True is not a Kubernetes quantity (such as "1", 500m or 64Gi)'
            ),
        ),
        (
            {"cpu": "1"},
            {"cpu": "1", "rdma/x": {}},
            (
                'spec.containers[0].resources.requests["rdma/x"]: '
                '{} is not a Kubernetes quantity (such as "1", 500m or 64Gi)'
            ),
        ),
        (
            {"vpc.amazonaws.com/efa": ""},
            {},
            (
                'spec.containers[0].resources.limits["vpc.amazonaws.com/efa"]: '
                "'' is not a Kubernetes quantity (such as \"1\", 500m or 64Gi)"
            ),
        ),
        (
            ["nvidia.com/gpu"],
            None,
            (
                "spec.containers[0].resources.limits must be a mapping, "
                "but is a list (['nvidia.com/gpu'])"
            ),
        ),
        (
            None,
            "x",
            "spec.containers[0].resources.requests must be a mapping, but is a string ('x')",
        ),
    ],
    ids=case_name,
)
def test_what_is_no_amount_is_refused_with_its_place(limits: Any, requests: Any, says: str) -> None:
    """The API server would also reject it."""
    with pytest.raises(ShapeError) as raised:
        requested(limits, requests)
    assert str(raised.value) == says


def test_a_request_beside_a_limit_is_looked_at_too() -> None:
    """The limit counts, but the request is checked too, since an alias is renamed in both."""
    with pytest.raises(ShapeError, match=r'requests\["rdma/x"\]: \[8\] is not a Kubernetes'):
        requested({"rdma/x": "8"}, {"rdma/x": [8]})


@pytest.mark.parametrize(("limit", "request_"), [(1, True), (0, False)])
def test_a_boolean_is_no_amount(limit: int, request_: object) -> None:
    """In Python it equals the number in the limit, but the API server rejects it."""
    with pytest.raises(ShapeError, match=f"requests.*: {request_} is not a Kubernetes quantity"):
        requested({"rdma/north": limit}, {"rdma/north": request_})


def test_a_few_wrong_amounts_are_shown() -> None:
    """If very many are wrong, only the first few are shown, limits before requests."""
    malformed = {f"rdma/{number}": "x" for number in range(3)}
    with pytest.raises(ShapeError) as raised:
        requested(malformed, malformed)
    assert [part.partition(":")[0] for part in str(raised.value).split("; ")] == [
        *(f'spec.containers[0].resources.limits["{name}"]' for name in malformed),
        'spec.containers[0].resources.requests["rdma/0"]',
    ]


@pytest.mark.parametrize(
    ("name", "foreign"),
    [
        ("vpc.amazonaws.com/efa", True),
        ("vpc.amazonaws.com/efa2", False),
        ("intel.com/intel_sriov_netdevice", True),
        ("openshift.io/sriovleg", True),
        ("nvidia.com/hostdev", True),
        ("nvidia.com/mlnxnics", True),
        ("vke.volcengine.com/rdma", True),
        ("amd.com/nic", True),
        ("amd.com/vnic", True),
        ("networking.gke.io.networks/rdma-0", True),
        ("aliyun/erdma", True),
        ("koordinator.sh/rdma", True),
        ("nvidia.com/rdma-vf", True),
        ("nvidia.com/rdma_vf_a", True),
        ("openshift.io/mlnx_rdma", True),
        ("mellanox.com/cx5", True),
        ("site.lab/nic0", True),
        ("nvidia.com/rdma-shared", False),
        ("nvidia.com/gpu", False),
        ("sriov", False),
        ("example.com/fpga", False),
    ],
)
def test_foreign_nics_are_a_list_of_globs(name: str, foreign: bool) -> None:
    """The list consists of the built-in globs and the site's."""
    assert is_foreign(name, Globs(("site.lab/nic?",))) is foreign
    assert is_foreign("site.lab/nic0") is False


@pytest.mark.parametrize(
    ("name", "gpu", "rdma"),
    [
        ("nvidia.com/gpu", True, False),
        ("nvidia.com/gpu.shared", True, False),
        ("nvidia.com/mig-2g.10gb", True, False),
        ("amd.com/gpu", True, False),
        ("nvidia.com/gpumem", False, False),
        ("rdma/hca", False, True),
        ("rdma", False, False),
        ("nvidia.com/hostdev", False, True),
    ],
)
def test_a_name_is_a_gpu_or_an_rdma_device_or_neither(name: str, gpu: bool, rdma: bool) -> None:
    """Exact names and the fabrics' resources count; only MIG profiles and `rdma/` match by form."""
    assert (is_gpu(name, CONFIGURATION), is_rdma(name, CONFIGURATION)) == (gpu, rdma)


def test_what_no_fabric_claims_is_listed() -> None:
    """Names are sorted; a quantity of 0 is left out, but one that cannot be read is listed."""
    limits = {"example.com/b": "1", "example.com/a": "x", "example.com/c": "0", "cpu": "1"}
    resources = quantities({**limits, "nvidia.com/v100": "1", "rdma/north": "1"})
    manifest = container(resources=resources)
    assert other_extended_resources(Container(PATH, manifest), CONFIGURATION) == [
        "example.com/a",
        "example.com/b",
    ]


@pytest.mark.parametrize(
    ("limits", "requests", "says"),
    [
        (
            {"${RESOURCE}": "8"},
            None,
            "limits: '${RESOURCE}' is an unexpanded variable (run envsubst first)",
        ),
        (
            {"cpu": "1"},
            {"rdma/$POOL": "8"},
            "requests: 'rdma/$POOL' is an unexpanded variable (run envsubst first)",
        ),
        ({"a$": "8"}, None, "limits: 'a$' is not the name of a resource"),
    ],
    ids=case_name,
)
def test_the_name_of_a_resource_may_be_unexpanded(limits: Any, requests: Any, says: str) -> None:
    """Otherwise the pod seems to request nothing, and the remedy would be a wrong one."""
    with pytest.raises(ShapeError) as raised:
        requested(limits, requests)
    assert str(raised.value) == f"spec.containers[0].resources.{says}"
