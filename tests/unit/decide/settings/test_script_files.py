"""The scripts in ConfigMaps that commands run: which are read, and what they set."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import env
from tests.builders import pod as pod_of
from tests.case_names import case_name
from tests.unit.decide.settings.reading import certain, possible
from webhook.decide.settings.config_map_names import config_map_names
from webhook.decide.settings.reader import SettingsReader
from webhook.decide.settings.script_files import (
    ScriptFile,
    config_maps_with_scripts,
    files_of_pod,
    mentions_in,
    script_files,
)
from webhook.decide.settings.setting import NO_SETTINGS, CommandSettings
from webhook.decide.shell.scripts import MAX_CHARACTERS
from webhook.model.config_maps import DataKey
from webhook.model.pod import Path, Pod, PodManifest

PATH = ("spec", "containers", 0)
OFF = "export NCCL_NET=Socket\n"
SOCKET = {"NCCL_NET": "Socket"}
SCRIPTS, MORE = {"name": "s", "mountPath": "/scripts"}, {"name": "t", "mountPath": "/more"}


def manifest_of(*words: str, **fields: Any) -> PodManifest:
    """Make a pod that runs words, with the ConfigMap `m` at /scripts and `n` at /more."""
    volumes = [{"name": "s", "configMap": {"name": "m"}}, {"name": "t", "configMap": {"name": "n"}}]
    container = {"name": "a", "command": list(words), "volumeMounts": [SCRIPTS, MORE], **fields}
    return pod_of(container, volumes=volumes)


def read(*words: str, maps: Any = None, **variables: str) -> CommandSettings:
    """Read the command of that pod; `maps` are the files of `m`, or all ConfigMaps."""
    config_maps = maps if not maps or isinstance(next(iter(maps.values())), dict) else {"m": maps}
    manifest = manifest_of(*words, env=env(**variables))
    return SettingsReader(Pod(manifest), config_maps or {}).settings_with_files(PATH)


def read_script(script: str, **files: str) -> CommandSettings:
    """Read a shell's script in a pod with these files."""
    return read("sh", "-c", script, maps=files)


@pytest.mark.parametrize(
    "words",
    [
        ("bash", "/scripts/a"),
        ("/bin/sh", "-e", "/scripts/a"),
        ("bash", "-o", "pipefail", "/scripts//a"),
        ("/scripts/a",),
        ("/scripts/./a", "--epochs", "3"),
        ("env", "A=b", "/scripts/a"),
        ("tini", "--", "/scripts/a"),
        ("sh", "-c", "/scripts/a"),
        ("sh", "-c", ". /scripts/a && torchrun train.py"),
        ("bash", "-c", "source '/scripts/a'; torchrun train.py"),
        ("sh", "-c", "mkdir -p /out; exec bash /scripts/a"),
        ("sh", "-c", "cd /scripts; exec /scripts/a\n"),
        ("gosu", "root", "/scripts/a"),
    ],
    ids=case_name,
)
def test_ways_to_run_a_script(words: tuple[str, ...]) -> None:
    """By a shell, as a program, and in the same shell."""
    settings = read(*words, maps={"a": OFF + "torchrun train.py\n"})
    assert certain(settings) == SOCKET
    assert settings.certain["NCCL_NET"].source == "export in key a of ConfigMap m"
    assert settings.possible == ()


@pytest.mark.parametrize(
    "words",
    [
        ("sh", "-c", "[ -f /scripts/a ] && . /scripts/a; torchrun train.py"),
        ("sh", "-c", "(. /scripts/a); torchrun train.py"),
        ("sh", "-c", "bash /scripts/a; torchrun train.py"),
        ("python", "/scripts/a"),
    ],
    ids=case_name,
)
def test_ways_that_are_not_certain(words: tuple[str, ...]) -> None:
    """Under a condition, in another process, or in a language that is not read."""
    settings = read(*words, maps={"a": OFF + "./train\n"})
    assert certain(settings) == {}
    assert possible(settings) == SOCKET
    (setting,) = settings.possible
    assert setting.source.endswith(" in key a of ConfigMap m")


@pytest.mark.parametrize(
    "words",
    [
        ("torchrun", "train.py"),
        ("bash", "/image/a"),
        ("bash", "/scripts2/a"),
        ("bash", "/x/scripts/a"),
        ("bash", "/scripts/b"),
        ("bash", "$HOME/scripts/a"),
        ("sh", "-c", "ls /scripts/; ./train"),
    ],
    ids=case_name,
)
def test_words_that_name_no_file(words: tuple[str, ...]) -> None:
    """Files of the image, and paths that only look like it."""
    assert read(*words, maps={"a": OFF}) == NO_SETTINGS


