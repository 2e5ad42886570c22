"""The check as text and as JSON, and when it is passed."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from tests.generated_pages import DOCS, assert_up_to_date
from tests.unit.diagnose.install.installation import Installation
from webhook.diagnose.install.answer import CheckedPart, InstallCheck
from webhook.diagnose.install.codes import CODES
from webhook.diagnose.install.output import install_form, install_schema, install_text
from webhook.model.finding import LEVELS, Finding, Level

PAGE = DOCS / "check-install.md"


def of_level(level: Level) -> InstallCheck:
    """Return a check whose worst finding has a level."""
    findings = (Finding("ok", "Checked", "fine"), Finding(level, "Checked", "this"))
    return InstallCheck((CheckedPart("objects", findings),))


@pytest.mark.parametrize("level", LEVELS)
def test_when_it_is_passed(level: Level) -> None:
    """Only an error fails; with `strict`, a warning does, and what was not checked."""
    check = of_level(level)
    assert check.level == level
    assert check.passes(strict=False) is (level != "error")
    assert check.passes(strict=True) is (level in ("ok", "info"))


def test_nothing_was_checked() -> None:
    """That is no success."""
    assert InstallCheck(()).level == "unsure"


def test_the_text() -> None:
    """A part has a heading; the last line has the sign of the worst level."""
    findings = (
        Finding("ok", "Checked", "a is there"),
        Finding("error", "ObjectMissing", "b is not there", "Apply it."),
    )
    check = InstallCheck((CheckedPart("objects", findings), CheckedPart("dry run", findings[:1])))
    assert install_text(check, width=80) == (
        "Objects\n"
        "  ✔ a is there\n"
        "  ✘ b is not there [ObjectMissing]\n"
        "    → Apply it.\n"
        "Dry run\n"
        "  ✔ a is there\n"
        "\n"
        "✘ 2 ok, 1 error\n"
    )


def test_the_json() -> None:
    """It has the same findings, and the result."""
    form = install_form(of_level("warning"), strict=True)
    assert form == {
        "level": "warning",
        "passed": False,
        "parts": [
            {
                "part": "objects",
                "findings": [
                    {
                        "level": "ok",
                        "code": "Checked",
                        "text": "fine",
                        "remedy": "",
                        "location": {},
                    },
                    {
                        "level": "warning",
                        "code": "Checked",
                        "text": "this",
                        "remedy": "",
                        "location": {},
                    },
                ],
            }
        ],
    }
    assert install_form(of_level("warning"), strict=False)["passed"] is True


def test_the_schema(installation: Installation) -> None:
    """The JSON of an installation fits it."""
    validator = Draft202012Validator(json.loads(install_schema()))
    validator.validate(install_form(installation.check("lab"), strict=False))


def test_codes_are_used_once() -> None:
    """Each code is defined by one module."""
    names = [code.code for code in CODES]
    assert len(set(names)) == len(names)


def test_the_page_shows_the_output(installation: Installation) -> None:
    """The example is an installation whose namespace lacks the label, and with a missing guard."""
    installation.delete("ValidatingAdmissionPolicyBinding", "rdma-webhook-guard")
    installation.objects["/api/v1/namespaces/lab"]["metadata"]["labels"] = {}
    text = install_text(installation.check("lab"), width=110)
    written = f"```console\n$ rdma-webhook check-install --try lab\n{text}```\n"
    assert_up_to_date(PAGE, "<!-- output: ", "<!-- end of output -->", written)
