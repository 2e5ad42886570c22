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
from webhook.decide.examine.targets import NODE_DEVICES
from webhook.decide.verdict import EQUIPPED
from webhook.model.decision import REQUEST_CHECK, Decision, Outcome, PatchOp, Rdma, Reason, Verdict
from webhook.preview.report.record import Preview, Report
from webhook.preview.report.text import report_text

OP: PatchOp = {"op": "add", "path": "/x", "value": 1}
ADDED = outcome("ipc-lock", "trainer", "applied", "IPC_LOCK added", OP)

EXPLAINED = "rdma-webhook why CODE explains a code in brackets"


def render(*previews: Preview, width: int = 100, notes: tuple[str, ...] = ()) -> str:
    """Render these previews without colors."""
    return report_text(Report(previews=previews, notes=notes), width=width)


def test_a_patched_pod_is_a_heading_a_verdict_a_table_and_a_summary() -> None:
    """Fabric and evidence are in the verdict; mutations with nothing to do share one line."""
    decision = patched(
        ADDED,
        outcome("ipc-lock", "trainer", "warned", "the container is not root"),
        outcome("networks", "", "skipped", "no networks", reportable=False),
        outcome("hcoll", "trainer", "already", "OMPI_MCA_coll_hcoll_enable is set"),
        outcome("placement", "", "skipped", "pin: never", reportable=False),
    )
    assert render(preview(decision)) == (
        "Deployment lab/trainer  spec.template  train.yaml:1\n"
        "  ✔ equipped for RDMA over v100-ib (nvidia.com/v100 in container trainer)\n"
        "    mutation  container  status     why\n"
        "    ipc-lock  trainer    applied    IPC_LOCK added\n"
        "              trainer    warned     the container is not root [Odd]\n"
        "    hcoll     trainer    unchanged  OMPI_MCA_coll_hcoll_enable is set\n"
        "    nothing to do: networks, placement\n"
        "\n"
        "1 pod: 1 equipped for RDMA; 1 warning\n"
        f"{EXPLAINED}\n"
    )


def test_containers_with_equal_outcomes_share_a_row() -> None:
    """Ten equal workers have one row."""
    rows = [outcome("env", name, "applied", "NCCL_IB_HCA", OP) for name in ("a", "b")]
    assert "    env       a, b       applied  NCCL_IB_HCA\n" in render(preview(patched(*rows)))


def test_an_outcome_for_the_whole_pod() -> None:
    """An outcome without a container is about the whole pod."""
    row = outcome("networks", "", "applied", "net1 appended", OP)
    assert "    networks  (pod)      applied  net1 appended\n" in render(preview(patched(row)))


def test_a_pod_that_did_not_opt_in_gets_the_instruction() -> None:
    """It names where the annotation belongs."""
    lines = render(preview(not_opted_in(), called=False), width=200).splitlines()
    assert lines[1] == (
        '  ○ not opted in: add rdma.lab/enable: "true" to spec.template.metadata.annotations; to '
        "preview the pod as if it had opted in, use --enable"
    )
    assert lines[2] == ""  # nothing else follows
    assert lines[-1] == "1 pod: 1 not opted in"


def test_a_denied_pod_has_the_reason() -> None:
    """The denial's message is what kubectl would show."""
    assert "  ✘ denied: two fabrics [FabricConflict]\n" in render(preview(denied()))


@pytest.mark.parametrize(
    ("rdma", "line", "counted"),
    [
        ("yes", "✔ equipped for RDMA: so it is", "equipped for RDMA"),
        ("no", "✘ no RDMA: so it is [Because]", "without RDMA"),
        ("unsure", "? RDMA not certain: so it is [Because]", "not certain"),
        ("none", "○ launcher: so it is", "launcher"),
    ],
)
def test_the_verdict_leads(rdma: Rdma, line: str, counted: str) -> None:
    """The mutations make no difference; only an equipped pod gets a tick."""
    for outcomes in ((), (ADDED,)):
        lines = render(preview(judged(rdma, "so it is", *outcomes, fabric=None))).splitlines()
        assert lines[1] == f"  {line}"
        summary = [line for line in lines if line != EXPLAINED][-1]
        assert summary == f"1 pod: 1 {counted}"
        assert (lines[-1] == EXPLAINED) is ("[" in line)


