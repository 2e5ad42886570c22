"""Which lines of a document change, and for which reasons."""

from __future__ import annotations

import json

from webhook.config import EXAMPLE
from webhook.config.load import parse_fabrics
from webhook.preview.changed_inputs import ChangedInput, changed_inputs
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.patches import rewrite
from webhook.text.yaml.documents import Document, read_documents

_CONFIGURATION = parse_fabrics(EXAMPLE.read_text(encoding="utf-8"), "fabrics").compiled
_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  containers:
  - name: trainer
    image: example.com/trainer
    command: [mpirun, train]
    resources:
      limits:
        nvidia.com/v100: 8
        memory: 64Gi
  - name: second
    image: example.com/second
    resources: {limits: {nvidia.com/v100: 8}}
"""


def changes_of(*texts: str) -> list[ChangedInput]:
    """Preview each text as a file, as if every pod had opted in."""
    documents: list[Document] = []
    for number, text in enumerate(texts):
        documents += read_documents(text, f"{number}.yaml")
    options = PreviewOptions(configuration=_CONFIGURATION, enable=True)
    report = preview_documents(documents, options)
    return [*changed_inputs(documents, rewrite(documents, report), report)]


def reasons_of(changed_input: ChangedInput) -> dict[str, list[str]]:
    """Return the reasons of each changed line: "mutation container"."""
    return {
        f"{row.before or ''}{row.after or ''}".strip(): [
            f"{reason.mutation} {reason.container}".rstrip() for reason in reasons
        ]
        for hunk in changed_input.hunks
        for row, reasons in zip(hunk.rows, hunk.reasons, strict=True)
        if row.kind != "same"
    }


def test_a_line_has_the_reason_of_its_field() -> None:
    """Each variable has that of the mutation that wrote it, in its container."""
    (changed_input,) = changes_of(_POD)
    reasons = reasons_of(changed_input)
    assert reasons["- name: NCCL_IB_HCA"] == ["env second"]  # the later of two equal lines
    assert reasons["- IPC_LOCK"] == ["ipc-lock second"]
    assert reasons["- name: OMPI_MCA_coll_hcoll_enable"] == ["hcoll second"]
    assert all(reasons.values()), reasons


def test_a_removed_line() -> None:
    """It has the reason of its removal; here it shares a row with a line that is added."""
    requests = "      requests: {cpu: 1, memory: 64Gi}\n"
    pod = _POD.replace("        memory: 64Gi\n", f"        memory: 80Gi\n{requests}")
    (changed_input,) = changes_of(pod)
    removed = [
        [reason.mutation for reason in reasons]
        for hunk in changed_input.hunks
        for row, reasons in zip(hunk.rows, hunk.reasons, strict=True)
        if row.kind != "same" and "memory: 80Gi" in (row.before or "")
    ]
    assert removed == [["memory-limit", "rdma-resources"]]


def test_a_line_that_moves() -> None:
    """It is removed here and added there, although its text stays the same."""
    (changed_input,) = changes_of(_POD)
    moved = [
        (row.kind, [reason.mutation for reason in reasons])
        for hunk in changed_input.hunks
        for row, reasons in zip(hunk.rows, hunk.reasons, strict=True)
        if "memory: 64Gi" in (row.before or row.after or "")
    ]
    assert moved == [("removed", ["memory-limit"]), ("added", ["memory-limit"])]


def test_a_line_with_several_fields() -> None:
    """It has the reasons of all of them that change."""
    pod = _POD.replace("limits: {nvidia.com/v100: 8}", "limits: {nvidia.com/v100: 8, memory: 1Gi}")
    (changed_input,) = changes_of(pod)
    (flow,) = [
        {reason.mutation for reason in reasons}
        for hunk in changed_input.hunks
        for row, reasons in zip(hunk.rows, hunk.reasons, strict=True)
        if row.kind == "changed" and "1Gi" in (row.before or "")
    ]
    assert flow == {"memory-limit", "rdma-resources"}


def test_several_documents_and_inputs() -> None:
    """Lines count within their input, and reasons lead to the decision on their pod."""
    first, second = changes_of(f"---\n# empty\n---\n{_POD}---\n{_POD}", _POD)
    assert (first.name, second.name) == ("0.yaml", "1.yaml")

    def decisions(changed_input: ChangedInput) -> set[int]:
        return {
            reason.decision
            for hunk in changed_input.hunks
            for reasons in hunk.reasons
            for reason in reasons
        }

    assert (decisions(first), decisions(second)) == ({0, 1}, {2})
    assert (first.hunks[0].before_start, second.hunks[0].before_start) == (11, 8)


def test_an_input_without_changes() -> None:
    """It is left out."""
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    assert [changed_input.name for changed_input in changes_of(settings, _POD)] == ["1.yaml"]


def test_a_template_whose_controller_adds_variables() -> None:
    """The list that only the template lacks has the reasons of the variables in it."""
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "job"},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [
            {"name": "pytorch", "image": "a", "resources": {"limits": {"nvidia.com/v100": 8}}}
        ]}}}}},
    }  # fmt: skip
    (changed_input,) = changes_of(json.dumps(job, indent=1))
    reasons = reasons_of(changed_input)
    (line,) = [line for line in reasons if line.startswith('"env"')]
    assert {*reasons[line]} == {"env pytorch", "hcoll pytorch"}


def test_a_pod_spec_without_metadata() -> None:
    """Its paths begin below `spec`."""
    spec = "\n".join(f"    {line}" for line in _POD.splitlines()[4:])
    text = (
        "apiVersion: serving.kserve.io/v1alpha1\nkind: LLMInferenceService\n"
        f"metadata: {{name: a}}\nspec:\n  template:\n{spec}\n"
    )
    (changed_input,) = changes_of(text)
    reasons = reasons_of(changed_input)
    assert reasons["- IPC_LOCK"] == ["ipc-lock second"]
    assert all(reasons.values()), reasons


def test_a_text_that_is_not_yaml() -> None:
    r"""JSON with the escape `\/` still has its rows, but nobody knows their reasons."""
    pod = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {
        "containers": [{"name": "a", "resources": {"limits": {"nvidia.com/v100": 8}}}]
    }}).replace("nvidia.com/v100", r"nvidia.com\/v100")  # fmt: skip
    (changed_input,) = changes_of(pod)
    (row,) = changed_input.hunks[0].rows
    assert row.kind == "changed"


def test_an_alias() -> None:
    """The text behind it has its own reasons, and those of the pods that only refer to it."""
    text = _POD.replace("resources:\n", "resources: &shared\n", 1)
    text = text.replace("resources: {limits: {nvidia.com/v100: 8}}", "resources: *shared")
    (changed_input,) = changes_of(text)
    assert reasons_of(changed_input)["- IPC_LOCK"] == ["ipc-lock second"]
