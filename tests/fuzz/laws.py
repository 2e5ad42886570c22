"""The laws that every case must obey; each is a function that reports how a case broke it."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import jsonpatch
import orjson

from tests.api_server import defaulted
from tests.fuzz import cost
from tests.fuzz.cost import Allowance, Work
from tests.fuzz.worlds import CLUSTERS
from tests.property.allowed import Own, forbidden, names_of
from tests.property.changes import key_orders
from webhook.app.http.mutate import Answer, Mutate
from webhook.config.findings import Finding, InvalidConfiguration
from webhook.config.load import Loaded, parse_fabrics
from webhook.config.yaml_file import decode
from webhook.decision.annotations import ENABLE, STATUS
from webhook.decision.facts import Facts
from webhook.decision.scope import Context
from webhook.errors import DocumentError
from webhook.fabric.records import Fabrics
from webhook.mpi.commands import Commands, Launch
from webhook.pipeline.decide import decide
from webhook.pod.manifest import at
from webhook.pod.path import Path, dotted
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.rewrite import Rewritten, patches, rewrite
from webhook.render.json_form import form_text
from webhook.render.report import Report
from webhook.render.text import report_text
from webhook.yamltext.documents import Document, joined, read_documents


class BrokenLawError(AssertionError):
    """A law does not hold; `where` distinguishes the ways of breaking it."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.where = where


def _broken(message: str, where: str = "") -> NoReturn:
    raise BrokenLawError(message, where)


class Costing:
    """Work that was done once, and can be repeated to measure its cost."""

    size: int
    seconds: float
    allowance: Allowance
    again: Work
    weigh: bool


def costs_little_time(seen: Costing) -> None:
    """Processor time is bounded by the size of the input, whatever its content."""
    most = seen.allowance.time(seen.size)
    if seen.seconds > most:
        least = cost.least_time(seen.again, most)
        if least > most:
            _broken(f"{seen.size} bytes took {least:.3f} s of processor time, not {most:.3f}")


def costs_little_memory(seen: Costing) -> None:
    """Memory is bounded by the size of the input, and hardly any remains in use afterwards."""
    if seen.weigh:
        most, kept = cost.weighed(seen.again)
        if most > seen.allowance.memory(seen.size):
            _broken(f"{seen.size} bytes took {most} bytes of memory", "peak")
        if kept > cost.KEPT:
            _broken(f"{kept} bytes stay of a case of {seen.size} bytes", "kept")


# /mutate


class World(NamedTuple):
    """The surroundings of a decision on a pod."""

    replicas: tuple[Mutate, Mutate]  #: that have read the same, independently
    own: Own
    fabrics: Fabrics


