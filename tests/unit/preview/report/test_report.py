import pytest

from tests.unit.preview.report.reports import (
    denied,
    judged,
    not_opted_in,
    outcome,
    patched,
    preview,
)
from webhook.preview.report.record import Preview, Report, remarks_of


def test_a_report_is_denied_where_any_pod_would_not_be_created() -> None:
    """No other result does that."""
    assert not Report(previews=(preview(not_opted_in()), preview(patched()))).denied
    assert Report(previews=(preview(patched()), preview(denied()))).denied


@pytest.mark.parametrize(
    ("previews", "equipped"),
    [
        ((), False),
        ((preview(patched()), preview(judged("none", ""))), True),
        ((preview(patched()), preview(not_opted_in())), True),
        ((preview(not_opted_in()),), False),
        ((preview(patched()), preview(not_opted_in(), hint="it is a label")), False),
        ((preview(patched()), preview(patched(), called=False)), False),
        ((preview(patched()), preview(patched(), called=None)), True),
        *((((preview(patched()), preview(judged(rdma, ""))), False)) for rdma in ("no", "unsure")),
    ],
)
def test_a_report_is_equipped_where_all_that_opted_in_are(
    previews: tuple[Preview, ...], equipped: bool
) -> None:
    """A pod that seems to have meant to opt in counts; a pod without a hint does not."""
    assert Report(previews=previews).equipped is equipped


def test_a_path_is_written_with_dots() -> None:
    """The path of a bare pod is empty."""
    assert (
        preview(patched(), template_path=("items", 0, "spec", "template")).path
        == "items[0].spec.template"
    )
    assert preview(patched(), template_path=()).path == ""


def test_asides_contain_what_a_patch_cannot() -> None:
    """Denials, warnings, webhooks that are not called, and notes come in the order of the input."""
    previews = (
        preview(denied("two fabrics")),
        preview(
            patched(outcome("ipc-lock", "trainer", "warned", "not root" * 40)), template_path=()
        ),
        preview(judged("no", "no device"), template_path=()),
        preview(patched(), called=False, called_because="no label"),
        preview(not_opted_in(), called=None),
    )
    assert list(remarks_of(Report(previews=previews, notes=("a note",)))) == [
        ("denied", "Deployment lab/trainer spec.template: two fabrics"),
        ("warning", "Deployment lab/trainer: ipc-lock trainer: " + "not root" * 40),
        ("warning", "Deployment lab/trainer: no RDMA: no device"),
        (
            "warning",
            (
                "Deployment lab/trainer spec.template: the webhook would not be called, since no "
                "label"
            ),
        ),
        ("note", "a note"),
    ]


def test_asides_join_equal_notes() -> None:
    """The first names are listed and the rest counted; so are notes beyond the first few."""
    pods = [
        preview(patched(), template_path=(), name=name, called=False, called_because="no label")
        for name in "abcde"
    ]
    alike = [f"Service {name}: no pod template" for name in "ab"]
    notes = (*alike, "odd", *(f"Job {name}: {name}" for name in "abcdefg"))
    lines = remarks_of(Report(previews=tuple(pods), notes=notes))
    assert lines[:3] == [
        (
            "warning",
            (
                "Deployment lab/a, Deployment lab/b, Deployment lab/c and 2 more: the webhook "
                "would not be called, since no label"
            ),
        ),
        ("note", "Service a, Service b: no pod template"),
        ("note", "odd"),
    ]
    assert lines[-1] == ("note", "1 more note (see the text output)")


def test_asides_contain_hints() -> None:
    """This holds even for outputs for programs."""
    hinted = preview(not_opted_in(), hint="it is a label")
    assert list(remarks_of(Report(previews=(hinted,)))) == [
        ("warning", "Deployment lab/trainer spec.template: it is a label")
    ]
