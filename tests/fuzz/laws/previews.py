"""The laws of previews."""

from __future__ import annotations

import json

import jsonpatch

from tests.fuzz import cost
from tests.fuzz.cost import Allowance
from tests.fuzz.laws.broken import broken, check_line
from tests.fuzz.laws.costs import Costing, costs_little_memory, costs_little_time
from tests.fuzz.laws.mutations import World
from webhook.errors import DocumentError
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.patches import RewrittenDocument, patches, rewrite
from webhook.preview.report.json import report_json
from webhook.preview.report.record import Report
from webhook.preview.report.text import report_text
from webhook.text.yaml.documents import Document, join_documents, read_documents


class Previewed(Costing):
    """A text, and its preview in every form."""

    allowance = Allowance(0.15, 3e-5, 2000)

    def __init__(self, data: bytes, world: World, *, enable: bool) -> None:
        self.data = data
        self.world = world
        self.options = PreviewOptions(
            configuration=world.configuration, namespace="lab", enable=enable, max_pods=500
        )
        self.size = len(data)
        self.measures_memory = True
        self.repeat = self._all
        self.refusal = ""
        self.seconds, outputs = cost.timed(self._all)
        self.documents, self.report, self.rewritten, self.forms = outputs

    def _all(
        self,
    ) -> tuple[list[Document], Report | None, list[RewrittenDocument], dict[str, str]]:
        try:
            documents = read_documents(self.data, "body")
            report = preview_documents(documents, self.options)
        except DocumentError as error:
            self.refusal = str(error)
            return [], None, [], {}
        rewritten = rewrite(documents, report)
        forms = {
            "json": report_json(report),
            "text": report_text(report),
            "yaml": join_documents([part.text for part in rewritten]),
        }
        return documents, report, rewritten, forms


def a_refusal_is_a_line(observed: Previewed) -> None:
    """An unreadable text is rejected in one line that a terminal can show."""
    check_line(observed.refusal)


def the_forms_can_be_shown(observed: Previewed) -> None:
    """The JSON form is JSON, and the text form has no character that acts as a terminal command."""
    if observed.report is None:
        return
    json.loads(observed.forms["json"])
    for line in observed.forms["text"].split("\n"):
        check_line(line)


def the_text_reads_as_the_patched_value(observed: Previewed) -> None:
    """The rewritten documents have the values that another library makes from the patches."""
    if observed.report is None:
        return
    for document, ops, rewritten in zip(
        observed.documents,
        patches(observed.documents, observed.report),
        observed.rewritten,
        strict=True,
    ):
        if not ops:
            if rewritten.text != document.text:
                broken("a document without a patch changed", "untouched")
            continue
        value = json.loads(json.dumps(document.value))
        expected = jsonpatch.apply_patch(value, ops, in_place=True)
        (read,) = read_documents(rewritten.text, "rewritten")
        if json.dumps(read.value, sort_keys=True) != json.dumps(expected, sort_keys=True):
            broken(f"{rewritten.text!r:.300}", "value")


WORKLOAD_LAWS = (
    costs_little_time,
    a_refusal_is_a_line,
    the_forms_can_be_shown,
    the_text_reads_as_the_patched_value,
    costs_little_memory,
)
