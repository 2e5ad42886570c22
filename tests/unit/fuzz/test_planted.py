"""For every law, a defect is planted in the real code, and the law must report it.

The seeds are fixed, so that it takes the same number of cases each time.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from copy import deepcopy
from time import thread_time
from types import ModuleType
from typing import Any

import pytest

from tests.fuzz import check as checking
from tests.fuzz.check import LARGE, TARGETS, Violation, check, check_apart, make
from tests.fuzz.laws import configurations, previews, validations
from tests.fuzz.targets import mutate
from tests.fuzz.workers import Selection, run
from webhook import decide as decide_package
from webhook.admission.configuration_review import configuration_answer
from webhook.admission.review import read_review
from webhook.config.custom_resource import JsonData
from webhook.decide.draft import Draft
from webhook.decide.launchers.commands import Commands
from webhook.decide.shell.argv import insert_after
from webhook.decide.status import render
from webhook.errors import DocumentError
from webhook.model.pod import Container, Pod, pointer
from webhook.model.pod.reading import Field, as_mappings
from webhook.model.quantity import is_zero
from webhook.serve.http.decision_cache import Answered
from webhook.text.yaml.splice import splice

Plant = Callable[[pytest.MonkeyPatch], None]
Defect = Callable[[Draft, Any, tuple[Any, ...]], tuple[Any, ...]]
_CASES = range(1, 600)
#: The numbers of large cases.
_LARGE = range(LARGE - 1, 60 * LARGE, LARGE)
_BY_SIZE = ("costs_little_time", "costs_little_memory")


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    """Clear the cached replicas, since a planted defect may be in their configuration."""
    mutate.world_of.cache_clear()
    yield
    mutate.world_of.cache_clear()


def first_violation(target: str, numbers: range) -> Violation | None:
    """Run cases of one target until one breaks a law."""
    for number in numbers:
        violation = check(*make(1, number, target), number).violation
        if violation is not None:
            return violation
    return None


def when_appending(key: str, plant: Defect) -> Plant:
    """Plant a defect where values are appended to lists with this name."""

    def planted(patch: pytest.MonkeyPatch) -> None:
        append = Draft.append

        def defective(self: Draft, path: Any, *values: Any) -> None:
            append(self, path, *(plant(self, path, values) if path[-1] == key else values))

        patch.setattr(Draft, "append", defective)

    return planted


def _added_capability(_: Draft, __: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*values, "SYS_ADMIN")


def _doubled(_: Draft, __: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return values * 2


def _privileged(draft: Draft, path: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    draft.set((*path[:-2], "privileged"), True)
    return values


def _lost_leaf(draft: Draft, path: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if draft.get((*path[:-1], "image")) is not None:
        draft.remove((*path[:-1], "image"))
    return values


def _renamed(_: Draft, __: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(variable | {"name": f"LD_{variable['name']}"} for variable in values)


def _wrong_uid(patch: pytest.MonkeyPatch) -> None:
    body = Answered.body
    patch.setattr(Answered, "body", lambda self, uid: body(self, uid + "0"))


def _rare_quantity(patch: pytest.MonkeyPatch) -> None:
    def defective(value: Any) -> bool:
        if str(value).startswith("-"):
            raise OverflowError(value)
        return is_zero(value)

    patch.setattr("webhook.model.resources.is_zero", defective)


def _quadratic(patch: pytest.MonkeyPatch) -> None:
    def slow(value: Any, path: Any, under: Any) -> Any:
        checked = as_mappings(value, path, under)
        # This has to be slow by itself, since the longest list that is read has 5,000 entries.
        return [[element for element in checked][at] for at in range(len(checked))]  # noqa: C416

    for field in (*vars(Container).values(), *vars(Pod).values()):
        if isinstance(field, Field) and field._check is as_mappings:
            patch.setattr(field, "_check", slow)


def _raw_letters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("webhook.decide.admission_warnings._plain", lambda line: line)


def _again_and_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("webhook.decide.mutations.networks._missing", lambda networks, *_: networks)


def _replicas_differ(patch: pytest.MonkeyPatch) -> None:
    hashes = iter(range(10**6))
    patch.setattr("webhook.config.compile.config_hash", lambda _: f"{next(hashes):012}")


def _wrong_index(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("webhook.decide.draft.pointer", lambda path: pointer(path).replace("/0", "/1"))


def _other_order(patch: pytest.MonkeyPatch) -> None:
    append = Draft.append

    def defective(self: Draft, path: Any, *values: Any) -> None:
        append(self, path, *values)
        first = next(iter(self.pod["spec"]))
        value = self.pod["spec"][first]
        self.remove(("spec", first))
        self.set(("spec", first), deepcopy(value))

    patch.setattr(Draft, "append", defective)


def _uninvited(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide_package, "opted_in", lambda _: True)


def _without_status(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide_package, "_write_status", lambda *_: None)


def _confused_by_defaults(patch: pytest.MonkeyPatch) -> None:
    def defective(annotations: Any, outcomes: Any, summary: Any, vocabulary: Any) -> str:
        fabric = f"{summary.fabric} {'x' * _defaulted[-1]}"
        return render(annotations, outcomes, summary._replace(fabric=fabric), vocabulary)

    decide = decide_package._decide
    _defaulted = [0]

    def noting(manifest: Any, decision_input: Any) -> Any:
        _defaulted.append("schedulerName" in (manifest.get("spec") or {}))
        return decide(manifest, decision_input)

    patch.setattr("webhook.decide.render", defective)
    patch.setattr(decide_package, "_decide", noting)


def _hoarding(patch: pytest.MonkeyPatch) -> None:
    hoard: list[bytearray] = []

    def defective(document: Any) -> Any:
        hoard.append(bytearray(3_000_000))
        return read_review(document)

    patch.setattr("webhook.serve.http.mutate.read_review", defective)


def _greedy(patch: pytest.MonkeyPatch) -> None:
    def defective(document: Any) -> Any:
        bytearray(3 * 10**7)
        return read_review(document)

    patch.setattr("webhook.serve.http.mutate.read_review", defective)


def _misplaced(patch: pytest.MonkeyPatch) -> None:
    launches = Commands.launches

    def defective(self: Commands, path: Any) -> Any:
        return tuple(
            launch._replace(script_offset=launch.script_offset and launch.script_offset - 4)
            for launch in launches(self, path)
        )

    patch.setattr(Commands, "launches", defective)


def _open_quote(patch: pytest.MonkeyPatch) -> None:
    def defective(script: str, ends: list[int], added: str) -> str:
        return insert_after(script, ends, added + "'")

    patch.setattr("webhook.decide.mutations.hcoll.insert_after", defective)


def _raw_refusal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DocumentError, "__str__", lambda self: f"{self.args[0]}\x1b[31m")


def _raw_text(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tests.fuzz.laws.previews.report_text", lambda report: f"{report.notes}\x9b")


def _lost_text(patch: pytest.MonkeyPatch) -> None:
    def defective(document: Any, value: Any) -> Any:
        spliced = splice(document, value)
        return spliced._replace(text=spliced.text.replace("IPC_LOCK", "IPC_LOK"))

    patch.setattr("webhook.preview.patches.splice", defective)


def _raw_finding(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("webhook.config.findings.visible", lambda text: f"{text}\n")


def _another_uid(patch: pytest.MonkeyPatch) -> None:
    def defective(uid: str, about: Any, faults: Any) -> dict[str, Any]:
        return configuration_answer(uid + "0", about, faults)

    patch.setattr("webhook.preview.worker.operations.configuration_answer", defective)


def _raw_cause(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("webhook.preview.worker.operations.visible", lambda text: f"{text}\x1b[31m")


def _raw_warning(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("webhook.admission.configuration_review._ascii", lambda text: f"{text} é")


def _lenient(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("webhook.preview.worker.operations._messages", lambda *_: [])


def _stricter_than_files(patch: pytest.MonkeyPatch) -> None:
    def defective(data: dict[str, Any], name: str, limits: Any) -> JsonData:
        return JsonData({**data, "planted": None}, name, limits)

    patch.setattr("webhook.config.load.JsonData", defective)


def _slow(module: ModuleType, name: str) -> Plant:
    """Make the clock report ten seconds."""

    def planted(patch: pytest.MonkeyPatch) -> None:
        real, turns = getattr(module, name), [0]

        def defective(*given: Any, **how: Any) -> Any:
            turns[0] += 1
            return real(*given, **how)

        patch.setattr(module, name, defective)
        patch.setattr("tests.fuzz.cost.thread_time", lambda: thread_time() + 10 * turns[0])

    return planted


def _large(module: ModuleType, name: str) -> Plant:
    def planted(patch: pytest.MonkeyPatch) -> None:
        real = getattr(module, name)

        def defective(*given: Any, **how: Any) -> Any:
            bytearray(2 * 10**8)
            return real(*given, **how)

        patch.setattr(module, name, defective)

    return planted


_OF_MUTATE: dict[str, tuple[Plant, str]] = {
    "a capability": (
        when_appending("add", lambda *all_: (*all_[2], "SYS_ADMIN")),
        "no_power_is_given",
    ),
    "privileged": (when_appending("add", _privileged), "no_power_is_given"),
    "a doubled name": (when_appending("env", _doubled), "no_name_is_doubled"),
    "a lost leaf": (when_appending("env", _lost_leaf), "only_allowed_leaves_change"),
    "another variable": (when_appending("env", _renamed), "only_allowed_leaves_change"),
    "a wrong uid": (_wrong_uid, "the_uid_is_right"),
    "a rare quantity": (_rare_quantity, "no_defect_of_ours"),
    "a quadratic loop": (_quadratic, "costs_little_time"),
    "raw letters": (_raw_letters, "the_answer_is_well_formed"),
    "appending again": (_again_and_again, "a_second_call_changes_nothing"),
    "replicas that differ": (_replicas_differ, "pods_of_one_workload_share_a_decision"),
    "a wrong index": (_wrong_index, "the_patch_applies"),
    "another order": (_other_order, "keys_keep_their_order"),
    "a pod that did not ask": (_uninvited, "a_pod_without_opt_in_is_untouched"),
    "no status": (_without_status, "a_changed_pod_has_a_status"),
    "confused by defaults": (_confused_by_defaults, "defaults_in_between_change_nothing"),
    "memory that is kept": (_hoarding, "costs_little_memory"),
    "memory at once": (_greedy, "costs_little_memory"),
}
_PLANTS: dict[str, dict[str, tuple[Plant, str]]] = {
    "mutate": _OF_MUTATE,
    "shell": {
        "a wrong place": (_misplaced, "the_flag_follows_a_launcher"),
        "an open quote": (_open_quote, "bash_takes_both"),
    },
    "workloads": {
        "a raw refusal": (_raw_refusal, "a_refusal_is_a_line"),
        "a defect": (_rare_quantity, "nothing_is_raised"),
        "a raw text": (_raw_text, "the_forms_can_be_shown"),
        "a lost word": (_lost_text, "the_text_reads_as_the_patched_value"),
        "time": (_slow(previews, "preview_documents"), "costs_little_time"),
        "memory": (_large(previews, "preview_documents"), "costs_little_memory"),
    },
    "fabrics": {
        "a raw finding": (_raw_finding, "findings_are_lines"),
        "another hash": (_replicas_differ, "the_hash_is_stable"),
        "a capability": (when_appending("add", _added_capability), "what_is_loaded_can_be_used"),
        "time": (_slow(configurations, "parse_fabrics"), "costs_little_time"),
        "memory": (_large(configurations, "parse_fabrics"), "costs_little_memory"),
    },
    "validate": {
        "another uid": (_another_uid, "each_request_is_answered"),
        "a raw cause": (_raw_cause, "kubectl_can_show_it"),
        "a raw warning": (_raw_warning, "warnings_arrive"),
        "a lenient check": (_lenient, "what_is_allowed_can_be_used"),
        "stricter than files": (_stricter_than_files, "check_config_reports_the_same"),
        "time": (_slow(validations, "request"), "costs_little_time"),
        "memory": (_large(validations, "request"), "costs_little_memory"),
    },
}
_NAMES = [(target, name) for target, plants in _PLANTS.items() for name in plants]


@pytest.mark.parametrize(("target", "name"), _NAMES)
def test_a_planted_defect_is_reported(
    target: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law that the defect breaks is reported within a bounded number of cases."""
    plant, law = _PLANTS[target][name]
    plant(monkeypatch)
    violation = first_violation(target, _LARGE if law in _BY_SIZE else _CASES)
    assert violation is not None
    assert violation.law == law


