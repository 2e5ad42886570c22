from typing import Any

import pytest

from tests.unit.preview.report.reports import (
    denied,
    judged,
    not_opted_in,
    outcome,
    patched,
    preview,
)
from webhook.decide.verdict import EQUIPPED
from webhook.model.decision import Decision, Outcome, PatchOp, Rdma, Reason, Verdict
from webhook.preview.report.record import Preview, Report
from webhook.preview.report.text import report_text

OP: PatchOp = {"op": "add", "path": "/x", "value": 1}
ADDED = outcome("ipc-lock", "trainer", "applied", "IPC_LOCK added", OP)

EXPLAINED = "rdma-webhook why CODE explains a code in brackets"


def shown(*previews: Preview, width: int = 100, notes: tuple[str, ...] = ()) -> str:
    """Render these previews without colors."""
    return report_text(Report(previews=previews, notes=notes), width=width)


def test_a_patched_pod_is_a_heading_a_verdict_a_table_and_a_summary() -> None:
    """Fabric and evidence are in the verdict; mutations with nothing to do share one line."""
    decision = patched(
        ADDED,
        outcome("ipc-lock", "trainer", "warned", "the container is not root"),
        outcome("networks", "", "skipped", "no networks", quiet=True),
        outcome("hcoll", "trainer", "already", "OMPI_MCA_coll_hcoll_enable is set"),
        outcome("placement", "", "skipped", "pin: never", quiet=True),
    )
    assert shown(preview(decision)) == (
        "Deployment lab/trainer  spec.template  train.yaml:1\n"
        "  ✔ equipped for RDMA over v100-ib (nvidia.com/v100 in container trainer)\n"
        "    mutation  container  status   why\n"
        "    ipc-lock  trainer    applied  IPC_LOCK added\n"
        "              trainer    warned   the container is not root [Odd]\n"
        "    hcoll     trainer    already  OMPI_MCA_coll_hcoll_enable is set\n"
        "    nothing to do: networks, placement\n"
        "\n"
        "1 pod: 1 equipped for RDMA; 1 warning\n"
        f"{EXPLAINED}\n"
    )


def test_containers_of_which_the_same_is_said_share_a_row() -> None:
    """Ten equal workers have one row."""
    rows = [outcome("env", name, "applied", "NCCL_IB_HCA", OP) for name in ("a", "b")]
    assert "    env       a, b       applied  NCCL_IB_HCA\n" in shown(preview(patched(*rows)))


def test_an_outcome_for_the_whole_pod_says_so() -> None:
    """An outcome without a container is about the whole pod."""
    row = outcome("networks", "", "applied", "net1 appended", OP)
    assert "    networks  (pod)      applied  net1 appended\n" in shown(preview(patched(row)))


def test_a_pod_that_did_not_ask_is_told_how_to() -> None:
    """The path of the annotation is the one in the document."""
    lines = shown(preview(not_opted_in(), called=False, steps=()), width=200).splitlines()
    assert lines[1] == (
        '  ○ not opted in: add rdma.lab/enable: "true" to metadata.annotations; to preview the '
        "pod as if it had opted in, use --enable"
    )
    assert lines[2] == ""  # nothing else is said about it
    assert lines[-1] == "1 pod: 1 not opted in"


def test_a_refused_pod_says_why() -> None:
    """The denial's message is the one that kubectl would show."""
    assert "  ✘ denied: two fabrics [FabricConflict]\n" in shown(preview(denied()))


@pytest.mark.parametrize(
    ("rdma", "line", "counted"),
    [
        ("yes", "✔ equipped for RDMA", "equipped for RDMA"),
        ("no", "✘ no RDMA: so it is [Because]", "without RDMA"),
        ("unsure", "? RDMA not certain: so it is [Because]", "not certain"),
        ("none", "○ launcher: so it is", "only launching"),
    ],
)
def test_the_verdict_leads(rdma: Rdma, line: str, counted: str) -> None:
    """What was done to the pod makes no difference; only an equipped pod gets a tick."""
    for outcomes in ((), (ADDED,)):
        lines = shown(preview(judged(rdma, "so it is", *outcomes, fabric=None))).splitlines()
        assert lines[1] == f"  {line}"
        summary = [one for one in lines if one != EXPLAINED][-1]
        assert summary == f"1 pod: 1 {counted}"
        assert (lines[-1] == EXPLAINED) is ("[" in line)


def test_what_the_verdict_explains_is_not_repeated_in_rows() -> None:
    """Without a fabric, most mutations have the same reason."""
    unknown = Reason("FabricUnknown", "", "")
    held = [Outcome(name, "", "skipped", unknown, "no fabric") for name in ("env", "networks")]
    why: dict[str, Any] = {"reason": unknown, "fabric": None, "message": "no fabric"}
    decision = judged("no", "no fabric", ADDED, *held, **why)
    assert shown(preview(decision)).splitlines()[1:-3] == [
        "  ✘ no RDMA: no fabric [Because]",
        "    mutation  container  status   why",
        "    ipc-lock  trainer    applied  IPC_LOCK added",
        "    held back: env, networks",
    ]
    decision = judged("unsure", "an unknown resource", ADDED, *held, **why)
    assert shown(preview(decision)).splitlines()[1:3] == [
        "  ? RDMA not certain: an unknown resource [Because]",
        "  ! no fabric",
    ]