class Answered(Costing):
    """A body, the answer of `/mutate` to it, and everything derived from the two."""

    allowance = Allowance(0.03, 2.5e-7)

    def __init__(self, body: bytes, world: World) -> None:
        self.body = body
        self.replicas, self.own, self.fabrics = world
        self.seconds, self.answer = cost.timed(lambda: self.replicas[0].answer(body))
        self.size = len(body)
        self.weigh = True
        self.again = lambda: self.replicas[0].answer(body)

    @cached_property
    def document(self) -> Any:
        """The parsed body; None if it is not JSON."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None

    @cached_property
    def pod(self) -> Any:
        """The pod in the request, if the answer is about one."""
        return self.document["request"]["object"]

    @cached_property
    def response(self) -> dict[str, Any]:
        """The response of the review."""
        found: dict[str, Any] = orjson.loads(self.answer.body)["response"]
        return found

    @cached_property
    def patch(self) -> list[Any]:
        """The operations of the response."""
        written = self.response.get("patch")
        return orjson.loads(base64.b64decode(written, validate=True)) if written else []

    @cached_property
    def after(self) -> Any:
        """The pod as jsonpatch, an independent library, makes it."""
        pod = orjson.loads(self.body)["request"]["object"]
        return jsonpatch.apply_patch(pod, self.patch, in_place=True)

    @cached_property
    def body_after(self) -> bytes:
        """The same review, for the resulting pod."""
        return self.about(self.after)

    def about(self, pod: Any) -> bytes:
        """Write the same review for another pod."""
        review = {**self.document, "request": {**self.document["request"], "object": pod}}
        return json.dumps(review).encode()

    @cached_property
    def second_pass(self) -> tuple[Answer, ...]:
        """The answers about the resulting pod, of this replica and of another one."""
        return tuple(one.answer(self.body_after) for one in self.replicas)

    @property
    def is_review(self) -> bool:
        """Whether the answer is a review, not a line of text."""
        return self.answer.status == 200

    @property
    def decided(self) -> bool:
        """Whether the answer allows a pod after a decision."""
        return self.is_review and self.answer.decision is not None and self.answer.decision.allowed


def no_defect_of_ours(seen: Answered) -> None:
    """No pod causes a defect: there is no 500 and no 503."""
    error = seen.answer.error
    if error is not None:
        raise error
    if seen.answer.status not in (200, 400):
        _broken(f"HTTP {seen.answer.status}", str(seen.answer.status))


def the_uid_is_right(seen: Answered) -> None:
    """The answer has the request's uid if one can be read."""
    request = seen.document.get("request") if seen.document.__class__ is dict else None
    asked = request.get("uid") if request.__class__ is dict else None
    if not seen.is_review:
        if asked.__class__ is str and asked:
            _broken(f"no uid in the answer, {asked!r} in the request", "none")
    elif asked.__class__ is not str or not asked:
        quoted = json.dumps(seen.response["uid"]).encode()
        if quoted not in seen.body:
            _broken(f"uid {quoted!r} stands nowhere in the body", "invented")
    elif seen.response["uid"] != asked:
        _broken(f"uid {seen.response['uid']!r} for {asked!r}", "another")


_FIELDS = {
    "uid": str,
    "allowed": bool,
    "patch": str,
    "patchType": str,
    "warnings": list,
    "auditAnnotations": dict,
    "status": dict,
}
_AUDIT_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


def the_answer_is_well_formed(seen: Answered) -> None:
    """The API server accepts the answer: an AdmissionReview v1, or one line of text with a 400."""
    if not seen.is_review:
        line = seen.answer.body.decode()
        if not line.endswith("\n") or line.count("\n") != 1:
            _broken(f"not one line: {line!r:.200}", "text")
        return
    review = orjson.loads(seen.answer.body)
    if review.keys() != {"apiVersion", "kind", "response"}:
        _broken(f"keys {list(review)}", "review")
    response = seen.response
    for key, value in response.items():
        if value.__class__ is not _FIELDS.get(key):
            _broken(f"{key}: {value!r:.80}", key)
    if ("patch" in response) != (response.get("patchType") == "JSONPatch"):
        _broken("a patch without its type, or the reverse", "patchType")
    _check_words(response)


def _check_words(response: dict[str, Any]) -> None:
    """Check the texts for people: a rejection's message, warnings, audit annotations."""
    status = response.get("status", {})
    if not response["allowed"]:
        if "patch" in response:
            _broken("a patch in a refusal", "patch")
        if not status.get("message") or status.get("code") not in (400, 403):
            _broken(f"refused with {status}", "status")
    _check_warnings(response.get("warnings", []))
    for key, value in response.get("auditAnnotations", {}).items():
        if value.__class__ is not str or not _AUDIT_KEY.fullmatch(key):
            _broken(f"audit annotation {key}: {value!r}", "auditAnnotations")


def _check_warnings(warnings: list[Any]) -> None:
    for line in warnings:
        if line.__class__ is not str or not line.isascii() or not line.isprintable():
            _broken(f"warning {line!r:.300}", "warnings")
        if len(line) > 120:
            _broken(f"a warning of {len(line)} letters: {line:.200}", "long warning")
    if sum(map(len, warnings)) >= 4096:
        _broken("warnings of 4096 characters", "warnings")