def test_what_the_verdict_explains_is_not_repeated_in_rows() -> None:
    """Without a fabric, most mutations have the same reason."""
    unknown = Reason("FabricUnknown", "", "")
    skipped = [Outcome(name, "", "skipped", unknown, "no fabric") for name in ("env", "networks")]
    fields: dict[str, Any] = {"reason": unknown, "fabric": None, "message": "no fabric"}
    decision = judged("no", "no fabric", ADDED, *skipped, **fields)
    assert render(preview(decision)).splitlines()[1:-3] == [
        "  ✘ no RDMA: no fabric [Because]",
        "    mutation  container  status   why",
        "    ipc-lock  trainer    applied  IPC_LOCK added",
        "    skipped because of the verdict: env, networks",
    ]
    decision = judged("unsure", "an unknown resource", ADDED, *skipped, **fields)
    assert render(preview(decision)).splitlines()[1:3] == [
        "  ? RDMA not certain: an unknown resource [Because]",
        "  ! no fabric",
    ]


NO_HOST_NETWORK = Reason("HostNetworkMissing", "The pod is not in the host's network.", "")


def without_host_network(*outcomes: Outcome) -> Decision:
    """Decide for a fabric that needs hostNetwork and a pod without it."""
    names = ("env", "networks")
    return judged(
        "no",
        "fabric v100-ib needs hostNetwork",
        Outcome(REQUEST_CHECK, "", "warned", NO_HOST_NETWORK, "fabric v100-ib needs hostNetwork"),
        *(Outcome(name, "", "skipped", NO_HOST_NETWORK, NO_HOST_NETWORK.clause) for name in names),
        *outcomes,
    )


def test_the_verdict_explains_what_the_host_network_holds_back() -> None:
    """The warning has the same text, so it is neither repeated nor counted."""
    assert render(preview(without_host_network(ADDED)), width=120) == (
        "Deployment lab/trainer  spec.template  train.yaml:1\n"
        "  ✘ no RDMA over v100-ib (nvidia.com/v100 in container trainer): "
        "fabric v100-ib needs hostNetwork [Because]\n"
        "    mutation  container  status   why\n"
        "    ipc-lock  trainer    applied  IPC_LOCK added\n"
        "    skipped because of the verdict: env, networks\n"
        "\n"
        "1 pod: 1 without RDMA\n"
        f"{EXPLAINED}\n"
    )


@pytest.mark.parametrize(
    ("decision", "called"),
    [
        (patched(ADDED), "the pod would be equipped for RDMA"),
        (
            without_host_network(ADDED),
            "the pod would have no RDMA: fabric v100-ib needs hostNetwork",
        ),
        (denied(), "the pod would be denied: two fabrics"),
    ],
)
def test_where_the_webhook_is_not_called_there_is_no_rdma(decision: Decision, called: str) -> None:
    """Such a decision has no effect; the line below has what it would be."""
    lines = render(
        preview(decision, called=False, called_because="because"), width=200
    ).splitlines()
    assert lines[1] == "  ✘ no RDMA: the webhook would not be called, since because [NotCalled]"
    assert lines[2] == f"  ! if the webhook were called, {called}"
    assert "\n".join(lines).count(called.rpartition(": ")[2]) == 1
    assert lines[-2].startswith("1 pod: 1 not called")


def test_unknown_labels_of_namespaces_are_noted_once_with_the_remedy() -> None:
    """Without facts it holds for every pod; a pod that did not opt in does not mention it."""
    pods = [preview(patched(ADDED), called=None, namespace=name) for name in ("a", "b", "a")]
    assert render(*pods, width=120).splitlines()[-2] == (
        "note: namespaces a, b are assumed to have the label rdma.lab/enable=true; --live checks "
        "this"
    )
    assert render(pods[0], width=120).splitlines()[-2] == (
        "note: namespace a is assumed to have the label rdma.lab/enable=true; --live checks this"
    )
    assert "note:" not in render(preview(not_opted_in(), called=None))


def test_an_unknown_call_is_noted_once() -> None:
    """If the labels are known, the sentence names what else is unknown."""
    how = {"called": None, "labels_known": True, "called_because": "x is not evaluated here"}
    pods = [preview(patched(ADDED), **how) for _ in range(2)]
    assert render(*pods, width=200).splitlines()[-2] == (
        "? it is unknown whether the webhook would be called: x is not evaluated here"
    )


def test_a_hint_follows_the_verdict() -> None:
    """It names what looks like opting in."""
    lines = render(preview(not_opted_in(), hint="it is a label"), width=200).splitlines()
    assert lines[2] == "  ! it is a label"