HELD = Reason("HostNetworkMissing", "The pod is not in the host's network.", "")


def held(*others: Outcome) -> Decision:
    """Decide for a fabric that needs hostNetwork and a pod without it."""
    names = ("env", "networks")
    return judged(
        "no",
        "fabric v100-ib needs hostNetwork",
        Outcome("request", "", "warned", HELD, "fabric v100-ib needs hostNetwork"),
        *(Outcome(name, "", "skipped", HELD, HELD.when) for name in names),
        *others,
    )


def test_what_the_host_network_holds_back_is_told_in_the_verdict() -> None:
    """The warning says the same, so it is neither repeated nor counted."""
    assert shown(preview(held(ADDED)), width=120) == (
        "Deployment lab/trainer  spec.template  train.yaml:1\n"
        "  ✘ no RDMA over v100-ib (nvidia.com/v100 in container trainer): "
        "fabric v100-ib needs hostNetwork [Because]\n"
        "    mutation  container  status   why\n"
        "    ipc-lock  trainer    applied  IPC_LOCK added\n"
        "    held back: env, networks\n"
        "\n"
        "1 pod: 1 without RDMA\n"
        f"{EXPLAINED}\n"
    )


@pytest.mark.parametrize(
    ("decision", "called"),
    [
        (patched(ADDED), "equipped for RDMA"),
        (held(ADDED), "no RDMA: fabric v100-ib needs hostNetwork"),
        (denied(), "denied: two fabrics"),
    ],
)
def test_where_the_webhook_is_not_called_there_is_no_rdma(decision: Decision, called: str) -> None:
    """Such a decision has no effect; a line below says what it would be."""
    seen = shown(preview(decision, called=False, called_because="because"), width=200).splitlines()
    assert seen[1] == "  ✘ no RDMA: the webhook would not be called: because [NotCalled]"
    assert seen[2] == f"  ! if it were called: {called}"
    assert seen[-2].startswith("1 pod: 1 not called")


def test_what_is_not_known_of_namespaces_is_said_once_with_the_way_out() -> None:
    """Without facts it holds for every pod; a pod that did not opt in does not mention it."""
    pods = [preview(patched(ADDED), called=None, namespace=name) for name in ("a", "b", "a")]
    way = "use --live, --namespace-label rdma.lab/enable=true or --facts FILE"
    label = 'the label rdma.lab/enable: "true", which is unknown here'
    assert shown(*pods, width=200).splitlines()[-2] == (
        f"note: the webhook is called only if namespaces a, b have {label}: {way}"
    )
    assert shown(pods[0], width=200).splitlines()[-2] == (
        f"note: the webhook is called only if namespace a has {label}: {way}"
    )
    assert "note:" not in shown(preview(not_opted_in(), called=None))


def test_what_is_not_known_of_a_registration_is_said_once() -> None:
    """If the labels are known, something else is not, and the sentence says what."""
    how = {"called": None, "labels_known": True, "called_because": "x is not evaluated here"}
    pods = [preview(patched(ADDED), **how) for _ in range(2)]
    assert shown(*pods, width=200).splitlines()[-2] == (
        "? whether the webhook would be called is unknown: x is not evaluated here"
    )


def test_a_hint_stands_under_the_verdict() -> None:
    """It says what looks like opting in."""
    lines = shown(preview(not_opted_in(), hint="it is a label"), width=200).splitlines()
    assert lines[2] == "  ! it is a label"


POD_SECURITY = Reason("PodSecurity", "The namespace refuses it.", "")


def test_a_warning_that_says_the_same_as_its_skipped_row_marks_it() -> None:
    """One row says why, and the summary counts the warning."""
    decision = patched(
        Outcome("ipc-lock", "a", "skipped", POD_SECURITY, "the namespace refuses it: label it"),
        Outcome("ipc-lock", "a", "warned", POD_SECURITY, "no IPC_LOCK: the namespace refuses it"),
        Outcome("nvlink", "", "skipped", POD_SECURITY, "not here; no privileges"),
        Outcome("nvlink", "", "warned", HELD, "no privileges"),
    )
    assert shown(preview(decision)).splitlines()[2:] == [
        "    mutation  container  status     why",
        "    ipc-lock  a          skipped !  the namespace refuses it: label it [PodSecurity]",
        "    nvlink    (pod)      skipped !  not here; no privileges [PodSecurity]",
        "",
        "1 pod: 1 equipped for RDMA; 2 warnings",
        EXPLAINED,
    ]


def test_a_warning_that_says_more_than_its_skipped_row_has_its_own() -> None:
    """The user gets to see both."""
    decision = patched(
        Outcome("env", "a", "skipped", POD_SECURITY, "envFrom may set them"),
        Outcome("env", "a", "warned", POD_SECURITY, "put UCX_NET_DEVICES into env by hand"),
    )
    assert shown(preview(decision)).splitlines()[3:5] == [
        "    env       a          skipped  envFrom may set them [PodSecurity]",
        "              a          warned   put UCX_NET_DEVICES into env by hand [PodSecurity]",
    ]