def the_patch_applies(seen: Answered) -> None:
    """Another library applies the patch, and the result is the decision's pod."""
    if not seen.is_review:
        return
    try:
        after = seen.after if seen.patch else None
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError) as error:
        _broken(f"{type(error).__name__}: {error}", type(error).__name__)
    if seen.decided and seen.answer.decision is not None:
        shown = seen.answer.decision.pod
        if (seen.pod if after is None else after) != shown:
            _broken("the pod of the decision is not what the patch makes")


def a_second_pass_changes_nothing(seen: Answered) -> None:
    """Called again for the result, neither this replica nor another one changes anything."""
    if not seen.decided:
        return
    for name, again in zip(("here", "elsewhere"), seen.second_pass, strict=True):
        if again.error is not None:
            raise again.error
        found = orjson.loads(again.body)["response"]
        if not found["allowed"]:
            _broken(f"{name}: refused: {found['status']['message']:.200}", "refused")
        if "patch" in found:
            ops = orjson.loads(base64.b64decode(found["patch"]))
            _broken(f"{name}: {ops!r:.300}", _shapes(one["path"] for one in ops))


def only_allowed_leaves_change(seen: Answered) -> None:
    """Only what the design lists changes; additions are in known places only."""
    if seen.decided:
        for change in forbidden(seen.pod, seen.after, seen.own):
            _broken(f"{change!r:.300}", f"{change.kind} {_shapes([dotted(change.path)])}")


def keys_keep_their_order(seen: Answered) -> None:
    """All keys keep their order, including unknown ones."""
    if seen.decided and not key_orders(seen.pod, seen.after):
        _broken("keys stand in another order")


_POWERS = ("hostNetwork", "hostPID", "hostIPC")
_FIELDS_OF_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def no_power_is_given(seen: Answered) -> None:
    """No capability but IPC_LOCK is added, no host namespace, and nothing privileged."""
    if not seen.decided or not seen.patch:
        return
    for power in _POWERS:
        before, after = (at(one, ("spec", power)) for one in (seen.pod, seen.after))
        if before != after:
            _broken(f"{power} was {before} and is {after}", power)
    for before, after in _containers(seen):
        _check_security(before.get("securityContext"), after.get("securityContext"))


