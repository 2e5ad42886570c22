from __future__ import annotations

from typing import Any

import pytest

from tests.builders import decide_on, env, gpu, outcomes_of, pod
from tests.case_names import case_name
from webhook.decide.analysis import NO_CALL, EarlierCall
from webhook.decide.status import configuration_named_in, earlier_call, is_complete
from webhook.model.annotations import NCCL_CONF_ANNOTATION, STATUS_ANNOTATION
from webhook.model.decision import REQUEST_CHECK

FULL = (
    '{"rdma":"yes","because":"Equipped","fabric":"north","applied":["env"],"config":"0123456789ab"}'
)
#: The other fields that each status has.
FIELDS = {"rdma": '"yes"', "because": '"Equipped"', "fabric": '"north"'}


def test_an_earlier_call_is_read() -> None:
    """The hash of its configuration, and the fabric if it chose one."""
    assert earlier_call({STATUS_ANNOTATION: FULL}) == EarlierCall("0123456789ab", "north")
    assert is_complete({STATUS_ANNOTATION: FULL})
    counts = FULL.replace('["env"]', "3")
    assert earlier_call({STATUS_ANNOTATION: counts}).fabric == "north"
    idle = FULL.replace('["env"]', "[]")
    assert earlier_call({STATUS_ANNOTATION: idle}) == EarlierCall("0123456789ab")
    none = FULL.replace('"north"', "null")
    assert earlier_call({STATUS_ANNOTATION: none}) == EarlierCall("0123456789ab")
    assert configuration_named_in(pod(annotations={STATUS_ANNOTATION: FULL})) == "0123456789ab"


@pytest.mark.parametrize(
    "written",
    [
        None,
        7,
        "",
        "{",
        "[]",
        FULL.replace(",", ", "),
        FULL.replace("0123456789ab", "0123456789AB"),
        FULL.replace("0123456789ab", "0123456789abc"),
        FULL.replace('"0123456789ab"', "12"),
        '{"config":"0123456789ab","rdma":"yes"}',
        FULL.replace('["env"]', '["env"],"more":1'),
        FULL.replace('"applied":["env"],', ""),
        FULL.replace('["env"]', '"env"'),
        FULL.replace('"north"', "7"),
        FULL.replace('"yes"', "true"),
        FULL.replace('"Equipped"', "null"),
        *(FULL.replace(f'"{key}":{value},', "") for key, value in FIELDS.items()),
    ],
    ids=case_name,
)
def test_what_is_not_our_form_is_ignored(written: Any) -> None:
    """A user's own text is not an earlier call."""
    assert earlier_call({STATUS_ANNOTATION: written}) == NO_CALL
    assert not is_complete({STATUS_ANNOTATION: written})
    assert earlier_call({}) == NO_CALL
    assert configuration_named_in(pod(annotations={STATUS_ANNOTATION: written})) == ""


@pytest.mark.parametrize("manifest", [None, 7, [], {}, {"metadata": 1}, {"metadata": {}}], ids=str)
def test_anything_may_claim_to_be_a_pod(manifest: Any) -> None:
    """The configuration is chosen before the pod is checked."""
    assert configuration_named_in(manifest) == ""


OTHER = FULL.replace("0123456789ab", "ba9876543210")


def pod_of_earlier_call(**fields: Any) -> dict[str, Any]:
    """Make a pod whose status names another configuration."""
    annotations = {STATUS_ANNOTATION: OTHER, **fields.pop("annotations", {})}
    return pod(gpu(**fields), annotations=annotations)


def test_a_status_of_another_configuration_is_warned_of() -> None:
    """Existing values stay, since they may be the user's; missing ones are added."""
    decision = decide_on(pod_of_earlier_call(env=env(NCCL_IB_HCA="=mlx5_9")))
    assert [outcome[1:3] for outcome in outcomes_of(decision, REQUEST_CHECK)] == [
        ("warned", "OtherConfiguration")
    ]
    assert [outcome[1:3] for outcome in outcomes_of(decision, "ipc-lock")] == [("applied", "Added")]
    assert {"name": "NCCL_IB_HCA", "value": "=mlx5_9"} in decision.pod["spec"]["containers"][0][
        "env"
    ]
    status = decision.pod["metadata"]["annotations"][STATUS_ANNOTATION]
    assert '"OtherConfiguration"' in status
    assert '"config":"0123456789ab"' in status


def test_the_configuration_in_use_causes_no_warning() -> None:
    """Nor does a status that we did not write."""
    for written in (FULL, "mine"):
        assert (
            outcomes_of(decide_on(pod(annotations={STATUS_ANNOTATION: written})), REQUEST_CHECK)
            == []
        )


def test_the_next_call_warns_of_it_too() -> None:
    """It reads the hash of the configuration in use, and changes nothing."""
    first = decide_on(pod_of_earlier_call())
    second = decide_on(first.pod)
    assert second.patch == ()
    assert "OtherConfiguration" in second.pod["metadata"]["annotations"][STATUS_ANNOTATION]


def test_nccl_conf_of_another_configuration_is_kept() -> None:
    """A user's own different text is denied; the text of an earlier call never is."""
    annotations = {NCCL_CONF_ANNOTATION: "NCCL_IB_HCA==mlx5_7\n"}
    started: Any = {"command": ["/usr/sbin/sshd", "-D"]}
    decision = decide_on(pod_of_earlier_call(annotations=annotations, **started))
    assert decision.allowed
    assert (
        decision.pod["metadata"]["annotations"][NCCL_CONF_ANNOTATION]
        == annotations[NCCL_CONF_ANNOTATION]
    )
    assert ("skipped", "AnnotationKept") in [
        outcome[1:3] for outcome in outcomes_of(decision, "config-files")
    ]
    assert decide_on(decision.pod).patch == ()
    assert not decide_on(pod(gpu(**started), annotations=annotations)).allowed