POD_SECURITY = Reason("PodSecurity", "The namespace refuses it.", "")


def test_a_warning_that_repeats_its_skipped_row_marks_it() -> None:
    """One row has the reason, and the summary counts the warning."""
    decision = patched(
        Outcome("ipc-lock", "a", "skipped", POD_SECURITY, "the namespace refuses it: label it"),
        Outcome("ipc-lock", "a", "warned", POD_SECURITY, "no IPC_LOCK: the namespace refuses it"),
        Outcome("nvlink", "", "skipped", POD_SECURITY, "not here; no privileges"),
        Outcome("nvlink", "", "warned", NO_HOST_NETWORK, "no privileges"),
    )
    assert render(preview(decision)).splitlines()[2:] == [
        "    mutation  container  status     why",
        "    ipc-lock  a          skipped !  the namespace refuses it: label it [PodSecurity]",
        "    nvlink    (pod)      skipped !  not here; no privileges [PodSecurity]",
        "",
        "1 pod: 1 equipped for RDMA; 2 warnings",
        EXPLAINED,
    ]


def test_a_warning_that_adds_to_its_skipped_row_has_its_own() -> None:
    """Both are shown."""
    decision = patched(
        Outcome("env", "a", "skipped", POD_SECURITY, "envFrom may set them"),
        Outcome("env", "a", "warned", POD_SECURITY, "put UCX_NET_DEVICES into env by hand"),
    )
    assert render(preview(decision)).splitlines()[3:5] == [
        "    env       a          skipped  envFrom may set them [PodSecurity]",
        "              a          warned   put UCX_NET_DEVICES into env by hand [PodSecurity]",
    ]


def test_where_the_webhook_is_called_there_is_no_line_for_it() -> None:
    """The usual case needs no line."""
    assert "because" not in render(preview(patched(ADDED), called_because="because"))


def test_notes_and_an_input_without_pods() -> None:
    """Objects without pods are never skipped silently, and share one line."""
    notes = ("Service a: no pod template", "TrainJob b: from a runtime", "Role c: no pod template")
    assert render(notes=notes) == (
        "note: TrainJob b: from a runtime\nnote: no pod template in Service a, Role c\nthe input "
        "has neither pods nor pod templates\n"
    )


def test_equal_notes_share_a_line() -> None:
    """If there are many names, only the first are listed; `-o json` has all."""
    services = tuple(f"Service s{number}: no pod template" for number in range(14))
    notes = ("TrainJob a: from a runtime", "TrainJob b: from a runtime", *services)
    first, second, _ = render(notes=notes, width=300).splitlines()
    assert first == "note: TrainJob a, TrainJob b: from a runtime"
    assert second.endswith(", Service s11 and 2 more")


def test_an_object_without_a_name_is_shown_by_its_namespace() -> None:
    """A template may have only a generated name."""
    assert render(preview(patched(ADDED), name="")).startswith("Deployment in lab  spec.template")


def test_the_summary_counts_each_fate() -> None:
    """Kinds of results are sorted by name, so that two runs can be compared."""
    fates = [patched(ADDED), denied(), not_opted_in(), patched(ADDED)]
    summary = render(*map(preview, fates)).splitlines()[-2]
    assert summary == "4 pods: 1 denied, 2 equipped for RDMA, 1 not opted in"


def test_escape_sequences_and_markup_of_a_document_reach_no_terminal() -> None:
    """Neither the terminal nor rich's markup interprets a name."""
    text = render(preview(denied("[red]a\x1b]0;b\u202ec\n[/red]"), name="\x1b[2J"))
    assert "lab/\\x1b[2J  " in text
    assert "denied: [red]a\\x1b]0;b\\u202ec\\n[/red] [FabricConflict]\n" in text


@pytest.mark.parametrize("width", [1, 40, 80, 140])
def test_no_line_is_wider_than_the_width(width: int) -> None:
    """Long words are folded; widths below 40 columns count as 40, since they are unreadable."""
    decision = patched(outcome("rdma-resources", "c" * 63, "applied", "m" * 300, OP))
    lines = render(preview(decision, name="n" * 253), width=width).splitlines()
    assert max(map(len, lines)) <= max(width, 40)


def test_colors_need_an_option() -> None:
    """By default there are no colors, since the output may go to a pipe."""
    report = Report(previews=(preview(patched(ADDED)),))
    assert "\x1b" not in report_text(report)
    assert "\x1b[32mapplied" in report_text(report, color=True)


