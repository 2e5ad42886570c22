from __future__ import annotations

from webhook.decide.settings.setting import Setting
from webhook.decide.settings.terms import OFF_VALUES, mentions


def test_every_variable_that_keeps_a_library_off() -> None:
    """A text may mention all; each is a setting that names where it is."""
    text = "\n".join(f"{name}={value}" for name, value in OFF_VALUES.items())
    expected = [Setting(name, value, "text in its command") for name, value in OFF_VALUES.items()]
    assert list(mentions(text, ())) == expected