def _containers(seen: Answered) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Pair the containers before and after; skip those of a wrong type."""
    for field in _FIELDS_OF_CONTAINERS:
        before, after = (_listed(one, ("spec", field)) for one in (seen.pod, seen.after))
        if len(before) != len(after):
            _broken(f"{len(after)} {field}, and there were {len(before)}", field)
        yield from zip(before, after, strict=True)


def _listed(node: Any, path: Path) -> list[dict[str, Any]]:
    found = at(node, path)
    listed = found if found.__class__ is list else []
    return [one for one in listed if one.__class__ is dict]


def _check_security(before: Any, after: Any) -> None:
    before, after = (one if one.__class__ is dict else {"": one or {}} for one in (before, after))
    for key in (before.keys() | after.keys()) - {"capabilities"}:
        if (before.get(key) or {}) != (after.get(key) or {}):
            _broken(f"{key} was {before.get(key)} and is {after.get(key)}", key)
    if at(before, ("capabilities", "drop")) != at(after, ("capabilities", "drop")):
        _broken("capabilities.drop changed", "drop")
    own, ours = (at(one, ("capabilities", "add")) or [] for one in (before, after))
    if ours != own and (own.__class__ is not list or ours != [*own, "IPC_LOCK"]):
        _broken(f"capabilities were {own} and are {ours}", "add")


def no_name_is_doubled(seen: Answered) -> None:
    """No variable, volume or mount is added beside one with the same name or path."""
    if not seen.decided or not seen.patch:
        return
    for before, after in _containers(seen):
        _check_doubled(before, after, ("env",), "name")
        _check_doubled(before, after, ("volumeMounts",), "mountPath")
    _check_doubled(seen.pod, seen.after, ("spec", "volumes"), "name")


def _check_doubled(before: Any, after: Any, path: Path, key: str) -> None:
    had, has = (
        Counter(str(one.get(key)) for one in _listed(node, path)) for node in (before, after)
    )
    for name, count in has.items():
        if count > 1 and count > had[name]:
            _broken(f"{dotted((*path, key))} {name} stands there {count} times", key)


def who_did_not_opt_in_is_untouched(seen: Answered) -> None:
    """Without the annotation there is no patch and no rejection."""
    decision = seen.answer.decision
    if decision is None or decision.pod.__class__ is not dict:
        return
    parts = [at(seen.pod, path) for path in (("metadata",), ("metadata", "annotations"))]
    in_shape = all(one is None or one.__class__ is dict for one in parts)
    asked = at(seen.pod, ("metadata", "annotations", ENABLE))
    if asked in (None, "false") and in_shape and (seen.patch or not seen.response["allowed"]):
        _broken("a pod that did not opt in was touched")


def what_was_done_is_told(seen: Answered) -> None:
    """A changed pod has a new status: bounded JSON, with the hash of this configuration."""
    if not seen.decided or not seen.patch:
        return
    annotations = seen.after["metadata"]["annotations"]
    status = annotations.get(STATUS)
    used = sum(len(str(one).encode()) for pair in annotations.items() for one in pair)
    if used > _ANNOTATIONS:
        return  # the API server rejects such a pod
    if status is None:
        if used < _ANNOTATIONS - 2 * _LONGEST_STATUS:
            _broken("no status, though there is room", "none")
    elif len(status) > _LONGEST_STATUS:
        _broken(f"a status of {len(status)} letters", "long")
    elif at(_read(status), ("config",)) != seen.fabrics.config_hash:
        _broken(f"status {status!r:.200}", "config")


def _read(status: str) -> Any:
    try:
        return orjson.loads(status)
    except orjson.JSONDecodeError:
        return None


_ANNOTATIONS, _LONGEST_STATUS = 256 * 1024, 4096


def defaults_in_between_change_nothing(seen: Answered) -> None:
    """If the API server adds its defaults after the webhook, a second pass changes nothing."""
    if not seen.decided or not _is_typed(seen.pod):
        return
    body = seen.about(defaulted(seen.after))
    found = orjson.loads(seen.replicas[0].answer(body).body)["response"]
    ops = orjson.loads(base64.b64decode(found.get("patch", ""))) if "patch" in found else []
    if ops:
        _broken(f"{ops!r:.300}", _shapes(one["path"] for one in ops))


def _is_typed(pod: Any) -> bool:
    """Whether defaulting can be emulated: all parts have the types that the API server requires."""
    try:
        defaulted(pod)
    except Exception:  # noqa: BLE001 -- the API server rejects such a pod before the webhook
        return False
    return True


MUTATE_LAWS = (
    costs_little_time,
    no_defect_of_ours,
    the_answer_is_well_formed,
    the_uid_is_right,
    the_patch_applies,
    no_power_is_given,
    no_name_is_doubled,
    only_allowed_leaves_change,
    keys_keep_their_order,
    who_did_not_opt_in_is_untouched,
    what_was_done_is_told,
    a_second_pass_changes_nothing,
    defaults_in_between_change_nothing,
    costs_little_memory,
)


def _shapes(paths: Any) -> str:
    """Write paths with # for their numbers, so that each way of breaking a law has one text."""
    return ", ".join(sorted({re.sub(r"\d+", "#", str(path)) for path in paths}))[:200]


# Scripts

_FIRST: Path = ("spec", "containers", 0)
_FLAG = " -mca coll_hcoll_enable 0"
_LAUNCHES = re.compile(r"(mpirun|mpiexec|rterun)[\w.-]*$")


