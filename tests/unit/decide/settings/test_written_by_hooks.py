"""What a container's hooks write into files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container
from webhook.decide.settings.reader import SettingsReader
from webhook.decide.settings.setting import Setting
from webhook.model.pod import Pod

PATH = ("spec", "containers", 0)
SOURCE = "text in its postStart hook"


def written(*scripts: str, **fields: Any) -> tuple[Setting, ...]:
    """Return what a container's postStart hook writes, `sh -c` with a script."""
    for script in scripts:
        fields["lifecycle"] = {"postStart": {"exec": {"command": ["sh", "-c", script]}}}
    manifest = {"spec": {"containers": [container(**fields)]}}
    return SettingsReader(Pod(manifest)).written_by_hooks(PATH)


@pytest.mark.parametrize(
    "script",
    [
        "echo NCCL_IB_DISABLE=1 >> /etc/nccl.conf",
        r"printf 'NCCL_DEBUG=INFO\nNCCL_IB_DISABLE=1\n' > /etc/nccl.conf",
        "echo NCCL_IB_DISABLE=1 | tee -a /etc/nccl.conf",
        "cat > /etc/nccl.conf <<END\nNCCL_IB_DISABLE=1\nEND",
        "if true; then echo NCCL_IB_DISABLE=1 >> /etc/nccl.conf; fi",
    ],
)
def test_what_it_writes_into_nccls_file(script: str) -> None:
    """It never overrides the container's env."""
    assert written(script) == (Setting("NCCL_IB_DISABLE", "1", SOURCE, yields_to_env=True),)


@pytest.mark.parametrize(
    "script",
    [
        'echo "export NCCL_IB_DISABLE=1" >> /etc/profile.d/site.sh',
        "echo 'export NCCL_IB_DISABLE=1' | tee ~/.bashrc",
        "python -c \"open('/etc/nccl.conf', 'a').write('NCCL_IB_DISABLE=1')\"",
    ],
)
def test_what_it_writes_into_another_file(script: str) -> None:
    """A command that sources the file exports it."""
    assert written(script) == (Setting("NCCL_IB_DISABLE", "1", SOURCE),)


@pytest.mark.parametrize(
    "script",
    [
        "export NCCL_IB_DISABLE=1",
        "export NCCL_IB_DISABLE=1; ./warm-up > /tmp/log",
        "if a; then export NCCL_IB_DISABLE=1; fi; ./warm-up > /tmp/log",
        "NCCL_IB_DISABLE=1 ./warm-up > /tmp/log",
        "NCCL_IB_DISABLE=1 ./warm-up > /tmp/log; ./more",
        "NCCL_IB_DISABLE=1 true > /tmp/log",
        "echo NCCL_IB_DISABLE=1",
        "echo NCCL_DEBUG=INFO > /etc/nccl.conf",
        "# echo NCCL_IB_DISABLE=1 > /etc/nccl.conf",
    ],
)
def test_what_stays_in_its_own_process(script: str) -> None:
    """Its exports and its output reach no other process."""
    assert written(script) == ()


def test_a_container_without_hooks() -> None:
    """Its own command is read elsewhere."""
    assert written(command=["sh", "-c", "echo NCCL_IB_DISABLE=1 >> /etc/nccl.conf"]) == ()


def test_a_probe_is_named() -> None:
    """It may run before the command reads the file."""
    probe = {"exec": {"command": ["sh", "-c", "echo NCCL_NET=Socket > /etc/nccl.conf; true"]}}
    (setting,) = written(startupProbe=probe)
    assert setting == Setting("NCCL_NET", "Socket", "text in its startupProbe", yields_to_env=True)


def test_the_variables_of_the_container_are_exported() -> None:
    """An assignment to one of these is no text that the hook writes."""
    script = "NCCL_NET=Socket; ./warm-up > /tmp/log"
    assert written(script, env=[{"name": "NCCL_NET", "value": "IB"}]) == ()