def test_a_warning_of_another_reason_keeps_its_row() -> None:
    """This holds even for similar words, so that every code can be found."""
    non_root, other = Reason("NonRoot", "", ""), Reason("UserNamespace", "", "")
    skipped = Outcome("ipc-lock", "trainer", "skipped", non_root, "does nothing: not root")
    for reason, rows in ((non_root, 1), (other, 2)):
        warned = Outcome("ipc-lock", "trainer", "warned", reason, "nothing does: not root")
        lines = render(preview(patched(skipped, warned))).splitlines()
        assert sum("not root" in line for line in lines) == rows


def test_an_assumption_is_in_the_line_of_the_verdict() -> None:
    """It is part of the verdict, also where the webhook is not called."""
    assumed = ", assuming that the image runs as root"
    verdict = Verdict.of(EQUIPPED, f"{EQUIPPED.sentence}{assumed}")
    decision = patched(ADDED, verdict=verdict)
    lines = render(preview(decision), width=200).splitlines()
    assert lines[1].endswith(f"in container trainer){assumed}")
    called = render(preview(decision, called=False), width=200).splitlines()
    assert (
        called[2] == f"  ! if the webhook were called, the pod would be equipped for RDMA{assumed}"
    )


def test_a_pod_with_rdma_of_its_own_has_the_reason_in_the_line_of_the_verdict() -> None:
    """Nothing was added to it, so the reader learns why it is equipped nevertheless."""
    verdict = Verdict.of(NODE_DEVICES, "container tool has RDMA as it stands")
    decision = patched(verdict=verdict, fabric=None, reason=NODE_DEVICES, message=verdict.message)
    assert render(preview(decision)).splitlines()[1:3] == [
        "  ✔ equipped for RDMA: container tool has RDMA as it stands",
        "",
    ]
    called = render(preview(decision, called=False), width=200).splitlines()
    conditional = "the pod would be equipped for RDMA: container tool has RDMA as it stands"
    assert called[2] == f"  ! if the webhook were called, {conditional}"


def test_an_unreportable_mutation_has_no_row() -> None:
    """It is named once below the table, since it rarely matters."""
    unreportable = [
        outcome("hcoll", container, "applied", "set X=0", OP, reportable=False)
        for container in "ab"
    ]
    lines = render(preview(patched(ADDED, *unreportable))).splitlines()
    assert lines[4:6] == ["    the mutation hcoll also set X=0", ""]


def test_the_pods_own_annotations_have_a_row_of_the_pod() -> None:
    """`request` is a name for programs: people read what it is about."""
    row = outcome(REQUEST_CHECK, "", "warned", "unknown annotation 'rdma.lab/x'")
    lines = render(preview(patched(ADDED, row))).splitlines()
    assert lines[4].split()[:3] == ["pod", "(pod)", "warned"]


def test_launchers_are_named_once_and_counted() -> None:
    """The headline does not repeat the verdict's first word, and a count has a plural."""
    launcher = judged("none", "launcher (label mpi-job-role): the pod only starts", fabric=None)
    lines = render(preview(launcher)).splitlines()
    assert lines[1] == "  ○ launcher (label mpi-job-role): the pod only starts"
    assert lines[-1] == "1 pod: 1 launcher"
    assert render(*2 * [preview(launcher)]).splitlines()[-1] == "2 pods: 2 launchers"


def test_the_evidence_for_a_launcher_precedes_its_fabric() -> None:
    """Each pair of parentheses follows the word that it explains."""
    sentence = "launcher (label mpi-job-role): the pod only starts"
    launcher = judged("none", sentence, fabric_evidence="annotation rdma.lab/fabric=v100-ib")
    assert render(preview(launcher), width=200).splitlines()[1] == (
        "  ○ launcher (label mpi-job-role) over v100-ib (annotation rdma.lab/fabric=v100-ib): "
        "the pod only starts"
    )


def test_the_controller_is_never_broken_over_lines() -> None:
    """It moves below the heading if there is no room."""
    worker = preview(patched(ADDED), controller="JobSet", role="worker")
    heading = "Deployment lab/trainer  spec.template  train.yaml:1"
    creator = "(worker, as JobSet creates it)"
    assert render(worker, width=100).splitlines()[0] == f"{heading}  {creator}"
    assert render(worker, width=82).splitlines()[:2] == [heading, f"  {creator}"]
    assert render(worker, width=83).splitlines()[0] == f"{heading}  {creator}"