class Scripted(Answered):
    """A pod whose only container is a launcher that runs a shell script."""

    allowance = Allowance(0.05, 2.5e-7)

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """The launches that were found."""
        return Commands(self.pod).launches(_FIRST)

    @property
    def words(self) -> list[str]:
        """The container's words before the decision."""
        return _words(self.pod)

    @property
    def edited(self) -> bool:
        """Whether a word of the container has changed."""
        return _words(self.after) != self.words


def _words(pod: Any) -> list[str]:
    one = pod["spec"]["containers"][0]
    return [*one["command"], *one.get("args", ())]


def a_place_is_behind_a_launcher(seen: Scripted) -> None:
    """The flag is inserted only directly after a launcher's word."""
    if not seen.decided or not seen.edited:
        return
    for before, after in _edited(seen):
        ends = [found.start() for found in re.finditer(_FLAG, after)]
        for end in ends if _FLAG not in before else ():
            word = re.sub(r"\\\n|[\\\'\"]", "", after[:end])
            if not _LAUNCHES.search(word):
                _broken(f"the flag stands behind {after[:end][-40:]!r}")


def _edited(seen: Scripted) -> list[tuple[str, str]]:
    """Pair each changed word with its new text."""
    pairs = zip(seen.words, _words(seen.after), strict=False)
    return [(before, after) for before, after in pairs if before != after]


def bash_takes_both(seen: Scripted) -> None:
    """A script that bash accepts is accepted with the flag, too."""
    if not seen.decided or not seen.edited:
        return
    for before, after in _edited(seen):
        if _is_script(before) and not _is_script(after):
            _broken(f"bash took {before!r:.200}, but not {after!r:.200}")


