"""The worker's operations. Each request gets an answer, whatever happens.

    configure   the body is a fabrics file, or an object in JSON → its hash
    preview     the body is documents, YAML or JSON              → the report in the requested
                                                                   format
    validate    the body is a FabricConfiguration in JSON, and   → the AdmissionReview about it
                its change

An answer has the status of the server's HTTP answer: 200 and a body; 400 or 413 and a message to
the caller; 500 and, for the log, the place of the defect.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from webhook.admission.configuration_changes import ConfigurationChange, change_findings
from webhook.admission.configuration_review import ConfigurationErrors, configuration_answer
from webhook.config.bundled_examples import is_example
from webhook.config.findings import InvalidConfiguration, text_after_path
from webhook.config.load import LoadedConfiguration, parse_fabrics, parse_object
from webhook.errors import DocumentError, crash_summary
from webhook.model.fabric import CompiledConfiguration
from webhook.model.finding import Finding, Level
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.formats import writer
from webhook.preview.report.record import HTTP_WORDING
from webhook.preview.worker.confinement import MAX_ADDRESS_SPACE
from webhook.preview.worker.frames import MAX_ANSWER_BYTES, Head, Operation
from webhook.preview.writers import Output, OutputOptions
from webhook.text.escape import visible
from webhook.text.yaml.documents import read_documents

_CLI = "`rdma-webhook preview FILE` on your own machine has no such limit"
TOO_MUCH_MEMORY = (
    f"the preview needs more than the {MAX_ADDRESS_SPACE >> 20} MiB of memory that it may use; "
    f"send fewer or smaller documents at a time; {_CLI}"
)
#: By operation.
_TOO_MUCH: dict[Operation, str] = {
    "configure": TOO_MUCH_MEMORY,
    "preview": TOO_MUCH_MEMORY,
    "validate": f"the check needs more than the {MAX_ADDRESS_SPACE >> 20} MiB of memory it may use",
}
TOO_LARGE = (
    f"the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB; "
    f"send fewer or smaller documents at a time; {_CLI}"
)
_MAX_SENTENCE_LENGTH = 4096


class Reply(NamedTuple):
    """An answer to the server: the head of a frame, and its body."""

    head: Head
    body: bytes = b""


class Operations:
    """The worker's operations, with the fabrics of the last `configure`."""

    def __init__(self) -> None:
        self._configuration: CompiledConfiguration | None = None
        self._is_example = False
        #: All operations; nothing else can be called.
        self._handlers: dict[Operation, Callable[[Head, bytes], Reply]] = {
            "configure": self._configure,
            "preview": self._preview,
            "validate": self._validate,
        }

    def answer(self, head: Head, body: bytes) -> Reply:
        """Run the requested operation and return its answer; never raises."""
        try:
            return self._handlers[head["operation"]](head, body)
        except DocumentError as error:
            return _refuse(400, str(error))
        except MemoryError:
            pass  # the objects that fill the memory are freed with the exception, after this clause
        except Exception as error:  # noqa: BLE001 -- reported; the next request may succeed
            return Reply({"status": 500, **crash_summary(error)})
        return _refuse(413, _TOO_MUCH[head["operation"]])

    def _configure(self, head: Head, body: bytes) -> Reply:
        text = body.decode()
        if head.get("object"):  # not as YAML, in which some characters of JSON are not allowed
            loaded = parse_object(json.loads(text), "fabrics")
            self._is_example = False  # a cluster's own, even if they began as an example
        else:
            loaded = parse_fabrics(text, "fabrics")
            self._is_example = is_example(loaded.compiled)
        self._configuration = loaded.compiled
        return Reply({"status": 200, "config": self._configuration.config_hash})

    def _validate(self, head: Head, body: bytes) -> Reply:
        request = json.loads(body)
        faults = configuration_faults(request["object"])
        if request["change"] is not None:
            changes = change_findings(ConfigurationChange(**request["change"]))
            faults = faults._replace(warnings=[*_change_warnings(changes), *faults.warnings])
        answer = configuration_answer(head["uid"], head["object_reference"], faults)
        errors = len(faults.errors) + faults.more_errors
        warnings = len(faults.warnings) + faults.more_warnings
        reply_head = {"status": 200, "errors": errors, "warnings": warnings}
        return Reply(reply_head, json.dumps(answer).encode())

    def _preview(self, head: Head, body: bytes) -> Reply:
        assert self._configuration is not None
        documents = read_documents(body, "body")
        if not documents:
            raise DocumentError(
                "the body contains no documents; send a pod or a workload as YAML or JSON"
            )
        report = preview_documents(documents, self._options(head, self._configuration))
        output = writer(head["format"])(documents, report, OutputOptions(wording=HTTP_WORDING))
        answer = (_comments(output) + output.text).encode(errors="replace")
        return _refuse(413, TOO_LARGE) if len(answer) > MAX_ANSWER_BYTES else _ok(answer)

    def _options(self, head: Head, configuration: CompiledConfiguration) -> PreviewOptions:
        return PreviewOptions(
            configuration=configuration,
            namespace=head["namespace"],
            namespace_labels=head["labels"],
            enable=head["enable"],
            example=head["example"],
            given_example=self._is_example,
            max_pods=head["max_pods"],
            wording=HTTP_WORDING,
        )


def _comments(output: Output) -> str:
    """Return the remarks, such as denials, as comments for the top of an answer."""
    return "".join(
        f"# {label}: {' '.join(sentence.split())}\n" for label, sentence in output.remarks
    )


def _ok(body: bytes) -> Reply:
    return Reply({"status": 200}, body)


def _refuse(status: int, sentence: str) -> Reply:
    return Reply({"status": status, "sentence": visible(sentence[:_MAX_SENTENCE_LENGTH])})


# The errors and warnings of a FabricConfiguration, for the API server's answer to `kubectl apply`.

#: The path in messages about no particular field.
_OBJECT_PATH = "the object"


def configuration_faults(manifest: Mapping[str, object]) -> ConfigurationErrors:
    """Apply the rules of `check-config` to an object."""
    try:
        return _errors_of(parse_object(manifest, _OBJECT_PATH))
    except InvalidConfiguration as error:
        return _errors_of(error)


def _errors_of(reading: LoadedConfiguration | InvalidConfiguration) -> ConfigurationErrors:
    return ConfigurationErrors(
        errors=_messages(reading.findings, "error"),
        more_errors=reading.truncation.errors,
        warnings=_messages(reading.findings, "warning"),
        more_warnings=reading.truncation.warnings,
    )


def _change_warnings(findings: Iterable[Finding]) -> Iterator[tuple[str, str]]:
    """Yield the warnings about an update, with remedy and code: no other command prints them."""
    for finding in findings:
        sentence = f"{finding.text}. {finding.remedy} [{finding.code}]"
        yield finding.location.path, visible(sentence)


def _messages(findings: Iterable[Finding], level: Level) -> list[tuple[str, str]]:
    return [
        (visible(finding.location.path) or _OBJECT_PATH, visible(text_after_path(finding)))
        for finding in findings
        if finding.level == level
    ]
