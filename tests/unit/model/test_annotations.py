from __future__ import annotations

from typing import Any

import pytest

from webhook.model.annotations import UserAnnotations, asks_for_rdma, opted_in, parse_annotations
from webhook.model.decision import Denial

MUTATIONS = frozenset({"env", "hcoll", "ipc-lock"})


def parsed(**words: Any) -> UserAnnotations:
    """Parse annotations given without their prefix, with `_` for `-`."""
    written = {f"rdma.lab/{name.replace('_', '-')}": value for name, value in words.items()}
    return parse_annotations({"rdma.lab/enable": "true", "other/key": "x", **written}, MUTATIONS)


def problem(**words: Any) -> str:
    """Return the only problem of these annotations."""
    (sentence,) = parsed(**words).problems
    return sentence


@pytest.mark.parametrize(
    ("annotations", "meaning"),
    [
        ({}, False),
        ({"rdma.lab/enable": None}, False),
        ({"rdma.lab/enable": "false"}, False),
        ({"rdma.lab/fabric": "x"}, False),
        ({"rdma.lab/enable": "true"}, True),
    ],
    ids=repr,
)
def test_a_pod_opts_in_with_true(annotations: dict[str, Any], meaning: bool) -> None:
    """Only `true` opts in; `false` counts the same as a missing annotation."""
    assert opted_in(annotations) is meaning


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("yes", "'yes'"),
        ("True", "'True'"),
        ("", "''"),
        (" true", "' true'"),
        (["true"], "a list (['true'])"),
    ],
    ids=repr,
)
def test_any_other_value_is_denied(value: Any, quoted: str) -> None:
    """A value such as `yes` is denied, since it would otherwise silently do nothing."""
    with pytest.raises(Denial) as raised:
        opted_in({"rdma.lab/enable": value})
    assert (raised.value.reason.code, str(raised.value)) == (
        "InvalidAnnotation",
        f'annotation rdma.lab/enable is {quoted}, but it must be "true" or "false"',
    )


@pytest.mark.parametrize(
    ("value", "quoted"), [(True, "a boolean (true)"), (1, "a number (1)")], ids=repr
)
def test_what_is_no_string_should_be_quoted(value: Any, quoted: str) -> None:
    """YAML reads `yes` and `True` without quotes as booleans, so the message asks for quotes."""
    with pytest.raises(Denial) as raised:
        opted_in({"rdma.lab/enable": value})
    assert str(raised.value) == (
        f'annotation rdma.lab/enable is {quoted}, but it must be "true" or "false", in quotes'
    )


def test_nothing_asked_for_leaves_every_choice_to_us() -> None:
    """Null values and annotations that the webhook wrote request nothing either."""
    assert parsed() == UserAnnotations()
    assert parsed(fabric=None, devices=None, skip=None) == UserAnnotations()
    assert parsed(status="{}", nccl_conf="x") == UserAnnotations()
    assert parse_annotations({}, MUTATIONS) == UserAnnotations()


def test_every_word_is_read() -> None:
    """Blanks around names and repeated names are ignored."""
    assert parsed(
        fabric=" north ",
        containers="a, b ,a",
        devices="0",
        memory_limit="keep",
        skip="env,ipc-lock",
        nvlink="share",
    ) == UserAnnotations(
        fabric="north",
        containers=("a", "b"),
        devices=0,
        memory_limit="keep",
        skip=frozenset({"env", "ipc-lock"}),
        nvlink=True,
    )


@pytest.mark.parametrize("devices", ["0", "1", "08", "9999"])
def test_devices_are_a_whole_number(devices: str) -> None:
    """The number has up to four digits, more than any node has devices."""
    assert parsed(devices=devices).devices == int(devices)


@pytest.mark.parametrize("choice", ["drop", "keep"])
def test_the_memory_limit_is_dropped_or_kept(choice: str) -> None:
    """These are the only two values."""
    assert parsed(memory_limit=choice).memory_limit == choice


@pytest.mark.parametrize(
    ("word", "value", "expected"),
    [
        ("fabric", "", "the name of a fabric"),
        ("fabric", "  ", "the name of a fabric"),
        ("containers", "", "container names separated by commas"),
        ("containers", "a,,b", "container names separated by commas"),
        ("containers", "a,", "container names separated by commas"),
        ("devices", "-1", "a whole number of RDMA devices for each container, 0 for none"),
        ("devices", "1.5", "a whole number of RDMA devices for each container, 0 for none"),
        ("devices", "²", "a whole number of RDMA devices for each container, 0 for none"),
        ("devices", "10000", "a whole number of RDMA devices for each container, 0 for none"),
        ("memory-limit", "Drop", '"drop" or "keep"'),
        ("memory-limit", "keep-guaranteed", '"drop" or "keep"'),
        ("skip", "", "mutation names separated by commas"),
        ("skip", ",", "mutation names separated by commas"),
        ("nvlink", "true", '"share"'),
    ],
)
def test_a_malformed_word_is_denied(word: str, value: str, expected: str) -> None:
    """The message names the annotation, its value, and the values that are allowed."""
    assert problem(**{word: value}) == (
        f"annotation rdma.lab/{word} is {value!r}, but it must be {expected}"
    )