def test_where_the_webhook_is_called_nothing_is_said_of_it() -> None:
    """The usual case needs no line."""
    assert "because" not in shown(preview(patched(ADDED), called_because="because"))


def test_notes_and_an_input_without_pods_are_told() -> None:
    """Objects without pods are never skipped silently, and share one line."""
    notes = ("Service a: no pod template", "TrainJob b: from a runtime", "Role c: no pod template")
    assert shown(notes=notes) == (
        "note: TrainJob b: from a runtime\nnote: no pod template in Service a, Role c\nthe input "
        "has neither pods nor pod templates\n"
    )


def test_notes_that_say_the_same_share_a_line() -> None:
    """If there are many names, only the first are listed; `-o json` has all."""
    many = tuple(f"Service s{number}: no pod template" for number in range(14))
    notes = ("TrainJob a: from a runtime", "TrainJob b: from a runtime", *many)
    first, second, _ = shown(notes=notes, width=300).splitlines()
    assert first == "note: TrainJob a, TrainJob b: from a runtime"
    assert second.endswith(", Service s11 and 2 more")


def test_an_object_without_a_name_is_shown_by_its_namespace() -> None:
    """A template may have only a generated name."""
    assert shown(preview(patched(ADDED), name="")).startswith("Deployment in lab  spec.template")


def test_the_summary_counts_each_fate() -> None:
    """Kinds of results are sorted by name, so that two runs can be compared."""
    fates = [patched(ADDED), denied(), not_opted_in(), patched(ADDED)]
    summary = shown(*map(preview, fates)).splitlines()[-2]
    assert summary == "4 pods: 1 denied, 2 equipped for RDMA, 1 not opted in"


def test_escape_sequences_and_markup_of_a_document_reach_no_terminal() -> None:
    """Neither the terminal nor rich's markup interprets a name."""
    seen = shown(preview(denied("[red]a\x1b]0;b\u202ec\n[/red]"), name="\x1b[2J"))
    assert "lab/\\x1b[2J  " in seen
    assert "denied: [red]a\\x1b]0;b\\u202ec\\n[/red] [FabricConflict]\n" in seen


@pytest.mark.parametrize("width", [1, 40, 80, 140])
def test_no_line_is_wider_than_asked(width: int) -> None:
    """Long words are folded; widths below 40 columns count as 40, since they are unreadable."""
    decision = patched(outcome("rdma-resources", "c" * 63, "applied", "m" * 300, OP))
    lines = shown(preview(decision, name="n" * 253), width=width).splitlines()
    assert max(map(len, lines)) <= max(width, 40)


def test_colours_come_only_where_asked() -> None:
    """By default there are no colors, since the output may go to a pipe."""
    report = Report(previews=(preview(patched(ADDED)),))
    assert "\x1b" not in report_text(report)
    assert "\x1b[32mapplied" in report_text(report, colour=True)


def test_a_warning_of_another_reason_keeps_its_row() -> None:
    """This holds even for similar words, so that every code can be found."""
    same, other = Reason("NonRoot", "", ""), Reason("UserNamespace", "", "")
    left = Outcome("ipc-lock", "trainer", "skipped", same, "does nothing: not root")
    for reason, rows in ((same, 1), (other, 2)):
        warned = Outcome("ipc-lock", "trainer", "warned", reason, "nothing does: not root")
        lines = shown(preview(patched(left, warned))).splitlines()
        assert sum("not root" in line for line in lines) == rows


def test_what_an_equipped_pod_assumes_is_in_its_line() -> None:
    """It is part of the verdict, also where the webhook is not called."""
    assumed = ", assuming that the image runs as root"
    verdict = Verdict.of(EQUIPPED, f"{EQUIPPED.sentence}{assumed}")
    decision = patched(ADDED, verdict=verdict)
    lines = shown(preview(decision), width=200).splitlines()
    assert lines[1].endswith(f"in container trainer){assumed}")
    called = shown(preview(decision, called=False), width=200).splitlines()
    assert called[2] == f"  ! if it were called: equipped for RDMA{assumed}"


def test_what_is_done_in_case_has_no_row() -> None:
    """It is named below the table, since it rarely matters."""
    quiet = outcome("hcoll", "a", "applied", "set X=0", OP, quiet=True)
    lines = shown(preview(patched(ADDED, quiet))).splitlines()
    assert lines[4] == "    also set X=0"


def test_who_creates_the_pod_is_never_broken_over_lines() -> None:
    """It moves below the heading where there is no room."""
    made = preview(patched(ADDED), controller="JobSet", role="worker")
    heading = "Deployment lab/trainer  spec.template  train.yaml:1"
    creator = "(worker, as JobSet creates it)"
    assert shown(made, width=100).splitlines()[0] == f"{heading}  {creator}"
    assert shown(made, width=82).splitlines()[:2] == [heading, f"  {creator}"]
    assert shown(made, width=83).splitlines()[0] == f"{heading}  {creator}"