@pytest.mark.parametrize("target", TARGETS)
def test_every_law_has_its_defect(target: str) -> None:
    """Every law reports a planted defect; scripts also have the laws of `/mutate`."""
    planted = {law for _, law in _PLANTS[target].values()} - {"nothing_is_raised"}  # in each target
    laws = {law.__name__ for law in TARGETS[target].laws}
    if target == "shell":
        laws -= {law.__name__ for law in TARGETS["mutate"].laws}
    assert planted == laws


def _on_rails(act: Callable[[], object]) -> Callable[..., Any]:
    """Decide as usual, but call `act` first for pods that name a certain resource."""
    decide = decide_package.decide

    def defective(manifest: Any, decision_input: Any) -> Any:
        if "nvidia.com/rail1" in str(manifest):
            act()
        return decide(manifest, decision_input)

    return defective


def test_a_case_that_kills_its_process_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The case's number is reported, and the other cases still run."""
    killing = _on_rails(lambda: os.kill(os.getpid(), signal.SIGSEGV))
    monkeypatch.setattr(mutate, "decide", killing)
    tally = run(Selection(1, "mutate"), range(60), jobs=2)
    (key,) = tally.broken
    assert key == ("mutate", checking.SURVIVES, f"exit {-signal.SIGSEGV}")
    assert tally.cases == 60
    number, violation = tally.first[key]
    target, parts = make(1, number, "mutate")
    assert violation.same_as(check_apart(target, parts, 60))


def test_an_endless_case_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed, and reported differently from a case that ends."""
    target, parts = make(1, 0, "mutate")
    assert check_apart(target, parts, 60) is None
    monkeypatch.setattr(mutate, "decide", lambda *_: threading.Event().wait())
    mutate.world_of.cache_clear()
    violation = check_apart(target, parts, 0.5)
    assert violation is not None
    assert violation.place == "time"