def test_a_value_that_is_no_string_is_denied() -> None:
    """The API server rejects such a value too, with less detail."""
    assert problem(devices=2) == (
        "annotation rdma.lab/devices is a number (2), but it must be a whole number of RDMA "
        "devices for each container, 0 for none, in quotes"
    )


def test_an_unknown_mutation_is_denied_with_a_guess() -> None:
    """Otherwise a misspelled name would not skip its mutation."""
    assert problem(skip="env,ipclock") == (
        "annotation rdma.lab/skip names 'ipclock', but the mutations are: env, hcoll, ipc-lock "
        "(did you mean ipc-lock?)"
    )
    assert problem(skip="ipclock,envs") == (
        "annotation rdma.lab/skip names 'ipclock' and 'envs', but the mutations are: env, hcoll, "
        "ipc-lock (did you mean ipc-lock?) (did you mean env?)"
    )
    assert problem(skip="x") == (
        "annotation rdma.lab/skip names 'x', but the mutations are: env, hcoll, ipc-lock"
    )


def test_unknown_keys_are_reported_with_a_guess() -> None:
    """Unknown keys only cause a warning, since a newer release may support them."""
    assert parsed(enabled="x", zzz="x").unknown_key_messages == (
        "unknown annotation 'rdma.lab/enabled' (did you mean rdma.lab/enable?)",
        "unknown annotation 'rdma.lab/zzz'",
    )


def test_a_long_word_gets_no_guess() -> None:
    """Nobody misspells `env` with more than 64 letters, and each letter adds to the cost."""
    assert parsed(**{f"enable{'d' * 59}": ""}).unknown_key_messages == (
        f"unknown annotation 'rdma.lab/enable{'d' * 59}'",
    )
    assert "did you mean" in parsed(**{f"memory-limi{'t' * 10}": ""}).unknown_key_messages[0]
    assert "did you mean" not in problem(skip=f"ipc-lock{'k' * 100}")


def test_very_many_unknown_keys_are_counted() -> None:
    """Suggesting a key for each of thousands would block decisions for seconds."""
    unknown = parsed(**{f"{index:04}": "" for index in range(5000)}).unknown_key_messages
    assert len(unknown) == 9
    assert unknown[0] == "unknown annotation 'rdma.lab/0000'"
    assert unknown[-1] == "4,992 more unknown annotations rdma.lab/*"
    unknown = parsed(**{f"{index:04}": "" for index in range(9)}).unknown_key_messages
    assert unknown[-1] == "1 more unknown annotation rdma.lab/*"


def test_a_long_value_is_cut_in_the_message() -> None:
    """The message does not repeat a value of a quarter of a megabyte."""
    message = problem(nvlink="x" * 100_000)
    assert message == f'annotation rdma.lab/nvlink is \'{"x" * 199}, but it must be "share"'


def test_all_problems_are_listed() -> None:
    """A user corrects all of them at once; the valid values are read."""
    annotations = parsed(fabric=" ", devices="two", memory_limit="x", skip="envs", nvlink="share")
    assert [sentence.split()[1] for sentence in annotations.problems] == [
        "rdma.lab/fabric",
        "rdma.lab/devices",
        "rdma.lab/memory-limit",
        "rdma.lab/skip",
    ]
    assert annotations._replace(problems=()) == UserAnnotations(nvlink=True)


@pytest.mark.parametrize("word", ["fabric", "containers", "devices", "memory-limit", "skip"])
def test_an_unexpanded_variable_has_its_own_remedy(word: str) -> None:
    """The value that it stands for is unknown, so what would be allowed does not matter."""
    remedy = "is '${X}', an unexpanded variable (run envsubst first)"
    assert problem(**{word: "${X}"}) == f"annotation rdma.lab/{word} {remedy}"
    with pytest.raises(Denial) as raised:
        opted_in({"rdma.lab/enable": "${X}"})
    assert str(raised.value) == f"annotation rdma.lab/enable {remedy}"


@pytest.mark.parametrize(
    ("manifest", "asks"),
    [
        ({"metadata": {"annotations": {"rdma.lab/enable": "true"}}}, True),
        ({"metadata": {"annotations": {"rdma.lab/enable": "yes"}}}, True),
        ({"metadata": {"annotations": {"rdma.lab/enable": "false"}}}, False),
        ({"metadata": {"annotations": {"a": "true"}}}, False),
        ({"metadata": []}, False),
    ],
)
def test_pods_that_ask_for_rdma(manifest: Any, *, asks: bool) -> None:
    """A wrong value counts, since it leads to a denial; without the annotation, nothing does."""
    assert asks_for_rdma(manifest) is asks
