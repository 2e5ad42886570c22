"""Reviews for the benchmarks: pods as an API server sends them, of a chosen shape and size.

They include defaulted fields, managedFields and the token volume, since a real request has them,
too: they are half of its bytes.
"""

from __future__ import annotations

from typing import Any

#: The volume that the API server adds, whose name differs from pod to pod.
TOKEN_VOLUME = "kube-api-access-x7k2p"
SCRIPT = """set -euo pipefail
while ! getent hosts worker-0.job; do sleep 1; done
HOSTS=$(cat /etc/mpi/hostfile | awk '{print $1":8"}' | paste -sd, -)
cat <<EOF > /tmp/config.json
{"batch": 32, "launcher": "mpirun"}
EOF
for size in 8 64 512; do
  mpirun --allow-run-as-root -np 16 -H "$HOSTS" -x NCCL_DEBUG -x LD_LIBRARY_PATH \\
    python3 /workspace/all_reduce.py --size "${size}M" && echo "done $size"
done
"""


def pod(*, containers: int = 1, variables: int = 12, script: bool = False) -> dict[str, Any]:
    """Make a training pod whose containers all request GPUs."""
    trainers = [_container(index, variables, script=script) for index in range(containers)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "pretrain-worker-",
            "namespace": "lab",
            "annotations": {"rdma.lab/enable": "true"},
            "labels": {"app": "pretrain", "batch.kubernetes.io/job-name": "pretrain"},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": "pretrain",
                    "uid": "0e6f9c3a-51f4-4b55-9a57-0c1f5f1f8f11",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [_managed(trainers)],
        },
        "spec": {
            "containers": trainers,
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}},
                {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
                _TOKEN,
            ],
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {},
    }


def review(manifest: dict[str, Any]) -> dict[str, Any]:
    """Wrap a pod as the API server does."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "namespace": "lab",
            "operation": "CREATE",
            "userInfo": {
                "username": "system:serviceaccount:kube-system:job-controller",
                "uid": "a3c1b6d2-3f0e-4f57-8f9b-8a1d6d6f0c55",
                "groups": ["system:serviceaccounts", "system:authenticated"],
            },
            "object": manifest,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }


def _container(index: int, variables: int, *, script: bool) -> dict[str, Any]:
    command = (
        ["bash", "-c", SCRIPT]
        if script
        else ["torchrun", "--nnodes=16", "--nproc-per-node=8", "train.py", "--config=base.yaml"]
    )
    return {
        "name": f"trainer-{index}" if index else "trainer",
        "image": "registry.example/lab/pretrain:2026.11",
        "command": command,
        "env": [
            {"name": f"TRAIN_OPTION_{number:02}", "value": f"value-{number}"}
            for number in range(variables)
        ],
        "resources": {
            "limits": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"},
            "requests": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"},
        },
        "volumeMounts": [
            {"name": "data", "mountPath": "/data", "readOnly": True},
            {"name": "dshm", "mountPath": "/dev/shm"},
            {
                "name": TOKEN_VOLUME,
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            },
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _managed(containers: list[dict[str, Any]]) -> dict[str, Any]:
    """Write the managedFields entry of the controller that made the pod."""
    owned: dict[str, Any] = {
        f'k:{{"name":"{container["name"]}"}}': {
            ".": {},
            "f:command": {},
            "f:env": {
                ".": {},
                **{
                    f'k:{{"name":"{variable["name"]}"}}': {".": {}, "f:name": {}, "f:value": {}}
                    for variable in container["env"]
                },
            },
            "f:image": {},
            "f:imagePullPolicy": {},
            "f:name": {},
            "f:resources": {
                ".": {},
                "f:limits": {".": {}, "f:cpu": {}, "f:memory": {}, "f:nvidia.com/gpu": {}},
                "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}, "f:nvidia.com/gpu": {}},
            },
            "f:terminationMessagePath": {},
            "f:terminationMessagePolicy": {},
            "f:volumeMounts": {".": {}, 'k:{"mountPath":"/data"}': {".": {}, "f:name": {}}},
        }
        for container in containers
    }
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-21T07:48:16Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:annotations": {".": {}, "f:rdma.lab/enable": {}}},
            "f:spec": {"f:containers": owned, "f:nodeSelector": {}, "f:restartPolicy": {}},
        },
    }


_TOKEN = {
    "name": TOKEN_VOLUME,
    "projected": {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {
                "configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }
            },
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
    },
}
