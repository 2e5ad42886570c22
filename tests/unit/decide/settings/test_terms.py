from __future__ import annotations

import pytest

from tests.unit.decide.settings.reading import settings_of
from webhook.decide.settings.setting import Setting
from webhook.decide.settings.terms import OFF_VALUE_BY_VARIABLE, mentions


def test_every_variable_that_keeps_a_library_off() -> None:
    """A text may mention all; each is a setting that names where it is."""
    text = "\n".join(f"{name}={value}" for name, value in OFF_VALUE_BY_VARIABLE.items())
    expected = [
        Setting(name, value, "text in its command") for name, value in OFF_VALUE_BY_VARIABLE.items()
    ]
    assert list(mentions(text, ())) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("echo NCCL_NET=Socket", "Socket"),
        ("source <(echo export NCCL_NET=Socket); ./a", "Socket"),
        (". <(echo NCCL_NET=Socket)", "Socket"),
        ('eval "$(echo NCCL_NET=Socket)"', "Socket"),
        ("NCCL_NET=$(cat /a)", None),
        ("sed -i s/NCCL_NET=IB/NCCL_NET=Socket/ /etc/nccl.conf", "Socket"),
        ("sed -i 's/NCCL_NET=.*/NCCL_NET=Socket/g' /etc/nccl.conf", "Socket"),
        ("sed -i s#NCCL_NET=IB#NCCL_NET=Socket#g a", "Socket"),
        ("sed -i 's@NCCL_NET=IB@NCCL_NET=Socket@gI' a", "Socket"),
        ("sed -i 's,NCCL_NET=IB,NCCL_NET=Socket,' a", "Socket"),
        ("sed -i s:NCCL_NET=IB:NCCL_NET=Socket: a", "Socket"),
        ("sed -i 's|NCCL_NET=IB|NCCL_NET=Socket|' a", "Socket"),
        ("sed 's/NCCL_NET=IB/NCCL_NET=Socket/'", "Socket"),
        ("echo NCCL_NET=/a/b,c:1@x#y/gh", "/a/b,c:1@x#y/gh"),
        ("echo NCCL_NET=a/ggg", "a/ggg"),
    ],
)
def test_where_a_value_ends(text: str, value: str | None) -> None:
    """At a parenthesis, or between the parts of a sed command; a replaced value does not count."""
    expected = Setting("NCCL_NET", value, "text in its command")
    assert list(mentions(text, ())) == [expected]
    assert list(mentions(text, ("NCCL_NET",))) == []


def test_a_value_after_that_of_another_variable() -> None:
    """Each has its own."""
    settings = mentions("a NCCL_NET=x,NCCL_IB_DISABLE=1,UCX_TLS=tcp,self", ())
    assert {setting.name: setting.value for setting in settings} == {
        "NCCL_NET": "x",
        "NCCL_IB_DISABLE": "1",
        "UCX_TLS": "tcp,self",
    }


def test_a_value_that_continues_that_of_a_known_variable() -> None:
    """`-x A=B,C=D` sets A alone; after a blank, a variable is one of its own."""
    text = "mpirun -x NCCL_NET=Socket,UCX_TLS=tcp,NCCL_IB_DISABLE=1 probe UCX_TLS=self,sm"
    settings = mentions(text, ("NCCL_NET",))
    assert [(setting.name, setting.value) for setting in settings] == [("UCX_TLS", "self,sm")]


def test_a_comment_is_no_mention() -> None:
    """Nor does it move what follows it."""
    script = "# NCCL_NET=Socket\nsed s/UCX_TLS=all/UCX_TLS=tcp/ a"
    settings = mentions(script, ())
    assert [(setting.name, setting.value) for setting in settings] == [("UCX_TLS", "tcp")]


def test_a_script_of_sed_or_in_a_process_substitution() -> None:
    """As a container's command."""
    for script in (
        "source <(echo export NCCL_NET=Socket); ./a",
        "sed -i s/NCCL_NET=IB/NCCL_NET=Socket/ a",
    ):
        settings = settings_of("bash", "-c", script)
        assert settings.possible == (Setting("NCCL_NET", "Socket", "text in its command"),)
