from tests.unit.render.reports import denied, not_opted_in, patched, preview
from webhook.render.report import Report, asides


def test_a_report_is_denied_where_one_pod_would_not_be_created() -> None:
    """A denial does that, and so does an internal error under failurePolicy Fail."""
    broken = patched(allowed=False, error=ValueError())
    assert not Report(previews=(preview(not_opted_in()), preview(patched()))).denied
    assert Report(previews=(preview(patched()), preview(denied()))).denied
    assert Report(previews=(preview(broken),)).denied


def test_a_path_is_written_as_people_write_it() -> None:
    """A pod itself has the path ""."""
    assert (
        preview(patched(), steps=("items", 0, "spec", "template")).path == "items[0].spec.template"
    )
    assert preview(patched(), steps=()).path == ""


def test_asides_tell_what_a_patch_cannot() -> None:
    """Denials, warnings, a webhook that is not called, and notes, in the order of the input."""
    previews = (
        preview(denied("two fabrics")),
        preview(patched(warnings=("rdma.lab: ipc-lock trainer: not root",)), steps=()),
        preview(patched(), called=False, called_because="no label"),
        preview(not_opted_in(), called=None),
    )
    assert list(asides(Report(previews=previews, notes=("a note",)))) == [
        ("denied", "Deployment lab/trainer spec.template: two fabrics"),
        ("warning", "Deployment lab/trainer: ipc-lock trainer: not root"),
        ("warning", "Deployment lab/trainer spec.template: the webhook is not called: no label"),
        ("note", "a note"),
    ]