@pytest.mark.parametrize(
    ("first_line", "is_certain"),
    [
        ("#!/bin/sh", True),
        ("#! /bin/bash -e", True),
        ("#!/usr/bin/env bash", True),
        ("#!/usr/bin/env -S bash -x", True),
        ("# a comment", True),
        ("#!/usr/bin/env python3", False),
        ("#!/usr/bin/python", False),
    ],
)
def test_the_first_line_of_a_program(first_line: str, is_certain: bool) -> None:
    """It names the interpreter; a text of another language only seems to set variables."""
    settings = read("/scripts/a", maps={"a": f"{first_line}\n{OFF}"})
    assert certain(settings) == (SOCKET if is_certain else {})
    assert possible(settings) == ({} if is_certain else SOCKET)
    assert certain(read("bash", "/scripts/a", maps={"a": f"{first_line}\n{OFF}"})) == SOCKET


@pytest.mark.parametrize(
    ("words", "is_read"),
    [
        (("bash", "-c", "torchrun train.py"), True),
        (("/usr/bin/bash", "/scripts/a"), True),
        (("/scripts/a",), True),
        (("/scripts/b",), False),
        (("/scripts/c",), False),
        (("sh", "-c", "torchrun train.py"), False),
        (("sh", "/scripts/a"), False),
        (("torchrun", "train.py"), False),
    ],
    ids=case_name,
)
def test_what_bash_reads_first(words: tuple[str, ...], is_read: bool) -> None:
    """BASH_ENV, unless it runs as sh; then its text only seems to set the variable."""
    files = {
        "a": "#!/bin/bash\n./train\n",
        "b": "#!/bin/sh\n./train\n",
        "c": "./train\n",
        "env": OFF,
    }
    settings = read(*words, maps=files, BASH_ENV="/scripts/env")
    assert certain(settings) == (SOCKET if is_read else {})


def test_a_variable_of_what_bash_reads_first() -> None:
    """The script that follows can export it."""
    files = {"env": "NCCL_NET=Socket\n", "a": "export NCCL_NET\n./train\n"}
    assert certain(read("bash", "/scripts/a", maps=files, BASH_ENV="/scripts/env")) == SOCKET


def test_a_script_that_hands_over() -> None:
    """After `exec "$@"`, the words after its name run."""
    maps = {"a": f'{OFF}exec "$@"\n'}
    settings = read("bash", "/scripts/a", "env", "NCCL_IB_DISABLE=1", "torchrun", maps=maps)
    assert certain(settings) == {**SOCKET, "NCCL_IB_DISABLE": "1"}
    assert settings.certain["NCCL_IB_DISABLE"].source == "env in its command"
    assert certain(read("bash", "/scripts/a", "NCCL_NET=x", maps={"a": "./train"})) == {}


def test_files_that_files_name() -> None:
    """Also in another ConfigMap, each with its own place."""
    maps = {
        "m": {"a": "export NCCL_IB_DISABLE=1\n. /more/b\n/more/c\n"},
        "n": {"b": OFF, "c": "gosu 1000 ./train"},
    }
    settings = read("bash", "/scripts/a", maps=maps)
    assert {name: setting.source for name, setting in settings.certain.items()} == {
        "NCCL_IB_DISABLE": "export in key a of ConfigMap m",
        "NCCL_NET": "export in key b of ConfigMap n",
    }
    assert settings.user == ("gosu 1000 in key c of ConfigMap n", True)


def test_a_variable_of_a_sourced_file() -> None:
    """The script that sources it can export it, and overrides what the file exports."""
    files = {"a": "NCCL_NET=Socket\nexport NCCL_IB_DISABLE=1\n"}
    script = ". /scripts/a; export NCCL_NET; export NCCL_IB_DISABLE=0; ./train"
    settings = read("sh", "-c", script, maps=files)
    assert certain(settings) == {**SOCKET, "NCCL_IB_DISABLE": "0"}
    assert settings.certain["NCCL_IB_DISABLE"].source == "export in its command"


def test_everything_that_a_script_changes_has_its_place() -> None:
    """Its user, its limit, its environment, the ranks, and what it may set."""
    text = (
        "ulimit -l 64\n[ $X ] && export NCCL_NET=Socket\nenv -i NCCL_DEBUG=INFO "
        "mpirun -H b -x NCCL_IB_DISABLE=1 ./train\n"
    )
    settings = read("gosu", "1000", "bash", "/scripts/a", maps={"a": text})
    place = "in key a of ConfigMap m"
    assert settings.user == ("gosu 1000 in its command", True)
    assert settings.memlock == ("64", f"ulimit -l {place}")
    assert settings.env_dropped_by == f"env -i {place}"
    assert settings.rank_settings["NCCL_IB_DISABLE"].source == f"mpirun -x {place}"
    assert [setting.source for setting in settings.possible] == [f"export {place}"]


