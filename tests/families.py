"""Families of pods that each grow in one place, to measure the cost of a decision on them.

All of them have opted in. `FAMILIES[name](n)` is a pod with about `n` entries in that place, which
is within the limits of `webhook.decide.limits` for n up to 4,000. `LONG[name](n)` is a pod with a
text of about 16 n letters. Containers have their own limit: there is one for every 40 entries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tests.builders import H100, V100, container, decision_input, gpu, pod
from webhook.decide.analysis import DecisionInput
from webhook.model.fabric import RdmaResource
from webhook.model.nodes import FabricIndex
from webhook.model.pod import PodManifest

PER_CONTAINER = 40
NETWORKS = "k8s.v1.cni.cncf.io/networks"
_SHARING: dict[str, Any] = {"securityContext": {"privileged": True}, "command": ["train"]}
_PRODUCT = "nvidia.com/gpu.product"


def busy_decision_input() -> DecisionInput:
    """Return a decision input where every mutation has work, with an index of nodes."""
    first = replace(
        V100,
        networks=("rails/a@net1", "rails/b@eth9"),
        shared_memory="16Gi",
        pin_selector={"site.lab/fabric": "ib"},
    )
    rail = RdmaResource(name="nvidia.com/rail0", network="rails/rail0@net1")
    return decision_input(
        first,
        replace(H100, resources=(rail,)),
        nvlink_namespaces=frozenset({"lab"}),
        fabric_index=FabricIndex(by_node={"node-1": frozenset({V100.name})}),
    )


def _repeat(n: int, make: Callable[[int], Any]) -> list[Any]:
    return [make(index) for index in range(n)]


def _env(n: int, make: Callable[[int], dict[str, Any]], **fields: Any) -> PodManifest:
    return pod(gpu(env=_repeat(n, make), **fields))


def _containers(n: int, **fields: Any) -> list[dict[str, Any]]:
    limits = {"memory": "1Gi"}
    return [gpu(f"c{index}", limits=limits, **fields) for index in range(n // PER_CONTAINER)]


def _terms(terms: Iterable[Any]) -> PodManifest:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    return pod(affinity={"nodeAffinity": required})


def _product(operator: str, *values: str) -> dict[str, Any]:
    return {"key": _PRODUCT, "operator": operator, "values": list(values)}


def _sharing(*containers: dict[str, Any], **spec: Any) -> PodManifest:
    return pod(*containers, annotations={"rdma.lab/nvlink": "share"}, hostIPC=True, **spec)


def _noted(annotations: dict[str, str]) -> PodManifest:
    return pod(annotations=annotations)


Family = Callable[[int], PodManifest]

#: Families that grow in the number of entries.
FAMILIES: dict[str, Family] = {
    "env without values": lambda n: _env(n, lambda i: {"name": f"V{i}"}),
    "env": lambda n: _env(n, lambda i: {"name": f"V{i}", "value": "x"}, limits={"memory": 1}),
    "env of references": lambda n: _env(
        n,
        lambda i: {"name": f"V{i}", "valueFrom": {"resourceFieldRef": {"resource": "x"}}},
        limits={"memory": "1Gi"},
    ),
    "env of one name": lambda n: _env(n, lambda _: {"name": "V", "value": "$(A)"}),
    "env without names": lambda n: _env(n, lambda _: {}, limits={"memory": 1}, command=["sshd"]),
    "env of a launcher": lambda n: pod(
        container(env=_repeat(n, lambda i: {"name": f"OMPI_MCA_{i}"})),
        annotations={"rdma.lab/fabric": V100.name},
    ),
    "env beside NVLink": lambda n: _sharing(gpu(env=_repeat(n, lambda i: {"name": f"V{i}"}))),
    "envFrom": lambda n: pod(
        gpu(envFrom=_repeat(n, lambda i: {"configMapRef": {"name": f"c{i}"}}))
    ),
    "words of a command": lambda n: pod(gpu(command=["a"] * n)),
    "words of env": lambda n: pod(gpu(command=["env"] * n)),
    "words of mpirun": lambda n: pod(gpu(command=["mpirun", "-x"] + ["A"] * n)),
    "assignments before mpirun": lambda n: pod(
        gpu(command=["env", *_repeat(n, lambda i: f"A{i}=1"), "mpirun", "-x", "A", "b"])
    ),
    "capabilities": lambda n: pod(
        gpu(securityContext={"capabilities": {"add": ["A"] * (n // 2), "drop": ["B"] * (n // 2)}})
    ),
    "containers": lambda n: pod(*_containers(n)),
    "containers with sshd": lambda n: pod(*_containers(n, command=["sshd"])),
    "containers that differ": lambda n: pod(
        *[
            gpu(f"c{i}", env=[{"name": "NCCL_IB_HCA", "value": f"m{i}"}], command=["sshd"])
            for i in range(n // PER_CONTAINER)
        ]
    ),
    "launchers": lambda n: pod(
        *_repeat(n // PER_CONTAINER, lambda i: container(f"c{i}", env=[{"name": "OMPI_MCA_a"}])),
        annotations={"rdma.lab/fabric": V100.name},
    ),
    "containers without a request": lambda n: pod(
        gpu(),
        *_repeat(n // PER_CONTAINER - 1, lambda i: container(f"c{i}")),
        resources={"limits": {"memory": "1Gi"}},
    ),
    "containers of aliases": lambda n: pod(
        *_repeat(
            n // PER_CONTAINER,
            lambda i: container(f"c{i}", resources={"limits": {"rdma/hca": "1"}}),
        )
    ),
    "aliases elsewhere": lambda n: pod(
        gpu(),
        initContainers=_repeat(
            n // PER_CONTAINER - 1,
            lambda i: container(f"c{i}", resources={"limits": {"rdma/hca": "1"}}),
        ),
    ),
    "containers by name": lambda n: pod(
        *_containers(n),
        annotations={"rdma.lab/containers": ",".join(f"c{i}" for i in range(n // PER_CONTAINER))},
    ),
    "containers and memory volumes": lambda n: pod(
        *_containers(n, volumeMounts=[{"name": "x", "mountPath": "/x"}]),
        volumes=_repeat(n, lambda i: {"name": f"v{i}", "emptyDir": {"medium": "Memory"}}),
    ),
    "containers and directories of the node": lambda n: _sharing(
        *_containers(n, volumeMounts=[{"name": "x", "mountPath": "/tmp"}], **_SHARING),
        volumes=_repeat(n, lambda i: {"name": f"v{i}", "hostPath": {"path": "/tmp"}}),
    ),
    "volumes": lambda n: pod(volumes=_repeat(n, lambda i: {"name": f"v{i}", "emptyDir": {"x": 1}})),
    "projected volumes": lambda n: pod(
        gpu(limits={"memory": 1}),
        volumes=[
            {"projected": {"sources": _repeat(n // 2, lambda _: {"downwardAPI": {"items": [{}]}})}}
        ],
    ),
    "mounts": lambda n: pod(
        gpu(volumeMounts=_repeat(n, lambda i: {"mountPath": f"/{i}"}), command=["sshd"])
    ),
    "mounts that are not clean": lambda n: pod(
        gpu(
            volumeMounts=_repeat(n, lambda i: {"mountPath": f"a{i}/../nccl.conf/shm"}),
            command=["sshd"],
        )
    ),
    "networks": lambda n: _noted({NETWORKS: ",".join(f"a{i}" for i in range(n))}),
    "networks and devices": lambda n: pod(
        container(
            resources={"limits": {"nvidia.com/h100": 1, "nvidia.com/rail0": n // PER_CONTAINER}}
        ),
        annotations={NETWORKS: ",".join(f"a{i}" for i in range(n))},
    ),
    "networks as JSON": lambda n: _noted(
        {NETWORKS: json.dumps(_repeat(n, lambda i: {"name": f"a{i}"}))}
    ),
    "annotations": lambda n: _noted({f"a{i}": "x" for i in range(n)}),
    "annotations of other letters": lambda n: _noted({f"é{i}": "é" for i in range(n)}),
    "unknown annotations of ours": lambda n: _noted({f"rdma.lab/{i}": "x" for i in range(n)}),
    "names to skip": lambda n: _noted({"rdma.lab/skip": ",".join(f"a{i}" for i in range(n))}),
    "nodeSelector": lambda n: pod(nodeSelector={f"a{i}": "x" for i in range(n)}),
    "terms": lambda n: _terms(
        _repeat(n // 3, lambda _: {"matchExpressions": [_product("In", "Tesla-V100-SXM2")]})
    ),
    "empty terms": lambda n: _terms(_repeat(n, lambda _: {})),
    "expressions": lambda n: _terms(
        [{"matchExpressions": _repeat(n, lambda _: {"key": _PRODUCT, "operator": "Exists"})}]
    ),
    "values": lambda n: _terms(
        [{"matchExpressions": [_product("In", *_repeat(n, lambda i: f"Tesla-V100-{i}"))]}]
    ),
    "values not in": lambda n: _terms(
        [{"matchExpressions": [_product("NotIn", *_repeat(n, lambda i: f"Tesla-{i}"))]}]
    ),
    "names of nodes": lambda n: _terms(
        [
            {
                "matchFields": [
                    {
                        "key": "metadata.name",
                        "operator": "In",
                        "values": _repeat(n, lambda i: f"node-{i}"),
                    }
                ]
            }
        ]
    ),
    "constraints beside NVLink": lambda n: _sharing(
        gpu(**_SHARING), topologySpreadConstraints=_repeat(n, lambda i: {"topologyKey": f"a{i}"})
    ),
    "claims of the pod": lambda n: _sharing(
        gpu(**_SHARING), resourceClaims=_repeat(n, lambda i: {"name": f"a{i}"})
    ),
    "claims": lambda n: pod(
        gpu(
            resources={
                "limits": {"nvidia.com/v100": 1},
                "claims": _repeat(n, lambda i: {"name": f"a{i}"}),
            }
        ),
        resourceClaims=[{"name": "a"}],
    ),
    "resources": lambda n: pod(gpu(limits={f"site.lab/{i}": 1 for i in range(n)})),
    "resources of nobody": lambda n: pod(
        container(resources={"limits": {f"site.lab/{i}": 1 for i in range(n)}})
    ),
    "RDMA resources": lambda n: pod(gpu(limits={f"rdma/{i}": f"{i % 100}.5" for i in range(n)})),
    "RDMA requests without limits": lambda n: pod(
        container(
            resources={
                "limits": {"rdma/ib": "8"},
                "requests": {f"rdma/{i}": "1" for i in range(n)},
            }
        )
    ),
    "MIG slices": lambda n: pod(gpu(limits={f"nvidia.com/mig-{i}": 1 for i in range(n)})),
    "resources that are no quantities": lambda n: pod(
        gpu(limits={f"rdma/{i}": "x" for i in range(n)})
    ),
    "tolerations": lambda n: pod(tolerations=_repeat(n, lambda i: {"key": f"a{i}"})),
    "labels": lambda n: {
        **pod(),
        "metadata": {**pod()["metadata"], "labels": {f"a{i}": "x" for i in range(n)}},
    },
}

_SHORT = 16  # letters in place of each entry


def _long(n: int, letter: str = "x") -> str:
    return letter * (n * _SHORT)


#: Families that grow in the length of one text.
LONG: dict[str, Family] = {
    "name of a container": lambda n: pod(gpu(_long(n, "é"), command=["sshd"])),
    "word of a command": lambda n: pod(gpu(command=[_long(n, "é")])),
    "values of variables": lambda n: pod(
        gpu(
            env=[
                {"name": "UCX_TLS", "value": _long(n // 2, "x,")},
                {"name": "NCCL_SOCKET_IFNAME", "value": _long(n, "é")},
            ],
            command=["sshd"],
        )
    ),
    "name of a variable": lambda n: pod(gpu(env=[{"name": _long(n), "value": "x"}])),
    "references without an end": lambda n: pod(
        gpu(env=[{"name": "NCCL_IB_HCA", "value": _long(n // 2, "$(")}], command=["sshd"])
    ),
    "references that nest": lambda n: pod(
        gpu(
            env=[{"name": "NCCL_IB_HCA", "value": f"{_long(n // 2, '$(')})"}],
            command=["mpirun", "-x", _long(n // 2, "$(")],
        )
    ),
    "keys of annotations": lambda n: _noted({_long(n): "", f"rdma.lab/{_long(n)}": ""}),
    "value of an annotation": lambda n: _noted({"a": _long(n, "é")}),
    "name to skip": lambda n: _noted({"rdma.lab/skip": _long(n)}),
    "name of a fabric": lambda n: _noted({"rdma.lab/fabric": _long(n)}),
    "older status": lambda n: _noted({"rdma.lab/status": _long(n, "[")}),
    "networks": lambda n: _noted({NETWORKS: _long(n)}),
    "name of a resource": lambda n: pod(gpu(limits={f"a/s{_long(n)}": 1, f"rdma/{_long(n)}": 1})),
    "quantity": lambda n: pod(gpu(limits={"memory": _long(n, "9")})),
    "quantity of GPUs": lambda n: pod(gpu(count=_long(n, "9"))),
    "value of a label": lambda n: pod(nodeSelector={_PRODUCT: f"Tesla-V100-{_long(n)}"}),
    "value in a term": lambda n: _terms(
        [{"matchExpressions": [_product("In", f"Tesla-V100-{_long(n)}")]}]
    ),
    "mountPath": lambda n: pod(
        gpu(volumeMounts=[{"mountPath": _long(n // 4, "x/..")}], command=["sshd"])
    ),
    "name of a volume": lambda n: pod(
        gpu(limits={"memory": 1}, volumeMounts=[{"name": _long(n), "mountPath": "/a"}]),
        volumes=[{"name": _long(n), "emptyDir": {"medium": "Memory"}}],
    ),
    "name of a claim": lambda n: pod(
        gpu(resources={"limits": {"nvidia.com/v100": 1}, "claims": [{"name": _long(n)}]}),
        resourceClaims=[{"name": "a"}],
    ),
}