def _is_script(text: str) -> bool:
    command = ["bash", "--norc", "-n"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    return done.returncode == 0


SHELL_LAWS = (a_place_is_behind_a_launcher, bash_takes_both, *MUTATE_LAWS)


# Previews


class Previewed(Costing):
    """A text, and its preview in every form."""

    allowance = Allowance(0.15, 3e-5, 2000)

    def __init__(self, data: bytes, world: World, *, enable: bool) -> None:
        self.data = data
        self.world = world
        self.options = PreviewOptions(
            fabrics=world.fabrics, namespace="lab", enable=enable, most=500
        )
        self.size = len(data)
        self.weigh = True
        self.again = self._all
        self.refusal = ""
        self.seconds, found = cost.timed(self._all)
        self.documents, self.report, self.rewritten, self.forms = found

    def _all(
        self,
    ) -> tuple[list[Document], Report | None, list[Rewritten], dict[str, str]]:
        try:
            documents = read_documents(self.data, "body")
            report = preview_documents(documents, self.options)
        except DocumentError as error:
            self.refusal = str(error)
            return [], None, [], {}
        rewritten = rewrite(documents, report)
        forms = {
            "json": form_text(report),
            "text": report_text(report),
            "yaml": joined([one.text for one in rewritten]),
        }
        return documents, report, rewritten, forms


def a_refusal_is_a_line(seen: Previewed) -> None:
    """An unreadable text is rejected in one line that a terminal can show."""
    _check_line(seen.refusal)


def _check_line(line: str) -> None:
    if not line.isprintable():
        _broken(f"not one printable line: {line!r:.300}", "printable")


def the_forms_can_be_shown(seen: Previewed) -> None:
    """The JSON form is JSON, and the text form has no character that acts as a terminal command."""
    if seen.report is None:
        return
    json.loads(seen.forms["json"])
    for line in seen.forms["text"].split("\n"):
        _check_line(line)


def the_text_reads_as_the_patched_value(seen: Previewed) -> None:
    """The rewritten documents have the values that another library makes from the patches."""
    if seen.report is None:
        return
    for document, ops, rewritten in zip(
        seen.documents, patches(seen.documents, seen.report), seen.rewritten, strict=True
    ):
        if not ops:
            if rewritten.text != document.text:
                _broken("a document without a patch changed", "untouched")
            continue
        value = json.loads(json.dumps(document.value))
        wanted = jsonpatch.apply_patch(value, ops, in_place=True)
        (read,) = read_documents(rewritten.text, "rewritten")
        if json.dumps(read.value, sort_keys=True) != json.dumps(wanted, sort_keys=True):
            _broken(f"{rewritten.text!r:.300}", "value")


WORKLOAD_LAWS = (
    costs_little_time,
    a_refusal_is_a_line,
    the_forms_can_be_shown,
    the_text_reads_as_the_patched_value,
    costs_little_memory,
)


# Fabrics files


class Loading(Costing):
    """A fabrics file, and the result of loading it."""

    allowance = Allowance(0.15, 1.5e-5, 1500)

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.weigh = True
        self.again = self._load
        self.seconds, (self.loaded, self.findings) = cost.timed(self._load)

    def _load(self) -> tuple[Loaded | None, tuple[Finding, ...]]:
        try:
            loaded = parse_fabrics(decode(self.data, "fabrics.yaml"), "fabrics.yaml")
        except InvalidConfiguration as error:
            return None, error.findings
        return loaded, loaded.findings


#: The most findings that are shown for one file.
_SHOWN = 100


def findings_are_lines(seen: Loading) -> None:
    """Each finding is one line that a terminal can show, about a line that the file has."""
    if seen.loaded is None and not any(one.severity == "error" for one in seen.findings):
        _broken("refused without an error", "none")
    if len(seen.findings) > _SHOWN:
        _broken(f"{len(seen.findings)} findings", "many")
    lines = len(re.split(rb"\r\n|[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9]", seen.data))
    for one in seen.findings:
        _check_line(one.text("fabrics.yaml"))
        # libyaml reports the end of an unfinished text on the line after the last one.
        if one.line is not None and not 1 <= one.line <= lines + 1:
            _broken(f"line {one.line} of {lines}", "line")


def what_is_loaded_can_be_used(seen: Loading) -> None:
    """Pods can be decided with the configuration, and only what the file says is added to them."""
    if seen.loaded is None:
        return
    fabrics = seen.loaded.fabrics
    facts = Facts.from_objects(_NODES)
    for namespace in ("lab", "other"):
        context = Context(fabrics, facts.namespace(namespace), facts.inventory(fabrics))
        for pod in _PODS:
            decision = decide(pod, context)
            for change in forbidden(pod, decision.pod, names_of(fabrics)):
                _broken(f"{change!r:.300}", f"{change.kind} {_shapes([dotted(change.path)])}")
            if decision.allowed and decide(decision.pod, context).patch:
                _broken("a second pass changes something", "idempotent")


def the_hash_is_of_what_it_means(seen: Loading) -> None:
    """A file has the same hash each time it is loaded."""
    if seen.loaded is not None:
        again = seen.again()
        assert isinstance(again, tuple)
        if again[0].fabrics.config_hash != seen.loaded.fabrics.config_hash:
            _broken("another hash of the same file")


FABRICS_LAWS = (
    costs_little_time,
    findings_are_lines,
    the_hash_is_of_what_it_means,
    what_is_loaded_can_be_used,
    costs_little_memory,
)
_PODS: tuple[dict[str, Any], ...] = tuple(
    {
        "metadata": {"annotations": {"rdma.lab/enable": "true"}},
        "spec": {"containers": [{"name": "a", "resources": {"limits": limits}, "env": []}], **spec},
    }
    for limits in (
        {"nvidia.com/gpu": 8, "memory": "64Gi"},
        {"nvidia.com/v100": "2", "rdma/hca": 1},
        {"nvidia.com/h100": 1},
    )
    for spec in ({}, {"hostNetwork": True}, {"nodeName": "node-1"})
)
_NODES = [one for one in CLUSTERS[1] or () if one["kind"] == "Node"]