def test_what_the_command_sets_itself_keeps_its_place() -> None:
    """Also if it is only possible, or for another process."""
    script = "[ $X ] && export NCCL_NET=Socket; NCCL_IB_DISABLE=1 ./x & bash /scripts/a; ./y"
    settings = read("sh", "-c", script, maps={"a": "export NCCL_IB_HCA=x\n"})
    assert [setting.source for setting in settings.possible] == [
        "export in its command",
        "assignment in its command",
        "export in key a of ConfigMap m",
    ]


def test_a_script_that_is_not_known() -> None:
    """Its key is named once, if a shell runs it."""
    for words in (
        ("bash", "/scripts/a"),
        ("/scripts/a",),
        ("sh", "-c", ". /scripts/a; ./x"),
        ("sh", "-c", "bash /scripts/a; bash /scripts/a; ./x"),
    ):
        assert read(*words) == CommandSettings(unread_scripts=(DataKey("m", "a"),))
    assert read("bash", "/scripts/a", maps={"a": None}).unread_scripts == (DataKey("m", "a"),)
    assert read("python", "/scripts/a") == NO_SETTINGS
    assert read("bash", "-c", "./x", BASH_ENV="/scripts/a").unread_scripts == (DataKey("m", "a"),)


def test_mutations_do_not_see_scripts() -> None:
    """Admission cannot read them."""
    reader = SettingsReader(Pod(manifest_of("bash", "/scripts/a")), {"m": {"a": OFF}})
    assert reader.settings(PATH) is NO_SETTINGS
    assert certain(reader.settings_with_files(PATH)) == SOCKET
    assert reader.settings_with_files(PATH) is reader.settings_with_files(PATH)
    assert reader.text_with_files(PATH) == f"bash\n/scripts/a\n{OFF}"


def test_a_command_without_files_is_read_once() -> None:
    """Both readings are the same."""
    reader = SettingsReader(Pod(manifest_of("sh", "-c", OFF)), {"m": {"a": OFF}})
    assert reader.settings_with_files(PATH) is reader.settings(PATH)
    assert reader.text_with_files(PATH) == f"sh\n-c\n{OFF}"


@pytest.mark.parametrize(
    "file",
    [
        "NCCL_IB_DISABLE=1 ./selftest",
        "NCCL_IB_DISABLE=1 ./selftest || true\n",
        "su - app -c ./warm-up",
        "(exec gosu 1000 ./selftest)",
    ],
)
def test_the_last_command_of_a_sourced_file(file: str) -> None:
    """It is not the container's last, unless nothing follows in the script that sources it."""
    for script in (
        ". /scripts/a; ./train",
        ". /scripts/b; ./train",
        ". /scripts/b; echo end; ./train",
        "[ $X ] && . /scripts/a; ./train",
    ):
        settings = read_script(script, a=file, b=". /scripts/a\n")
        assert (certain(settings), settings.drops_env) == ({}, False)
        assert settings.possible or (settings.user and not settings.user.certain)
    for script in (". /scripts/a", ". /scripts/a; echo end", ". /scripts/b; wait"):
        settings = read_script(script, a=file, b=". /scripts/a\n")
        assert certain(settings) or (settings.user and settings.user.certain)


def test_exec_in_a_sourced_file() -> None:
    """Nothing runs after it, unless a condition decides about it."""
    script = ". /scripts/a; export NCCL_IB_DISABLE=1; ./train"
    of_exec = {"NCCL_DEBUG": "INFO"}
    settings = read_script(script, a="exec env NCCL_DEBUG=INFO ./train")
    of_caller = {"NCCL_IB_DISABLE": "1"}
    assert (certain(settings), possible(settings)) == (of_exec, of_caller)  # as any text
    settings = read_script(f"[ $X ] && {script}", a="exec env NCCL_DEBUG=INFO ./train")
    assert (certain(settings), possible(settings)) == (of_caller, of_exec)
    settings = read_script(script, a="[ $X ] && exec env NCCL_DEBUG=INFO ./train")
    assert (certain(settings), possible(settings)) == (of_caller, of_exec)
    settings = read_script("(exec env NCCL_DEBUG=INFO ./a); ./train")
    assert (certain(settings), possible(settings)) == ({}, of_exec)


