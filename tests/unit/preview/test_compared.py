from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from jsonschema import Draft202012Validator

from tests.builders import H100, V100, fabric, fabrics, gpu, pod
from webhook.model.fabric import CompiledConfiguration, FabricEnv
from webhook.model.facts import Facts
from webhook.preview.comparison import (
    Comparison,
    changes_form,
    changes_schema,
    changes_text,
    compare_reports,
)
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.text.yaml.documents import Document

OLD = fabrics(V100, H100)
OTHER = replace(V100, env=FabricEnv(library_variables=(("NCCL_IB_HCA", "=mlx5_7"),)))
VALIDATOR = Draft202012Validator(json.loads(changes_schema()))


def job(name: str, spec: Any) -> dict[str, Any]:
    """Make a Job from a pod."""
    template = {"metadata": {"annotations": {"rdma.lab/enable": "true"}}, "spec": spec["spec"]}
    metadata = {"name": name, "namespace": "lab"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": template},
    }


def comparing(
    new: CompiledConfiguration, *values: dict[str, Any], labels: bool = True
) -> Comparison:
    """Compare the decisions under OLD and a new configuration."""
    documents = [
        Document(name="-", index=number, value=manifest, line=1, text="", syntax="json")
        for number, manifest in enumerate(values)
    ]
    marked = {"rdma.lab/enable": "true"} if labels else {}
    space = {"kind": "Namespace", "metadata": {"name": "lab", "labels": marked}}
    options = PreviewOptions(configuration=OLD, facts=Facts.from_objects([space]))
    today, then = (
        preview_documents(documents, replace(options, configuration=configuration))
        for configuration in (OLD, new)
    )
    comparison = compare_reports(today, then)
    VALIDATOR.validate(changes_form(comparison))
    assert compare_reports(replace(today, notes=("b", "a")), then, ("a", "c")).notes == (
        "a",
        "c",
        "b",
    )
    return comparison


def test_the_same_meaning_changes_nothing() -> None:
    """Every status has another hash, which is not a difference."""
    comparison = comparing(replace(OLD, config_hash="ba9876543210"), job("train", pod()))
    assert (comparison.compared, comparison.changes) == (1, ())
    assert changes_text(comparison) == "No change: 1 pod would get the same decision.\n"


def test_a_changed_value_is_shown_with_its_path() -> None:
    """The verdict stays; the pod gets another value."""
    comparison = comparing(
        fabrics(OTHER, H100), job("train", pod()), job("off", pod(gpu(name="x")))
    )
    (first, _) = comparison.changes
    assert first.before == first.after
    values = {value.path: (value.before, value.after) for value in first.differences}
    hca = "spec.containers[trainer].env[NCCL_IB_HCA].value"
    assert values[hca] == ("=mlx5_0,mlx5_1", "=mlx5_7")
    text = changes_text(comparison)
    assert "Job lab/train  spec.template\n  RDMA as before: yes (Equipped)\n" in text
    assert f"  ~ {hca}: =mlx5_0,mlx5_1 → =mlx5_7\n" in text
    assert text.endswith("2 of 2 pods would get a different decision.\n")


def test_a_pod_that_loses_its_fabric() -> None:
    """The text has both verdicts, the reason and the lost values; it counts the loss."""
    comparison = comparing(fabrics(H100), job("train", pod()))
    (change,) = comparison.changes
    assert (change.before.rdma, change.after.rdma) == ("yes", "no")
    assert (change.before.fabric, change.after.fabric) == ("v100-ib", None)
    text = changes_text(comparison, width=200)
    assert (
        "  RDMA yes (Equipped) → no (DeviceNotListed)\n  container trainer requests nvidia.com/v100"
        in text
    )
    assert "  fabric v100-ib → none\n" in text
    assert "  - spec.containers[trainer].resources.limits[rdma/v100]: 1\n" in text
    assert text.endswith("1 of 1 pod would get a different decision; 1 of them would lose RDMA.\n")
    back = compared_back(comparison)
    assert "would lose" not in changes_text(back)


def compared_back(comparison: Comparison) -> Comparison:
    """Turn a comparison around."""
    turned = tuple(
        replace(change, before=change.after, after=change.before) for change in comparison.changes
    )
    return replace(comparison, changes=turned)


def test_a_pod_that_would_be_denied() -> None:
    """The API server would no longer create it."""
    conflicting = pod(annotations={"rdma.lab/fabric": "v100-ib"})
    value = job("train", conflicting)
    value["spec"]["template"]["metadata"]["annotations"]["rdma.lab/fabric"] = "v100-ib"
    comparison = comparing(fabrics(H100), value)
    assert "RDMA yes (Equipped) → denied (InvalidAnnotation)" in changes_text(comparison)


def test_a_pod_that_stays_denied_for_the_same_reason() -> None:
    """Only the message may differ, as it lists the fabrics: that is no other decision."""
    value = job("train", pod(annotations={"rdma.lab/fabric": "x"}))
    value["spec"]["template"]["metadata"]["annotations"]["rdma.lab/fabric"] = "x"
    assert comparing(fabrics(H100), value).changes == ()


def test_pods_that_did_not_opt_in_are_not_compared() -> None:
    """Nor are pods for which the API server does not call the webhook."""
    value = job("train", pod())
    del value["spec"]["template"]["metadata"]
    assert comparing(fabrics(H100), value).compared == 0
    comparison = comparing(fabrics(H100), job("train", pod()), labels=False)
    assert comparison.compared == 0
    assert changes_text(comparison).endswith(
        "There are no pods to compare: none has opted in, or the webhook is not called for those "
        "that have.\n"
    )


def test_a_long_list_is_cut_and_notes_are_shown_once() -> None:
    """A pod has at most twelve differences, and a value at most sixty characters."""
    variables = tuple((f"NCCL_X{number}", "x" * 99) for number in range(20))
    comparison = comparing(
        fabrics(replace(V100, env=FabricEnv(site_variables=variables)), H100), job("train", pod())
    )
    (change,) = comparison.changes
    text = changes_text(replace(comparison, notes=("read", "little")), width=300)
    assert f"    and {len(change.differences) - 12} more\n" in text
    assert f": {'x' * 59}…\n" in text
    assert "· read\n· little\n" in text


def test_an_empty_value_is_visible() -> None:
    """It is written as two quotation marks."""
    comparison = comparing(
        fabrics(fabric("none")), job("train", pod(gpu(env=[{"name": "A", "value": ""}])))
    )
    change = replace(
        comparison.changes[0],
        differences=(comparison.changes[0].differences[0]._replace(before="", after="x"),),
    )
    assert ': "" → x\n' in changes_text(replace(comparison, changes=(change,)))
