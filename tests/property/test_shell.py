"""Laws of reading and editing commands: scripts with significant words, and any text."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import container, decide_on, decision_input, outcomes_of, pod
from tests.shell.judges import our_command_names, our_reading
from tests.shell.scripts import fragments, scripts, words
from webhook.decide.launchers.commands import Commands, LauncherCommand
from webhook.decide.launchers.launches import forwards_by_ssh, launches_accepting_flag
from webhook.decide.shell.argv import insert_after
from webhook.model.pod import Path, Pod

FIRST: Path = ("spec", "containers", 0)
FLAG = " -mca coll_hcoll_enable 0"


def running(script: str) -> dict[str, Any]:
    """Make a pod whose only container runs the script."""
    return pod(container(command=["bash", "-c", script]))


def launches_of(manifest: dict[str, Any]) -> tuple[LauncherCommand, ...]:
    """List the launches of the only container."""
    return Commands(Pod(manifest)).launches(FIRST)


@given(st.text() | scripts() | fragments() | st.lists(words).map(" ".join))
def test_any_text_is_read(text: str) -> None:
    """Reading a command raises nothing, whatever its text."""
    commands = Commands(Pod(running(text)))
    commands.launches(FIRST)
    commands.runs_sshd(FIRST)
    forwards_by_ssh(commands, FIRST, ())
    launches_accepting_flag(commands, FIRST, ())
    launches_of(pod(container(command=text.split() or None, args=[text])))


@given(scripts())
def test_offsets_follow_launchers(script: str) -> None:
    """The text before each offset ends with a launcher's word."""
    for launch in launches_of(running(script)):
        if launch.script_offset is not None and not launch.run_by:
            before = script[: launch.script_offset]
            assert before.rstrip("'\"").endswith(("mpirun", "mpiexec"))


def _taken_out(edited: str, script: str, ends: list[int]) -> str:
    """Undo the insertion: the flag follows each end, with a blank before a redirection."""
    for end in sorted(ends):
        assert edited.startswith(FLAG, end)
        behind = end + len(FLAG)
        if script[end : end + 1] in ("<", ">"):
            assert edited[behind] == " "
            behind += 1
        edited = edited[:end] + edited[behind:]
    return edited


@given(scripts())
def test_only_the_flag_is_inserted(script: str) -> None:
    """Without the inserted bytes the script is unchanged, and each launch has the flag first."""
    launches = [
        launch for launch in launches_of(running(script)) if launch.script_offset is not None
    ]
    ends = [
        launch.script_offset
        for launch in launches
        if launch.script_offset is not None and launch.editable
    ]
    edited = insert_after(script, ends, FLAG)
    assert _taken_out(edited, script, ends) == script
    edited_launches = launches_of(running(edited))
    flagged = [
        launch
        for launch in edited_launches
        if launch.words_with_runner[1:4] == ("-mca", "coll_hcoll_enable", "0")
    ]
    assert len(flagged) == len(ends)
    assert our_reading(edited).problem == our_reading(script).problem


@given(scripts())
def test_an_edited_launch_is_settled(script: str) -> None:
    """A second decision changes nothing, even without the variable."""
    manifest = running(script)
    cluster = decision_input(defaults={"fabric": "v100-ib"})
    manifest["metadata"]["labels"] = {"training.kubeflow.org/job-role": "launcher"}
    first = decide_on(manifest, cluster)
    assert decide_on(first.pod, cluster).patch == ()
    messages = [
        message for _, status, _, message in outcomes_of(first, "hcoll") if status == "applied"
    ]
    if messages and "-mca" in messages[0]:
        assert launches_accepting_flag(Commands(Pod(first.pod)), FIRST, ())[0] == []


@given(scripts() | fragments())
def test_skipped_commands_do_not_change_the_reading(script: str) -> None:
    """Skipping simple commands without a search term is the same as reading them.

    Only text between backticks, in here-documents and in words across lines may be unclear, if
    nothing there is a search term.
    """
    names, reading = our_command_names(script), our_reading(script)
    if names is None:
        assert reading.problem or any(mark in script for mark in ("`", "<<", "\\\n"))
        return
    assert not reading.problem or "alias" in script
    ends = {name.end for name in names}
    for command in (read for read in reading.commands if not read.assigns):
        assert ends.intersection(command.ends)