def test_the_last_command_of_what_bash_reads_first() -> None:
    """The script follows it, unless `exec` replaces the shell."""
    last = "env NCCL_NET=Socket ./a\n"
    settings = read("bash", "-c", "./train", maps={"env": last}, BASH_ENV="/scripts/env")
    assert (certain(settings), possible(settings)) == ({}, SOCKET)
    script = "export NCCL_DEBUG=INFO; ./train"
    settings = read("bash", "-c", script, maps={"env": f"exec {last}"}, BASH_ENV="/scripts/env")
    assert (certain(settings), possible(settings)) == (SOCKET, {})


def test_scripts_that_run_each_other() -> None:
    """They end at a depth."""
    maps = {"a": f"{OFF}. /scripts/b\n. /scripts/b\n", "b": ". /scripts/a\nbash /scripts/a\n"}
    assert certain(read("bash", "/scripts/a", maps=maps)) == SOCKET


def test_scripts_that_run_each_other_often() -> None:
    """Their commands count against a limit: without it, 60 to the power of 8 would run."""
    assert certain(read("bash", "/scripts/a", maps={"a": OFF + ". /scripts/a\n" * 60})) == SOCKET


def test_containers_share_the_limits() -> None:
    """Two scripts that fit alone do not fit together; the same script of two is read once."""
    filler = "#" * (MAX_CHARACTERS // 2) + "\n"
    maps = {"m": {"a": filler + OFF, "b": filler + "#\n" + OFF}}

    def settings_of(*words: str) -> list[dict[str, str | None]]:
        """Read two containers that run these files."""
        manifest = manifest_of("bash", words[0])
        container = manifest["spec"]["containers"][0]
        manifest["spec"]["containers"] += [{**container, "name": "b", "command": ["sh", words[1]]}]
        reader = SettingsReader(Pod(manifest), maps)
        paths: list[Path] = [PATH, ("spec", "containers", 1)]
        return [certain(reader.settings_with_files(path)) for path in paths]

    assert settings_of("/scripts/a", "/scripts/a") == [SOCKET, SOCKET]
    assert settings_of("/scripts/a", "/scripts/b") == [SOCKET, {}]


def test_several_words_for_a_file() -> None:
    """Its text counts once."""
    words = "/scripts/a /scripts//a /scripts/./a"
    pod = Pod(manifest_of("sh", "-c", words))
    reader = SettingsReader(pod, {"m": {"a": '{"NCCL_NET": "Socket"}'}})
    assert reader.script_texts(PATH) == ['{"NCCL_NET": "Socket"}']
    settings = reader.settings_with_files(PATH)
    assert [setting.source for setting in settings.possible] == ["text in key a of ConfigMap m"]


def test_a_file_is_searched_once() -> None:
    """Whatever words name it."""
    file = ScriptFile(DataKey("m", "a"), OFF)
    assert len(list(mentions_in({"/scripts/a": file, "/scripts//a": file}, set()))) == 1


def test_a_variable_that_no_shell_exports() -> None:
    """Its text is explained: also in the shell of su, and in a file under a condition."""
    file = "NCCL_NET=Socket\n"
    for script in ("su worker -c 'NCCL_NET=Socket; ./a'", "[ $X ] && . /scripts/a; ./train"):
        assert read_script(script, a=file).possible == ()


def test_a_script_gets_what_a_config_map_sets() -> None:
    """An assignment in it changes a variable of envFrom, which is exported."""
    manifest = manifest_of("bash", "/scripts/a", envFrom=[{"configMapRef": {"name": "n"}}])
    maps = {"m": {"a": "NCCL_NET=Socket\n./train\n"}, "n": {"NCCL_NET": "IB"}}
    assert certain(SettingsReader(Pod(manifest), maps).settings_with_files(PATH)) == SOCKET


def test_the_texts_of_scripts_have_a_limit() -> None:
    """One that exceeds what is left is skipped."""
    files = {"a": "a", "b": "b" * MAX_CHARACTERS, "c": "c" * (MAX_CHARACTERS - 1), "d": "", "e": ""}
    pod = Pod(manifest_of("sh", "-c", " ".join(f"/scripts/{name}" for name in (*files, "f"))))
    reader = SettingsReader(pod, {"m": files})
    assert reader.script_texts(PATH) == [files["a"], files["c"]]


def test_a_script_that_is_too_large_only_seems_to_set_variables() -> None:
    """As one in the command."""
    settings = read("bash", "/scripts/a", maps={"a": f"{'#' * MAX_CHARACTERS}\n{OFF}"})
    assert (certain(settings), possible(settings)) == ({}, SOCKET)


def files_of(text: str, mounts: list[dict[str, Any]] | None = None) -> dict[str, ScriptFile]:
    """Return the files that a script names."""
    pod = Pod(manifest_of("sh", "-c", text, volumeMounts=mounts or [SCRIPTS]))
    return dict(script_files(pod, pod.container(PATH), {}))


def test_the_words_that_name_files() -> None:
    """Each is a path below a mount, as it is written."""
    words = (
        "/scripts/a x=/scripts/b:/scripts/c '/scripts//d' ~/scripts/e ${X}/scripts/f ./scripts/g"
    )
    keys = {word: file.key.key for word, file in files_of(words).items()}
    assert keys == {"/scripts/a": "a", "/scripts/b": "b", "/scripts/c": "c", "/scripts//d": "d"}
    assert files_of("/scripts/a")["/scripts/a"].place == "in key a of ConfigMap m"
    at_start = {"name": "s", "mountPath": "/s"}
    pod = Pod(manifest_of("/s/a", volumeMounts=[at_start]))
    assert list(script_files(pod, pod.container(PATH), {})) == ["/s/a"]


def test_a_file_that_is_sourced_under_a_condition() -> None:
    """Its export is read as such, not only as text."""
    script = "[ -f /scripts/a ] && . /scripts/a; ./train"
    settings = read("sh", "-c", script, maps={"a": f"{OFF}export NCCL_DEBUG=INFO\n"})
    sources = {setting.name: setting.source for setting in settings.possible}
    assert sources == dict.fromkeys(("NCCL_NET", "NCCL_DEBUG"), "export in key a of ConfigMap m")


def test_a_sourced_file_that_changes_nothing() -> None:
    """Also under a condition: then no process besides that of the command is left."""
    script = "[ -f /scripts/a ] && . /scripts/a; ./train"
    assert read("sh", "-c", script, maps={"a": "PORT=1\n"}) == NO_SETTINGS


def test_a_script_that_is_an_expansion() -> None:
    """Nobody knows its text."""
    script = "bash -c -- $X /scripts/a; bash $X /scripts/a; . $X /scripts/a; ./train"
    assert certain(read("sh", "-c", script, maps={"a": OFF})) == {}


def test_limits() -> None:
    """Sixty-four words, thirty-two mounts, and texts that are no longer than a script."""
    words = [" ".join(f"/scripts/{n}" for n in range(start, start + 40)) for start in (0, 40)]
    init = manifest_of("sh", "-c", words[0])["spec"]["containers"][0]
    main = manifest_of("sh", "-c", words[1])
    main["spec"]["initContainers"] = [init]
    files = files_of_pod(Pod(main), {})
    assert {path: len(files[path]) for path in files} == {
        PATH: 40,
        ("spec", "initContainers", 0): 24,
    }
    assert len(files_of(" ".join(f"/scripts/{n}" for n in range(65)))) == 64
    mounts = [{"name": "s", "mountPath": f"/m{n:02}"} for n in range(33)]
    assert list(files_of("/m31/a /m32/a", mounts)) == ["/m31/a"]
    filler = "x" * (MAX_CHARACTERS - len("sh\n-c\n/scripts/a ") + 1)
    assert len(files_of(f"/scripts/a {filler[1:]}")) == 1
    assert files_of(f"/scripts/a {filler}") == {}


def test_the_config_maps_of_a_pod() -> None:
    """All that a container mounts if it names a file of one: this may name another."""
    assert list(config_maps_with_scripts(manifest_of("bash", "/more/a"))) == ["m", "n"]
    assert list(config_maps_with_scripts(manifest_of("bash", "/image/a"))) == []
    init = pod_of({"name": "a"}, initContainers=manifest_of("/more/a")["spec"]["containers"])
    init["spec"]["volumes"] = manifest_of()["spec"]["volumes"]
    assert list(config_maps_with_scripts(init)) == ["m", "n"]
    init["spec"]["initContainers"][0]["command"] = ["/image/a"]
    assert list(config_maps_with_scripts(init)) == []
    malformed = {"spec": {"containers": "x", "volumes": init["spec"]["volumes"]}}
    assert list(config_maps_with_scripts(malformed)) == []


def test_the_config_maps_on_which_a_decision_depends() -> None:
    """Those with variables, NCCL's files, and scripts."""
    conf = {"name": "s", "mountPath": "/etc/nccl.conf", "subPath": "c"}
    sources = [{"configMapRef": {"name": "e"}}, {"secretRef": {"name": "x"}}]
    manifest = manifest_of("/more/a", envFrom=sources, volumeMounts=[conf, MORE])
    assert list(config_map_names(manifest)) == ["e", "m", "m", "n"]
