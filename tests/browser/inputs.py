"""Manifests that lead the page into each of its states, with the fabrics of an example."""

from __future__ import annotations

from pathlib import Path

#: Fabrics with the GPU resource nvidia.com/v100, which are no bundled example.
FABRICS = Path(__file__).parent / "fabrics.yaml"

_POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: lab
  annotations: {annotations}
spec:
  containers:
  - name: trainer
    image: registry.example/trainer
    {field}: {{limits: {{nvidia.com/v100: 8, memory: 64Gi}}}}
"""
_OPTED_IN = '{rdma.lab/enable: "true"}'


def pod(name: str, *, annotations: str = _OPTED_IN, field: str = "resources") -> str:
    """Return a pod as YAML, of 11 lines; its container requests GPUs in `field`."""
    return _POD.format(name=name, annotations=annotations, field=field)


EQUIPPED = pod("equipped")
NOT_OPTED_IN = pod("silent", annotations="{}")
RDMA_OFF = pod("tcp") + '    env:\n    - {name: NCCL_IB_DISABLE, value: "1"}\n'
DENIED = pod("denied", annotations='{rdma.lab/enable: "true", rdma.lab/fabric: nowhere}')
MISSPELLED = pod("misspelled", field="resource")
#: A warning of env besides the verdict's: the variable names a device that the fabric lacks.
FOREIGN_DEVICE = f"{RDMA_OFF}    - {{name: NCCL_IB_HCA, value: mlx5_9}}\n"
#: The annotation of a Job does not reach its pods.
JOB_MISPLACED = """\
apiVersion: batch/v1
kind: Job
metadata: {name: trainer, namespace: lab, annotations: {rdma.lab/enable: "true"}}
spec:
  template:
    spec: {containers: [{name: trainer, resources: {limits: {nvidia.com/v100: 8}}}]}
"""
#: Its template comes from a Deployment.
REPLICA_SET = """\
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  namespace: lab
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, controller: true}]
spec:
  template:
    spec: {containers: [{name: trainer, resources: {limits: {nvidia.com/v100: 8}}}]}
"""
#: KServe makes the metadata of its pods, and copies no annotations to them.
METADATA_OF_OPERATOR = """\
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata: {name: llm, namespace: lab}
spec: {template: {containers: [{name: main, resources: {limits: {nvidia.com/v100: 8}}}]}}
"""
#: A NIC that no fabric lists.
FOREIGN_NIC = EQUIPPED.replace("memory: 64Gi", "memory: 64Gi, vpc.amazonaws.com/efa: 1")
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
#: Four verdicts and a document without a pod.
SEVERAL = f"{EQUIPPED}---\n{NOT_OPTED_IN}---\n{RDMA_OFF}---\n{DENIED}---\n{CONFIG_MAP}"
#: The list item on line 6 is among the keys from line 4.
INVALID = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n   x: 1\n  - y\n"
LIMIT_RANGE = (
    "apiVersion: v1\nkind: LimitRange\nmetadata: {name: limits, namespace: lab}\n"
    "spec: {limits: [{type: Container, max: {memory: 1Ti}}]}\n"
)

#: Markup, and characters that reverse text or cannot be seen.
_ATTACK = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202egnp.exe\u2066\u200b&amp;"


def hostile(lines: int) -> str:
    """Return a pod with as many lines of markup and invisible characters, and one long line."""
    comments = "".join(f"# {number} {_ATTACK}\n" for number in range(lines))
    name = EQUIPPED.replace("image: registry.example/trainer", f'image: "{_ATTACK}"')
    return f"{name}{comments}# {'x' * 300_000}\n"


def many_changes(containers: int) -> str:
    """Return a pod with as many more containers; about twenty lines change for each."""
    more = "  - name: c{}\n    image: x\n    resources: {{limits: {{nvidia.com/v100: 1}}}}\n"
    return EQUIPPED + "".join(map(more.format, range(containers)))
