"""The laws of `/validate`."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

import orjson

from tests.fuzz import cost
from tests.fuzz.cost import Allowance
from tests.fuzz.laws.broken import broken, check_line
from tests.fuzz.laws.costs import Costing, costs_little_memory, costs_little_time
from tests.fuzz.laws.mutations import is_uid
from tests.unit.serve.client import JSON, Answer, request
from webhook.admission.configuration_review import MAX_ERRORS
from webhook.admission.expected_registration import VALIDATE_PATH
from webhook.admission.response import MAX_WARNINGS_LENGTH
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import LoadedConfiguration, parse_fabrics, parse_object
from webhook.decide.admission_warnings import MAX_WARNING_LENGTH
from webhook.model.pod import at
from webhook.preview.worker.frames import frame_start
from webhook.preview.worker.operations import Operations
from webhook.serve.fair_queue import FairQueue
from webhook.serve.http.validate import Validate
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.state import State
from webhook.serve.worker_supervisor import WorkerAnswer, WorkerRequest

#: How the messages name the object and the file, which is not compared.
_NAME = "the object"
#: Characters that YAML would escape, and text that may be too long for a key in YAML.
_ESCAPED = r'[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|[^"]{1000}'
#: Fields that the API server adds to an object, and the webhook does not read.
_ADDED = ("metadata", "status")


class _Here:
    """The worker's operations in this process, without the worker's limits."""

    async def ask(self, worker_request: WorkerRequest, *_: Any, **__: Any) -> WorkerAnswer:
        """Answer at once."""
        head = {**worker_request.parameters, "operation": worker_request.operation}
        frame_start(head, len(worker_request.body))  # the real worker ends if its head is too large
        reply = Operations().answer(head, worker_request.body)
        return WorkerAnswer(reply.head["status"], reply.head, (reply.body,))


class Validated(Costing):
    """A body, and the answer of `/validate` to it."""

    allowance = Allowance(0.15, 1.5e-5, 1500)

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.size = len(body)
        self.measures_memory = True
        self.repeat = self._answer
        self.seconds, self.answer = cost.timed(self._answer)

    def _answer(self) -> Answer:
        app = Validate(State(), Metrics(), Log("error"), _Here(), FairQueue())  # type: ignore[arg-type]
        headers = [JSON, (b"content-length", b"%d" % self.size)]
        return asyncio.run(request(app, "POST", VALIDATE_PATH, self.body, headers=headers))

    @cached_property
    def uid(self) -> str:
        """The request's uid; "" if it cannot be read."""
        uid = at(self._document, ("request", "uid"))
        return uid if is_uid(uid) else ""

    @cached_property
    def object(self) -> dict[str, Any]:
        """The object in the request; fails without one."""
        manifest: dict[str, Any] = self._document["request"]["object"]
        return manifest

    @cached_property
    def _document(self) -> Any:
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None

    @cached_property
    def response(self) -> dict[str, Any]:
        """The response of the review; {} if the answer is a line of text."""
        response: dict[str, Any] = self.answer.response if self.answer.status == 200 else {}
        return response

    @property
    def status(self) -> dict[str, Any]:
        """The status of the response."""
        status: dict[str, Any] = self.response.get("status", {})
        return status

    @property
    def judged(self) -> bool:
        """Return whether the rules were applied: the object is new, or its spec has changed."""
        if not self.response or self.status:
            return bool(self.causes)
        old = at(self._document, ("request", "oldObject"))
        unchanged = old is not None and _sorted(old.get("spec")) == _sorted(self.object.get("spec"))
        return not unchanged and at(self.object, ("metadata", "deletionTimestamp")) is None

    @property
    def causes(self) -> list[dict[str, str]]:
        """The errors of a rejected object."""
        causes: list[dict[str, str]] = self.status.get("details", {}).get("causes", [])
        return causes


