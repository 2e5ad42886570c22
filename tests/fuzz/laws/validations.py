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
from tests.unit.serve.client import JSON, Answer, request
from webhook.admission.configuration_review import MOST_ERRORS
from webhook.admission.response import WARNINGS_IN_ALL
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import Loaded, parse_fabrics, parse_object
from webhook.decide.admission_warnings import LONGEST
from webhook.model.pod import at
from webhook.preview.worker.operations import Operations
from webhook.serve.http.validate import PATH, Validate
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.state import State
from webhook.serve.worker.queue import FairQueue
from webhook.serve.worker.supervisor import Job, WorkerAnswer

#: How the messages name the object and the file, which is not compared.
_NAME = "the object"
#: What YAML would have escaped, and what may be a key too long for it.
_ESCAPED = r'[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|[^"]{1000}'
#: What the API server adds to an object, and the webhook does not read.
_ADDED = ("metadata", "status")


class _Here:
    """The worker's operations in this process, without the worker's limits."""

    async def ask(self, job: Job, *_: Any, **__: Any) -> WorkerAnswer:
        """Answer at once."""
        head = {**job.parameters, "operation": job.operation}
        reply = Operations().answer(head, job.body)
        return WorkerAnswer(reply.head["status"], reply.head, (reply.body,))


class Validated(Costing):
    """A body, and the answer of `/validate` to it."""

    allowance = Allowance(0.15, 1.5e-5, 1500)

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.size = len(body)
        self.weigh = True
        self.again = self._answer
        self.seconds, self.answer = cost.timed(self._answer)

    def _answer(self) -> Answer:
        app = Validate(State(), Metrics(), Log("error"), _Here(), FairQueue())  # type: ignore[arg-type]
        headers = [JSON, (b"content-length", b"%d" % self.size)]
        return asyncio.run(request(app, "POST", PATH, self.body, headers=headers))

    @cached_property
    def uid(self) -> str:
        """The request's uid; "" if it cannot be read."""
        found = at(self._document, ("request", "uid"))
        return found if isinstance(found, str) else ""

    @cached_property
    def object(self) -> dict[str, Any]:
        """The object in the request; fails if there is none."""
        found: dict[str, Any] = self._document["request"]["object"]
        return found

    @cached_property
    def _document(self) -> Any:
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None

    @cached_property
    def response(self) -> dict[str, Any]:
        """The response of the review; {} if the answer is a line of text."""
        found: dict[str, Any] = self.answer.response if self.answer.status == 200 else {}
        return found

    @property
    def status(self) -> dict[str, Any]:
        """The status of the response."""
        found: dict[str, Any] = self.response.get("status", {})
        return found

    @property
    def judged(self) -> bool:
        """Whether the rules were applied to an object: it is new, or its spec has changed."""
        if not self.response or self.status:
            return bool(self.causes)
        old = at(self._document, ("request", "oldObject"))
        unchanged = old is not None and _sorted(old.get("spec")) == _sorted(self.object.get("spec"))
        return not unchanged and at(self.object, ("metadata", "deletionTimestamp")) is None

    @property
    def causes(self) -> list[dict[str, str]]:
        """The errors of a rejected object."""
        found: list[dict[str, str]] = self.status.get("details", {}).get("causes", [])
        return found


def _sorted(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def each_request_is_answered(seen: Validated) -> None:
    """There is no 500 and no 503, and a review has the request's uid."""
    if seen.answer.status not in (200, 400, 413):
        broken(f"HTTP {seen.answer.status}: {seen.answer.body!r:.300}", str(seen.answer.status))
    if seen.answer.status == 200 and seen.uid not in ("", seen.response["uid"]):
        broken(f"uid {seen.response['uid']!r} for {seen.uid!r}", "uid")
    if seen.answer.status != 200 and seen.uid:
        broken(f"{seen.answer.body!r:.300} for {seen.uid!r}", "text")


def kubectl_can_show_it(seen: Validated) -> None:
    """A rejection says why in lines that a terminal can show; a screen has room for them."""
    if not seen.response:
        return check_line(seen.answer.text.removesuffix("\n"))
    if seen.response["allowed"]:
        return None
    if seen.status["code"] not in (400, 422):
        broken(f"{seen.status}", "code")
    for line in seen.status["message"].split("\n"):
        check_line(line)
    for cause in seen.causes:
        check_line(f"{cause['field']}: {cause['message']}")
    if (seen.status["code"] == 422) != (0 < len(seen.causes) <= MOST_ERRORS + 1):
        broken(f"{len(seen.causes)} causes", "causes")
    return None


def warnings_arrive(seen: Validated) -> None:
    """The API server truncates no warning and drops none, as it does with one it has sent."""
    lines = seen.response.get("warnings", [])
    if sum(map(len, lines)) > WARNINGS_IN_ALL:
        broken(f"{sum(map(len, lines))} letters", "all")
    for line in lines:
        if not line.isascii() or not line.isprintable() or len(line) > LONGEST:
            broken(f"{line!r:.300}", "line")
    if len({*lines}) != len(lines):
        broken(f"{lines!r:.300}", "twice")


def what_is_allowed_can_be_used(seen: Validated) -> None:
    """A replica can use an object if, and only if, it was allowed after a check."""
    if seen.judged and seen.response["allowed"] != _usable(seen.object):
        broken(f"allowed: {seen.response['allowed']}", str(seen.response["allowed"]))


def _usable(item: dict[str, Any]) -> bool:
    try:
        parse_object(item, _NAME)
    except InvalidConfiguration:
        return False
    return True


def check_config_says_the_same(seen: Validated) -> None:
    """The same object in a file has the same errors and warnings, at the same paths."""
    if not seen.judged:
        return
    own = {key: value for key, value in seen.object.items() if key not in _ADDED}
    own["metadata"] = {"name": at(seen.object, ("metadata", "name"))}
    text = json.dumps(own, ensure_ascii=False)
    if not _is_alike_in_yaml(text):
        return
    file = _findings(lambda: parse_fabrics(text, _NAME))
    item = _findings(lambda: parse_object(own, _NAME))
    if file != item:
        broken(f"{[*file - item]!r:.200} of the file, {[*item - file]!r:.200} of the object")


def _is_alike_in_yaml(text: str) -> bool:
    """Whether YAML reads it as JSON does.

    A file's fractions and largest numbers are taken as text, some characters must be escaped, and a
    key has at most 1,024 characters.
    """
    numbers: list[str] = []
    json.loads(text, parse_float=numbers.append, parse_int=numbers.append)
    small = all(re.fullmatch(r"-?[1-9]\d{0,15}|0", one) for one in numbers)
    return small and re.search(_ESCAPED, text) is None


def _findings(load: Callable[[], Loaded]) -> set[tuple[str, str, str]]:
    """Return the severities, paths and messages of the findings."""
    found: Loaded | InvalidConfiguration
    try:
        found = load()
    except InvalidConfiguration as error:
        found = error
    return {(one.level, one.location.path, one.text) for one in found.findings}


VALIDATE_LAWS = (
    costs_little_time,
    each_request_is_answered,
    kubectl_can_show_it,
    warnings_arrive,
    what_is_allowed_can_be_used,
    check_config_says_the_same,
    costs_little_memory,
)
