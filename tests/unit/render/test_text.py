import pytest

from tests.unit.render.reports import denied, not_opted_in, outcome, patched, preview
from webhook.core.decision import Outcome, PatchOp, Reason
from webhook.render.report import Preview, Report
from webhook.render.text import text

OP: PatchOp = {"op": "add", "path": "/x", "value": 1}
ADDED = outcome("ipc-lock", "trainer", "applied", "IPC_LOCK added", OP)


def shown(*previews: Preview, width: int = 100, notes: tuple[str, ...] = ()) -> str:
    """Render these previews without colours."""
    return text(Report(previews=previews, notes=notes), width=width)


def test_a_patched_pod_is_a_heading_a_verdict_a_table_and_a_summary() -> None:
    """Fabric and evidence stand in the verdict; what had nothing to do is one line."""
    decision = patched(
        ADDED,
        outcome("ipc-lock", "trainer", "warned", "the container is not root"),
        outcome("networks", "", "skipped", "no networks", quiet=True),
        outcome("hcoll", "trainer", "already", "OMPI_MCA_coll_hcoll_enable is set"),
        outcome("placement", "", "skipped", "pin: never", quiet=True),
    )
    assert shown(preview(decision)) == (
        "Deployment lab/trainer  spec.template  train.yaml:1\n"
        "  ✔ patched for fabric v100-ib (nvidia.com/v100 in container trainer)\n"
        "    mutation  container  status   why\n"
        "    ipc-lock  trainer    applied  IPC_LOCK added\n"
        "              trainer    warned   the container is not root\n"
        "    hcoll     trainer    already  OMPI_MCA_coll_hcoll_enable is set\n"
        "    nothing to do: networks, placement\n"
        "\n"
        "1 pod: 1 patched; 1 warning\n"
    )


def test_containers_of_which_the_same_is_said_share_a_row() -> None:
    """Ten equal workers are one row."""
    rows = [outcome("env", name, "applied", "NCCL_IB_HCA", OP) for name in ("a", "b")]
    assert "    env       a, b       applied  NCCL_IB_HCA\n" in shown(preview(patched(*rows)))


def test_an_outcome_for_the_whole_pod_says_so() -> None:
    """The container "" is the pod."""
    row = outcome("networks", "", "applied", "net1 appended", OP)
    assert "    networks  (pod)      applied  net1 appended\n" in shown(preview(patched(row)))


def test_a_pod_that_did_not_ask_is_told_how_to() -> None:
    """The annotation's place is named as it is in the document."""
    lines = shown(preview(not_opted_in(), called=False, steps=()), width=200).splitlines()
    assert lines[1] == (
        '  ○ not opted in: add rdma.lab/enable: "true" to metadata.annotations,'
        " or ask what if with --enable"
    )
    assert lines[-1] == "1 pod: 1 not opted in"


def test_a_refused_pod_says_why() -> None:
    """The denial's message is what the user would get from kubectl."""
    assert "  ✘ denied: two fabrics\n" in shown(preview(denied()))


def test_an_allowed_pod_without_a_change_is_unchanged() -> None:
    """A status annotation alone is no change that anyone would notice."""
    unchanged = patched(outcome("env", "a", "skipped", "no fabric"), fabric=None, message="none")
    assert "  ○ unchanged: none\n" in shown(preview(unchanged))


def test_what_the_verdict_explains_is_not_repeated_in_rows() -> None:
    """Without a fabric, most mutations say the same."""
    unknown = Reason("FabricUnknown", "")
    held = [Outcome(name, "", "skipped", unknown, "no fabric") for name in ("env", "networks")]
    decision = patched(ADDED, *held, reason=unknown, fabric=None, message="no fabric")
    assert shown(preview(decision)).splitlines()[1:-2] == [
        "  ✔ patched in part: no fabric",
        "    mutation  container  status   why",
        "    ipc-lock  trainer    applied  IPC_LOCK added",
        "    held back: env, networks",
    ]


def test_a_defect_of_ours_is_no_denial() -> None:
    """An internal error is told apart in the verdict and in the summary."""
    broken = patched(allowed=False, error=ValueError(), fabric=None, message="internal error")
    assert "  ✘ failed: internal error\n" in shown(preview(broken))


def test_where_the_webhook_is_not_called_a_line_says_so() -> None:
    """A decision is worth nothing where nobody asks for it."""
    seen = shown(preview(patched(ADDED), called=False, called_because="because"))
    assert "  ! the webhook is not called: because\n" in seen


def test_what_is_not_known_of_a_namespace_is_said_once() -> None:
    """Without facts it holds for every pod."""
    pods = [preview(patched(ADDED), called=None, called_because="who knows")] * 2
    assert shown(*pods).count("? who knows\n") == 1
    assert "?" not in shown(preview(not_opted_in(), called=None, called_because="who knows"))


def test_where_the_webhook_is_called_nothing_is_said_of_it() -> None:
    """The ordinary case needs no line."""
    assert "because" not in shown(preview(patched(ADDED), called_because="because"))


def test_notes_and_an_input_without_pods_are_told() -> None:
    """What holds no pods is never passed over in silence, and is named in one line."""
    notes = ("Service a: no pod template", "TrainJob b: from a runtime", "Role c: no pod template")
    assert shown(notes=notes) == (
        "note: TrainJob b: from a runtime\n"
        "note: no pod template in Service a, Role c\n"
        "no pod and no pod template in the input\n"
    )


def test_an_object_without_a_name_is_shown_by_its_namespace() -> None:
    """A template may have a generated name only."""
    assert shown(preview(patched(ADDED), name="")).startswith("Deployment in lab  spec.template")


def test_the_summary_counts_each_fate() -> None:
    """Alphabetical, so that two runs compare."""
    fates = [patched(ADDED), denied(), not_opted_in(), patched(ADDED)]
    summary = shown(*map(preview, fates)).splitlines()[-1]
    assert summary == "4 pods: 1 denied, 1 not opted in, 2 patched"


def test_escape_sequences_and_markup_of_a_document_reach_no_terminal() -> None:
    """A name is data: neither the terminal nor rich's markup may obey it."""
    seen = shown(preview(denied("[red]a\x1b]0;b\u202ec\n[/red]"), name="\x1b[2J"))
    assert "lab/\\x1b[2J  " in seen
    assert "denied: [red]a\\x1b]0;b\\u202ec\\n[/red]\n" in seen


@pytest.mark.parametrize("width", [1, 40, 80, 140])
def test_no_line_is_wider_than_asked(width: int) -> None:
    """Long words are folded; below 40 columns nothing can be read, so 40 it is."""
    decision = patched(outcome("rdma-resources", "c" * 63, "applied", "m" * 300, OP))
    lines = shown(preview(decision, name="n" * 253), width=width).splitlines()
    assert max(map(len, lines)) <= max(width, 40)


def test_colours_come_only_where_asked() -> None:
    """A pipe gets plain text."""
    report = Report(previews=(preview(patched(ADDED)),))
    assert "\x1b" not in text(report)
    assert "\x1b[32mapplied" in text(report, colour=True)