def _sorted(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def each_request_is_answered(observed: Validated) -> None:
    """There is no 500 and no 503, and a review has the request's uid."""
    if observed.answer.status not in (200, 400, 413):
        broken(
            f"HTTP {observed.answer.status}: {observed.answer.body!r:.300}",
            str(observed.answer.status),
        )
    if observed.answer.status == 200 and observed.uid not in ("", observed.response["uid"]):
        broken(f"uid {observed.response['uid']!r} for {observed.uid!r}", "uid")
    if observed.answer.status != 200 and observed.uid:
        broken(f"{observed.answer.body!r:.300} for {observed.uid!r}", "text")


def kubectl_can_show_it(observed: Validated) -> None:
    """A rejection has its reasons in lines that a terminal can show; a screen has room for them."""
    if not observed.response:
        return check_line(observed.answer.text.removesuffix("\n"))
    if observed.response["allowed"]:
        return None
    if observed.status["code"] not in (400, 422):
        broken(f"{observed.status}", "code")
    for line in observed.status["message"].split("\n"):
        check_line(line)
    for cause in observed.causes:
        check_line(f"{cause['field']}: {cause['message']}")
    if (observed.status["code"] == 422) != (0 < len(observed.causes) <= MAX_ERRORS + 1):
        broken(f"{len(observed.causes)} causes", "causes")
    return None


def warnings_arrive(observed: Validated) -> None:
    """The API server truncates and drops no warning, since all are within its limits."""
    lines = observed.response.get("warnings", [])
    if sum(map(len, lines)) > MAX_WARNINGS_LENGTH:
        broken(f"{sum(map(len, lines))} letters", "all")
    for line in lines:
        if not line.isascii() or not line.isprintable() or len(line) > MAX_WARNING_LENGTH:
            broken(f"{line!r:.300}", "line")
    if len({*lines}) != len(lines):
        broken(f"{lines!r:.300}", "twice")


def what_is_allowed_can_be_used(observed: Validated) -> None:
    """A replica can use an object if, and only if, it was allowed after a check."""
    if observed.judged and observed.response["allowed"] != _usable(observed.object):
        broken(f"allowed: {observed.response['allowed']}", str(observed.response["allowed"]))


def _usable(item: dict[str, Any]) -> bool:
    try:
        parse_object(item, _NAME)
    except InvalidConfiguration:
        return False
    return True


def check_config_reports_the_same(observed: Validated) -> None:
    """The same object in a file has the same errors and warnings, at the same paths."""
    if not observed.judged:
        return
    content = {key: value for key, value in observed.object.items() if key not in _ADDED}
    content["metadata"] = {"name": at(observed.object, ("metadata", "name"))}
    text = json.dumps(content, ensure_ascii=False)
    if not _is_alike_in_yaml(text):
        return
    file = _findings(lambda: parse_fabrics(text, _NAME))
    item = _findings(lambda: parse_object(content, _NAME))
    if file != item:
        broken(f"{[*file - item]!r:.200} of the file, {[*item - file]!r:.200} of the object")


def _is_alike_in_yaml(text: str) -> bool:
    """Return whether YAML reads it as JSON does.

    A file's fractions and largest numbers are text, some characters must be escaped, and a key has
    at most 1,024 characters.
    """
    numbers: list[str] = []
    json.loads(text, parse_float=numbers.append, parse_int=numbers.append)
    small = all(re.fullmatch(r"-?[1-9]\d{0,15}|0", number) for number in numbers)
    return small and re.search(_ESCAPED, text) is None


def _findings(load: Callable[[], LoadedConfiguration]) -> set[tuple[str, str, str]]:
    """Return the severities, paths and messages of the findings."""
    loaded: LoadedConfiguration | InvalidConfiguration
    try:
        loaded = load()
    except InvalidConfiguration as error:
        loaded = error
    return {(finding.level, finding.location.path, finding.text) for finding in loaded.findings}


VALIDATE_LAWS = (
    costs_little_time,
    each_request_is_answered,
    kubectl_can_show_it,
    warnings_arrive,
    what_is_allowed_can_be_used,
    check_config_reports_the_same,
    costs_little_memory,
)
